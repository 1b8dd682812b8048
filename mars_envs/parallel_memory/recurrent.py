"""Recurrent memory: the document is read chunk by chunk, and the whole memory rewritten each time.

This is MemAgent's workflow (Yu et al. 2025): m_0 is empty, m_i = UPDATE(q, m_{i-1}, c_i) for
i = 1..n, a = ANSWER(q, m_n): n + 1 calls, one after the other, and no exit. It is the baseline
that reading in parallel is measured against.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .budgets import cut_to
from .calls import CallLoop, ChunkedText, Heard, Request, Sizes, Status
from .prompts import UpdateView
from .replies import parse_memory
from .settings import MemorySettings, whole_number
from .workflow import Call, ExitReason, Phase, TurnRecord


class RecurrentMemory(CallLoop):
    """Reads a document chunk by chunk with a memory that is rewritten each time.

    Of the settings, `memory_tokens`, `answer_tokens`, `window`, `order`, `style`, `grammar`,
    `budgets`, `retries` and `max_failures` count; turns are passes over the document, set by
    `passes`.

    An update that is given up leaves the memory as it is, and its chunk is read again behind the
    last one: a pass ends only when every chunk was read, or the episode as `backend_error`. An
    exit waits for such chunks, too. An empty reply keeps the old memory. A document without chunks
    goes straight to the answer.

    Args:
        question: what to answer.
        chunks: the document.
        settings: see `MemorySettings`; None for the default ones.
        prompts: see `resolve_prompts`; functions `update` and `answer`.
        passes: how often the whole document is read, the memory of one pass being where the next
            one starts. MemAgent reads once; what needs a chain against its order needs more.

    Raises:
        InvalidSetting: `passes` is no whole number of at least 1, prompts that lack a function, or
            a window too small for the chunks.

    Example:
        >>> from mars_envs.parallel_memory.play import play
        >>> from mars_envs.parallel_memory.replies import Answer
        >>> from mars_envs.reading.chunking import chunk_document
        >>> def speak(view):
        ...     if view["role"] == "memorizer":
        ...         return view["memory"] or ("red" if "red" in view["chunk"] else "")
        ...     return Answer(view["memory"])
        >>> loop = RecurrentMemory("Which colour?", chunk_document("It is red. Or not.", size=4))
        >>> loop = play(loop, speak)
        >>> loop.answer, loop.exit_reason, [call.role for call in loop.calls]
        ('red', 'read_all', ['memorizer', 'memorizer', 'answerer'])
    """

    _prompt = "update"

    def __init__(
        self,
        question: str,
        chunks: ChunkedText,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
        passes: int = 1,
    ) -> None:
        super().__init__(
            question,
            chunks,
            settings=settings,
            prompts=prompts,
            needs=(self._prompt, "answer"),
        )
        self._passes = whole_number("passes", passes, 1)
        around = self._update_prompt(max(0, len(chunks) - 1), "")
        self._check_window(around, reply=self._reply_tokens)
        self._begin_pass(1)
        self._settle()

    @property
    def max_turns(self) -> int:
        """Passes over the document."""
        return self._passes

    @property
    def _reply_tokens(self) -> int:
        """The most that an update has."""
        return self.settings.memory_tokens

    def _begin_pass(self, number: int) -> None:
        self._turn = number
        self._to_read = deque(range(len(self.chunks)))
        self._failed: set[int] = set()  # given up, and not read since
        self._read: list[int] = []
        self._changed: list[int] = []
        self._malformed = 0
        self._memory_cut = False

    def _advance(self) -> None:
        if self._exits():
            self._to_read = deque(index for index in self._to_read if index in self._failed)
        if self._to_read:
            self._post([Request(role="memorizer", phase=Phase.READ, index=self._to_read.popleft())])
            return
        self._turns.append(
            TurnRecord(
                turn=self._turn,
                read=tuple(self._read),
                found=tuple(sorted(self._changed)),
                failed=(),
                malformed=self._malformed,
                dropped=0,
                memory=self._memory,
                memory_tokens=self._memory_tokens,
                memory_cut=self._memory_cut,
            )
        )
        if self._exits() or self._turn == self._passes:
            self._ask_answer(self._reason())
        else:
            self._begin_pass(self._turn + 1)

    def _exits(self) -> bool:
        """Whether nothing more is to be read, but what failed."""
        return False

    def _reason(self) -> ExitReason:
        return "read_all"

    def _spare(self, request: Request) -> bool:
        if request.role != "memorizer":
            return False
        self._to_read.append(request.index)
        self._failed.add(request.index)
        return True

    def _call(self, call_id: int, request: Request) -> Call:
        if request.role != "memorizer":
            return super()._call(call_id, request)
        chunk = self._chunk(request.index)
        return self._make(
            call_id,
            request,
            prompt=self._update_prompt(request.index, chunk),
            memory=self._memory,
            chunk=chunk,
            span=self.chunks.span(request.index),
            max_tokens=self._reply_tokens,
        )

    def _sizes(self, request: Request) -> Sizes:
        if request.role != "memorizer":
            return super()._sizes(request)
        chunk = self.chunks.tokens(request.index)
        around = self._count(self._update_prompt(request.index, ""))
        return Sizes(prompt=around + chunk, chunk=chunk, memory=self._memory_tokens)

    def _hear(self, request: Request, reply: str, tokens: int) -> Heard:
        if request.role != "memorizer":
            return super()._hear(request, reply, tokens)
        self._read.append(request.index)
        self._failed.discard(request.index)
        return self._hear_update(request, reply)

    def _hear_update(self, request: Request, reply: str) -> Heard:
        """Take in what a memorizer replied."""
        memory = parse_memory(reply, grammar=self.settings.grammar)
        if memory is None:
            return Heard(status="empty")
        return self._remember(memory, request.index, "done")

    def _remember(self, memory: str, index: int, status: Status) -> Heard:
        """Make a text the memory, within its budget, and say what became of it."""
        cut = False
        if self.settings.budgets:
            memory, cut = cut_to(memory, self.settings.memory_tokens, self.chunks.tokenizer)
        changed = memory != self._memory
        if changed:
            self._changed.append(index)
        self._memory = memory
        self._memory_tokens = self._count(memory)
        self._memory_cut |= cut
        return Heard(status=status, found=changed, cut=cut)

    def _update_prompt(self, index: int, chunk: str) -> str:
        view = UpdateView(
            question=self.question,
            memory=self._memory,
            chunk=chunk,
            label=self._label(index),
            memory_tokens=self.settings.memory_tokens,
            order=self.settings.order,
            style=self.settings.style,
        )
        prompt: str = getattr(self.prompts, self._prompt)(view)
        return prompt
