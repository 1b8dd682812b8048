"""Tree-consistent reward shaping (MARS², arXiv 2604.14564): parent and siblings as baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .relations import ROOT_PARENT, Floats, checked_parents, vector


def shape_rewards(
    rewards: ArrayLike, parents: ArrayLike, *, gamma: float = 0.3, lam: float = 0.5
) -> Floats:
    """Move each node's reward away from its baseline, made of its parent and its siblings.

    With `b(v) = (1 - lam) * r_parent + lam * mean(r_siblings)`: `r(v) + gamma * (r(v) - b(v))`.
    Children of the root have the sibling mean only, nodes without siblings the parent only, and a
    lone child of the root keeps its reward. All baselines are of raw rewards, so the order of the
    nodes does not matter, and siblings that were made later count as well.

    A node of unknown reward is nobody's baseline: it is left out of its siblings' mean, and its
    children have the sibling mean only.

    Args:
        rewards: [N], of the nodes without the root; NaN where not known.
        parents: [N], each node's parent as an index into `rewards`, -1 for the root, -2 where the
            parent was lost; such a node keeps its reward.
        gamma: strength; 0 leaves the rewards as they are.
        lam: the siblings' share of the baseline.

    Returns:
        [N], the shaped rewards; NaN where the reward is.

    Raises:
        ValueError: lengths differ, a parent does not exist, or nodes are their own ancestors.
    """
    raw = vector(rewards, "rewards")
    up = checked_parents(parents, len(raw))
    if not len(raw):
        return raw.copy()
    known = ~np.isnan(raw)
    in_family = up >= ROOT_PARENT
    counted = known & in_family
    # Index -1 is the root, and also NumPy's last: the families get one slot more.
    families = len(raw) + 1
    slots = up % families
    totals = np.bincount(slots[counted], weights=raw[counted], minlength=families)
    sizes = np.bincount(slots[counted], minlength=families)
    siblings = np.where(in_family, sizes[slots] - known, 0)
    above = np.maximum(up, 0)  # a negative place would be read as one from the end
    has_siblings, has_parent = siblings > 0, (up >= 0) & known[above]
    sibling_mean = (totals[slots] - raw) / np.maximum(siblings, 1)
    parent_reward = np.where(has_parent, raw[above], 0.0)
    baseline = np.select(
        [has_siblings & has_parent, has_siblings, has_parent],
        [(1 - lam) * parent_reward + lam * sibling_mean, sibling_mean, parent_reward],
        default=raw,
    )
    shaped: Floats = raw + gamma * (raw - baseline)
    return shaped
