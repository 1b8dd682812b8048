"""Spans of tokens: which ones a model's scores say to copy, and which ones a given reply copied."""

from __future__ import annotations

import math
from collections.abc import Sequence

Span = tuple[int, int]
"""First token and one beyond the last."""


def best_spans(scores: Sequence[float], *, price: float) -> list[Span]:
    """Return the spans with the highest sum of scores, when each span costs `price`.

    A score is the log odds that a token is to be copied. The price keeps a reply in few pieces: a
    gap is only left where it loses more than a new span costs. Exact, by dynamic programming over
    "copying" and "not copying" (Viterbi).

    Args:
        scores: of each token; minus infinity where it must not be copied.
        price: of each span, at least 0.
    """
    copying, silent = -math.inf, 0.0
    # Whether the best way to copy (or not) at a token was copying at the token before.
    stays: list[bool] = []
    ends: list[bool] = []
    for score in scores:
        stay, start = copying, silent - price
        stays.append(stay >= start)
        ends.append(copying > silent)
        copying, silent = max(stay, start) + score, max(silent, copying)
    spans: list[Span] = []
    end = len(scores) if copying > silent else -1
    for place in range(len(scores) - 1, -1, -1):
        if end < 0:
            if ends[place]:
                end = place
        elif not stays[place]:
            spans.append((place, end))
            end = place if ends[place] else -1
    return spans[::-1]


def best_span(scores: Sequence[float]) -> Span | None:
    """Return the one span with the highest sum, or None where every score is minus infinity."""
    best, found = -math.inf, None
    total, start = -math.inf, 0
    for place, score in enumerate(scores):
        if total <= 0:
            total, start = score, place
        else:
            total += score
        if total > best:
            best, found = total, (start, place + 1)
    return found


def find_copies(words: Sequence[str], piece: Sequence[str], *, after: int = 0) -> list[Span]:
    """Return where `piece` stands in `words` from `after` on, without overlap."""
    found: list[Span] = []
    place, size = after, len(piece)
    while size and place + size <= len(words):
        if list(words[place : place + size]) == list(piece):
            found.append((place, place + size))
            place += size
        else:
            place += 1
    return found
