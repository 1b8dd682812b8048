"""Who gets the credit: MARS²'s reward shaping and path-level advantages, as pure functions.

All functions take and return NumPy arrays in float64 and change none of their inputs. `N` is the
number of nodes of one tree (or of rollouts, where groups are made of those). Shaping compares a
node with its parent and its siblings; the advantage then compares it with all nodes of its group.
Nothing flows back from descendants to ancestors: in the papers that happens in the search only.

Sources: MARS² (arXiv 2604.14564) for shaping and the tree-wide group; DAPO (arXiv 2503.14476) for
the soft overlong penalty; GRPO (arXiv 2402.03300) for group normalisation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

DEGENERATE_RANGE = 1e-6
"""A group whose values lie closer together than this says nothing: all its advantages are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdvantages:
    """Values compared within their groups."""

    advantages: Floats  # [N]
    degenerate: Bools  # [N], whether the value's group has no spread


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCredit:
    """The credit of the nodes of one tree."""

    shaped: Floats  # [N], rewards after shaping and the overlong penalty
    advantages: Floats  # [N]
    degenerate: Bools  # [N]


def shape_rewards(
    rewards: ArrayLike, parents: ArrayLike, *, gamma: float = 0.3, lam: float = 0.5
) -> Floats:
    """Move each node's reward away from its baseline, made of its parent and its siblings.

    With `b(v) = (1 - lam) * r_parent + lam * mean(r_siblings)`: `r(v) + gamma * (r(v) - b(v))`.
    Children of the root have the sibling mean only, nodes without siblings the parent only, and a
    lone child of the root keeps its reward. All baselines are of raw rewards, so the order of the
    nodes does not matter.

    Args:
        rewards: [N], of the nodes without the root.
        parents: [N], each node's parent as an index into `rewards`, -1 for the root.
        gamma: strength; 0 leaves the rewards as they are.
        lam: the siblings' share of the baseline.

    Returns:
        [N], the shaped rewards.

    Raises:
        ValueError: lengths differ, a parent does not exist, or nodes are their own ancestors.
    """
    raw = _vector(rewards, "rewards")
    up = _parents(parents, len(raw))
    if not len(raw):
        return raw.copy()
    # Index -1 is the root, and also NumPy's last: the families get one slot more.
    families = len(raw) + 1
    totals = np.bincount(up % families, weights=raw, minlength=families)
    sizes = np.bincount(up % families, minlength=families)
    siblings = sizes[up] - 1
    has_siblings, has_parent = siblings > 0, up >= 0
    sibling_mean = (totals[up] - raw) / np.maximum(siblings, 1)
    parent_reward = np.where(has_parent, raw[up], 0.0)
    baseline = np.select(
        [has_siblings & has_parent, has_siblings, has_parent],
        [(1 - lam) * parent_reward + lam * sibling_mean, sibling_mean, parent_reward],
        default=raw,
    )
    shaped: Floats = raw + gamma * (raw - baseline)
    return shaped


def group_advantages(
    values: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    ddof: int = 1,
    eps: float = 1e-6,
    scale: Literal["group", "batch", "none"] = "group",
) -> GroupAdvantages:
    """Normalise each value by the mean and the spread of its group.

    `(value - mean) / (std + eps)`; exactly 0 where the group is degenerate: its values, of which
    there may be one only, lie within `DEGENERATE_RANGE`. Without that rule a group of equal values
    may get large advantages, since its computed spread is a rounding error and not 0.

    Args:
        values: [N]. NaN stands for "not known": advantage 0, and no part in any statistic.
        groups: [N] keys; None puts all values in one group.
        ddof: 1 for the sample standard deviation.
        eps: added to the standard deviation.
        scale: divide by the spread of the group, by that of all values, or not at all.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    all_values = _vector(values, "values")
    keys = [0] * len(all_values) if groups is None else list(groups)
    if len(keys) != len(all_values):
        raise ValueError(f"expected {len(all_values)} groups, one per value, got {len(keys)}")
    advantages = np.zeros_like(all_values)
    degenerate = np.ones(len(all_values), dtype=np.bool_)
    known = ~np.isnan(all_values)
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    membership = np.array([codes[key] for key in keys], dtype=np.int64)
    batch_spread = _spread(all_values[known], ddof)
    for code in codes.values():
        members = known & (membership == code)
        own = all_values[members]
        if not len(own) or np.ptp(own) < DEGENERATE_RANGE:
            continue
        degenerate[membership == code] = False
        advantages[members] = own - own.mean()
        if scale != "none":
            spread = batch_spread if scale == "batch" else _spread(own, ddof)
            advantages[members] /= spread + eps
    return GroupAdvantages(advantages=advantages, degenerate=degenerate)


def tree_credit(
    rewards: ArrayLike,
    parents: ArrayLike,
    *,
    agents: Sequence[Hashable] | None = None,
    group: Literal["tree", "agent"] = "tree",
    gamma: float = 0.3,
    lam: float = 0.5,
    penalties: ArrayLike | None = None,
    clip: float = 10.0,
) -> TreeCredit:
    """Give every node of one tree its advantage: shape, penalise, normalise, clip, in this order.

    Args:
        rewards: [N], raw.
        parents: [N], see `shape_rewards`.
        agents: [N], who made each node; needed for `group="agent"`.
        group: compare with all nodes of the tree (the papers), or with the same agent's only.
        gamma: see `shape_rewards`.
        lam: see `shape_rewards`.
        penalties: [N], added to the shaped rewards, e.g. from `overlong_penalty`.
        clip: bound of the advantages' absolute value.

    Raises:
        ValueError: see `shape_rewards` and `group_advantages`.
    """
    shaped = shape_rewards(rewards, parents, gamma=gamma, lam=lam)
    if penalties is not None:
        extra = _vector(penalties, "penalties")
        if len(extra) != len(shaped):
            raise ValueError(f"expected {len(shaped)} penalties, one per node, got {len(extra)}")
        shaped = shaped + extra
    if group == "agent" and agents is None:
        raise ValueError('group="agent" needs `agents`: who made each node')
    normalised = group_advantages(shaped, groups=agents if group == "agent" else None)
    return TreeCredit(
        shaped=shaped,
        advantages=np.clip(normalised.advantages, -clip, clip),
        degenerate=normalised.degenerate,
    )


def overlong_penalty(
    lengths: ArrayLike, *, max_tokens: int, buffer: int | None = None, factor: float = 1.0
) -> Floats:
    """Penalise completions that come close to the limit, linearly over the last `buffer` tokens.

    Args:
        lengths: [N], tokens of each completion.
        max_tokens: the limit, where the penalty is `-factor`.
        buffer: where it begins, in tokens before the limit; a sixteenth of the limit by default.
        factor: the largest penalty.

    Returns:
        [N], from `-factor` to 0.
    """
    buffer = max(1, max_tokens // 16) if buffer is None else buffer
    if not 0 < buffer <= max_tokens:
        raise ValueError(f"expected a buffer between 1 and {max_tokens} tokens, got {buffer}")
    over = _vector(lengths, "lengths") - (max_tokens - buffer)
    return -factor * np.clip(over, 0, buffer) / buffer


def _spread(values: Floats, ddof: int) -> float:
    return float(values.std(ddof=ddof)) if len(values) > ddof else 0.0


def _vector(values: ArrayLike, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise ValueError(f"expected {name} of one dimension, got shape {vector.shape}")
    return vector


def _parents(parents: ArrayLike, count: int) -> Ints:
    up = np.asarray(parents, dtype=np.int64)
    if up.shape != (count,):
        raise ValueError(f"expected {count} parents, one per reward, got shape {up.shape}")
    if count and (up.min() < -1 or up.max() >= count):
        raise ValueError(
            f"expected parents from -1 (the root) to {count - 1}, got {up.min()} to {up.max()}"
        )
    ancestors = up
    for _ in range(count):
        if (ancestors < 0).all():
            return up
        ancestors = np.where(ancestors >= 0, up[ancestors], -1)
    if (ancestors >= 0).any():
        raise ValueError("the parents make a circle: some node is its own ancestor")
    return up
