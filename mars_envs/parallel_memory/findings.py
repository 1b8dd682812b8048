"""What readers found, and where in the document it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..reading.document import Part
from ..reading.quotes import Quote, find_quotes
from .calls import ChunkedText
from .replies import as_shown
from .workflow import TurnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was found in a chunk."""

    turn: int
    """From 1."""
    chunk: int
    """From 0."""
    start: int
    """First character of the chunk in the document."""
    end: int
    """One beyond its last character."""
    text: str
    """What the reader said about it; empty for methods without notes."""
    quotes: tuple[Quote, ...]
    """What of that stands in the chunk word for word, with its place in the document."""
    parts: tuple[str, ...]
    """Titles of the parts of the document (pages, chapters, paragraphs) that the quotes stand in;
    without quotes, of those that the chunk touches."""


def find_evidence(
    turns: Sequence[TurnRecord],
    chunks: ChunkedText,
    *,
    conclusion: str,
    parts: Sequence[Part] = (),
) -> list[Finding]:
    """Return what was found, in the order of turns, then of chunks.

    Of methods that keep notes: the notes, with what they quote of their chunks. Of recurrent ones:
    the chunks that changed the memory and that the conclusion quotes. Of those that read once: what
    was shown.

    Args:
        turns: of a workflow.
        chunks: what its numbers of chunks refer to.
        conclusion: the final memory, or without a memory the reply.
        parts: of the document.
    """
    return list(_findings(turns, chunks, conclusion, parts))


def _findings(
    turns: Sequence[TurnRecord], chunks: ChunkedText, conclusion: str, parts: Sequence[Part]
) -> Iterator[Finding]:
    for turn in turns:
        for note in turn.notes:
            yield _finding(turn.turn, note.first, note.text, note.text, chunks, parts)
        for chunk in () if turn.notes else turn.found:
            found = _finding(turn.turn, chunk, "", conclusion, chunks, parts)
            if found.quotes or not turn.memory:
                yield found


def _finding(
    turn: int,
    chunk: int,
    text: str,
    said: str,
    chunks: ChunkedText,
    parts: Sequence[Part],
) -> Finding:
    start, end = chunks.span(chunk)
    read = chunks[chunk]
    quotes = tuple(
        replace(
            quote,
            text=read[quote.start - start : quote.end - start],
            parts=_titles(parts, quote.start, quote.end),
        )
        for quote in find_quotes(said, as_shown(read), offset=start)
    )
    titles = [quote.parts for quote in quotes] or [_titles(parts, start, end)]
    return Finding(
        turn=turn,
        chunk=chunk,
        start=start,
        end=end,
        text=text,
        quotes=quotes,
        parts=tuple(dict.fromkeys(chain.from_iterable(titles))),
    )


def _titles(parts: Sequence[Part], start: int, end: int) -> tuple[str, ...]:
    """Return the titles of the parts that hold any of what stands from `start` to `end`."""
    titles: list[str] = []
    for index in range(_first_ending_behind(parts, start), len(parts)):
        part = parts[index]
        if part.start >= end:
            break
        titles.append(part.title or part.doc_id)
    return tuple(titles)


def _first_ending_behind(parts: Sequence[Part], position: int) -> int:
    """Return the first part that ends behind a position, by bisection: parts may be lazy."""
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high) // 2
        if parts[middle].end > position:
            high = middle
        else:
            low = middle + 1
    return low
