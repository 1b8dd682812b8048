"""From what a workflow did to a job that can be simulated."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from os.path import commonprefix

from ..workflow import CallRecord
from .jobs import Job, PromptOrder, Request, prompt_of
from .prefix_cache import Segment


def job_of(
    calls: Iterable[CallRecord],
    *,
    name: str = "recorded",
    question: Hashable = None,
    document: Hashable = None,
    order: PromptOrder = "question_chunk_memory",
    beginnings: Mapping[str, int] | None = None,
    output_tokens: Callable[[CallRecord], int] | None = None,
) -> Job:
    """Return the job that a workflow's calls make up: `workflow.calls` of any of them.

    Which calls wait for which is read from their roles: the readers of a turn side by side, then
    the mergers of each level side by side; a memorizer waits for the one before it; calls that are
    asked again come after those that failed. A failed call is read and outputs nothing.

    Args:
        calls: at least one.
        name: of the job; its memories are its own.
        question: jobs with the same question (rollouts of it) have the same beginning; None: it is
            this job's own.
        document: what the chunks are of (a digest, say): jobs with the same document read the same
            chunks; None: it is this job's own.
        order: of the prompts' parts.
        beginnings: by role, the tokens that all its prompts begin with; see `Beginnings`. What else
            a prompt has beside its parts is then taken to stand behind them. Records do not tell,
            so without this all that the prompts of a role have in common, beside their parts, is
            taken to stand before them, which finds a little too much in the cache: the end of the
            instruction, which stands behind the memory.
        output_tokens: how long to take a reply for, instead of how long it was: scripted agents
            are brief.

    Raises:
        InvalidSetting: no call, or no such order.
    """
    asker = name if question is None else question
    source = name if document is None else document
    stages: dict[tuple[int, ...], list[Request]] = {}
    calls = sorted(calls, key=lambda call: call.id)
    shared: dict[str, int] = {}
    for call in calls:
        shared[call.role] = min(shared.get(call.role, call.prompt_tokens), _beside(call))
    for role, tokens in (beginnings or {}).items():
        if role in shared:
            shared[role] = min(shared[role], tokens)
    # With the chunk before the question, what prompts begin with is the same for all questions.
    alike = beginnings is not None and order == "chunk_question_memory"
    for call in calls:
        chunk = Segment((source, call.index), call.chunk_tokens)
        head = shared[call.role]
        prompt, place = prompt_of(
            "question_chunk_memory" if alike else order,
            head=Segment(("instruction" if alike else asker, call.role), head),
            chunk=chunk if call.chunk_tokens else None,
            memory=Segment((name, "memory", *_memory_of(call)), call.memory_tokens),
        )
        if call.selected_tokens:
            notes = (name, "notes", call.turn, call.level, call.index)
            prompt = (*prompt, Segment(notes, call.selected_tokens))
        if rest := _beside(call) - head:
            prompt = (*prompt, Segment((name, "rest", call.id), rest))
        request = Request(
            role=call.role,
            turn=call.turn,
            prompt=prompt,
            chunk=place,
            output_tokens=output_tokens(call) if output_tokens else call.output_tokens,
        )
        stages.setdefault(_stage_of(call), []).append(request)
    return Job(name=name, stages=tuple(tuple(stage) for stage in stages.values()))


class Beginnings:
    """What the prompts of each role begin with, found by looking at them one after the other.

    Example:
        >>> seen = Beginnings()
        >>> for prompt in ("Read this: one two", "Read this: one three"):
        ...     seen.add("reader", prompt)
        >>> seen.tokens(lambda text: len(text.split()))
        {'reader': 3}
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, role: str, prompt: str) -> None:
        """Look at a prompt."""
        known = self._texts.get(role, prompt)
        self._texts[role] = commonprefix([known, prompt])  # noqa: RUF071 (of characters, indeed)

    def tokens(self, count: Callable[[str], int]) -> dict[str, int]:
        """Return the length of the beginnings, by role.

        Args:
            count: the tokens of a text.
        """
        return {role: count(text) for role, text in self._texts.items()}


def _beside(call: CallRecord) -> int:
    """Return the tokens of a prompt that are no chunk, memory or notes."""
    return call.prompt_tokens - call.chunk_tokens - call.memory_tokens - call.selected_tokens


def _stage_of(call: CallRecord) -> tuple[int, ...]:
    if call.role == "reader":
        return (call.turn, 0, 0, call.attempt)
    if call.role == "merger":
        return (call.turn, 1, call.level, call.attempt)
    return (call.turn, 2, call.id)


def _memory_of(call: CallRecord) -> tuple[int, ...]:
    """Return which memory a call sees: that of the turn, but a memorizer's is always new."""
    return (call.turn, call.id) if call.role == "memorizer" else (call.turn,)
