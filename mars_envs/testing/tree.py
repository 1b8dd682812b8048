"""The check of the tree environments, in all three forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from pettingzoo import ParallelEnv

from ..tree_search.infos import INFO_FIELDS
from .aec import check_text_aec
from .gym import check_text_gym
from .parallel import check_text_parallel


def check_tree_search(make_env: Callable[[], Any], **options: Any) -> None:
    """Check an environment against the contract of the tree environments (docs/contract.md).

    Args:
        make_env: makes a `TreeSearchEnv`, a `ParallelTreeSearchEnv`, a view of them, or your own
            environment that keeps the same contract.
        **options: `policy` and `seeds` of `check_text_aec`.

    Raises:
        AssertionError: the first rule that is broken.
    """
    env = make_env()
    if isinstance(env, gymnasium.Env):
        check_text_gym(make_env, info_fields={**INFO_FIELDS, "agent": str}, **options)
    elif isinstance(env, ParallelEnv):
        check_text_parallel(make_env, info_fields=INFO_FIELDS, **options)
    else:
        check_text_aec(make_env, info_fields=INFO_FIELDS, **options)
