"""What is to be served: a question's calls, and which of them wait for which."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import InvalidSetting
from .prefix_cache import Segment

PromptOrder = Literal["question_chunk_memory", "chunk_question_memory", "reference"]
"""`reference`: instruction and question, memory, chunk."""
PROMPT_ORDERS: tuple[PromptOrder, ...] = (
    "question_chunk_memory",
    "chunk_question_memory",
    "reference",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a model."""

    role: str
    turn: int
    prompt: tuple[Segment, ...]
    chunk: int = -1
    """Which segment is the chunk that it reads; -1: none."""
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the whole prompt."""
        return sum(segment.tokens for segment in self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The calls that one question takes: stages, one after the other, of calls side by side."""

    name: str
    stages: tuple[tuple[Request, ...], ...]

    def __post_init__(self) -> None:
        if not self.stages or not all(self.stages):
            raise InvalidSetting(f"job {self.name!r}: expected a call in every stage")


def prompt_of(
    order: PromptOrder, *, head: Segment, chunk: Segment | None, memory: Segment | None
) -> tuple[tuple[Segment, ...], int]:
    """Return the segments of a prompt in order, and which of them is the chunk (-1: none)."""
    if order not in PROMPT_ORDERS:
        raise InvalidSetting(f"order is one of {', '.join(PROMPT_ORDERS)}, got {order!r:.80}")
    ordered = {
        "question_chunk_memory": (head, chunk, memory),
        "chunk_question_memory": (chunk, head, memory),
        "reference": (head, memory, chunk),
    }[order]
    prompt = tuple(part for part in ordered if part is not None and part.tokens)
    return prompt, prompt.index(chunk) if chunk is not None and chunk.tokens else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How much is read and written for one question, in plain numbers.

    Raises:
        InvalidSetting: a number that cannot be.
    """

    chunks: int
    """n."""
    chunk_tokens: int
    """c."""
    head_tokens: int = 0
    """q + h: question and template."""
    memory_tokens: int = 0
    """m: of the memory in every prompt; in the first turn, too, as the formulas have it."""
    yes: tuple[int, ...] = (0,)
    """Of each turn, how many readers report something: y_t n. As many turns as there are."""
    no_tokens: int = 7
    """d_no: of a reply that says no."""
    yes_tokens: int = 300
    """d_yes: of a reply that reports something."""
    rewrite_tokens: int = 300
    """d_m: of a rewritten memory, by the merger or by a recurrent reader."""
    answer_tokens: int = 200
    """Of the answer."""

    def __post_init__(self) -> None:
        if self.chunks < 1 or self.chunk_tokens < 1:
            raise InvalidSetting(
                f"expected a chunk and a token in it, got {self.chunks} of {self.chunk_tokens}"
            )
        if not self.yes or not all(0 <= found <= self.chunks for found in self.yes):
            raise InvalidSetting(f"yes is 0 to {self.chunks} for every turn, got {self.yes!r:.80}")
        for name in ("head", "memory", "no", "yes", "rewrite", "answer"):
            if (tokens := getattr(self, f"{name}_tokens")) < 0:
                raise InvalidSetting(f"{name}_tokens is 0 or more, got {tokens!r:.80}")

    @property
    def turns(self) -> int:
        """T."""
        return len(self.yes)


def parallel_job(
    reading: Reading,
    *,
    name: str = "parallel",
    question: Hashable = None,
    document: Hashable = None,
    order: PromptOrder = "question_chunk_memory",
) -> Job:
    """Return the calls of the parallel loop.

    In each turn all chunks side by side, then one merge if any reader said yes; then the answer.

    Args:
        reading: how much of everything.
        name: of the job; its memories are its own.
        question: jobs with the same question (rollouts of it) have the same beginning; None: it is
            this job's own.
        document: jobs with the same document read the same chunks; None: it is this job's own.
        order: of the prompts' parts.
    """
    source = name if document is None else document
    head = Segment((name if question is None else question, "read"), reading.head_tokens)
    stages: list[tuple[Request, ...]] = []
    for turn, found in enumerate(reading.yes, start=1):
        memory = Segment((name, "memory", turn), reading.memory_tokens)
        reads = []
        for index in range(reading.chunks):
            chunk = Segment((source, index), reading.chunk_tokens)
            prompt, place = prompt_of(order, head=head, chunk=chunk, memory=memory)
            # Spread evenly: among any n / found neighbours there is one that says yes.
            says_yes = (index + 1) * found // reading.chunks > index * found // reading.chunks
            reads.append(
                Request(
                    role="reader",
                    turn=turn,
                    prompt=prompt,
                    chunk=place,
                    output_tokens=reading.yes_tokens if says_yes else reading.no_tokens,
                )
            )
        stages.append(tuple(reads))
        if found:
            notes = Segment((name, "notes", turn), found * reading.yes_tokens)
            stages.append((_last_call(reading, name, "merger", turn, notes),))
    stages.append((_last_call(reading, name, "answerer", reading.turns),))
    return Job(name=name, stages=tuple(stages))


def recurrent_job(
    reading: Reading,
    *,
    name: str = "recurrent",
    question: Hashable = None,
    document: Hashable = None,
    passes: int = 1,
) -> Job:
    """Return the calls of the recurrent baseline: chunk after chunk, then the answer.

    Its memory is another one at every call, so that the order of a prompt's parts saves nothing.

    Args:
        reading: how much of everything; the turns do not matter.
        name: of the job; its memories are its own.
        question: see `parallel_job`.
        document: see `parallel_job`.
        passes: how often the document is read from its beginning.
    """
    source = name if document is None else document
    head = Segment((name if question is None else question, "read"), reading.head_tokens)
    stages: list[tuple[Request, ...]] = []
    for turn in range(1, passes + 1):
        for index in range(reading.chunks):
            memory = Segment((name, "memory", turn, index), reading.memory_tokens)
            chunk = Segment((source, index), reading.chunk_tokens)
            prompt, place = prompt_of("reference", head=head, chunk=chunk, memory=memory)
            stages.append(
                (
                    Request(
                        role="memorizer",
                        turn=turn,
                        prompt=prompt,
                        chunk=place,
                        output_tokens=reading.rewrite_tokens,
                    ),
                )
            )
    stages.append((_last_call(reading, name, "answerer", passes),))
    return Job(name=name, stages=tuple(stages))


def _last_call(
    reading: Reading, name: str, role: str, turn: int, notes: Segment | None = None
) -> Request:
    """Return the call of who sees the memory, not the document."""
    parts: Sequence[Segment | None] = (
        Segment((name, role), reading.head_tokens),
        Segment((name, "memory", turn), reading.memory_tokens),
        notes,
    )
    return Request(
        role=role,
        turn=turn,
        prompt=tuple(part for part in parts if part is not None and part.tokens),
        output_tokens=reading.rewrite_tokens if role == "merger" else reading.answer_tokens,
    )
