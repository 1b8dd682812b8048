"""Proof that a task is what it says: its evidence determines the answer, and less of it does not.

Nor does what else the document says change the answer: neither decoys nor older revisions do.

The solver reads sentences; it knows nothing of what the generator meant by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import InvalidTask
from ..task import ReadingTask
from .families import FAMILIES
from .family import Family
from .grammar import Fact


def solve(task: ReadingTask, passages: Iterable[str]) -> tuple[str, ...] | None:
    """Return the answers that passages determine, as far as they tell, or None.

    Args:
        task: whose question and family are used, and nothing else.
        passages: texts, in any order.

    Raises:
        InvalidTask: the task is of no synthetic family.
    """
    family = _family(task)
    return family.solve(task.question, family.topic.parse(passages))


def check_evidence(task: ReadingTask) -> None:
    """Make sure that the evidence stands where it says, determines the answer, and is minimal.

    Minimal: without any one of its passages the answer is not determined. That proves the same of
    every proper subset, since a subset that determined it would still do so with more of the
    evidence: answers only become more with more facts, and facts that contradict others would do so
    in the whole evidence, too. At last the whole document has to say the same as its evidence.

    Takes time linear in the document: it is read whole.

    Raises:
        InvalidTask: it does not; the message says how.
    """
    family = _family(task)
    for evidence in task.evidence:
        if task.document.read(evidence.start, evidence.end) != evidence.text:
            raise InvalidTask(f"{task.task_id}: {evidence.text!r} is not where it should be")
    said = [family.topic.parse([evidence.text]) for evidence in task.evidence]
    if not _agrees(family, task, said):
        raise InvalidTask(f"{task.task_id}: the evidence does not determine the answer")
    for left_out, evidence in enumerate(task.evidence):
        if _agrees(family, task, said[:left_out] + said[left_out + 1 :]):
            raise InvalidTask(
                f"{task.task_id}: {len(said) - 1} of {len(said)} passages determine the answer: "
                f"all but {evidence.text!r}"
            )
    if not _agrees(family, task, [family.topic.parse([task.document.read(0, len(task.document))])]):
        raise InvalidTask(
            f"{task.task_id}: the whole document says something else than its evidence"
        )


def _family(task: ReadingTask) -> Family:
    family = FAMILIES.get(task.kind)
    if family is None:
        raise InvalidTask(f"{task.task_id}: {task.kind!r} is no synthetic family")
    return family


def _agrees(family: Family, task: ReadingTask, said: Sequence[Sequence[Fact]]) -> bool:
    found = family.solve(task.question, [fact for facts in said for fact in facts])
    return found is not None and set(found) == set(task.answers)
