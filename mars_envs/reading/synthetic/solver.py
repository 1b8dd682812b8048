"""Proof that a task is what it says: its evidence determines the answer, and less of it does not.

The solver reads sentences; it knows nothing of what the generator meant by them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from ...errors import InvalidTask
from ..task import ReadingTask
from .families import FAMILIES

_EXHAUSTIVE: Final = 12  # passages: 4,096 subsets


def solve(task: ReadingTask, passages: Iterable[str]) -> tuple[str, ...] | None:
    """Return the answers that passages determine, as far as they tell, or None.

    Args:
        task: whose question and family are used, and nothing else.
        passages: texts, in any order.

    Raises:
        InvalidTask: the task is of no synthetic family.
    """
    family = FAMILIES.get(task.kind)
    if family is None:
        raise InvalidTask(f"{task.task_id}: {task.kind!r} is no synthetic family")
    return family.solve(task.question, family.topic.parse(passages))


def check_evidence(task: ReadingTask) -> None:
    """Make sure that the evidence stands where it says, determines the answer, and is minimal.

    Every proper subset is tried; of more than 12 passages, those that lack one, two or all but one:
    no family finds less in more.

    Raises:
        InvalidTask: it does not; the message says how.
    """
    for evidence in task.evidence:
        if task.document.read(evidence.start, evidence.end) != evidence.text:
            raise InvalidTask(f"{task.task_id}: {evidence.text!r} is not where it should be")
    texts = [evidence.text for evidence in task.evidence]
    if not _agrees(task, texts):
        raise InvalidTask(f"{task.task_id}: the evidence does not determine the answer")
    sizes: Iterable[int] = range(len(texts))
    if len(texts) > _EXHAUSTIVE:
        sizes = (1, len(texts) - 2, len(texts) - 1)
    for size in sizes:
        for subset in itertools.combinations(texts, size):
            if _agrees(task, subset):
                raise InvalidTask(
                    f"{task.task_id}: {size} of {len(texts)} passages determine the answer: "
                    f"{list(subset)}"
                )


def _agrees(task: ReadingTask, passages: Iterable[str]) -> bool:
    found = solve(task, passages)
    return found is not None and set(found) == set(task.answers)
