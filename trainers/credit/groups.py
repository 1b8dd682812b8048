"""Comparing values within groups: the estimators of GRPO and its relatives."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .relations import Bools, Floats, Ints, checked_parents, codes, generations, vector

DEGENERATE_RANGE = 1e-6
"""A group whose values lie closer together than this says nothing: all its advantages are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdvantages:
    """Values compared within their groups."""

    advantages: Floats  # [N]
    degenerate: Bools  # [N], whether the value is not known or its group has no spread


def group_advantages(
    values: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    baseline: Literal["mean", "leave_one_out"] = "mean",
    scale: Literal["group", "batch", "none"] = "group",
    ddof: int = 1,
    eps: float = 1e-6,
) -> GroupAdvantages:
    """Compare each value with its group's baseline, in units of a spread.

    `(value - baseline) / (std + eps)`; exactly 0 where the group is degenerate: its values, of
    which there may be one only, lie within `DEGENERATE_RANGE`. Without that rule a group of equal
    values may get large advantages, since its computed spread is a rounding error and not 0.

    Args:
        values: [N]. NaN stands for "not known": advantage 0, and no part in any statistic.
        groups: [N] keys; None puts all values in one group.
        baseline: the group's mean, or for each value the mean of the others (RLOO).
        scale: divide by the spread of the group, by that of all values, or not at all (Dr. GRPO).
        ddof: 1 for the sample standard deviation.
        eps: added to the standard deviation.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    every = vector(values, "values")
    membership = codes(groups, len(every), "groups")
    advantages = np.zeros_like(every)
    degenerate = np.ones(len(every), dtype=np.bool_)
    known = ~np.isnan(every)
    batch_spread = _spread(every[known], ddof)
    for members in _with_spread(every, membership, known):
        own = every[members]
        degenerate[members] = False
        advantages[members] = own - own.mean()
        if baseline == "leave_one_out":
            advantages[members] *= len(own) / (len(own) - 1)
        if scale != "none":
            spread = batch_spread if scale == "batch" else _spread(own, ddof)
            advantages[members] /= spread + eps
    return GroupAdvantages(advantages=advantages, degenerate=degenerate)


def ancestor_advantages(
    values: ArrayLike,
    parents: ArrayLike,
    *,
    baseline: Literal["mean", "leave_one_out"] = "mean",
    scale: Literal["tree", "none"] = "tree",
    ddof: int = 1,
    eps: float = 1e-6,
) -> GroupAdvantages:
    """Compare each node with all nodes below each of its ancestors, and average the comparisons.

    `D(v)` is the mean of `x(v) - baseline(nodes below a)` over the ancestors `a` of `v`, the root
    among them, below which lie all nodes; then `D(v) / (std over the tree of D + eps)`. A node that
    refines a weak branch is thus compared with that branch as well as with the whole tree. In a
    tree without refinements it is the comparison with the tree. After TreePO (arXiv 2508.17445),
    whose trees are made of text segments.

    Args:
        values: [N], see `group_advantages`.
        parents: [N], see `shape_rewards`.
        baseline: see `group_advantages`. A node that is alone below an ancestor differs by 0 there.
        scale: whether to divide by the spread.
        ddof: see `group_advantages`.
        eps: see `group_advantages`.

    Raises:
        ValueError: see `shape_rewards`.
    """
    every = vector(values, "values")
    up = checked_parents(parents, len(every))
    known = ~np.isnan(every)
    own = every[known]
    if not len(own) or np.ptp(own) < DEGENERATE_RANGE:
        return GroupAdvantages(advantages=np.zeros_like(every), degenerate=np.ones_like(known))
    counts, sums = np.zeros_like(every), np.zeros_like(every)  # of the nodes below each node
    for nodes, ancestors in generations(up):
        seen = known[nodes]
        np.add.at(counts, ancestors[seen], 1)
        np.add.at(sums, ancestors[seen], every[nodes[seen]])
    total = _deviation(every, own.sum(), len(own), baseline)
    compared = np.ones_like(every)
    for nodes, ancestors in generations(up):
        total[nodes] += _deviation(every[nodes], sums[ancestors], counts[ancestors], baseline)
        compared[nodes] += 1
    advantages = np.where(known, total / compared, 0.0)
    if scale == "tree":
        advantages /= _spread(advantages[known], ddof) + eps
    return GroupAdvantages(advantages=advantages, degenerate=~known)


def _with_spread(every: Floats, membership: Ints, known: Bools) -> Iterator[Ints]:
    """Yield the places of the known values of each group that is not degenerate."""
    places = np.flatnonzero(known)
    places = places[np.argsort(membership[places], kind="stable")]
    if not len(places):
        return
    own, group = every[places], membership[places]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(places))
    ranges = np.maximum.reduceat(own, starts) - np.minimum.reduceat(own, starts)
    for index in np.flatnonzero(ranges >= DEGENERATE_RANGE).tolist():
        yield places[starts[index] : ends[index]]


def _deviation(values: Floats, sums: Floats | float, counts: Floats | int, baseline: str) -> Floats:
    """Return how far values lie above the baseline of the group that they belong to.

    A value that is alone in its group is its own mean: 0, for either baseline.
    """
    deviation = values - sums / np.maximum(counts, 1)
    if baseline == "leave_one_out":
        deviation = deviation * counts / np.maximum(np.subtract(counts, 1), 1)
    return deviation


def _spread(values: Floats, ddof: int) -> float:
    if ddof not in (0, 1):
        raise ValueError(f"ddof must be 0 or 1, got {ddof!r}")
    return float(values.std(ddof=ddof)) if len(values) > ddof else 0.0
