"""What every workflow shares: rounds of calls, retries, failures, records, the answer.

Calls are posted in rounds. Those of a round are independent of each other and may be told in any
order; only when all are settled does a workflow go on, and only then are failed ones posted again.
So ids, prompts and outcome are the same whatever the order. An episode that ends as `backend_error`
ends in the middle of a round: which of its other calls have records depends on who was told first.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from ..errors import InvalidSetting, ProtocolError
from ..reading.tokenizers import Tokenizer
from ..spaces import replace_surrogates
from .prompts import AnswerView, resolve_prompts
from .replies import as_shown, parse_answer
from .settings import MemorySettings
from .workflow import Call, CallRecord, ExitReason, Note, Phase, Role, TurnRecord

Status = Literal["yes", "no", "empty", "malformed", "done", "error"]

_SHARED = frozenset({"question", "chunks", "settings", "prompts"})
"""Attributes that never change, which copies of a workflow share."""


class ChunkedText(Protocol):
    """A document in chunks, as `mars_envs.reading.chunking.Chunks` is."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What counts its tokens."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> str: ...

    def span(self, index: int, /) -> tuple[int, int]:
        """Return where a chunk stands in the document, in characters."""
        ...

    def tokens(self, index: int, /) -> int:
        """Return how many tokens a chunk has."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call before it is asked for: what it is about, without its texts."""

    role: Role
    phase: Phase
    index: int = 0
    level: int = 0
    attempt: int = 0
    notes: tuple[Note, ...] = ()
    """To merge, or to answer from."""
    final: bool = True
    """Of a merge: whether it makes the memory, not an intermediate note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a reply was."""

    status: Status
    found: bool = False
    """Something came of it; see `CallRecord.found`."""
    cut: bool = False
    """The reply was over its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Tokens that a call is told."""

    prompt: int
    """All of it."""
    chunk: int = 0
    memory: int = 0
    selected: int = 0


def question_text(question: str) -> str:
    """Return a question as agents are shown it.

    Raises:
        InvalidSetting: it is no text.
    """
    if not isinstance(question, str):
        raise InvalidSetting(f"a question is a text (str), got {question!r:.80}")
    return as_shown(question)


class CallLoop(ABC):
    """Base of the workflows.

    A subclass posts its first round in its constructor and calls `_settle`. It says what comes
    after a round (`_advance`), what a call looks like (`_call`, `_sizes`) and what a reply means
    (`_hear`); the answerer's call is known here, from the memory alone.

    Args:
        question: what to answer.
        chunks: the document; read where needed, never copied.
        settings: see `MemorySettings`; None for the default ones.
        prompts: see `resolve_prompts`.
        needs: the functions that the prompts must have.

    Raises:
        InvalidSetting: prompts that lack a function, or a question that is no text.
    """

    def __init__(
        self,
        question: str,
        chunks: ChunkedText,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
        needs: Sequence[str],
    ) -> None:
        self.question = question_text(question)
        self.chunks = chunks
        self.settings = settings or MemorySettings()
        self.prompts = resolve_prompts(prompts, needs=needs)
        self._phase = Phase.READ
        self._turn = 1
        self._memory = ""
        self._memory_tokens = 0
        self._exit_reason: ExitReason = ""
        self._reply = ""
        self._answer = ""
        self._turns: list[TurnRecord] = []
        self._records: dict[int, CallRecord] = {}
        self._calls: tuple[CallRecord, ...] | None = ()
        self._first_id = 0
        self._round: list[Request] = []
        self._asked = 0
        self._left = 0
        self._open: dict[int, Request] = {}
        self._again: list[Request] = []
        self._given_up = 0
        bound = self.settings.max_failures
        self._max_failures = max(8, len(chunks) // 2) if bound is None else bound

    @property
    def phase(self) -> Phase:
        """What is going on."""
        return self._phase

    @property
    def turn(self) -> int:
        """From 1; at the end, the last one entered."""
        return self._turn

    @property
    def max_turns(self) -> int:
        """The most turns that there can be."""
        return self.settings.max_turns

    @property
    def n_chunks(self) -> int:
        """Chunks of the document."""
        return len(self.chunks)

    @property
    def memory(self) -> str:
        """As it stands; empty: nothing is known yet."""
        return self._memory

    @property
    def exit_reason(self) -> ExitReason:
        """Why reading ended; empty while it goes on."""
        return self._exit_reason

    @property
    def reply(self) -> str:
        """What the answerer said, whole; empty before."""
        return self._reply

    @property
    def answer(self) -> str:
        """What the answerer put in a box; empty before, and where there is no box."""
        return self._answer

    @property
    def calls(self) -> Sequence[CallRecord]:
        """What became of each call that was told, by id."""
        if self._calls is None:
            self._calls = tuple(self._records[key] for key in sorted(self._records))
        return self._calls

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """What each finished turn brought."""
        return tuple(self._turns)

    def ask(self, k: int | None = None) -> list[Call]:
        """Return the next calls that can be made now, at most `k`; each is returned once.

        An empty list means that replies are awaited or, when `phase` is DONE, that it is over.
        Prompts are made here, and kept by nobody else.
        """
        last = len(self._round) if k is None else min(len(self._round), self._asked + max(0, k))
        places = range(self._asked, last)
        calls = [self._call(self._first_id + place, self._round[place]) for place in places]
        for place in places:
            self._open[self._first_id + place] = self._round[place]
        self._asked = last
        return calls

    def tell(self, call_id: int, reply: str) -> None:
        """Say what a call's model replied. Lone surrogates become U+FFFD.

        Calls that were open when the episode ended may still be told; they have records, too, and
        change nothing else.

        Raises:
            ProtocolError: no such call is open.
            TypeError: the reply is no text.
        """
        request = self._opened(call_id)
        if not isinstance(reply, str):
            raise TypeError(
                f"a reply is a text (str), got {type(reply).__name__}; where there is none, say so "
                "with fail()"
            )
        reply = replace_surrogates(reply)
        tokens = self._count(reply)
        sizes = self._sizes(request)
        heard = self._hear(request, reply, tokens)
        self._close(call_id, request, heard, sizes, tokens)
        self._settle()

    def fail(self, call_id: int, reason: str) -> None:
        """Say that no reply will come to a call; it may be asked again under another id.

        Raises:
            ProtocolError: no such call is open.
        """
        request = self._opened(call_id)
        self._close(call_id, request, Heard(status="error"), self._sizes(request), 0)
        if self._phase is not Phase.DONE:
            if request.attempt < self.settings.retries:
                self._again.append(request)
            else:
                self._given_up += 1
                spared = self._spare(request)
                if not spared or self._given_up > self._max_failures:
                    self._end("backend_error")
        self._settle()

    def __deepcopy__(self, memo: dict[int, Any]) -> CallLoop:
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            setattr(twin, name, value if name in _SHARED else copy.deepcopy(value, memo))
        return twin

    @abstractmethod
    def _advance(self) -> None:
        """Go on after a round: post another, ask for the answer, or end."""

    def _spare(self, request: Request) -> bool:
        """Take note of a call that is given up; return whether one can do without it."""
        return False

    def _call(self, call_id: int, request: Request) -> Call:
        """Return a request with its texts."""
        return self._make(
            call_id,
            request,
            prompt=self._answer_prompt(),
            memory=self._memory,
            max_tokens=self.settings.answer_tokens,
        )

    def _sizes(self, request: Request) -> Sizes:
        """Return how many tokens a request tells."""
        return Sizes(prompt=self._count(self._answer_prompt()), memory=self._memory_tokens)

    def _hear(self, request: Request, reply: str, tokens: int) -> Heard:
        """Take in a reply of so many tokens."""
        self._reply = reply
        self._answer = parse_answer(reply)
        status: Status = "done" if self._answer else "malformed" if reply.strip() else "empty"
        return Heard(status=status, cut=tokens > self.settings.answer_tokens)

    def _answer_prompt(self) -> str:
        view = AnswerView(question=self.question, memory=self._memory, style=self.settings.style)
        return self.prompts.answer(view)

    def _make(self, call_id: int, request: Request, **texts: Any) -> Call:
        return Call(
            id=call_id,
            role=request.role,
            phase=request.phase,
            turn=self._turn,
            index=request.index,
            level=request.level,
            attempt=request.attempt,
            question=self.question,
            **texts,
        )

    def _count(self, text: str) -> int:
        return self.chunks.tokenizer.count(text)

    def _check_window(self, around: str, *, reply: int) -> None:
        """Refuse chunks that cannot be read in the window, where there is one.

        Args:
            around: the longest prompt without memory and chunk.
            reply: the most tokens that a reply has.
        """
        window, memory = self.settings.window, self.settings.memory_tokens
        if window is None or self.settings.merge == "flat":
            return
        prompt = self._count(around)
        largest = max((self.chunks.tokens(i) for i in range(len(self.chunks))), default=0)
        needed = prompt + largest + memory + reply
        if needed > window:
            raise InvalidSetting(
                f"a window of {window} tokens is too small for chunks of {largest} beside prompt "
                f"({prompt}), memory ({memory}) and reply ({reply}): that takes {needed}. Cut the "
                "document into smaller chunks, lower memory_tokens or reply_tokens, or widen the "
                "window"
            )

    def _chunk(self, index: int) -> str:
        return as_shown(self.chunks[index])

    def _label(self, first: int, last: int | None = None) -> str:
        """Return which chunk, or which chunks, of how many."""
        place = str(first + 1) if last is None or last == first else f"{first + 1}-{last + 1}"
        return f"{place}/{len(self.chunks)}"

    def _post(self, requests: list[Request]) -> None:
        """Make the next round."""
        self._first_id += len(self._round)
        self._round = requests
        self._asked = 0
        self._left = len(requests)

    def _ask_answer(self, reason: ExitReason, notes: tuple[Note, ...] = ()) -> None:
        """End reading: what is left is one call of the answerer."""
        self._exit_reason = reason
        self._phase = Phase.ANSWER
        self._post([Request(role="answerer", phase=Phase.ANSWER, notes=notes)])

    def _end(self, reason: ExitReason) -> None:
        """End the episode; what was not asked for is dropped."""
        self._phase = Phase.DONE
        self._exit_reason = reason
        self._post([])
        self._again = []

    def _settle(self) -> None:
        """Go on as far as it goes without a reply."""
        while not self._left and self._phase is not Phase.DONE:
            if self._again:
                again = sorted(self._again, key=lambda request: request.index)
                self._again = []
                self._post([replace(r, attempt=r.attempt + 1) for r in again])
            elif self._phase is Phase.ANSWER:
                self._end(self._exit_reason)
            else:
                self._advance()

    def _opened(self, call_id: int) -> Request:
        if call_id not in self._open:
            state = "was settled before" if call_id in self._records else "was never asked for"
            raise ProtocolError(
                f"no call {call_id!r} is open: it {state}; open are {sorted(self._open)[:8]}"
            )
        return self._open[call_id]

    def _close(
        self, call_id: int, request: Request, heard: Heard, sizes: Sizes, tokens: int
    ) -> None:
        del self._open[call_id]
        if self._phase is not Phase.DONE:
            self._left -= 1
        self._calls = None
        self._records[call_id] = CallRecord(
            id=call_id,
            role=request.role,
            turn=self._turn,
            index=request.index,
            level=request.level,
            attempt=request.attempt,
            status=heard.status,
            found=heard.found,
            cut=heard.cut,
            chunk_tokens=sizes.chunk,
            memory_tokens=sizes.memory,
            selected_tokens=sizes.selected,
            prompt_tokens=sizes.prompt,
            output_tokens=tokens,
        )
