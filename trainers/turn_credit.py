"""The credit of every turn of whole episodes that are compared within groups.

A turn has its episode's advantage; where asked, verdicts on single turns are mixed in, malformed
replies are fined, and a group has to deserve its bonuses. What environments must say for that is in
`docs/contract.md`: `read_score`, `turn`, `chunk_index` and `status` of a turn, `reward_answer`,
`reward_turns` and `stop_reason` of an episode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .credit import CreditSettings, episode_credit, gated_rewards, step_advantages
from .errors import ConfigError
from .rollout import Rollout, Scalar, Turn

UNSCORED = frozenset({"backend_error", "agents"})
"""Values of `stop_reason` that say: nobody answered any more, so there is nothing to score."""


@dataclass(frozen=True, slots=True)
class TurnCredit:
    """A turn with its credit."""

    rollout: Rollout
    turn: Turn
    advantage: float
    degenerate: bool
    """Whether nothing can be learned from it: its group says nothing, nor does a verdict."""


def is_scored(rollout: Rollout) -> bool:
    """Whether the reward of an episode means anything.

    It does not where generations failed for good; that is nobody's mistake, so such an episode is
    no part of its group's mean and is not trained on.
    """
    return rollout.outcome != "failed" and rollout.summary.get("stop_reason") not in UNSCORED


def credit_episodes(rollouts: Sequence[Rollout], settings: CreditSettings) -> list[TurnCredit]:
    """Credit every turn of `rollouts`, in order. Groups are compared before turns are looked at.

    Raises:
        ConfigError: the settings need something that the environment does not say.
    """
    rewards = np.array([rollout.episode_reward for rollout in rollouts], dtype=np.float64)
    groups = [rollout.group_id for rollout in rollouts]
    if settings.bonus_gate:
        rewards = gated_rewards(
            rewards,
            [_number(one.summary, "reward_turns", one, "bonus_gate") for one in rollouts],
            [_number(one.summary, "reward_answer", one, "bonus_gate") > 0.5 for one in rollouts],
            groups=groups,
            accuracy=settings.bonus_gate,
        )
    compared = episode_credit(rewards, groups=groups, settings=settings)
    owners = [index for index, rollout in enumerate(rollouts) for _ in rollout.turns]
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    advantages = compared.advantages[owners]
    degenerate = compared.degenerate[owners]
    if settings.read_weight:
        scores, steps = _verdicts([rollouts[owner] for owner in owners], turns)
        local = step_advantages(scores, steps=steps)
        judged = ~np.isnan(scores)
        share = settings.read_weight
        advantages = np.where(judged, (1 - share) * advantages + share * local, advantages)
        degenerate = degenerate & (local == 0)
    if settings.malformed_penalty:
        fines = settings.malformed_penalty * _malformed_shares(rollouts)
        advantages = advantages - fines
        degenerate = degenerate & (fines == 0)
    advantages = np.clip(advantages, -settings.clip, settings.clip)
    return [
        TurnCredit(rollouts[owner], turn, float(advantage), bool(nothing))
        for owner, turn, advantage, nothing in zip(
            owners, turns, advantages, degenerate, strict=True
        )
    ]


def _verdicts(
    owners: Sequence[Rollout], turns: Sequence[Turn]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[tuple[str, float, float]]]:
    """Return the verdict on each turn, NaN where there is none, and which step it is."""
    scores, steps = np.full(len(turns), math.nan), []
    for place, (owner, turn) in enumerate(zip(owners, turns, strict=True)):
        score, number, chunk = (
            _number(turn.info, key, owner, "read_weight")
            for key in ("read_score", "turn", "chunk_index")
        )
        if score:
            scores[place] = score
        steps.append((owner.group_id, number, chunk))
    return scores, steps


def _malformed_shares(
    rollouts: Sequence[Rollout],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return, for each malformed turn, the share of its episode's turns that are; 0 for others."""
    shares: list[float] = []
    for rollout in rollouts:
        for turn in rollout.turns:
            if "status" not in turn.info:
                raise _lacking(rollout, "status", turn.info, "malformed_penalty")
        bad = [turn.info["status"] == "malformed" for turn in rollout.turns]
        share = sum(bad) / len(bad) if bad else 0.0
        shares += [share * one for one in bad]
    return np.array(shares, dtype=np.float64)


def _number(facts: Mapping[str, Scalar], key: str, rollout: Rollout, setting: str) -> float:
    if key not in facts:
        raise _lacking(rollout, key, facts, setting)
    return float(facts[key])


def _lacking(rollout: Rollout, key: str, facts: Mapping[str, Scalar], setting: str) -> ConfigError:
    return ConfigError(
        f"{rollout.env_id}: {setting} needs {key!r} in the infos, got {sorted(facts)}; set "
        f"{setting}=0, or use an environment that says it"
    )
