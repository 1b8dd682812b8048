"""Reading at once, as PettingZoo environments: the baselines without a memory.

The answerer sees the document itself, or what a search finds in it, and answers; an episode is one
call. Tasks, observations, infos and rewards are those of `ParallelMemoryEnv`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ..errors import InvalidSetting
from .arguments import pool, shell_arguments
from .forms import Rounds, TurnByTurn
from .observations import Observation
from .workflow import Role

NAME = "single_pass_v0"

SinglePass = Literal["direct", "retrieval"]

_POOLS: dict[Role, tuple[str, ...]] = {"answerer": pool("answerer", 1)}


def parallel_env(**options: Any) -> ParallelSinglePassEnv:
    """Return the Parallel environment; options are those of `SinglePassEnv`."""
    return ParallelSinglePassEnv(**options)


def raw_env(**options: Any) -> SinglePassEnv:
    """Return the bare AEC environment; options are those of `SinglePassEnv`."""
    return SinglePassEnv(**options)


def env(**options: Any) -> OrderEnforcingWrapper[str, Observation, str]:
    """Return the AEC environment in PettingZoo's order checks."""
    return OrderEnforcingWrapper(raw_env(**options))


class SinglePassEnv(TurnByTurn):
    """One question about one document per episode, answered in one call.

    Args:
        method: "direct": the answerer sees the document, its middle left out where it is too long.
            "retrieval": the chunks that a BM25 search with the question finds (needs the extra
            `retrieval`).
        **options: those of `ParallelMemoryEnv`, without `readers` and `mergers`.

    Raises:
        InvalidTask: no usable task.
        InvalidSetting: an option of an unknown name or out of range.
    """

    metadata: ClassVar[dict[str, Any]] = {**TurnByTurn.metadata, "name": NAME}

    def __init__(self, *, method: SinglePass = "direct", **options: Any) -> None:
        super().__init__(**shell_arguments(_checked(method), _POOLS, **options))


class ParallelSinglePassEnv(Rounds):
    """`SinglePassEnv` with PettingZoo's Parallel interface.

    Args:
        method: as there.
        **options: as there.
    """

    metadata: ClassVar[dict[str, Any]] = {**Rounds.metadata, "name": NAME}

    def __init__(self, *, method: SinglePass = "direct", **options: Any) -> None:
        super().__init__(**shell_arguments(_checked(method), _POOLS, **options))


def _checked(method: str) -> str:
    if method not in ("direct", "retrieval"):
        raise InvalidSetting(f"method must be 'direct' or 'retrieval', got {method!r:.80}")
    return method
