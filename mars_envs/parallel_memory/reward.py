"""What an episode of reading is paid: for its answer, and for taking few turns.

The turn bonus is PI-Mem's (equations 4-5 of its paper), by default without its reward for guessing:
one turn is reachable only by finding nothing, so the published bonus is largest for an answer
without any evidence. `grounded` pays nothing for that.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import InvalidSetting
from ..judging.answers import Match, resolve_match
from ..reading.task import ReadingTask
from .settings import is_number
from .workflow import Phase, Workflow

TurnBonus = Literal["grounded", "paper", "cost", "none"]
CostUnit = Literal["calls", "tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSettings:
    """What is paid.

    Raises:
        InvalidSetting: a value that cannot work.
    """

    match: str | Match = "squad_em"
    """When an answer is right; see `judging.answers.MATCHES`. "math_strict" is what the published
    models were trained with."""
    turn_bonus: TurnBonus = "grounded"
    """"grounded": for few turns, if anything was found. "paper": for few turns, as published, which
    pays most for an answer without evidence. "cost": for few calls or tokens, if anything was
    found. "none"."""
    weight: float = 0.2
    """Lambda: the largest bonus, beside an answer reward of 1."""
    cost_unit: CostUnit = "calls"
    """For `turn_bonus="cost"`: what is counted. Tokens are those of prompts and replies."""
    max_cost: float | None = None
    """For `turn_bonus="cost"`: what earns no bonus. None, for calls: one for each chunk and one
    merge in every turn, and the answer. Tokens need a number."""

    def __post_init__(self) -> None:
        for name, choices in (("turn_bonus", TurnBonus), ("cost_unit", CostUnit)):
            if getattr(self, name) not in get_args(choices):
                raise InvalidSetting(
                    f"{name} is one of {get_args(choices)}, got {getattr(self, name)!r:.80}"
                )
        resolve_match(self.match)
        if not (is_number(self.weight) and 0 <= self.weight < math.inf):
            raise InvalidSetting(
                f"weight must be a number of at least 0 and finite, got {self.weight!r:.80}"
            )
        if self.max_cost is not None and not (is_number(self.max_cost) and self.max_cost > 0):
            raise InvalidSetting(
                f"max_cost must be a number above 0, or None, got {self.max_cost!r:.80}"
            )
        if self.turn_bonus == "cost" and self.cost_unit == "tokens" and self.max_cost is None:
            raise InvalidSetting(
                'turn_bonus="cost" with cost_unit="tokens" needs max_cost: the tokens at which '
                "there is no bonus any more"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """What an episode earned: `total = answer + turns`."""

    answer: float = 0.0
    """For the answer, by the match, in [0, 1]."""
    turns: float = 0.0
    """For few turns, calls or tokens: `weight` times a share."""
    correct: bool = False
    """Whether the answer counts as right: `answer` above 0.5."""
    scored: bool = True
    """False: too many calls failed, so there is nothing to score. The reward is 0, and nothing may
    be learned from it."""

    @property
    def total(self) -> float:
        """The reward of the episode."""
        return self.answer + self.turns


def episode_reward(
    workflow: Workflow, task: ReadingTask, settings: RewardSettings | None = None
) -> Reward:
    """Say what a workflow earned. Before its end, and where it was cut off, that is 0.

    Args:
        workflow: of this task.
        task: what was asked.
        settings: what is paid; None for the defaults.

    Returns:
        The reward. A right answer earns at least its answer reward whatever the turns, and a wrong
        one never more: no early exit is worth being wrong.
    """
    rules = settings or RewardSettings()
    if workflow.exit_reason == "backend_error":
        return Reward(scored=False)
    if workflow.phase != Phase.DONE:
        return Reward()
    answer = resolve_match(rules.match)(workflow.reply, task)
    correct = answer > 0.5
    bonus = rules.weight * _share(workflow, rules) if correct else 0.0
    return Reward(answer=answer, turns=bonus, correct=correct)


def turn_share(turns: int, productive: int, max_turns: int, *, rule: TurnBonus) -> float:
    """Return what share of the largest bonus a right answer earns by its turns, in [0, 1].

    Args:
        turns: the last turn entered, one without any find included.
        productive: turns that found something.
        max_turns: K.
        rule: "paper": `(K - k) / (K - 1)`, 0 for K = 1. "grounded": 0 if nothing was found, else
            `(K - max(k, 2)) / (K - 2)`, 0 for K <= 2; two turns, of which the second confirms that
            there is nothing more, are the fewest that find anything and end by themselves.

    Example:
        >>> [turn_share(k, 1, 3, rule="paper") for k in (1, 2, 3)]
        [1.0, 0.5, 0.0]
        >>> turn_share(2, 1, 3, rule="grounded"), turn_share(1, 0, 3, rule="grounded")
        (1.0, 0.0)
    """
    fewest = 1 if rule == "paper" else 2
    if rule not in ("paper", "grounded") or max_turns <= fewest:
        return 0.0
    if rule == "grounded" and not productive:
        return 0.0
    return max(0.0, (max_turns - max(turns, fewest)) / (max_turns - fewest))


def reward_settings(**changes: Any) -> RewardSettings:
    """Return the defaults, with some fields changed.

    Raises:
        InvalidSetting: no such field, or a value that cannot work.
    """
    known = [field.name for field in dataclasses.fields(RewardSettings)]
    if unknown := sorted(set(changes) - set(known)):
        raise InvalidSetting(f"unknown reward settings {unknown}; expected some of {known}")
    return RewardSettings(**changes)


def _share(workflow: Workflow, rules: RewardSettings) -> float:
    productive = sum(bool(turn.found) for turn in workflow.turns)
    if rules.turn_bonus != "cost":
        return turn_share(workflow.turn, productive, workflow.max_turns, rule=rules.turn_bonus)
    if not productive:
        return 0.0
    most = rules.max_cost
    if rules.cost_unit == "calls":
        cost = len(workflow.calls)
        if most is None:
            most = workflow.max_turns * (workflow.n_chunks + 1) + 1
    else:
        cost = sum(call.prompt_tokens + call.output_tokens for call in workflow.calls)
    assert most is not None  # checked by the settings
    return min(1.0, max(0.0, 1 - cost / most))
