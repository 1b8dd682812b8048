"""Documents: long texts that are read in pieces and never copied whole.

A document may be a string (`TextDocument`), a file (`FileDocument`) or a list of passages from a
pool (`JoinedDocument`). Whoever reads it sees characters, numbered from 0; a position is a number
of characters, so no cut can break one. A document does not change; copies of it are itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self


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
        self._digest = ""

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts in order."""
        return self._parts

    @property
    def digest(self) -> str:
        """A short name of its content."""
        if not self._digest:
            self._digest = digest_of([self._text])
        return self._digest

    def __len__(self) -> int:
        return len(self._text)

    def read(self, start: int, end: int) -> str:
        """Return the characters from `start` up to `end`."""
        return self._text[max(0, start) : max(0, end)]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"TextDocument({len(self._text)} characters, {len(self._parts)} parts)"


def digest_of(texts: Iterable[str]) -> str:
    """Return the digest of a text that is given in pieces, however it is cut."""
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.encode("utf-8", "surrogatepass"))
    return sha.hexdigest()[:16]
