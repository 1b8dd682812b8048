"""One check for all three interfaces: PettingZoo's AEC and Parallel, and Gymnasium views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from pettingzoo import ParallelEnv

from .aec import AecForm, check_aec
from .episodes import Player, check_repeats
from .frames import TextPolicy
from .gym import GymForm
from .moments import Rule
from .parallel import ParallelForm, check_parallel

Rules = Callable[[Any], Rule]
"""From an environment to what follows one episode of it."""


def check_form(
    env: Any,
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy,
    seeds: Sequence[int],
    info_fields: Mapping[str, type],
    rules: Rules,
    view_rules: Rules,
) -> Player:
    """Check an environment by the rules of its interface, and return who plays it.

    Args:
        env: one that `make_env` has made; only its type is read.
        make_env: makes the environment anew.
        policy: speaks for every agent.
        seeds: one episode is played for each.
        info_fields: the exact keys and types of each info; of a view, `agent` comes to them.
        rules: of episodes of several agents.
        view_rules: of a Gymnasium view.

    Raises:
        AssertionError: the first rule that is broken.
    """
    if isinstance(env, gymnasium.Env):
        fields = {**info_fields, "agent": str}
        player = Player(form=GymForm(policy), info_fields=fields, rules=view_rules)
        check_repeats(player, make_env, seeds)
    elif isinstance(env, ParallelEnv):
        player = Player(form=ParallelForm(policy), info_fields=info_fields, rules=rules)
        check_parallel(player, make_env, seeds)
    else:
        player = Player(form=AecForm(policy), info_fields=info_fields, rules=rules)
        check_aec(player, make_env, seeds)
    return player
