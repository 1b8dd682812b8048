"""Means over pairs of things, exact for few pairs and from a seeded sample for many."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
Distance = Callable[[T, T], float]

MAX_PAIRS = 2_000
"""Pairs that are looked at, unless one asks for another number."""


@dataclass(frozen=True, slots=True)
class PairMean:
    """A mean over pairs. Without any pair the mean is None."""

    mean: float | None
    se: float
    """Standard error from looking at a sample of the pairs; 0 where all were looked at."""
    pairs: int
    """How many pairs there are."""
    used: int
    """How many were looked at."""


def mean_pairwise(
    items: Sequence[T], distance: Distance[T], *, max_pairs: int = MAX_PAIRS, seed: int = 0
) -> PairMean:
    """Return the mean distance over all pairs of items.

    Args:
        items: [n].
        distance: symmetric.
        max_pairs: of more pairs, so many are drawn without replacement.
        seed: of the draw.

    Raises:
        ValueError: `max_pairs` is below 2.
    """
    return _mean([_Within(items)], distance, max_pairs, seed)


def mean_within(
    groups: Mapping[str, Sequence[T]],
    distance: Distance[T],
    *,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> PairMean:
    """Return the mean distance over pairs of items of the same group (see `mean_pairwise`)."""
    return _mean([_Within(items) for items in groups.values()], distance, max_pairs, seed)


def mean_between(
    groups: Mapping[str, Sequence[T]],
    distance: Distance[T],
    *,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> PairMean:
    """Return the mean distance over pairs of items of two groups (see `mean_pairwise`)."""
    blocks = [_Between(*pair) for pair in itertools.combinations(groups.values(), 2)]
    return _mean(blocks, distance, max_pairs, seed)


class _Within(Generic[T]):
    """The pairs of one sequence, numbered: those with item 1 as their second first."""

    def __init__(self, items: Sequence[T]) -> None:
        self._items = items

    def __len__(self) -> int:
        return math.comb(len(self._items), 2)

    def pair(self, number: int) -> tuple[T, T]:
        second = (1 + math.isqrt(8 * number + 1)) // 2
        return self._items[number - math.comb(second, 2)], self._items[second]


class _Between(Generic[T]):
    """The pairs of an item of one sequence and an item of another, numbered."""

    def __init__(self, items: Sequence[T], others: Sequence[T]) -> None:
        self._items, self._others = items, others

    def __len__(self) -> int:
        return len(self._items) * len(self._others)

    def pair(self, number: int) -> tuple[T, T]:
        return self._items[number // len(self._others)], self._others[number % len(self._others)]


def _mean(
    blocks: Sequence[_Within[T] | _Between[T]], distance: Distance[T], max_pairs: int, seed: int
) -> PairMean:
    if max_pairs < 2:
        raise ValueError(f"max_pairs must be at least 2 for a standard error, got {max_pairs!r}")
    ends = list(itertools.accumulate(map(len, blocks)))
    total = ends[-1] if ends else 0
    if not total:
        return PairMean(None, 0.0, 0, 0)
    numbers: Sequence[int] = range(total)
    if total > max_pairs:
        numbers = random.Random(seed).sample(numbers, max_pairs)
    found: list[float] = []
    for number in numbers:
        place = bisect_right(ends, number)
        begin = ends[place - 1] if place else 0
        found.append(distance(*blocks[place].pair(number - begin)))
    error = 0.0
    if len(found) < total:
        # Drawn without replacement from finitely many.
        error = statistics.stdev(found) * math.sqrt((1 - len(found) / total) / len(found))
    return PairMean(math.fsum(found) / len(found), error, total, len(found))
