"""Evidence, put in the order in which it can be found, and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import InvalidTask
from .task import Evidence, ReadingTask


def stands_in(words: str, text: str) -> bool:
    """Whether words stand in a text as whole words, written the same.

    Example:
        >>> stands_in("Ann", "Joanna met Ann."), stands_in("Ann", "Joanna")
        (True, False)
    """
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def as_written(words: str, text: str) -> str:
    """Return words as they stand in a text, whatever the case of their letters; empty: nowhere."""
    if not words:
        return ""
    found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)
    return found[0] if found else ""


def rounds(question: str, evidence: Sequence[Evidence]) -> list[int]:
    """Return, for each piece of evidence, the round of reading in which it can be recognised.

    Whoever reads a round knows the question and what was found in the rounds before. 0 stands for
    what can never be recognised.
    """
    result = [0] * len(evidence)
    read, turn = question, 0
    while True:
        turn += 1
        new = [
            i
            for i, item in enumerate(evidence)
            if not result[i]
            and (not item.triggers or any(stands_in(trigger, read) for trigger in item.triggers))
        ]
        if not new:
            return result
        for i in new:
            result[i] = turn
        read = "\n".join([read, *(evidence[i].text for i in new)])


def verify_evidence(task: ReadingTask) -> None:
    """Check that evidence stands where it says, and that it can be found, one hop after the other.

    Raises:
        InvalidTask: it does not; the message says which.
    """
    for number, item in enumerate(task.evidence):
        found = task.document.read(item.start, item.end)
        if found != item.text or not found or item.start < 0:
            raise InvalidTask(
                f"{task.task_id}: evidence {number} should be {item.text!r:.80} at characters "
                f"{item.start} to {item.end}, got {found!r:.80}"
            )
    turns = rounds(task.question, task.evidence)
    if 0 in turns:
        number = turns.index(0)
        raise InvalidTask(
            f"{task.task_id}: nobody can recognise evidence {number}: none of its triggers "
            f"{list(task.evidence[number].triggers)} stands in the question or in the evidence "
            "that can be found before it"
        )
    if turns and task.hops and max(turns) > task.hops:
        raise InvalidTask(
            f"{task.task_id}: hops is {task.hops}, but its evidence takes {max(turns)} rounds"
        )
