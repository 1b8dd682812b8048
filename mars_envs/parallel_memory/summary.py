"""What one finished episode of reading says.

No statistics over episodes: those are made where results are reported, which is why shares come
with the counts that they are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..judging.answers import AnswerScores, score_answer
from ..reading.task import ReadingTask
from .workflow import CallRecord, Note, TurnRecord, Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSummary:
    """What a turn brought. Gold chunks are those that hold evidence."""

    gold_read: int
    """Gold chunks read."""
    gold_found: int
    """Of these, chunks in which something was found."""
    other_read: int
    other_found: int
    gold_recall: float
    """Share of the gold chunks in which something was found in this turn or before; 0 where there
    are none, or where they are not known."""
    failed: int
    """Chunks whose reader failed."""
    dropped: int
    """Notes left out of the merge by a cap."""
    note_lines: int
    """Lines of the notes that were merged."""
    repeated_lines: int
    """Of these, lines that stood in the memory before, or in an earlier note."""
    memory_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSummary:
    """What the calls of a role cost."""

    calls: int = 0
    failed: int = 0
    malformed: int = 0
    cut: int = 0
    """Replies longer than their budget."""
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary:
    """Figures of one episode."""

    task_id: str
    answer: str
    scores: AnswerScores
    """All 0 where nothing was answered, which counts in every mean."""
    scored: bool
    """Whether there is anything to score: false where too many calls failed."""
    exit_reason: str
    n_chunks: int
    k_used: int
    """The last turn entered, one without any find included."""
    k_productive: int
    """Turns that found something."""
    gold_chunks: int
    """Chunks that hold evidence; 0 where that is not known."""
    turns: tuple[TurnSummary, ...]
    roles: Mapping[str, RoleSummary]
    """By role, of those that were called."""
    memory_tokens: int
    """At the end."""
    memory_cuts: int
    """Turns whose merged memory was over its budget."""

    @property
    def calls(self) -> RoleSummary:
        """All roles together."""
        parts = self.roles.values()
        return RoleSummary(
            **{name: sum(getattr(part, name) for part in parts) for name in RoleSummary.__slots__}
        )

    @property
    def gold_yes_rate(self) -> float | None:
        """Share of reads of gold chunks that found something; None without such reads."""
        return _share(
            sum(turn.gold_found for turn in self.turns), sum(turn.gold_read for turn in self.turns)
        )

    @property
    def other_yes_rate(self) -> float | None:
        """Share of reads of other chunks that found something; None without such reads."""
        return _share(
            sum(turn.other_found for turn in self.turns),
            sum(turn.other_read for turn in self.turns),
        )

    @property
    def repeated_share(self) -> float | None:
        """Share of the lines of merged notes that were known already; None without notes."""
        return _share(
            sum(turn.repeated_lines for turn in self.turns),
            sum(turn.note_lines for turn in self.turns),
        )


def summarize(
    workflow: Workflow, task: ReadingTask, gold: Sequence[Sequence[int]] = ()
) -> MemorySummary:
    """Say what a workflow came to.

    Args:
        workflow: of this task, finished or cut off.
        task: what was asked.
        gold: for each piece of the task's evidence, the chunks that hold it; see `chunks_holding`.
            Empty where it is not known; then every chunk counts as another.
    """
    gold_chunks = {chunk for chunks in gold for chunk in chunks}
    last = workflow.turns[-1] if workflow.turns else None
    return MemorySummary(
        task_id=task.task_id,
        answer=workflow.answer,
        scores=score_answer(workflow.answer, task),
        scored=workflow.exit_reason != "backend_error",
        exit_reason=workflow.exit_reason,
        n_chunks=workflow.n_chunks,
        k_used=workflow.turn,
        k_productive=sum(bool(turn.found) for turn in workflow.turns),
        gold_chunks=len(gold_chunks),
        turns=tuple(_turns(workflow.turns, gold_chunks)),
        roles=_roles(workflow.calls),
        memory_tokens=last.memory_tokens if last else 0,
        memory_cuts=sum(turn.memory_cut for turn in workflow.turns),
    )


def repeated_lines(notes: Iterable[Note], memory: str) -> tuple[int, int]:
    """Count the lines of `notes`, and those of them that are known already.

    Lines are compared without case and without regard to blanks; empty ones do not count.

    Args:
        notes: found in one turn, in order.
        memory: before the turn.

    Returns:
        All lines, and those that stand in `memory` or in an earlier line of the notes.
    """
    held = " ".join(memory.casefold().split())
    seen: set[str] = set()
    lines = repeated = 0
    for note in notes:
        for raw in note.text.splitlines():
            line = " ".join(raw.casefold().split())
            if line:
                lines += 1
                repeated += line in seen or line in held
                seen.add(line)
    return lines, repeated


def _turns(turns: Sequence[TurnRecord], gold: set[int]) -> Iterable[TurnSummary]:
    reached: set[int] = set()
    memory = ""
    for turn in turns:
        read, found = set(turn.read) - set(turn.failed), set(turn.found)
        reached |= found & gold
        lines, repeated = repeated_lines(turn.notes, memory)
        memory = turn.memory
        yield TurnSummary(
            gold_read=len(read & gold),
            gold_found=len(found & gold),
            other_read=len(read - gold),
            other_found=len(found - gold),
            gold_recall=len(reached) / len(gold) if gold else 0.0,
            failed=len(turn.failed),
            dropped=turn.dropped,
            note_lines=lines,
            repeated_lines=repeated,
            memory_tokens=turn.memory_tokens,
        )


def _roles(calls: Iterable[CallRecord]) -> dict[str, RoleSummary]:
    sums: dict[str, dict[str, int]] = {}
    for call in calls:
        own = sums.setdefault(call.role, dict.fromkeys(RoleSummary.__slots__, 0))
        own["calls"] += 1
        own["failed"] += call.status == "error"
        own["malformed"] += call.status == "malformed"
        own["cut"] += call.cut
        own["prompt_tokens"] += call.prompt_tokens
        own["output_tokens"] += call.output_tokens
    return {role: RoleSummary(**counts) for role, counts in sums.items()}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
