"""MuSiQue records as reading tasks (Trivedi et al., 2022).

The document is the paragraphs in order, each with its title on a line of its own. Evidence is the
supporting paragraphs in the order of the decomposition; one whose sub-question speaks of `#1` can
be recognised by the answer to the first sub-question.
"""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from ..tasks.records import Record
from .evidence import as_written, rounds, verify_evidence
from .joined import JoinedDocument, Passage
from .task import Evidence, ReadingTask

REQUIRED: Final = ("id", "question", "paragraphs", "question_decomposition", "answer")
"""Fields by which the format is recognised."""

LICENCE: Final = "CC BY 4.0"
UNKNOWN: Final = "unknown"
"""The answer to a question that its paragraphs do not answer."""

_REFERENCE = re.compile(r"#(\d+)")


def task_from_record(record: Record) -> ReadingTask:
    """Build the task of a record.

    A question that is not `answerable` has the answer "unknown" and no evidence.

    Raises:
        InvalidTask: a field is missing or wrong.
    """
    paragraphs = record.children("paragraphs")
    passages = tuple(
        Passage(f"p{place}", child.text("title", ""), child.filled("paragraph_text"))
        for place, child in enumerate(paragraphs)
    )
    document = JoinedDocument(passages)
    answerable = record.flag("answerable", True)
    question = record.filled("question")
    evidence = _evidence(record, document) if answerable else ()
    aliases = record.strings("answer_aliases", required=False)
    task_id = record.filled("id")
    answers = (record.filled("answer"), *aliases) if answerable else (UNKNOWN,)
    task = ReadingTask(
        task_id=task_id,
        question=question,
        document=document,
        answers=tuple(dict.fromkeys(answers)),
        evidence=evidence,
        hops=max(rounds(question, evidence), default=0),
        kind=task_id.partition("__")[0] if answerable else "unanswerable",
        source={"data": "MuSiQue", "licence": LICENCE},
    )
    verify_evidence(task)
    return task


def _evidence(record: Record, document: JoinedDocument) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    answers: list[str] = []  # as the paragraphs have them
    depths: list[int] = []
    for step in record.children("question_decomposition"):
        place = step.data.get("paragraph_support_idx")
        if not _is_number(place) or not 0 <= place < len(document.order):
            raise step.error(
                "paragraph_support_idx",
                f"the number of a paragraph, 0 to {len(document.order) - 1}",
                fix="number the paragraphs of this record from 0",
            )
        passage, start = document.passage(place), document.text_start(place)
        # Where it takes several answers, the one that takes longest to know comes last.
        needed = [n for n in _references(step, len(answers)) if answers[n]]
        last = max(needed, key=lambda n: (depths[n], n), default=None)
        found.append(
            Evidence(
                start=start,
                end=start + len(passage.text),
                text=passage.text,
                doc_id=passage.doc_id,
                triggers=() if last is None else (answers[last],),
            )
        )
        answers.append(as_written(step.filled("answer"), passage.text))
        depths.append(1 + max((depths[n] for n in needed), default=0))
    return tuple(found)


def _references(step: Record, before: int) -> list[int]:
    """Return the earlier steps that a sub-question speaks of, from 0."""
    numbers = sorted({int(n) - 1 for n in _REFERENCE.findall(step.filled("question"))})
    if numbers and not 0 <= numbers[0] <= numbers[-1] < before:
        raise step.error(
            "question",
            f"references to #1 to #{before}" if before else "no reference to an earlier step",
            fix="refer to steps that stand before it",
        )
    return numbers


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
