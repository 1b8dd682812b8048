"""Where a passage of a document stands that somebody quotes, more or less word for word."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_QUOTED = re.compile(r'"([^"\n]{8,2000})"|“([^”\n]{8,2000})”|«([^»\n]{8,2000})»')
_REMARK = re.compile(r"^\[[^\]\n]*\]\s*")
LEAST_LETTERS = 8
"""Pieces with fewer are not looked for: they stand anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A passage of a document."""

    start: int
    """First character in the document."""
    end: int
    """One beyond the last character."""
    text: str
    """The passage, as the document has it."""
    parts: tuple[str, ...] = ()
    """Titles of the parts of the document (page, chapter, paragraph) that it stands in, where that
    was asked for."""


def find_quotes(said: str, text: str, *, offset: int = 0) -> tuple[Quote, ...]:
    r"""Find what of `said` stands in `text`, whatever its case and its line breaks.

    Work grows with the number of pieces times the length of the text.

    All of `said` is tried first, then its sentences and lines, and of those that do not stand there
    what they have in quotation marks. Pieces of fewer than `LEAST_LETTERS` letters are not
    looked for, and of several places the first counts.

    Args:
        said: what somebody wrote about the text.
        text: a chunk of a document.
        offset: where in the document the chunk begins.

    Returns:
        The passages in their order in the document, without overlap; none if nothing is quoted.

    Example:
        >>> find_quotes("So she did. ada  wrote it.", "In 1843 Ada\nwrote it.", offset=100)
        (Quote(start=108, end=121, text='Ada\nwrote it.', parts=()),)
    """
    place = _Places(text)
    found: list[tuple[int, int]] = []
    whole = place.of(said)
    for piece in [] if whole else dict.fromkeys(_pieces(said)):
        # A remark in brackets before a passage says where it is from, or about whom.
        span = place.of(piece) or place.of(_REMARK.sub("", piece))
        if span is not None:
            found.append(span)
            continue
        for quoted in _QUOTED.finditer(piece):
            span = place.of(quoted[quoted.lastindex or 0])
            if span is not None:
                found.append(span)
    return tuple(
        Quote(start=offset + start, end=offset + end, text=text[start:end])
        for start, end in _without_overlap([whole] if whole else found)
    )


def _pieces(said: str) -> Iterator[str]:
    for piece in _END.split(said):
        yield piece.strip().lstrip("-*•> ")


class _Places:
    """Finds pieces in a text, which is made ready for that once."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, piece: str) -> tuple[int, int] | None:
        """Return where a piece stands, in any case and with any blanks between its words."""
        words = piece.split()
        if sum(map(len, words)) < LEAST_LETTERS:
            return None
        # Most pieces stand there as they are.
        start = self._text.find(piece)
        if start >= 0:
            return start, start + len(piece)
        start = self._plain.find(_plain(" ".join(words)))
        if start < 0:
            return None
        return self._at(start), self._at(start + sum(map(len, words)) + len(words) - 2) + 1

    @cached_property
    def _words(self) -> list[re.Match[str]]:
        return list(re.finditer(r"\S+", self._text))

    @cached_property
    def _plain(self) -> str:
        return _plain(" ".join(word[0] for word in self._words))

    @cached_property
    def _starts(self) -> list[int]:
        """Where each word starts in the plain text."""
        return list(accumulate((len(word[0]) + 1 for word in self._words), initial=0))

    def _at(self, place: int) -> int:
        """Return where a letter of the plain text stands in the text."""
        number = bisect_right(self._starts, place) - 1
        return self._words[number].start() + place - self._starts[number]


def _plain(text: str) -> str:
    """Return a text of the same length without differences of case."""
    return text.lower() if text.isascii() else "".join(map(_plain_letter, text))


@lru_cache(maxsize=4096)
def _plain_letter(letter: str) -> str:
    folded = letter.casefold()
    return folded if len(folded) == 1 else letter


def _without_overlap(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in order; of overlapping ones what they cover together."""
    current: tuple[int, int] | None = None
    for start, end in sorted(set(spans)):
        if current is None:
            current = start, end
        elif start < current[1]:
            current = current[0], max(current[1], end)
        else:
            yield current
            current = start, end
    if current is not None:
        yield current
