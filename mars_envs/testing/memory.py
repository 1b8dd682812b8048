"""The check of the memory environments, in all three forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from ..parallel_memory.infos import INFO_FIELDS
from .episodes import made
from .forms import check_form
from .frames import TextPolicy
from .memory_calls import check_failures
from .memory_rules import MemoryRules, MemoryViewRules
from .memory_truth import check_truth
from .resets import check_resets
from .stubs import odd_reader


def check_memory(
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy = odd_reader,
    seeds: Sequence[int] = (0, 1),
) -> None:
    """Check an environment against the contract of the memory environments (docs/contract.md).

    Args:
        make_env: makes a `ParallelMemoryEnv`, a `TurnBasedMemoryEnv`, one of the baselines, a view
            of them, or your own environment that keeps the same contract.
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
        rules=MemoryRules,
        view_rules=MemoryViewRules,
    )
    check_truth(player, make_env)
    check_resets(player, make_env)
    if several and env.metadata.get("supports_fail", False):
        check_failures(player, make_env)
    env.close()
