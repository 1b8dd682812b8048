"""A question about a document, its accepted answers, and what it takes to know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..errors import InvalidTask
from .document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A passage of the document that the answer takes."""

    start: int
    """First character in the document."""
    end: int
    """One beyond the last character."""
    text: str
    """The passage: `document.read(start, end)`."""
    doc_id: str = ""
    """The part of the document that it stands in."""
    triggers: tuple[str, ...] = ()
    """It can be recognised by who has read any of these, in the question or in the memory; empty:
    by who has read the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTask:
    """A question about a long document.

    Raises:
        InvalidTask: no id, no question or no answer, something that is no document, or evidence
            in spite of `no_evidence`.
    """

    task_id: str
    question: str
    document: Document
    answers: tuple[str, ...]
    """Accepted answers, the reference first; with `match="all"`, values that all belong to it."""
    match: Literal["any", "all"] = "any"
    evidence: tuple[Evidence, ...] = ()
    """In the order in which it can be found: one hop after the other. Empty where unknown, or where
    there is none; see `no_evidence`."""
    hops: int = 0
    """Steps of reasoning, each of which needs the one before; 0 where unknown."""
    kind: str = ""
    """The family or type, for reports: "kg2", "bridge", "2hop"."""
    choices: tuple[str, ...] = ()
    """Of a multiple choice question."""
    no_evidence: bool = False
    """Whether it is known that no passage of the document is evidence."""
    source: Mapping[str, str] = field(default_factory=dict)
    """Where it is from: data set, split, licence, ..."""

    def __post_init__(self) -> None:
        if not self.task_id:
            raise InvalidTask("a reading task needs a task_id that is not empty")
        if not self.question.strip():
            raise InvalidTask(f"{self.task_id}: the question is empty")
        if not (hasattr(self.document, "read") and hasattr(self.document, "__len__")):
            raise InvalidTask(
                f"{self.task_id}: a document has `read` and a length, got a "
                f"{type(self.document).__name__}: {self.document!r:.80}; "
                "wrap a text in TextDocument"
            )
        if not self.answers:
            raise InvalidTask(f"{self.task_id}: it has no accepted answer; give at least one")
        if self.no_evidence and self.evidence:
            raise InvalidTask(
                f"{self.task_id}: no_evidence says that there is none, but it has "
                f"{len(self.evidence)} passages of evidence; leave out one or the other"
            )
        _check_texts(self.task_id, "answers", self.answers)
        _check_texts(self.task_id, "choices", self.choices)


def _check_texts(task_id: str, name: str, value: object) -> None:
    """Refuse what is no tuple of texts: a text alone would be one entry for each letter."""
    if isinstance(value, tuple) and all(isinstance(entry, str) for entry in value):
        return
    example = (value,) if isinstance(value, str) else ("Ghent", "Gent")
    raise InvalidTask(
        f"{task_id}: {name} are a tuple of texts, e.g. {example!r:.80}, got a "
        f"{type(value).__name__}: {value!r:.80}"
    )
