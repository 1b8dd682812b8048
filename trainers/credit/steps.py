"""Credit within whole episodes: a bonus that a group must deserve, and verdicts on single steps.

Both work on episodes that are compared within groups, before any of them becomes training rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .relations import Floats, codes, vector


def gated_rewards(
    rewards: ArrayLike,
    bonuses: ArrayLike,
    correct: ArrayLike,
    *,
    groups: Sequence[Hashable],
    accuracy: float,
) -> Floats:
    """Take the bonus from the episodes of groups that are not right often enough.

    Paid to a group that seldom succeeds, a bonus for being quick teaches to be quick before it
    teaches to be right.

    Args:
        rewards: [N], of the episodes, bonus included; NaN where not known.
        bonuses: [N], the part of each that is bonus.
        correct: [N], whether each episode succeeded.
        groups: [N], which episodes are compared.
        accuracy: the share of a group's known episodes that must have succeeded.

    Returns:
        [N], the rewards, without their bonus in the other groups.

    Raises:
        ValueError: lengths differ.
    """
    total = vector(rewards, "rewards")
    extra, right = vector(bonuses, "bonuses", len(total)), vector(correct, "correct", len(total))
    membership = codes(groups, len(total), "groups")
    known = ~np.isnan(total)
    sizes = np.bincount(membership[known], minlength=len(total))
    hits = np.bincount(membership[known], weights=right[known], minlength=len(total))
    paid = (hits >= accuracy * sizes)[membership]
    gated: Floats = np.where(paid, total, total - extra)
    return gated


def step_advantages(scores: ArrayLike, *, steps: Sequence[Hashable]) -> Floats:
    """Compare each step's verdict with the mean of the same step in the episodes of its group.

    GRU-Mem's turn advantage (arXiv 2602.10560): no division by a spread.

    Args:
        scores: [N], e.g. +1 for right and -1 for wrong; NaN where there is no verdict.
        steps: [N], which step of which group, e.g. (group, turn, chunk).

    Returns:
        [N], 0 where there is no verdict.

    Raises:
        ValueError: `steps` has another length.
    """
    every = vector(scores, "scores")
    same = codes(steps, len(every), "steps")
    known = ~np.isnan(every)
    counts = np.bincount(same[known], minlength=len(every))
    sums = np.bincount(same[known], weights=every[known], minlength=len(every))
    means = sums / np.maximum(counts, 1)
    advantages: Floats = np.where(known, every - means[same], 0.0)
    return advantages
