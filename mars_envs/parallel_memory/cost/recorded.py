"""From what a workflow did to a job that can be simulated."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

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
        order: of the prompts' parts. The instruction's end, which may stand behind the memory, is
            counted to its beginning.
        output_tokens: how long to take a reply for, instead of how long it was: scripted agents
            are brief.

    Raises:
        InvalidSetting: no call, or no such order.
    """
    asker = name if question is None else question
    source = name if document is None else document
    stages: dict[tuple[int, ...], list[Request]] = {}
    for call in sorted(calls, key=lambda call: call.id):
        chunk = Segment((source, call.index), call.chunk_tokens)
        head = call.prompt_tokens - call.chunk_tokens - call.memory_tokens - call.selected_tokens
        prompt, place = prompt_of(
            order,
            head=Segment((asker, call.role), head),
            chunk=chunk if call.chunk_tokens else None,
            memory=Segment((name, "memory", *_memory_of(call)), call.memory_tokens),
        )
        if call.selected_tokens:
            notes = (name, "notes", call.turn, call.level, call.index)
            prompt = (*prompt, Segment(notes, call.selected_tokens))
        request = Request(
            role=call.role,
            turn=call.turn,
            prompt=prompt,
            chunk=place,
            output_tokens=output_tokens(call) if output_tokens else call.output_tokens,
        )
        stages.setdefault(_stage_of(call), []).append(request)
    return Job(name=name, stages=tuple(tuple(stage) for stage in stages.values()))


def _stage_of(call: CallRecord) -> tuple[int, ...]:
    if call.role == "reader":
        return (call.turn, 0, 0, call.attempt)
    if call.role == "merger":
        return (call.turn, 1, call.level, call.attempt)
    return (call.turn, 2, call.id)


def _memory_of(call: CallRecord) -> tuple[int, ...]:
    """Return which memory a call sees: that of the turn, but a memorizer's is always new."""
    return (call.turn, call.id) if call.role == "memorizer" else (call.turn,)
