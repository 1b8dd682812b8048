"""Records in RULER's layout as reading tasks (Hsieh et al., 2024), and those that look like them.

RULER itself writes the whole prompt into `input`: instruction, text, question. The question is what
stands behind the last "Question:" that begins a line, or else the last line; all before it is the
document. Where a record has a `context` of its own, as in LongBench and in MemAgent's files,
`input` is the question.

All `outputs` belong to the answer; but those of a question about documents (`qa`), and `answers`,
are alternatives.
"""

from __future__ import annotations

import re
from typing import Final

from ..tasks.records import Record
from .document import TextDocument
from .evidence import verify_evidence
from .task import Evidence, ReadingTask

REQUIRED: Final = ("input", "outputs|answers")
"""Fields by which the format is recognised."""

_QUESTION = re.compile(r"^[ \t]*Question:[ \t]*", re.MULTILINE)
_QA = "Answer the question based on the given documents"
_NEEDLE = "One of the special magic"
_SENTENCE_ENDS = ".\n"


def task_from_record(record: Record) -> ReadingTask:
    """Build the task of a record.

    An `answer_prefix` is kept in `source`. The needles of the tasks `niah_*` become evidence.

    Raises:
        InvalidTask: a field is missing or wrong, or no question can be told from the text.
    """
    text, question, start = _split(record)
    alternatives = not record.has("outputs") or text.lstrip().startswith(_QA)
    answers = tuple(record.strings("answers" if not record.has("outputs") else "outputs"))
    kind = next((record.text(f) for f in ("task", "dataset") if record.has(f)), record.origin)
    source = {"data": "RULER" if record.has("outputs") else "LongBench", "index": _index(record)}
    if record.has("answer_prefix"):
        source["answer_prefix"] = record.text("answer_prefix").strip()
    given = next((record.text(f) for f in ("_id", "id") if record.has(f)), "")
    evidence = () if alternatives else _needles(text, start, answers, question)
    task = ReadingTask(
        task_id=given or f"{record.origin}/{source['index']}",
        question=question,
        document=TextDocument(text),
        answers=answers,
        match="any" if alternatives or len(answers) == 1 else "all",
        evidence=evidence,
        hops=1 if evidence else 0,
        kind=("ruler:" if record.has("outputs") else "") + kind.rsplit("/", 1)[-1],
        source=source,
    )
    verify_evidence(task)
    return task


def _split(record: Record) -> tuple[str, str, int]:
    """Return document and question, and where the document starts after an instruction."""
    text = record.filled("input")
    if record.has("context"):
        return record.text("context"), text.strip(), 0
    text = text.rstrip()
    marks = list(_QUESTION.finditer(text))
    if marks and marks[-1].end() < len(text):
        document, question = text[: marks[-1].start()], text[marks[-1].end() :]
    else:
        document, _, question = text.rpartition("\n")
    if not document.strip() or not question.strip():
        raise record.error(
            "input",
            "a text and, on a line of its own behind it, a question",
            fix="put the question behind `Question:` on the last line, or the text into `context`",
        )
    if document.lstrip().startswith(_QA):  # which says so again behind the documents
        repeated = document.rfind(_QA)
        document = document[:repeated] if repeated > len(_QA) else document
    return document.rstrip() + "\n", question.strip(), document.find("\n") + 1


def _index(record: Record) -> str:
    index = record.data.get("index")
    return str(index) if isinstance(index, int | str) else str(record.line)


def _needles(
    text: str, start: int, answers: tuple[str, ...], question: str
) -> tuple[Evidence, ...]:
    """Return the sentences that hold the answers, where each answer stands in one needle only."""
    if "special magic" not in question:
        return ()
    found = {}
    for answer in answers:
        at = text.find(answer, start)
        if at < 0 or text.find(answer, at + 1) >= 0:
            return ()
        first = text.rfind(_NEEDLE, start, at)
        if first < 0 or any(end in text[first:at] for end in _SENTENCE_ENDS):
            return ()
        last = at + len(answer)
        last += text.startswith(".", last)
        found[first] = Evidence(start=first, end=last, text=text[first:last])
    return tuple(found[first] for first in sorted(found))
