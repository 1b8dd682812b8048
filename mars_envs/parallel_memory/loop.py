"""PI-Mem's loop: read all chunks, merge what is new, until nobody finds anything new; then answer.

The equations are those of the paper (arXiv 2608.03048, eq. 1-2):

    o_i^(k) = READ(q, c_i, m^(k-1))          for every chunk, independently
    O^(k)   = the o_i^(k) that say yes, in the order of the chunks
    m^(k)   = MERGE(q, m^(k-1), O^(k))       if O^(k) is not empty, else reading ends
    a       = ANSWER(q, m*)                  from the last memory alone
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from .budgets import cut_to
from .calls import CallLoop, ChunkedText, Heard, Request, Sizes
from .merge import MergeSpace
from .prompts import MergeView, ReadView
from .relevance import most_relevant
from .replies import parse_memory, parse_read, parse_summary
from .settings import MemorySettings
from .workflow import Call, Note, Phase, TurnRecord

_ROUNDS = 8
"""Of the last turn, beyond its own, for chunks that were never read."""


class MemoryLoop(CallLoop):
    """Reads a document in parallel with a shared memory.

    A document without chunks has nothing to find: one turn without calls, then the answer from an
    empty memory.

    A read that is given up is not a no: its turn cannot end reading as `no_new_evidence`. Where
    nobody else found anything either, the next turn reads only what failed, since the memory is
    the same for all others; else it reads everything. In the last turn, chunks that no turn has
    read are asked for in up to `_ROUNDS` further rounds; where one stays unread, the episode ends
    as `backend_error`: there is no answer from a document that was not read.

    Args:
        question: what to answer.
        chunks: the document; see `mars_envs.reading.chunking.chunk_document`.
        settings: see `MemorySettings`; None for the default ones.
        prompts: "prose", "compact", a module or an object; see `prompts.resolve_prompts`.

    Raises:
        InvalidSetting: prompts that lack a function, or a window too small for a merge or a chunk.

    Example:
        >>> from mars_envs.parallel_memory.play import play
        >>> from mars_envs.parallel_memory.replies import Answer, Merge, Read
        >>> from mars_envs.reading.chunking import chunk_document
        >>> def speak(view):
        ...     if view["role"] == "reader":
        ...         new = "red" in view["chunk"] and not view["memory"]
        ...         return Read.yes(view["chunk"]) if new else Read.no()
        ...     return Merge("red") if view["role"] == "merger" else Answer(view["memory"])
        >>> loop = MemoryLoop("Which colour?", chunk_document("It is red. Or not.", size=4))
        >>> loop = play(loop, speak)
        >>> loop.answer, loop.turn, loop.exit_reason, len(loop.calls)
        ('red', 2, 'no_new_evidence', 6)
    """

    def __init__(
        self,
        question: str,
        chunks: ChunkedText,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
    ) -> None:
        super().__init__(
            question,
            chunks,
            settings=settings,
            prompts=prompts,
            needs=("read", "merge", "answer"),
        )
        around = self.prompts.read(self._read_view(max(0, len(chunks) - 1), ""))
        self._check_window(around, reply=self.settings.reply_tokens)
        self._space = self._merge_space()
        self._reading: Sequence[int] = range(len(chunks))
        self._unread = set(self._reading)
        self._rounds = 0
        self._begin_turn(1)
        self._settle()

    def _begin_turn(self, turn: int) -> None:
        self._turn = turn
        self._phase = Phase.READ
        self._found: dict[int, Note] = {}
        self._failed: list[int] = []
        self._malformed = 0
        self._dropped = 0
        self._memory_cut = False
        self._read_overhead = -1
        self._level: list[Note | None] = []
        backwards = self.settings.alternate and turn % 2 == 0
        places = reversed(self._reading) if backwards else self._reading
        self._post([Request(role="reader", phase=Phase.READ, index=i) for i in places])

    def _advance(self) -> None:
        if self._phase is Phase.READ:
            if self._unread and self._turn == self.settings.max_turns:
                self._read_the_rest()
            else:
                self._select()
        elif self._round[0].final:
            self._finish_turn()
        else:
            notes = [note for note in self._level if note is not None]
            self._merge(notes, level=self._round[0].level + 1)

    def _read_the_rest(self) -> None:
        """Ask again for what was never read; it is now or never."""
        if self._rounds == _ROUNDS:
            self._end("backend_error")
            return
        self._rounds += 1
        self._failed = [index for index in self._failed if index not in self._unread]
        unread = sorted(self._unread)
        self._post([Request(role="reader", phase=Phase.READ, index=i) for i in unread])

    def _finish_turn(self) -> None:
        self._turns.append(
            TurnRecord(
                turn=self._turn,
                read=tuple(self._reading),
                found=tuple(sorted(self._found)),
                notes=tuple(self._found[index] for index in sorted(self._found)),
                failed=tuple(sorted(self._failed)),
                malformed=self._malformed,
                dropped=self._dropped,
                memory=self._memory,
                memory_tokens=self._memory_tokens,
                memory_cut=self._memory_cut,
            )
        )
        exits = self.settings.early_exit and self.settings.check and not self._found
        if exits and not self._failed:
            self._ask_answer("no_new_evidence")
        elif self._turn == self.settings.max_turns:
            self._ask_answer("max_turns")
        else:
            # Under the same memory, the others would only say again that there is nothing.
            self._reading = sorted(self._failed) if exits else range(len(self.chunks))
            self._begin_turn(self._turn + 1)

    def _spare(self, request: Request) -> bool:
        if request.role != "reader":
            return False
        self._failed.append(request.index)
        return True

    # What a turn does: select, then merge, level by level.

    def _select(self) -> None:
        """Make O^(k) of what was read, and go on to merge it."""
        notes = [self._found[index] for index in sorted(self._found)]
        cap = self.settings.max_notes
        if cap is not None and len(notes) > cap:
            query = f"{self.question}\n{self._memory}"
            kept = most_relevant([note.text for note in notes], query, cap)
            self._dropped = len(notes) - cap
            notes = [notes[place] for place in kept]
        fitting = [self._fitting(note) for note in notes]
        self._flag_cut(
            {note.first for note, kept in zip(notes, fitting, strict=True) if kept != note}
        )
        notes = fitting
        self._found = {note.first: note for note in notes}
        if notes and self.settings.merging:
            self._phase = Phase.MERGE
            self._merge(notes, level=0)
            return
        if notes:
            known = [self._memory] if self._memory else []
            self._remember("\n\n".join(known + [note.text for note in notes]))
        self._finish_turn()

    def _merge(self, notes: list[Note], *, level: int) -> None:
        """Post the calls of a level; a short note that would be alone in its call is passed on."""
        sizes = [self._count(note.text) + self._space.label for note in notes]
        bins = self._bins(notes, sizes)
        if len(bins) == 1:
            self._post([_merger(0, level, notes, final=True)])
            return
        self._level = []
        requests = []
        for places in bins:
            members = [notes[place] for place in places]
            if len(members) == 1 and sizes[places[0]] <= self._space.slot:
                self._level.append(members[0])
            else:
                requests.append(_merger(len(self._level), level, members, final=False))
                self._level.append(None)
        self._post(requests)

    def _bins(self, notes: list[Note], sizes: list[int]) -> list[range]:
        """Pack notes into calls that fit in the window as they are told.

        Of most tokenizers a prompt has not quite as many tokens as its parts together, so it is
        looked at; what is too much is room that is not there. Two notes always get one call.
        """
        memory, most = self._memory_size(), self._space.most_memory
        while True:
            bins = self._space.bins(sizes, memory)
            if most is None or memory >= most:
                return bins
            told = (
                _merger(0, 0, [notes[i] for i in places], final=len(bins) == 1)
                for places in bins
                if len(places) > 1
            )
            over = max((self._too_much(merger) for merger in told), default=0)
            if over <= 0:
                return bins
            memory = min(memory + over, most)

    def _fitting(self, note: Note) -> Note:
        """Return a note that fits in a call of its own, cut if need be."""
        room = self._space.room(self._memory_size())
        if room is None:
            return note
        fitting, tokens = note, room - self._space.label
        while True:
            text, cut = cut_to(note.text, tokens, self.chunks.tokenizer)
            if cut:
                fitting = replace(note, text=text)
            over = self._too_much(_merger(0, 0, [fitting], final=True))
            if over <= 0 or tokens <= self.settings.memory_tokens:
                break
            tokens = max(tokens - over, self.settings.memory_tokens)
        return fitting

    def _too_much(self, merger: Request) -> int:
        """Return by how many tokens a call, its reply included, is over the window."""
        window = self._space.window
        if window is None:
            return 0
        prompt = self._count(self.prompts.merge(self._merge_view(merger)))
        return prompt + self.settings.memory_tokens - window

    def _flag_cut(self, chunks: Set[int]) -> None:
        """Say in the records of this turn's readers whose notes are not whole."""
        if not chunks:
            return
        for call_id, record in self._records.items():
            if record.turn == self._turn and record.index in chunks and record.role == "reader":
                self._records[call_id] = replace(record, cut=True)
        self._calls = None

    def _remember(self, memory: str) -> None:
        """Make a text the memory, within its budget."""
        cut = False
        if self.settings.budgets:
            memory, cut = cut_to(memory, self.settings.memory_tokens, self.chunks.tokenizer)
        self._memory = memory
        self._memory_tokens = self._count(memory)
        self._memory_cut = cut

    # What calls look like, and what replies mean.

    def _call(self, call_id: int, request: Request) -> Call:
        settings = self.settings
        if request.role == "reader":
            chunk = self._chunk(request.index)
            return self._make(
                call_id,
                request,
                prompt=self.prompts.read(self._read_view(request.index, chunk)),
                memory=self._memory,
                chunk=chunk,
                span=self.chunks.span(request.index),
                max_tokens=settings.reply_tokens,
            )
        if request.role == "merger":
            return self._make(
                call_id,
                request,
                prompt=self.prompts.merge(self._merge_view(request)),
                memory=self._memory if request.final else "",
                selected=request.notes,
                max_tokens=settings.memory_tokens,
            )
        return super()._call(call_id, request)

    def _sizes(self, request: Request) -> Sizes:
        if request.role == "reader":
            if self._read_overhead < 0:
                self._read_overhead = self._count(self.prompts.read(self._read_view(0, "")))
            chunk = self.chunks.tokens(request.index)
            return Sizes(
                prompt=self._read_overhead + chunk, chunk=chunk, memory=self._memory_tokens
            )
        if request.role == "merger":
            return Sizes(
                prompt=self._count(self.prompts.merge(self._merge_view(request))),
                memory=self._memory_tokens if request.final else 0,
                selected=sum(self._count(note.text) for note in request.notes),
            )
        return super()._sizes(request)

    def _hear(self, request: Request, reply: str, tokens: int) -> Heard:
        if request.role == "reader":
            return self._hear_reader(request, reply, tokens)
        if request.role == "merger":
            return self._hear_merger(request, reply)
        return super()._hear(request, reply, tokens)

    def _hear_reader(self, request: Request, reply: str, tokens: int) -> Heard:
        settings = self.settings
        self._unread.discard(request.index)
        if settings.check:
            check = parse_read(reply, grammar=settings.grammar, strict=settings.strict)
        else:
            check = parse_summary(reply)
        self._malformed += check.status == "malformed"
        if check.note is not None:
            note = check.note
            if settings.budgets:
                note, _ = cut_to(note, settings.reply_tokens, self.chunks.tokenizer)
            self._found[request.index] = Note(text=note, first=request.index, last=request.index)
        over = tokens > settings.reply_tokens
        return Heard(status=check.status, found=check.note is not None, cut=over)

    def _hear_merger(self, request: Request, reply: str) -> Heard:
        memory = parse_memory(reply, grammar=self.settings.grammar)
        if request.final:
            if memory is not None:
                self._remember(memory)
            return Heard(status="done" if memory else "empty", cut=self._memory_cut)
        # An intermediate note is a link of the chain: where none came, what it was made of stands.
        text = memory or "\n".join(note.text for note in request.notes)
        text, cut = cut_to(text, self.settings.memory_tokens, self.chunks.tokenizer)
        self._level[request.index] = Note(
            text=text, first=request.notes[0].first, last=request.notes[-1].last
        )
        return Heard(status="done" if memory else "empty", cut=cut)

    def _read_view(self, index: int, chunk: str) -> ReadView:
        return ReadView(
            question=self.question,
            memory=self._memory,
            chunk=chunk,
            label=self._label(index),
            order=self.settings.order,
            style=self.settings.style,
            check=self.settings.check,
        )

    def _merge_view(self, request: Request) -> MergeView:
        notes = request.notes
        if self.settings.numbering == "kept":
            labels = [str(place) for place in range(1, len(notes) + 1)]
        else:
            labels = [self._label(note.first, note.last) for note in notes]
        return MergeView(
            question=self.question,
            memory=self._memory if request.final else "",
            notes=[note.text for note in notes],
            labels=labels,
            memory_tokens=self.settings.memory_tokens,
            style=self.settings.style,
        )

    def _memory_size(self) -> int:
        return self._memory_tokens + self._space.label if self._memory else 0

    def _merge_space(self) -> MergeSpace:
        """Measure what a merge prompt has beside memory and notes."""
        bounded = self.settings.merging and self.settings.merge == "hierarchical"
        window = self.settings.window if bounded else None
        if window is None:
            return MergeSpace(window=None, memory_tokens=self.settings.memory_tokens)
        n = len(self.chunks)
        view = MergeView(
            question=self.question,
            memory="",
            notes=[],
            labels=[],
            memory_tokens=self.settings.memory_tokens,
            style=self.settings.style,
        )
        overhead = self._count(self.prompts.merge(view))
        around_a_note = replace(view, notes=["x"], labels=[f"{n}-{n}/{n}"])
        around_the_memory = replace(view, memory="x")
        with_text = max(
            self._count(self.prompts.merge(one)) for one in (around_a_note, around_the_memory)
        )
        return MergeSpace(
            window=window,
            memory_tokens=self.settings.memory_tokens,
            overhead=overhead,
            label=max(0, with_text - overhead - self._count("x")),
        )


def _merger(index: int, level: int, notes: Sequence[Note], *, final: bool) -> Request:
    return Request(
        role="merger",
        phase=Phase.MERGE,
        index=index,
        level=level,
        notes=tuple(notes),
        final=final,
    )
