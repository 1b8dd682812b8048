"""Documents made of passages: a pool of them is kept once, however many documents draw from it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from .document import Part
from .pieces import PiecedDocument

HEADER: Final = "Document {number}:\n"
"""What published long contexts of HotpotQA and RULER put before each passage."""
SEPARATOR: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class Passage:
    """A short text with a title, of which documents are made."""

    doc_id: str
    title: str
    text: str

    def render(self) -> str:
        """Return the passage as it stands in a document: its title on a line of its own."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def text_start(self) -> int:
        """Characters before the text, in what `render` returns."""
        return len(self.title) + 1 if self.title else 0

    def __len__(self) -> int:
        return self.text_start + len(self.text)


class JoinedDocument(PiecedDocument):
    r"""Passages one after the other, a blank line between them. Holds no text of its own.

    Args:
        passages: a pool, shared and not copied.
        order: which of them, in order; None: all.
        header: what stands before each, with its `{number}` in the document, from 1; see `HEADER`.

    Example:
        >>> pool = [Passage("a", "Ada", "Ada wrote."), Passage("b", "Bab", "Bab read.")]
        >>> document = JoinedDocument(pool, [1, 0], header=HEADER)
        >>> document.read(0, 30)
        'Document 1:\\nBab\\nBab read.\\n\\nDo'
        >>> document.parts[1].title
        'Ada'
    """

    def __init__(
        self, passages: Sequence[Passage], order: Sequence[int] | None = None, *, header: str = ""
    ) -> None:
        self.passages = passages
        self.order = np.array(range(len(passages)) if order is None else order, np.int64)
        self.order.flags.writeable = False
        self.header = header
        lengths = [
            len(self._header(place)) + len(passages[index])
            for place, index in enumerate(self.order.tolist())
        ]
        between = len(SEPARATOR)
        steps = itertools.accumulate((length + between for length in lengths), initial=0)
        self._starts = np.fromiter(steps, np.int64, len(lengths) + 1)
        if lengths:
            self._starts[-1] -= between

    @property
    def parts(self) -> Sequence[Part]:
        """Its passages, headers included; each part is made when it is asked for."""
        return _Parts(self)

    @property
    def _bounds(self) -> NDArray[np.int64]:
        return self._starts

    def _join(self, first: int, last: int) -> str:
        return "".join(self._piece(place) for place in range(first, last))

    def passage(self, place: int) -> Passage:
        """Return the passage at a place, from 0."""
        return self.passages[int(self.order[place])]

    def text_start(self, place: int) -> int:
        """Return the first character of the text of a passage, behind its header and title."""
        return int(self._starts[place]) + len(self._header(place)) + self.passage(place).text_start

    def part(self, place: int) -> Part:
        """Return the part at a place, from 0."""
        passage = self.passage(place)
        start = int(self._starts[place])
        end = self.text_start(place) + len(passage.text)
        return Part(doc_id=passage.doc_id, start=start, end=end, title=passage.title)

    def _header(self, place: int) -> str:
        return self.header.replace("{number}", str(place + 1))

    def _piece(self, place: int) -> str:
        end = SEPARATOR if place + 1 < len(self.order) else ""
        return f"{self._header(place)}{self.passage(place).render()}{end}"

    def __repr__(self) -> str:
        return f"JoinedDocument({len(self)} characters, {len(self.order)} parts)"


class _Parts(Sequence[Part]):
    def __init__(self, document: JoinedDocument) -> None:
        self._document = document

    def __len__(self) -> int:
        return len(self._document.order)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Part]: ...
    def __getitem__(self, index: int | slice) -> Part | Sequence[Part]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self._document.part(place) for place in places]
        return self._document.part(places)
