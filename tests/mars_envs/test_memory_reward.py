"""What an episode of reading is paid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting
from mars_envs.judging.answers import boxed
from mars_envs.parallel_memory.reward import (
    Reward,
    RewardSettings,
    episode_reward,
    reward_settings,
    turn_share,
)
from mars_envs.parallel_memory.workflow import CallRecord, Phase, TurnRecord
from mars_envs.reading import ReadingTask, TextDocument

TASK = ReadingTask(
    task_id="t", question="Where?", document=TextDocument("d"), answers=("Paris", "Lutetia")
)


@dataclass
class Ended:
    """A workflow that has ended, as far as a reward looks at it."""

    turn: int = 2
    productive: int = 1
    max_turns: int = 3
    n_chunks: int = 10
    reply: str = r"\boxed{Paris}"
    exit_reason: str = "no_new_evidence"
    phase: Phase = Phase.DONE
    memory: str = ""
    calls: tuple[CallRecord, ...] = field(default=())

    @property
    def answer(self) -> str:
        return boxed(self.reply) or ""

    @property
    def turns(self) -> list[TurnRecord]:
        return [
            TurnRecord(
                turn=number,
                read=tuple(range(self.n_chunks)),
                found=(0,) if number <= self.productive else (),
                failed=(),
                malformed=0,
                dropped=0,
                memory="m",
                memory_tokens=1,
                memory_cut=False,
            )
            for number in range(1, self.turn + 1)
        ]


def paid(workflow: Ended, **changes: Any) -> Reward:
    return episode_reward(workflow, TASK, reward_settings(**changes))  # type: ignore[arg-type]


def test_the_published_bonus_is_that_of_the_paper() -> None:
    # Specification 2.2, K = 3: one turn 1.2, two 1.1, three 1.0, wrong 0.
    for turns, total in [(1, 1.2), (2, 1.1), (3, 1.0)]:
        workflow = Ended(turn=turns, productive=turns - 1)
        assert paid(workflow, turn_bonus="paper").total == pytest.approx(total)


def test_the_grounded_bonus_pays_nothing_for_an_answer_without_evidence() -> None:
    blind = paid(Ended(turn=1, productive=0))
    assert blind == Reward(answer=1.0, turns=0.0, correct=True)
    assert blind.total == 1.0
    assert paid(Ended(turn=2, productive=1)).total == pytest.approx(1.2)
    assert paid(Ended(turn=3, productive=2)).total == 1.0
    assert paid(Ended(turn=3, productive=0)).total == 1.0


@pytest.mark.parametrize("bonus", ["grounded", "paper", "cost", "none"])
def test_a_wrong_answer_earns_nothing_whatever_the_turns(bonus: str) -> None:
    for turns in (1, 2, 3):
        for reply in (r"\boxed{Lyon}", "Paris", "", r"\boxed{}"):
            workflow = Ended(turn=turns, productive=turns - 1, reply=reply)
            assert paid(workflow, turn_bonus=bonus) == Reward()


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_the_published_bonus_falls_with_every_turn(most: int) -> None:
    shares = [turn_share(k, k - 1, most, rule="paper") for k in range(1, most + 1)]
    assert all(earlier > later for earlier, later in itertools.pairwise(shares))
    assert (shares[0], shares[-1]) == (float(most > 1), 0.0)


@pytest.mark.parametrize("most", [3, 5, 8])
def test_the_grounded_bonus_is_highest_after_two_turns_and_falls_with_every_further_one(
    most: int,
) -> None:
    """One turn, which has found nothing, has none; so it is not the fewest turns that pay most."""
    first, *shares = [turn_share(k, k - 1, most, rule="grounded") for k in range(1, most + 1)]
    assert first == 0.0
    assert all(earlier > later for earlier, later in itertools.pairwise(shares))
    assert (shares[0], shares[-1]) == (1.0, 0.0)


@pytest.mark.parametrize("bonus", ["grounded", "paper", "cost", "none"])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_any_right_answer_beats_any_wrong_one(bonus: str, most: int) -> None:
    ends = [(turn, found) for turn in range(1, most + 1) for found in range(turn + 1)]
    right, wrong = (
        [
            paid(
                Ended(turn=turn, productive=found, max_turns=most, reply=reply), turn_bonus=bonus
            ).total
            for turn, found in ends
        ]
        for reply in (r"\boxed{Paris}", r"\boxed{Lyon}")
    )
    assert min(right) >= 1.0
    assert max(right) <= 1.2
    assert set(wrong) == {0.0}


def test_without_a_second_turn_there_is_no_bonus() -> None:
    for bonus in ("grounded", "paper"):
        assert paid(Ended(turn=1, productive=1, max_turns=1), turn_bonus=bonus).total == 1.0


def test_any_accepted_answer_earns_the_reward_and_the_match_decides() -> None:
    assert paid(Ended(reply=r"\boxed{the lutetia.}")).answer == 1.0
    assert paid(Ended(reply=r"\boxed{the lutetia.}"), match="math_strict") == Reward()
    near = paid(Ended(reply=r"\boxed{Paris, France}"), match="squad_f1")
    assert near.answer == pytest.approx(2 / 3)
    assert near.turns == pytest.approx(0.2)
    far = paid(Ended(reply=r"\boxed{Paris in the south of France}"), match="squad_f1")
    assert 0 < far.answer <= 0.5
    assert far.turns == 0.0


def call(prompt: int, output: int) -> CallRecord:
    return CallRecord(
        id=0,
        role="reader",
        turn=1,
        index=0,
        level=0,
        attempt=0,
        status="no",
        prompt_tokens=prompt,
        output_tokens=output,
    )


def test_the_cost_bonus_falls_with_calls_or_with_tokens() -> None:
    few, many = Ended(calls=(call(90, 10),) * 12), Ended(calls=(call(90, 10),) * 23)
    # Most: 3 turns of 10 chunks and a merge each, and the answer: 34 calls.
    assert paid(few, turn_bonus="cost").turns == pytest.approx(0.2 * (1 - 12 / 34))
    assert paid(many, turn_bonus="cost").turns == pytest.approx(0.2 * (1 - 23 / 34))
    assert paid(many, turn_bonus="cost", max_cost=20).turns == 0.0
    tokens = {"turn_bonus": "cost", "cost_unit": "tokens", "max_cost": 4800}
    assert paid(few, **tokens).turns == pytest.approx(0.2 * 0.75)
    assert paid(Ended(productive=0, calls=few.calls), turn_bonus="cost").turns == 0.0


def test_nothing_is_scored_where_the_model_could_not_be_reached() -> None:
    failed = paid(Ended(exit_reason="backend_error", reply=r"\boxed{Paris}"))
    assert failed == Reward(scored=False)
    assert failed.total == 0.0
    assert paid(Ended(phase=Phase.MERGE, exit_reason="")) == Reward()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turn_bonus": "early"}, "turn_bonus is one of"),
        ({"match": "em"}, "unknown match 'em'"),
        ({"weight": -0.1}, "weight must be a number of at least 0"),
        ({"weight": float("nan")}, "weight must be a number of at least 0"),
        ({"max_cost": 0}, "max_cost must be a number above 0"),
        ({"turn_bonus": "cost", "cost_unit": "tokens"}, "needs max_cost"),
        ({"bonus": "paper"}, r"unknown reward settings \['bonus'\]"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        reward_settings(**changes)


def test_the_defaults_are_those_of_the_design() -> None:
    settings = RewardSettings()
    assert (settings.match, settings.turn_bonus, settings.weight) == ("squad_em", "grounded", 0.2)


@pytest.mark.parametrize("name", ["weight", "max_cost"])
@pytest.mark.parametrize("value", ["x", True, float("nan"), [1.0], -1.0])
def test_what_is_no_number_is_no_weight(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=f"{name} must be a number"):
        RewardSettings(**{name: value})
