"""Rows of MemAgent's long HotpotQA files, which PI-Mem uses, as reading tasks.

A row has the question as the chat message `prompt`, the passages as one `context` ("Document 1:"
and so on), and the answers in `reward_model.ground_truth`. It does not say where the evidence is.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..tasks.records import Record
from .document import Part, TextDocument
from .hotpotqa import LICENCE
from .task import ReadingTask

REQUIRED: Final = ("prompt", "context", "reward_model")
"""Fields by which the format is recognised."""

_HEADER = re.compile(r"^Document (\d+):\n(.*)$", re.MULTILINE)


def task_from_record(record: Record) -> ReadingTask:
    """Build the task of a row.

    Raises:
        InvalidTask: a field is missing or wrong; the longest of these files store numbers of
            passages in the place of a text.
    """
    context = record.data.get("context")
    if not isinstance(context, str):
        raise record.error(
            "context", "the passages as one text", fix="write out what its numbers stand for"
        )
    text = record.filled("context")
    answers: Any = record.child("reward_model").data.get("ground_truth")
    if isinstance(answers, str):
        answers = [answers]
    truth = record.inner({"ground_truth": answers}, "reward_model.").strings("ground_truth")
    extra = record.child("extra_info") if record.has("extra_info") else record.inner({}, "")
    index = extra.data.get("index", record.line)
    return ReadingTask(
        task_id=f"{record.origin}/{index}",
        question=_question(record),
        document=TextDocument(text, _parts(text)),
        answers=tuple(truth),
        kind=record.text("data_source", "").rsplit("/", 1)[-1],
        source={"data": "HotpotQA, in MemAgent's layout", "licence": LICENCE},
    )


def _question(record: Record) -> str:
    prompt: Any = record.data.get("prompt")
    if isinstance(prompt, list) and prompt and isinstance(prompt[-1], dict):
        return record.inner(prompt[-1], f"prompt[{len(prompt) - 1}].").filled("content").strip()
    return record.filled("prompt").strip()


def _parts(text: str) -> list[Part]:
    marks = list(_HEADER.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [
        Part(
            doc_id=f"d{mark[1]}",
            start=mark.start(),
            end=mark.start() + len(text[mark.start() : end].rstrip()),
            title=mark[2],
        )
        for mark, end in zip(marks, ends, strict=True)
    ]
