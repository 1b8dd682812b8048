"""Whether a reader was right to say yes or no, where it is known which passages matter.

One verdict for each (turn, chunk), as GRU-Mem (arXiv 2602.10560) rewards its update gate. What is
right depends on the turn: a passage can be recognised only by who has read what leads to it, and is
news only until it has been found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from ..reading.task import Evidence, ReadingTask
from .replies import as_shown
from .workflow import CallRecord, TurnRecord, Workflow

State = Literal["new", "held", "lost", "hidden"]


def reader_supervision(
    workflow: Workflow,
    task: ReadingTask,
    gold: Sequence[Sequence[int]],
    *,
    records: Iterable[CallRecord] | None = None,
) -> dict[tuple[int, int], int]:
    """Judge what readers said.

    A yes is right (+1) where the chunk holds a passage that is new: it can be recognised from the
    question or the memory, no reader found it in an earlier turn, and the memory does not hold it;
    then a no is wrong (-1). Where a chunk holds nothing of the kind, a no is right and a yes wrong.
    There is no verdict (0) on a yes to a passage that cannot be recognised yet, nor on anything
    about a passage that was found before and that the memory does not hold word for word: a merger
    may have lost or reworded it. A reply without a tag is wrong; yes with nothing behind it is no.

    Args:
        workflow: of this task.
        task: with its evidence.
        gold: for each piece of the evidence, the chunks that hold it; see `chunks_holding`.
        records: calls to judge; None for all. Calls that are not reads, or failed, have no verdict.

    Returns:
        (turn, chunk) -> -1, 0 or 1; empty where it is not known which passages are evidence. Of a
        task with `no_evidence` it is known: none.
    """
    if not task.evidence and not task.no_evidence:
        return {}
    states: dict[int, dict[int, set[State]]] = {}
    verdicts: dict[tuple[int, int], int] = {}
    for record in workflow.calls if records is None else records:
        if record.role != "reader" or record.status == "error":
            continue
        if record.turn not in states:
            states[record.turn] = _by_chunk(task, gold, workflow.turns[: record.turn - 1])
        here = states[record.turn].get(record.index, set())
        verdicts[record.turn, record.index] = _verdict(record.status, here)
    return verdicts


def evidence_states(
    task: ReadingTask, gold: Sequence[Sequence[int]], before: Sequence[TurnRecord]
) -> list[State]:
    """Say of each piece of evidence how it stands after the turns `before`.

    Args:
        task: with its evidence.
        gold: see `reader_supervision`.
        before: finished turns, from the first one on.

    Returns:
        For each piece "held" (the memory holds it word for word), "lost" (found, but the memory
        does not hold it so), "new" (recognisable and not found) or "hidden" (not recognisable).
    """
    memory = before[-1].memory if before else ""
    found = {chunk for turn in before for chunk in turn.found}
    known = f"{as_shown(task.question)}\n{memory}"
    return [
        _state(piece, memory, known, any(chunk in found for chunk in chunks))
        for piece, chunks in zip(task.evidence, gold, strict=True)
    ]


def _state(piece: Evidence, memory: str, known: str, found: bool) -> State:
    text = as_shown(piece.text.strip())
    if text and text in memory:
        return "held"
    if found:
        return "lost"
    triggers = map(as_shown, piece.triggers)
    recognised = not piece.triggers or any(_mentions(known, one) for one in triggers)
    return "new" if recognised else "hidden"


def _mentions(text: str, trigger: str) -> bool:
    """Whether `trigger` stands in `text` as whole words, in any case."""
    pattern = rf"(?<!\w){re.escape(trigger)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _by_chunk(
    task: ReadingTask, gold: Sequence[Sequence[int]], before: Sequence[TurnRecord]
) -> dict[int, set[State]]:
    states: dict[int, set[State]] = {}
    for state, chunks in zip(evidence_states(task, gold, before), gold, strict=True):
        for chunk in chunks:
            states.setdefault(chunk, set()).add(state)
    return states


def _verdict(status: str, here: set[State]) -> int:
    if status not in ("yes", "no", "empty"):
        return -1
    yes = status == "yes"
    if "new" in here:
        return 1 if yes else -1
    if "lost" in here:
        return 0
    if "hidden" in here and yes:
        return 0
    return -1 if yes else 1
