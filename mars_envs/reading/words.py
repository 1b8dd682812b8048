"""A word tokenizer that is fixed for good, needs no download and looks at each character once.

Its tokens are the matches of `WORDS`: runs of letters, digits and underscores, single marks, and
single characters of scripts that put no blanks between words. Neither a run nor a stretch of blanks
is longer than 64 characters in one token, so text of n tokens has no more than 128 (n + 1)
characters, whatever it is: a chunk of a line without a blank is still a chunk.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONGEST: Final = 64
"""Characters of a token."""

_SCRIPTS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # Han, kana, Hangul

WORDS: Final = re.compile(rf"[^\W{_SCRIPTS}]{{1,{LONGEST}}}|[{_SCRIPTS}]|[^\w\s]|\s{{{LONGEST}}}")
"""What a token is, leftmost first."""

_BLANK, _RUN, _SINGLE = 0, 1, 2
_CODES = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"


def count_words(text: str) -> int:
    """Count the tokens of a text.

    Example:
        >>> count_words("print(n + 1)")
        6
    """
    starts, ends = _plain_spans(_classes(text))
    lengths = ends - starts
    count = len(starts) + int(((lengths - 1) // LONGEST).sum())
    return count + int((_blank_runs(starts, ends, len(text))[1] // LONGEST).sum())


def word_offsets(text: str) -> NDArray[np.int64]:
    """Return the first character of each token and one beyond its last, `[tokens, 2]`.

    Example:
        >>> word_offsets("no, 1").tolist()
        [[0, 2], [2, 3], [4, 5]]
    """
    starts, ends = _plain_spans(_classes(text))
    spans = _cut(starts, ends)
    gaps, lengths = _blank_runs(starts, ends, len(text))
    if (lengths >= LONGEST).any():
        blanks = _cut(gaps, gaps + lengths - lengths % LONGEST)
        spans = np.concatenate([spans, blanks])
        spans = spans[np.argsort(spans[:, 0], kind="stable")]
    return spans


@functools.cache
def _table() -> NDArray[np.uint8]:
    """Return the class of each character of the basic plane."""
    classes = np.full(0x10000, _SINGLE, np.uint8)
    every = "".join(map(chr, range(0x10000)))
    for kind, pattern in ((_BLANK, r"\s"), (_RUN, rf"[^\W{_SCRIPTS}]")):
        classes[[match.start() for match in re.finditer(pattern, every)]] = kind
    return classes


def _classes(text: str) -> NDArray[np.uint8]:
    codes = np.frombuffer(text.encode(_CODES, "surrogatepass"), np.uint32)
    above = codes > 0xFFFF
    if not above.any():
        classes: NDArray[np.uint8] = _table()[codes]
        return classes
    classes = _table()[np.minimum(codes, 0xFFFF)]
    kinds, which = np.unique(codes[above], return_inverse=True)
    runs = [re.match(rf"[^\W{_SCRIPTS}]", chr(kind)) is not None for kind in kinds]
    classes[above] = np.where(runs, _RUN, _SINGLE)[which]  # there are no blanks up there
    return classes


def _plain_spans(classes: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where runs and single characters start and end, however long the runs are."""
    run = classes == _RUN
    single = classes == _SINGLE
    first, last = run.copy(), run.copy()
    first[1:] &= ~run[:-1]
    last[:-1] &= ~run[1:]
    return np.flatnonzero(first | single), np.flatnonzero(last | single) + 1


def _blank_runs(
    starts: NDArray[np.int64], ends: NDArray[np.int64], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the stretches between the spans start, and their lengths, which may be 0."""
    begin = np.concatenate([[0], ends])
    return begin, np.concatenate([starts, [length]]) - begin


def _cut(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return spans as `[tokens, 2]`, those that are longer than a token cut into several."""
    pieces = -(-(ends - starts) // LONGEST)
    if len(pieces) == 0 or pieces.max() == 1 == pieces.min():
        return np.stack([starts, ends], axis=1)
    before = np.cumsum(pieces) - pieces
    nth = np.arange(int(pieces.sum())) - np.repeat(before, pieces)
    begin = np.repeat(starts, pieces) + nth * LONGEST
    return np.stack([begin, np.minimum(begin + LONGEST, np.repeat(ends, pieces))], axis=1)
