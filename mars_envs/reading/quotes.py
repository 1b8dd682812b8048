"""Where a passage of a document stands that somebody quotes, more or less word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_QUOTED = re.compile(r'"([^"\n]{8,2000})"|“([^”\n]{8,2000})”|«([^»\n]{8,2000})»')
_REMARK = re.compile(r"^\[[^\]\n]*\]\s*")
_MOST_PIECES = 64
_MOST_WORDS = 400
_LEAST_LETTERS = 8


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

    All of `said` is tried first, then its sentences and lines, and of those that do not stand there
    what they have in quotation marks. Pieces of fewer than 8 letters are not looked for, and of
    several places the first counts.

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
    found: list[tuple[int, int]] = []
    whole = _find(said, text)
    for piece in [] if whole else _pieces(said):
        # A remark in brackets before a passage says where it is from, or about whom.
        span = _find(piece, text) or _find(_REMARK.sub("", piece), text)
        if span is not None:
            found.append(span)
            continue
        for quoted in _QUOTED.finditer(piece):
            span = _find(quoted[quoted.lastindex or 0], text)
            if span is not None:
                found.append(span)
    return tuple(
        Quote(start=offset + start, end=offset + end, text=text[start:end])
        for start, end in _without_overlap([whole] if whole else found)
    )


def _pieces(said: str) -> Iterator[str]:
    for piece in _END.split(said)[:_MOST_PIECES]:
        yield piece.strip().lstrip("-*•> ")


def _find(piece: str, text: str) -> tuple[int, int] | None:
    """Return where `piece` stands in `text`, with any blanks between its words."""
    words = piece.split()
    if not 0 < len(words) <= _MOST_WORDS or sum(map(len, words)) < _LEAST_LETTERS:
        return None
    # Most pieces stand there as they are, which is found much faster.
    start = text.find(piece)
    if start >= 0:
        return start, start + len(piece)
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return None if match is None else match.span()


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
