"""Documents: long texts that are read in pieces and never copied whole.

A document may be a string, a file or a list of records in a pool. Whoever reads it sees characters,
numbered from 0; a position is a number of characters, so no cut can break one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a document with a name: a paragraph of HotpotQA, a chapter, a page."""

    doc_id: str
    start: int
    """First character."""
    end: int
    """One beyond the last character."""
    title: str = ""


class Document(Protocol):
    """A long text that gives pieces of itself."""

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts in order, without overlap; empty where it has none."""
        ...

    @property
    def digest(self) -> str:
        """A short name of its content: equal texts have equal digests."""
        ...

    def __len__(self) -> int:
        """Characters."""
        ...

    def read(self, start: int, end: int) -> str:
        """Return the characters from `start` up to `end`; beyond the ends there are none."""
        ...


class TextDocument:
    """A document that is a string.

    Args:
        text: all of it.
        parts: see `Document.parts`.

    Example:
        >>> document = TextDocument("One. Two.")
        >>> len(document), document.read(5, 9)
        (9, 'Two.')
    """

    def __init__(self, text: str, parts: Sequence[Part] = ()) -> None:
        self._text = text
        self._parts = tuple(parts)

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts in order."""
        return self._parts

    @property
    def digest(self) -> str:
        """A short name of its content."""
        return hashlib.sha256(self._text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __len__(self) -> int:
        return len(self._text)

    def read(self, start: int, end: int) -> str:
        """Return the characters from `start` up to `end`."""
        return self._text[max(0, start) : max(0, end)]

    def __repr__(self) -> str:
        return f"TextDocument({len(self._text)} characters, {len(self._parts)} parts)"
