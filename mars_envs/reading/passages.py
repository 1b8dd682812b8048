"""The passages of tasks: numbered, so that many documents are made of one pool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidTask
from .joined import JoinedDocument, Passage
from .task import ReadingTask


class Numbered:
    """Passages with numbers from 0; those of the same title and text have the same."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, passage: Passage) -> int:
        """Return the number of a passage, a new one where it has none."""
        key = passage.title, passage.text
        if key not in self._numbers:
            self._numbers[key] = len(self.passages)
            self.passages.append(passage)
        return self._numbers[key]


@dataclass(frozen=True, slots=True)
class Own:
    """The passages that an item brings, by number in the pool of all."""

    numbers: tuple[int, ...]
    needed: tuple[int, ...]
    """Those that hold evidence; all, where that is unknown."""
    titles: frozenset[str]
    evidence: tuple[tuple[int, int], ...]
    """For each piece: its passage, and where in the passage's text it starts."""


def own_passages(item: ReadingTask, numbered: Numbered) -> Own:
    """Return the passages that an item brings; those that are new get numbers.

    Raises:
        InvalidTask: its document has no parts, or evidence that is not in the text of one.
    """
    own = [numbered.add(passage) for passage in _passages(item)]
    document, parts = item.document, item.document.parts
    starts = np.array([part.start for part in parts], np.int64)
    evidence = []
    for piece in item.evidence:
        place = int(np.searchsorted(starts, piece.start, side="right")) - 1
        number = own[place]
        text_start = parts[place].end - len(numbered.passages[number].text)
        if place < 0 or not text_start <= piece.start <= piece.end <= parts[place].end:
            raise InvalidTask(
                f"{item.task_id}: the evidence {piece.text!r:.60} does not stand in the text of "
                f"one part of {document!r}"
            )
        evidence.append((number, piece.start - text_start))
    unique = tuple(dict.fromkeys(own))
    holding = {number for number, _ in evidence}
    return Own(
        numbers=unique,
        needed=tuple(number for number in unique if number in holding or not holding),
        titles=frozenset(numbered.passages[number].title for number in unique) - {""},
        evidence=tuple(evidence),
    )


def passage_pool(items: Iterable[ReadingTask]) -> tuple[Passage, ...]:
    """Return the passages of tasks, each once, sorted by title and text, with ids of their own.

    Raises:
        InvalidTask: the document of an item has no parts.
    """
    unique = {(passage.title, passage.text) for item in items for passage in _passages(item)}
    return tuple(
        Passage(f"d{number}", title, text) for number, (title, text) in enumerate(sorted(unique))
    )


def _passages(item: ReadingTask) -> list[Passage]:
    document = item.document
    if isinstance(document, JoinedDocument):
        return [document.passage(place) for place in range(len(document.order))]
    found = []
    for part in document.parts:
        text = document.read(part.start, part.end)
        title = part.title if text.startswith(f"{part.title}\n") else ""
        found.append(Passage(part.doc_id, title, text[len(title) + 1 :] if title else text))
    if not found:
        raise InvalidTask(
            f"{item.task_id}: a long context is made of the parts of a document, and this one has "
            "none; use the task as it is"
        )
    return found
