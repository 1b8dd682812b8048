"""How a tree's figures grow with its budget, read off its prefixes.

A search that adds one node at a time and does not know its budget has, after `b` nodes, grown the
very tree that a budget of `b` would have given. So one tree of `N` nodes gives the whole curve, and
all its points rest on the same draws: compare points of one curve, and curves of methods, by paired
tests. A selector or a prompt that looks at the budget breaks this; so does asking for several nodes
at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .statistics import Estimate, mean_estimate


def chosen_by_budget(scores: ArrayLike, solved: ArrayLike) -> NDArray[np.float64]:
    """Return Pass@1(MCTS) of each prefix: whether its node of highest score is solved.

    Args:
        scores: [N], what the search sees, in order of creation. Of equals the latest is chosen.
        solved: [N], the truth.

    Returns:
        [N], 0 or 1; entry `b - 1` belongs to the budget `b`.

    Raises:
        ValueError: different lengths.
    """
    seen, truth = _columns(scores, solved)
    if not len(seen):
        return truth
    record = seen >= np.maximum.accumulate(seen)  # the first node is one
    chosen = np.maximum.accumulate(np.where(record, np.arange(len(seen)), 0))
    return truth[chosen]


def any_by_budget(solved: ArrayLike) -> NDArray[np.float64]:
    """Return Pass@N of each prefix: whether any of its nodes is solved.

    Args:
        solved: [N], in order of creation.

    Returns:
        [N], 0 or 1.
    """
    (truth,) = _columns(solved)
    return np.maximum.accumulate(truth)


def mean_by_budget(solved: ArrayLike) -> NDArray[np.float64]:
    """Return the share of solved nodes of each prefix.

    Args:
        solved: [N], in order of creation.

    Returns:
        [N], in [0, 1].
    """
    (truth,) = _columns(solved)
    shares: NDArray[np.float64] = np.cumsum(truth) / np.arange(1, len(truth) + 1)
    return shares


def at_budgets(
    curve: ArrayLike, budgets: Sequence[int], *, carry: bool = False
) -> NDArray[np.float64]:
    """Read one tree's curve at some budgets.

    Args:
        curve: [N].
        budgets: at least 1 each.
        carry: what to say of budgets above `N`: the last value, which is right where the tree
            ended for good (all its agents' pools were empty, or it stops once solved); else NaN.

    Returns:
        [len(budgets)].

    Raises:
        ValueError: a budget below 1.
    """
    (values,) = _columns(curve)
    places = np.asarray(budgets, dtype=np.int64)
    if len(places) and places.min() < 1:
        raise ValueError(f"expected budgets of 1 node or more, got {list(budgets)}")
    if not len(values):
        return np.full(len(places), np.nan)
    read = values[np.minimum(places, len(values)) - 1]
    return read if carry else np.where(places <= len(values), read, np.nan)


def by_task(rows: ArrayLike, tasks: Sequence[Hashable]) -> NDArray[np.float64]:
    """Average several trees of one task: [trees, ...] -> [tasks, ...], in order of appearance.

    NaN entries are left out of their mean; where a task has nothing else the result is NaN.

    Raises:
        ValueError: not one task per row.
    """
    matrix = np.asarray(rows, dtype=np.float64)
    if len(tasks) != len(matrix):
        raise ValueError(f"expected {len(matrix)} tasks, one per row, got {len(tasks)}")
    codes = {task: code for code, task in enumerate(dict.fromkeys(tasks))}
    place = np.array([codes[task] for task in tasks], dtype=np.int64)
    known = ~np.isnan(matrix)
    sums = np.zeros((len(codes), *matrix.shape[1:]))
    counts = np.zeros_like(sums)
    np.add.at(sums, place, np.where(known, matrix, 0.0))
    np.add.at(counts, place, known)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def curve_estimates(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 4999, seed: int = 0
) -> list[Estimate]:
    """Estimate each point of a curve over tasks.

    Args:
        values: [tasks, budgets], e.g. of `by_task`; NaN where a task has no such tree.
        confidence: see `mean_estimate`.
        resamples: see `mean_estimate`.
        seed: see `mean_estimate`.

    Returns:
        One per budget; its `n` counts the tasks that have a tree of that size.
    """
    return [
        mean_estimate(
            column[~np.isnan(column)], confidence=confidence, resamples=resamples, seed=seed
        )
        for column in np.asarray(values, dtype=np.float64).T
    ]


def _columns(*columns: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    vectors = tuple(np.asarray(column, dtype=np.float64) for column in columns)
    if any(vector.ndim != 1 or vector.shape != vectors[0].shape for vector in vectors):
        raise ValueError(
            f"expected one value per node, got shapes {[vector.shape for vector in vectors]}"
        )
    return vectors
