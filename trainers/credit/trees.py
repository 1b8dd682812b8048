"""From rewards to advantages: of the nodes of one tree, or of whole episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .groups import GroupAdvantages, ancestor_advantages, group_advantages
from .relations import Bools, Floats, vector
from .returns import path_returns
from .settings import CreditSettings
from .shaping import shape_rewards

_MIXED_MARGIN = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCredit:
    """The credit of the nodes of one tree."""

    shaped: Floats  # [N], rewards after shaping
    values: Floats  # [N], what is compared: shaped rewards with returns and penalties
    advantages: Floats  # [N]
    degenerate: Bools  # [N], not to be trained on: the node or the spread of its group is missing


def tree_credit(
    rewards: ArrayLike,
    parents: ArrayLike,
    *,
    agents: Sequence[Hashable] | None = None,
    penalties: ArrayLike | None = None,
    settings: CreditSettings | None = None,
) -> TreeCredit:
    """Give every node of one tree its advantage.

    Shape, let returns flow back, penalise, compare, clip, in this order; the released code of MARS²
    has the same, without returns. Of an incomplete tree the nodes that are there are credited, if
    there are two of them at least: nothing is padded.

    Args:
        rewards: [N], raw; NaN where not known.
        parents: [N], see `shape_rewards`.
        agents: [N], who made each node; needed for the groups "agent" and "agent_baseline".
        penalties: [N], added to the shaped rewards, e.g. from `overlong_penalty`.
        settings: see `CreditSettings`, of whose fields those on overlong answers, on filtering and
            on tokens belong to the caller.

    Raises:
        ValueError: see `shape_rewards`; or agents or penalties of another length, or no agents
            where they are needed.
    """
    rules = settings or CreditSettings()
    if rules.group == "episodes":
        raise ValueError('group="episodes" compares rollouts, not the nodes of a tree')
    shaped = shape_rewards(rewards, parents, gamma=rules.gamma, lam=rules.lam)
    values = shaped
    if rules.returns != "own":
        values = path_returns(shaped, parents, discount=rules.discount, branches=rules.returns)
    if penalties is not None:
        values = values + vector(penalties, "penalties", len(values))
    compared = _compare(values, parents, agents, rules)
    return TreeCredit(
        shaped=shaped,
        values=values,
        advantages=np.clip(compared.advantages, -rules.clip, rules.clip),
        degenerate=compared.degenerate,
    )


def episode_credit(
    rewards: ArrayLike, *, groups: Sequence[Hashable], settings: CreditSettings | None = None
) -> GroupAdvantages:
    """Give every episode its advantage among those of its group: GRPO without a tree.

    Args:
        rewards: [N], of the episodes.
        groups: [N], which episodes are compared, e.g. those of one task.
        settings: see `CreditSettings`; its estimator, `ddof`, `eps` and `clip` are used.

    Raises:
        ValueError: `groups` has another length.
    """
    rules = settings or CreditSettings(group="episodes")
    compared = group_advantages(
        rewards,
        groups=groups,
        baseline=_baseline(rules),
        scale="group" if rules.estimator == "standard" else "none",
        ddof=rules.ddof,
        eps=rules.eps,
    )
    return dataclasses.replace(
        compared, advantages=np.clip(compared.advantages, -rules.clip, rules.clip)
    )


def is_mixed(rewards: ArrayLike, *, low: float = 0.0, high: float = 1.0) -> bool:
    """Return whether a tree's mean raw reward lies strictly between `low` and `high`.

    With rewards of 0 and 1: whether it has both solved and unsolved nodes. Trees that have not are
    what dynamic filtering leaves out (DAPO, arXiv 2503.14476).

    Args:
        rewards: [N], raw; NaN where not known. False where none is.
        low: the worst reward.
        high: the best reward.
    """
    raw = vector(rewards, "rewards")
    known = raw[~np.isnan(raw)]
    return bool(len(known) and low + _MIXED_MARGIN < known.mean() < high - _MIXED_MARGIN)


def _compare(
    values: Floats, parents: ArrayLike, agents: Sequence[Hashable] | None, rules: CreditSettings
) -> GroupAdvantages:
    standard = rules.estimator == "standard"
    if rules.group == "ancestors":
        return ancestor_advantages(
            values,
            parents,
            baseline=_baseline(rules),
            scale="tree" if standard else "none",
            ddof=rules.ddof,
            eps=rules.eps,
        )
    if rules.group != "tree" and agents is None:
        raise ValueError(f'group="{rules.group}" needs `agents`: who made each node')
    # Among the nodes of one tree, "batch" is the tree.
    scale: Literal["group", "batch"] = "batch" if rules.group == "agent_baseline" else "group"
    return group_advantages(
        values,
        groups=None if rules.group == "tree" else agents,
        baseline=_baseline(rules),
        scale=scale if standard else "none",
        ddof=rules.ddof,
        eps=rules.eps,
    )


def _baseline(rules: CreditSettings) -> Literal["mean", "leave_one_out"]:
    return "leave_one_out" if rules.estimator == "leave_one_out" else "mean"
