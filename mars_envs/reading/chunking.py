"""Chunks: a document cut into pieces of at most so many tokens, without copying it.

The document is tokenized once, a block at a time, and only the first character of each token is
kept while the cuts are chosen; then only the cuts. `Chunks` reads its text from the document when
it is asked for. Work and time grow with the number of tokens.

A chunk takes the blanks behind its last token with it, so that, without an overlap and a limit,
every character of the document is in exactly one chunk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting
from .document import Document, TextDocument
from .task import Evidence
from .tokenizers import Tokenizer, offsets_of, resolve_tokenizer

Align = Literal["token", "sentence", "document"]
ALIGNS: tuple[Align, ...] = ("token", "sentence", "document")

BLOCK = 1 << 20
"""Characters that are tokenized at a time; blocks end before a blank where there is one."""

_SEAM = re.compile(r"(?<=\S)\s(?=\S)")
_SEARCHED = 4096
# Each alternative looks at a character a bounded number of times, whatever the text.
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s++|[。！？｡]++[”’」』）]*+\s*+|\n\s*+"
)
_LINE_END = re.compile(r"\n\s*+")
_GLUED = 32
"""Characters that a cut moves back at most to keep marks with the letter that they stand on."""
_JOINER = "\u200d"


@dataclass(frozen=True, slots=True, eq=False)
class Chunks(Sequence[str]):
    """The chunks of a document, read when they are asked for.

    A slice gives chunks, too, numbered anew. Equal ones are of equal documents and equal spans.

    Example:
        >>> chunks = chunk_document("one two three four five", size=2)
        >>> len(chunks), list(chunks)
        (3, ['one two ', 'three four ', 'five'])
        >>> chunks.span(1), chunks.tokens(2)
        ((8, 19), 1)
    """

    document: Document
    tokenizer: Tokenizer
    spans: NDArray[np.int64]
    """First character and one beyond the last, `[chunks, 2]`; both columns grow."""
    counts: NDArray[np.int64]
    """Tokens, `[chunks]`."""

    def __post_init__(self) -> None:
        self.spans.flags.writeable = False
        self.counts.flags.writeable = False

    def span(self, i: int) -> tuple[int, int]:
        """Return where a chunk stands: its first character and one beyond its last."""
        start, end = self.spans[i].tolist()
        return start, end

    def tokens(self, i: int) -> int:
        """Return how many tokens a chunk has."""
        return int(self.counts[i])

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Chunks: ...
    def __getitem__(self, i: int | slice) -> str | Chunks:
        if isinstance(i, slice):
            return Chunks(self.document, self.tokenizer, self.spans[i], self.counts[i])
        return self.document.read(*self.span(i))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Chunks)
            and np.array_equal(self.spans, other.spans)
            and self.document.digest == other.document.digest
        )

    def __hash__(self) -> int:
        return hash((self.document.digest, self.spans.tobytes()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Chunks:
        return self

    def __repr__(self) -> str:
        return f"Chunks({len(self)} of {self.document!r}, tokenizer={self.tokenizer.name!r})"


def chunk_document(
    document: Document | str,
    *,
    size: int = 5000,
    align: Align = "token",
    tokenizer: Any = "words",
    overlap: int = 0,
    limit: int | None = None,
) -> Chunks:
    """Cut a document into chunks.

    Args:
        document: the document, or its text.
        size: tokens that a chunk has at most. (Where a tokenizer needs more tokens than that for a
            single character, the chunk is that character. With one that can only count,
            see `CountingTokenizer`, a chunk may be a single piece of more tokens.)
        align: "token" cuts after exactly `size` tokens, as the published workflows do; "sentence"
            packs as many whole sentences as fit, "document" as many whole parts. What is longer
            than a chunk on its own is cut by tokens; a document without parts is one part. A line
            ends a sentence unless the next one begins with a small letter: there, a sentence goes
            on, and is cut only if it is longer than a chunk.
        tokenizer: see `resolve_tokenizer`.
        overlap: tokens that a chunk repeats from the end of the one before, less than `size`; with
            "sentence" and "document", as many whole ones as fit into these.
        limit: tokens that are read at most: of a longer document, the first and the last half of
            them; no chunk holds text of both. None: all of it.

    Returns:
        Chunks in order; none for an empty document.

    Raises:
        InvalidSetting: a setting has a value that cannot work.
    """
    _check(size, align, overlap, limit)
    if isinstance(document, str):
        document = TextDocument(document)
    resolved = resolve_tokenizer(tokenizer)
    starts = _token_starts(document, resolved)
    breaks = [] if align == "token" else [_breaks(document, align, starts)]
    if align == "sentence":
        breaks.append(_line_breaks(document, starts))
    total = len(starts)
    cutter = _Cutter(document, starts, breaks, size=size, overlap=overlap)
    spans: list[tuple[int, int]] = []
    if limit is None or total <= limit:
        spans += cutter.cut(0, total)
    else:
        head = cutter.seam(limit - limit // 2, 0)
        spans += cutter.cut(0, head)
        spans += cutter.cut(max(head, cutter.seam(total - limit // 2, 0)), total)
    indices = np.array(spans, np.int64).reshape(-1, 2)
    bounds = np.concatenate([starts, np.array([len(document)], starts.dtype)]).astype(np.int64)
    if total:
        bounds[0] = 0  # blanks at the front belong to the first chunk
    elif len(document):  # nothing but blanks
        return Chunks(
            document, resolved, np.array([[0, len(document)]], np.int64), np.zeros(1, np.int64)
        )
    return Chunks(document, resolved, bounds[indices], indices[:, 1] - indices[:, 0])


def chunks_holding(chunks: Chunks, evidence: Sequence[Evidence]) -> list[tuple[int, ...]]:
    """Return, for each piece of evidence, the chunks that hold any character of it, in order.

    Empty where no chunk does: evidence without text, or in the middle that a limit has left out.
    """
    first = np.searchsorted(chunks.spans[:, 1], [item.start for item in evidence], side="right")
    beyond = np.searchsorted(chunks.spans[:, 0], [item.end for item in evidence], side="left")
    return [
        tuple(range(a, b)) if item.start < item.end else ()
        for item, a, b in zip(evidence, first.tolist(), beyond.tolist(), strict=True)
    ]


def count_tokens(document: Document, tokenizer: Any = "words") -> int:
    """Return how many tokens a document has, read a block at a time."""
    resolved = resolve_tokenizer(tokenizer)
    return sum(resolved.count(text) for _, text in blocks(document))


def blocks(document: Document, size: int = BLOCK) -> Iterator[tuple[int, str]]:
    """Yield a document in blocks: where each starts, and its text.

    A block ends before a blank between two words, where its last 4,096 characters hold one.
    """
    position, length = 0, len(document)
    while position < length:
        text = document.read(position, position + size)
        if position + size < length:
            tail = max(1, len(text) - _SEARCHED)
            cuts = [match.start() for match in _SEAM.finditer(text, tail)]
            text = text[: cuts[-1]] if cuts else text
        yield position, text
        position += len(text)


class _Cutter:
    """Chooses the cuts between tokens.

    Breaks are tokens before which one may cut, of several kinds: those of a kind count where there
    is none of the kinds before it. Where there is none at all, every token will do.
    """

    def __init__(
        self,
        document: Document,
        starts: NDArray[Any],
        breaks: Sequence[NDArray[np.int64]],
        *,
        size: int,
        overlap: int,
    ) -> None:
        self._document = document
        self._starts = starts
        self._breaks = breaks
        self._size = size
        self._overlap = overlap

    def cut(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the token spans of the chunks of a stretch of tokens."""
        start, done = first, first  # every token before `done` is in a chunk
        while done < end:
            stop = self._stop(start, end)
            if stop <= done:  # the overlap left no room for anything new
                start = done
                stop = self._stop(start, end)
            yield start, stop
            start, done = self._next_start(start, stop), stop

    def seam(self, token: int, after: int) -> int:
        """Return the last token up to `token` before which one may cut, if any is beyond `after`.

        A cut parts neither the tokens of one character, nor a mark from the letter that it is on.
        """
        starts = self._starts
        if not 0 < token < len(starts):
            return token
        best = first = int(np.searchsorted(starts, starts[token], side="left"))
        position = int(starts[first])
        text = self._document.read(max(0, position - _GLUED), position + 1)
        back = len(text) - 1
        while back > 0 and _is_glued(text[back - 1], text[back]):
            back -= 1
        if back > 0 and back < len(text) - 1:
            wanted = position - (len(text) - 1 - back)
            best = max(0, int(np.searchsorted(starts, wanted, side="right")) - 1)
            best = int(np.searchsorted(starts, starts[best], side="left"))
        for candidate in (best, first):
            if candidate > after:
                return candidate
        return int(np.searchsorted(starts, starts[token], side="right"))

    def _stop(self, start: int, end: int) -> int:
        furthest = start + self._size
        if furthest >= end:
            return end
        for breaks in self._breaks:
            at = int(np.searchsorted(breaks, furthest, side="right")) - 1
            if at >= 0 and breaks[at] > start:
                return int(breaks[at])
        return min(end, self.seam(furthest, start))

    def _next_start(self, start: int, stop: int) -> int:
        if not self._overlap:
            return stop
        earliest = max(stop - self._overlap, start + 1)
        for breaks in self._breaks:
            at = int(np.searchsorted(breaks, stop, side="left"))
            if at < len(breaks) and breaks[at] == stop:
                return int(breaks[np.searchsorted(breaks, earliest, side="left")])
        # Moved on, not back: an overlap is at most what was asked for.
        seam = self.seam(earliest, start)
        return seam if seam >= earliest else min(stop, self._following(seam, earliest, stop))

    def _following(self, seam: int, earliest: int, stop: int) -> int:
        for token in range(earliest + 1, stop):
            found = self.seam(token, seam)
            if found >= earliest:
                return found
        return stop


def _token_starts(document: Document, tokenizer: Tokenizer) -> NDArray[Any]:
    kind = np.int32 if len(document) < 2**31 else np.int64
    found = []
    for position, text in blocks(document):
        starts = offsets_of(tokenizer, text)[:, 0]
        inside = starts < len(text)
        if not inside.all():  # tokens without characters, at the end: they go with the last one
            starts = np.where(inside, starts, starts[inside].max(initial=0))
        found.append((starts + position).astype(kind))
    return np.concatenate(found) if found else np.empty(0, kind)


def _breaks(document: Document, align: Align, starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the tokens before which a sentence or part starts."""
    if align == "document":
        return _tokens_at([part.start for part in document.parts], starts)
    return _tokens_at(
        [
            position + match.end()
            for position, text in blocks(document)
            for match in _SENTENCE_END.finditer(text)
            if not _goes_on(match)
        ],
        starts,
    )


def _line_breaks(document: Document, starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the tokens before which a line starts."""
    return _tokens_at(
        [
            position + match.end()
            for position, text in blocks(document)
            for match in _LINE_END.finditer(text)
        ],
        starts,
    )


def _tokens_at(places: list[int], starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first tokens that start at these characters or later."""
    return np.unique(np.searchsorted(starts, np.array(places, np.int64), side="left"))


def _goes_on(match: re.Match[str]) -> bool:
    """Whether a sentence goes on in the next line, as in PDF pages and texts of fixed width."""
    found = match[0]
    return (
        found[0] == "\n"
        and found.count("\n") == 1
        and match.string[match.end() : match.end() + 1].islower()
    )


def _is_glued(before: str, char: str) -> bool:
    """Whether two characters are seen as one, or as parts of one."""
    if char < "\u0300":
        return before == "\r" and char == "\n"
    return (
        before == _JOINER
        or char == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
    )


def _check(size: int, align: str, overlap: int, limit: int | None) -> None:
    if align not in ALIGNS:
        raise InvalidSetting(f"align must be one of {', '.join(ALIGNS)}, got {align!r:.80}")
    if not _is_whole(size, 1):
        raise InvalidSetting(f"size must be a whole number of tokens, at least 1, got {size!r:.80}")
    if not _is_whole(overlap, 0) or overlap >= size:
        raise InvalidSetting(
            "overlap must be a whole number of tokens, at least 0 and less than a chunk has "
            f"({size}), got {overlap!r:.80}"
        )
    if limit is not None and not _is_whole(limit, 1):
        raise InvalidSetting(
            f"limit must be None or a whole number of tokens, at least 1, got {limit!r:.80}"
        )


def _is_whole(value: object, least: int) -> bool:
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return integer and int(value) >= least  # type: ignore[call-overload]
