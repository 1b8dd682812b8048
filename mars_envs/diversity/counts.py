"""How many kinds there are among K of n programs (DA@K), estimated without bias.

DA@K is the number of distinct algorithms among K solutions. What makes two programs the same
algorithm is up to the labels: here the signature of their behaviour, or the shape of their syntax.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence


def distinct(labels: Sequence[Hashable | None]) -> int:
    """Return the number of different labels; None is no label."""
    return len({label for label in labels if label is not None})


def distinct_at_k(labels: Sequence[Hashable | None], k: int) -> float:
    """Return the expected number of different labels among `k` of the items drawn at random.

    The mean over all subsets of size k (rarefaction, Hurlbert 1971), so unbiased for k items drawn
    from wherever these n were drawn:

        sum over labels of 1 - C(n - c, k) / C(n, k),   c: how often the label occurs.

    An item without a label (None) takes a place in the draw and counts for nothing.

    Args:
        labels: [n], one per item.
        k: from 0 to n.

    Raises:
        ValueError: k is out of range.
    """
    n = len(labels)
    if not 0 <= k <= n:
        raise ValueError(f"k is a number of items from 0 to {n}, got {k!r}")
    counts = Counter(label for label in labels if label is not None)
    subsets = math.comb(n, k)
    return math.fsum(1 - math.comb(n - count, k) / subsets for count in counts.values())
