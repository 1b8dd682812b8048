"""LongBench v2 records as reading tasks (Bai et al., 2024): questions with four choices."""

from __future__ import annotations

from typing import Final

from ..tasks.records import Record
from .document import TextDocument
from .task import ReadingTask

REQUIRED: Final = ("_id", "question", "choice_A", "choice_B", "answer", "context")
"""Fields by which the format is recognised."""

LICENCE: Final = "Apache-2.0"
_LETTERS: Final = "ABCDEFGH"


def task_from_record(record: Record) -> ReadingTask:
    """Build the task of a record: the choices stand below the question, the answer is a letter.

    Raises:
        InvalidTask: a field is missing or wrong.
    """
    letters = [letter for letter in _LETTERS if record.has(f"choice_{letter}")]
    choices = tuple(record.filled(f"choice_{letter}").strip() for letter in letters)
    answer = record.filled("answer").strip().upper()
    if answer not in letters:
        raise record.error("answer", f"one of the letters {', '.join(letters)}", fix="write one")
    options = "\n".join(f"({a}) {choice}" for a, choice in zip(letters, choices, strict=True))
    fields = ("domain", "sub_domain", "difficulty", "length")
    known = {name: record.text(name) for name in fields if record.has(name)}
    return ReadingTask(
        task_id=record.filled("_id"),
        question=f"{record.filled('question').strip()}\n{options}\nAnswer with the letter.",
        document=TextDocument(record.filled("context")),
        answers=(answer,),
        kind=known.get("domain", "choice"),
        choices=choices,
        source={"data": "LongBench v2", "licence": LICENCE, **known},
    )
