"""What one step's rollouts look like, as flat figures for a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from .rollout import Rollout, Turn
from .run_log import Metrics


class _Credited(Protocol):
    @property
    def agent(self) -> str: ...
    @property
    def rollout_id(self) -> str: ...
    @property
    def degenerate(self) -> bool: ...


def collection_metrics(rollouts: Sequence[Rollout], rows: Sequence[_Credited]) -> Metrics:
    """Summarise one step.

    Args:
        rollouts: of the step; failed ones are counted and otherwise left out.
        rows: what became of them, with their credit.

    Returns:
        For all agents together: `episodes`, `failed_episodes`, `episode_reward`, `solved_share` (of
        episodes with any solved node), `degenerate_share` (of episodes all of whose rows are
        degenerate). For all together and under `agents/<name>/`: `actions`, `tokens`, `reward`,
        `degenerate_rows`. Means are None where there is nothing to average.
    """
    played = [rollout for rollout in rollouts if rollout.outcome != "failed"]
    informative = {row.rollout_id for row in rows if not row.degenerate}
    metrics: Metrics = {
        "episodes": len(rollouts),
        "failed_episodes": len(rollouts) - len(played),
        "episode_reward": _mean(rollout.episode_reward for rollout in played),
        "solved_share": _mean(
            any(turn.info.get("solved", False) for turn in rollout.turns) for rollout in played
        ),
        "degenerate_share": _mean(rollout.rollout_id not in informative for rollout in played),
    }
    turns = [turn for rollout in played for turn in rollout.turns]
    metrics.update(_agent_metrics(turns, rows))
    for agent in sorted({turn.agent for turn in turns}):
        own = _agent_metrics(
            [turn for turn in turns if turn.agent == agent],
            [row for row in rows if row.agent == agent],
        )
        metrics.update({f"agents/{agent}/{key}": value for key, value in own.items()})
    return metrics


def _agent_metrics(turns: Sequence[Turn], rows: Sequence[_Credited]) -> Metrics:
    return {
        "actions": len(turns),
        "tokens": sum(len(turn.generation.completion_ids) for turn in turns),
        "reward": _mean(turn.reward for turn in turns),
        "degenerate_rows": sum(row.degenerate for row in rows),
    }


def _mean(values: Iterable[float]) -> float | None:
    numbers = [float(value) for value in values]
    return sum(numbers) / len(numbers) if numbers else None
