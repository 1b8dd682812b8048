"""PI-Mem as PettingZoo environments: many readers, one merger, one answerer, one long document.

In every turn each chunk is read by one reader, who is told the question and the memory as it
stands; what was found is merged into the memory; when nobody finds anything new, or after
`max_turns`, the answerer answers from the memory alone. The environment is a thin shell over
`MemoryLoop`; tokens, chat templates and models live elsewhere.

Reward: nothing until the answer, then one team reward to every agent. A bad reply is data. A
failed call is neither "no" nor a score; too many of them cut the episode off (`backend_error`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from .arguments import pool, shell_arguments
from .forms import Rounds, TurnByTurn
from .observations import Observation
from .workflow import Role

NAME = "parallel_memory_v0"


def parallel_env(**options: Any) -> ParallelMemoryEnv:
    """Return the Parallel environment; options are those of `ParallelMemoryEnv`."""
    return ParallelMemoryEnv(**options)


def raw_env(**options: Any) -> TurnBasedMemoryEnv:
    """Return the bare AEC environment; options are those of `ParallelMemoryEnv`."""
    return TurnBasedMemoryEnv(**options)


def env(**options: Any) -> OrderEnforcingWrapper[str, Observation, str]:
    """Return the AEC environment in PettingZoo's order checks.

    Not in `AssertOutOfBoundsWrapper`: an overlong or unencodable text is data here, not an error.
    """
    return OrderEnforcingWrapper(raw_env(**options))


def _pools(readers: int, mergers: int) -> dict[Role, tuple[str, ...]]:
    return {
        "reader": pool("reader", readers, "readers"),
        "merger": pool("merger", mergers, "mergers"),
        "answerer": pool("answerer", 1),
    }


class ParallelMemoryEnv(Rounds):
    """One question about one document per episode, read by all readers at once.

    A step takes the replies of all agents with `info["active"]`: of a wave of readers, of the
    mergers, or of the answerer. Agents keep their place to the end; a document with fewer chunks
    than `readers` has fewer of them. One with more is read in waves: reader r reads the chunks r,
    r + R, r + 2R, …, one a step. What comes of an episode depends on what is said about each
    chunk, not on how many readers there are.

    Args:
        readers: the most that read at once.
        mergers: the most that merge at once; more than one is of use in hierarchical merges.
        **options: those of `shell_arguments` (tasks, chunks, prompts), any field of
            `MemorySettings` (`max_turns`, `memory_tokens`, `order`, …) and of `RewardSettings`
            (`match`, `turn_bonus`, …), and the following.
        max_calls: calls, failed ones included, after which the episode is truncated.
        max_seconds: time after which it is truncated.
        max_cycles: steps after which it is truncated. Each is None for no limit.
        render_mode: "ansi" (text), "human" (printed), "rgb_array" (needs Pillow) or None.
        clock: seconds from any fixed moment, for `max_seconds`.

    Raises:
        InvalidTask: no usable task.
        InvalidSetting: an option of an unknown name or out of range.

    Example:
        >>> from mars_envs.parallel_memory.replies import Answer, Merge, Read
        >>> env = ParallelMemoryEnv(tasks="mars_envs.testing:stub_reading_tasks", chunk_tokens=20)
        >>> says = {"reader": Read.yes("It is Ulm."), "merger": Merge("Ulm"), "answerer": "Ulm"}
        >>> observations, infos = env.reset(seed=0)
        >>> while env.agents:
        ...     active = [agent for agent in env.agents if infos[agent]["active"]]
        ...     actions = {agent: says[agent.split("_")[0]] for agent in active}
        ...     _, rewards, _, _, infos = env.step(actions)
        >>> infos["answerer_0"]["exit_reason"]
        'max_turns'
    """

    metadata: ClassVar[dict[str, Any]] = {**Rounds.metadata, "name": NAME}

    def __init__(self, *, readers: int = 64, mergers: int = 1, **options: Any) -> None:
        super().__init__(**shell_arguments("pi_mem", _pools(readers, mergers), **options))


class TurnBasedMemoryEnv(TurnByTurn):
    """`ParallelMemoryEnv` one call at a time: the next agent speaks when the one before has spoken.

    The calls, and what comes of them, are the same. This form serves one learner that plays all
    roles, and libraries that know no parallel agents.

    Args:
        readers: as there.
        mergers: as there.
        **options: as there. `max_cycles` counts calls.
    """

    metadata: ClassVar[dict[str, Any]] = {**TurnByTurn.metadata, "name": NAME}

    def __init__(self, *, readers: int = 64, mergers: int = 1, **options: Any) -> None:
        super().__init__(**shell_arguments("pi_mem", _pools(readers, mergers), **options))
