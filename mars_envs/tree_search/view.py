"""The Gymnasium view of the tree: what `gym.make("mars_envs/TreeSearch-v0")` returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.conversions import parallel_to_aec

from ..single_agent import Partner, SingleAgentView
from .env import TreeSearchEnv
from .parallel import ParallelTreeSearchEnv


class TreeSearchView(SingleAgentView):
    """One learner writes for whichever coder the search selects.

    Args:
        partners: coder -> callable of (observation, info) that plays it, or "module:name".
        parallel: let all coders act at once (`ParallelTreeSearchEnv`); the learner is one of them,
            the others need partners.
        **options: those of the environment.
    """

    metadata = TreeSearchEnv.metadata

    def __init__(
        self,
        *,
        partners: Mapping[str, str | Partner] | None = None,
        parallel: bool = False,
        **options: Any,
    ) -> None:
        if parallel:
            env = parallel_to_aec(ParallelTreeSearchEnv(**options))
        else:
            env = TreeSearchEnv(**options)
        super().__init__(env, partners=partners)
