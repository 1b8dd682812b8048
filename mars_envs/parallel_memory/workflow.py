"""What every way of reading has in common: a workflow asks for calls and is told the replies.

A workflow is a state machine without a model, a clock or threads. `ask` says which calls can be
made now, `tell` and `fail` say in any order what came of them; the outcome does not depend on that
order. The parallel loop, the recurrent ones and those that read once are all driven like this, by
environments, by `answer()`, by benchmarks and by `play`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, Protocol


class Phase(IntEnum):
    """What is going on."""

    READ = 0
    MERGE = 1
    ANSWER = 2
    DONE = 3


Role = Literal["reader", "merger", "answerer", "memorizer"]

ExitReason = Literal[
    "",  # it goes on
    "no_new_evidence",  # no reader found anything new
    "max_turns",
    "read_all",  # a recurrent reader has seen every chunk, or there was only one call to make
    "exit_gate",  # a gated recurrent reader has seen enough
    "backend_error",  # too many calls failed; there is no answer, and nothing to score
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was found and goes into a merge."""

    text: str
    first: int
    """The chunk that it is from, from 0; of a merged note the first one."""
    last: int
    """The same chunk; of a merged note the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a model that can be made now."""

    id: int
    """Counts the calls of the episode from 0, in a fixed order."""
    role: Role
    phase: Phase
    turn: int
    """From 1."""
    index: int
    """Of the chunk (reader, memorizer), of the merge in its level (merger), else 0."""
    level: int = 0
    """Of a hierarchical merge, from 0."""
    attempt: int = 0
    """How often this has failed before."""
    prompt: str
    """The whole of what a model is told: one user message."""
    question: str
    memory: str
    """As the call sees it; empty: nothing is known yet."""
    chunk: str = ""
    """The text to read; empty where none is."""
    span: tuple[int, int] = (-1, -1)
    """Where the chunk stands in the document, in characters."""
    selected: tuple[Note, ...] = ()
    """What to merge."""
    max_tokens: int
    """The most that a reply should have."""
    gated: bool = False
    """Of a memorizer: it replies with gates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """What became of a call. Tokens are counted by the workflow's tokenizer."""

    id: int
    role: Role
    turn: int
    index: int
    level: int
    attempt: int
    status: Literal["yes", "no", "empty", "malformed", "done", "error"]
    """Of a reader what it says (`malformed`: without a tag; `empty`: yes with nothing behind it);
    of others `done`, `empty` or, of an answerer that boxes nothing, `malformed`."""
    found: bool = False
    """Whether something came of it: of a reader, a note that is kept; of a memorizer, a memory that
    is not the one before."""
    cut: bool = False
    """The reply, or what was kept of it, was longer than its budget."""
    chunk_tokens: int = 0
    memory_tokens: int = 0
    selected_tokens: int = 0
    prompt_tokens: int = 0
    """All of the prompt, those above included."""
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """What a turn brought: of a recurrent workflow, one pass."""

    turn: int
    read: tuple[int, ...]
    """Chunks whose readers were asked, in order; of those in `failed` nothing is known."""
    found: tuple[int, ...]
    """Chunks whose reader said that it found something, and whose note was kept."""
    notes: tuple[Note, ...] = ()
    """What was found there, as it went into the merge."""
    failed: tuple[int, ...]
    """Chunks whose reader failed: not "nothing new"."""
    malformed: int
    dropped: int
    """Notes left out of the merge by a cap."""
    memory: str
    """At the end of the turn."""
    memory_tokens: int
    memory_cut: bool
    """The merged memory was over its budget and was cut."""


class Workflow(Protocol):
    """A way of reading a document to answer a question, as a state machine."""

    @property
    def phase(self) -> Phase:
        """What is going on."""
        ...

    @property
    def turn(self) -> int:
        """From 1; at the end, the last one entered."""
        ...

    @property
    def max_turns(self) -> int:
        """The most turns that there can be."""
        ...

    @property
    def n_chunks(self) -> int:
        """Chunks of the document."""
        ...

    @property
    def memory(self) -> str:
        """As it stands; empty: nothing is known yet."""
        ...

    @property
    def exit_reason(self) -> ExitReason:
        """Why reading ended; empty while it goes on."""
        ...

    @property
    def reply(self) -> str:
        """What the answerer said, whole; empty before."""
        ...

    @property
    def answer(self) -> str:
        """The answer taken out of the reply; empty before, and where there is none."""
        ...

    @property
    def calls(self) -> Sequence[CallRecord]:
        """What became of each call, by id; of those that are told."""
        ...

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """What each finished turn brought."""
        ...

    def ask(self, k: int | None = None) -> list[Call]:
        """Return the next calls that can be made now, at most `k`; each is returned once.

        An empty list means that replies are awaited or, when `phase` is DONE, that it is over.
        """
        ...

    def tell(self, call_id: int, reply: str) -> None:
        """Say what a call's model replied.

        Raises:
            ProtocolError: no such call is open.
        """
        ...

    def fail(self, call_id: int, reason: str) -> None:
        """Say that no reply will come to a call; it may be asked again under another id.

        Raises:
            ProtocolError: no such call is open.
        """
        ...


Speaker = Callable[[Mapping[str, Any]], str]
"""Whoever answers: from an observation to a reply. See `call_view` for its keys."""
