"""The check of the tree environments, in all three forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from ..tree_search.infos import INFO_FIELDS
from .episodes import made
from .forms import check_form
from .frames import TextPolicy
from .resets import check_resets
from .stubs import odd_policy
from .tree_calls import check_failures, check_teams
from .tree_judges import check_judging
from .tree_rules import TreeRules, ViewRules


def check_tree_search(
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy = odd_policy,
    seeds: Sequence[int] = (0, 1),
) -> None:
    """Check an environment against the contract of the tree environments (docs/contract.md).

    Args:
        make_env: makes a `TreeSearchEnv`, a `ParallelTreeSearchEnv`, a view of them, or your own
            environment that keeps the same contract.
        policy: speaks for every agent; must depend on its arguments alone.
        seeds: one episode is played for each.

    Raises:
        AssertionError: the first rule that is broken.
    """
    env = made(make_env)
    several = not isinstance(env, gymnasium.Env)
    player = check_form(
        env,
        make_env,
        policy=policy,
        seeds=seeds,
        info_fields=INFO_FIELDS,
        rules=TreeRules,
        view_rules=ViewRules,
    )
    check_resets(player, make_env)
    if several:
        check_teams(player, make_env)
        if env.metadata.get("supports_fail", False):
            check_failures(player, make_env)
    check_judging(player, make_env)
    env.close()
