"""The Gymnasium view of `TreeSearchEnv`: what `gym.make("mars_envs/TreeSearch-v0")` returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..single_agent import Partner, SingleAgentView
from .env import TreeSearchEnv


class TreeSearchView(SingleAgentView):
    """One learner writes for whichever coder the search selects.

    Args:
        partners: coder -> callable of (observation, info) that plays it, or "module:name".
        **options: those of `TreeSearchEnv`.
    """

    metadata = TreeSearchEnv.metadata

    def __init__(
        self, *, partners: Mapping[str, str | Partner] | None = None, **options: Any
    ) -> None:
        super().__init__(TreeSearchEnv(**options), partners=partners)
