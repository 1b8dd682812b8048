"""The Gymnasium views: what `gym.make` returns for the ids of the reading environments.

One learner speaks for whichever agent is asked; `partners` play others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..single_agent import Partner, SingleAgentView
from .env import TurnBasedMemoryEnv
from .recurrent_env import RecurrentMemoryEnv
from .single_pass_env import SinglePassEnv

Partners = Mapping[str, str | Partner]


class ParallelMemoryView(SingleAgentView):
    """One learner reads, merges and answers, call by call.

    Args:
        partners: agent -> callable of (observation, info) that plays it, or "module:name".
        **options: those of `ParallelMemoryEnv`.
    """

    metadata = TurnBasedMemoryEnv.metadata

    def __init__(self, *, partners: Partners | None = None, **options: Any) -> None:
        super().__init__(TurnBasedMemoryEnv(**options), partners=partners)


class RecurrentMemoryView(SingleAgentView):
    """One learner memorizes and answers.

    Args:
        partners: agent -> callable of (observation, info) that plays it, or "module:name".
        **options: those of `RecurrentMemoryEnv`.
    """

    metadata = RecurrentMemoryEnv.metadata

    def __init__(self, *, partners: Partners | None = None, **options: Any) -> None:
        super().__init__(RecurrentMemoryEnv(**options), partners=partners)


class SinglePassView(SingleAgentView):
    """One learner answers.

    Args:
        **options: those of `SinglePassEnv`.
    """

    metadata = SinglePassEnv.metadata

    def __init__(self, **options: Any) -> None:
        super().__init__(SinglePassEnv(**options))
