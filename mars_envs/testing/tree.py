"""The check of the tree environments, in all three forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from pettingzoo import ParallelEnv

from ..tree_search.infos import INFO_FIELDS
from .aec import AecForm, check_aec
from .episodes import Player, check_repeats, made
from .frames import TextPolicy
from .gym import GymForm
from .parallel import ParallelForm, check_parallel
from .stubs import odd_policy
from .tree_calls import check_failures, check_resets, check_teams
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
    if isinstance(env, gymnasium.Env):
        fields = {**INFO_FIELDS, "agent": str}
        player = Player(form=GymForm(policy), info_fields=fields, rules=ViewRules)
        check_repeats(player, make_env, seeds)
    elif isinstance(env, ParallelEnv):
        player = Player(form=ParallelForm(policy), info_fields=INFO_FIELDS, rules=TreeRules)
        check_parallel(player, make_env, seeds)
    else:
        player = Player(form=AecForm(policy), info_fields=INFO_FIELDS, rules=TreeRules)
        check_aec(player, make_env, seeds)
    check_resets(player, make_env)
    if several:
        check_teams(player, make_env)
        if env.metadata.get("supports_fail", False):
            check_failures(player, make_env)
    check_judging(player, make_env)
    env.close()
