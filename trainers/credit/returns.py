"""Returns that flow back along a tree's paths: an ablation, in neither paper.

In MARS² the success of descendants reaches their ancestors in the search's statistics only, never
in the training signal. Where a refinement is worth more than the answer it started from, one may
want the opposite: to pay for answers out of which good ones can be made.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .relations import Floats, checked_parents, depths, vector


def path_returns(
    values: ArrayLike,
    parents: ArrayLike,
    *,
    discount: float = 0.5,
    branches: Literal["mean", "best"] = "mean",
) -> Floats:
    """Return what each node is worth together with what came of it.

    `G(v) = x(v) + discount * B(v)`, where `B(v)` is the mean, or the largest, `G` of the children
    of `v`, and 0 where it has none: the return of a path on which `v` is followed by an average, or
    by the best, continuation.

    Args:
        values: [N], each node's own; NaN where not known. What lies below such a node does not
            reach the nodes above it.
        parents: [N], see `shape_rewards`.
        discount: what one step down the path costs; 0 returns the values as they are.
        branches: how several children make one continuation.

    Returns:
        [N], NaN where the value is.

    Raises:
        ValueError: see `shape_rewards`.
    """
    own = vector(values, "values")
    up = checked_parents(parents, len(own))
    depth = depths(up)
    result = own.copy()
    # Deepest first: the children of a level are complete when it is reached.
    for level in range(int(depth.max(initial=0)), 0, -1):
        children = np.flatnonzero((depth == level) & ~np.isnan(result))
        above = up[children]
        counts = np.bincount(above, minlength=len(own))
        if branches == "best":
            ahead = np.full(len(own), -np.inf)
            np.maximum.at(ahead, above, result[children])
        else:
            sums = np.bincount(above, weights=result[children], minlength=len(own))
            ahead = sums / np.maximum(counts, 1)
        has_children = counts > 0
        result[has_children] += discount * ahead[has_children]
    return result
