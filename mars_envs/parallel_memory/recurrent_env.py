"""Recurrent memory (MemAgent, GRU-Mem) as PettingZoo environments: what PI-Mem is compared with.

One memorizer reads chunk after chunk and rewrites the memory at each; then the answerer answers
from it. Tasks, observations, infos and rewards are those of `ParallelMemoryEnv`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from .arguments import pool, shell_arguments
from .forms import Rounds, TurnByTurn
from .observations import Observation
from .workflow import Role

NAME = "recurrent_memory_v0"

_POOLS: dict[Role, tuple[str, ...]] = {
    "memorizer": pool("memorizer", 1),
    "answerer": pool("answerer", 1),
}


def parallel_env(**options: Any) -> ParallelRecurrentMemoryEnv:
    """Return the Parallel environment; options are those of `RecurrentMemoryEnv`."""
    return ParallelRecurrentMemoryEnv(**options)


def raw_env(**options: Any) -> RecurrentMemoryEnv:
    """Return the bare AEC environment; options are those of `RecurrentMemoryEnv`."""
    return RecurrentMemoryEnv(**options)


def env(**options: Any) -> OrderEnforcingWrapper[str, Observation, str]:
    """Return the AEC environment in PettingZoo's order checks."""
    return OrderEnforcingWrapper(raw_env(**options))


class RecurrentMemoryEnv(TurnByTurn):
    """One question about one document per episode, read from front to back by one agent.

    Args:
        gates: GRU-Mem: each reply says whether the memory changes and whether to read on. Without,
            MemAgent: each reply is the new memory.
        **options: those of `ParallelMemoryEnv`, without `readers` and `mergers`.

    Raises:
        InvalidTask: no usable task.
        InvalidSetting: an option of an unknown name or out of range.
    """

    metadata: ClassVar[dict[str, Any]] = {**TurnByTurn.metadata, "name": NAME}

    def __init__(self, *, gates: bool = False, **options: Any) -> None:
        super().__init__(**shell_arguments("gated" if gates else "recurrent", _POOLS, **options))


class ParallelRecurrentMemoryEnv(Rounds):
    """`RecurrentMemoryEnv` with PettingZoo's Parallel interface; one agent is active in each step.

    Args:
        gates: as there.
        **options: as there.
    """

    metadata: ClassVar[dict[str, Any]] = {**Rounds.metadata, "name": NAME}

    def __init__(self, *, gates: bool = False, **options: Any) -> None:
        super().__init__(**shell_arguments("gated" if gates else "recurrent", _POOLS, **options))
