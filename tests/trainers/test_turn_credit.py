"""Credit of episodes made of many conversations, against plain loops over its definition."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers import Generation, Rollout, Turn
from trainers.credit import CreditSettings, credit_settings, gated_rewards, step_advantages
from trainers.errors import ConfigError
from trainers.rows import Row, make_rows, trainable

PIMEM = credit_settings("pimem")


def turn(agent: str, tokens: int = 1, **info: Any) -> Turn:
    facts = {"turn": 1, "chunk_index": -1, "status": "done", "read_score": 0, **info}
    ids = tuple(range(1, tokens + 1))
    return Turn(
        agent=agent,
        prompt="p",
        generation=Generation(
            text="x", prompt_ids=(1,), completion_ids=ids, logprobs=(-0.1,) * tokens
        ),
        reward=0.0,
        info=facts,
    )


def episode(name: str, reward: float, turns: Sequence[Turn] = (), **changes: Any) -> Rollout:
    rollout = Rollout(
        rollout_id=name,
        group_id="g",
        env_id="env",
        task_id="t",
        seed=0,
        prompt_hash="",
        turns=tuple(turns) or (turn("reader_0"), turn("answerer_0")),
        outcome="terminated",
        episode_reward=reward,
        summary={"reward_answer": min(reward, 1.0), "reward_turns": max(0.0, reward - 1.0)},
    )
    return dataclasses.replace(rollout, **changes)


def advantages(rows: Sequence[Row]) -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    for row in rows:
        found[row.rollout_id].add(round(row.advantage, 12))
    return dict(found)


def test_the_worked_example_of_pimem_is_reproduced() -> None:
    # Specification 9.1: K = 3, four rollouts, R = [1.1, 1.0, 0, 1.2]; the mean is 0.825. They have
    # 5, 9, 7 and 3 conversations, and each of these has its rollout's advantage.
    rollouts = [
        episode(name, reward, [turn("reader_0", tokens=size) for size in range(1, count + 1)])
        for name, reward, count in [("a", 1.1, 5), ("b", 1.0, 9), ("c", 0.0, 7), ("d", 1.2, 3)]
    ]
    rows = make_rows(rollouts, PIMEM)
    assert len(rows) == 5 + 9 + 7 + 3
    assert advantages(rows) == {"a": {0.275}, "b": {0.175}, "c": {-0.825}, "d": {0.375}}
    assert {row.weight for row in rows} == {1.0}
    assert not any(row.degenerate for row in rows)


def test_right_answers_after_different_numbers_of_turns_still_teach() -> None:
    quick = make_rows([episode("a", 1.2), episode("b", 1.0)], PIMEM)
    assert advantages(quick) == {"a": {0.1}, "b": {-0.1}}
    for reward in (0.0, 1.0, 1.2):
        same = make_rows([episode("a", reward), episode("b", reward)], PIMEM)
        assert all(row.degenerate and row.advantage == 0 for row in same)
    alone = make_rows([episode("a", 1.2)], PIMEM)
    assert all(row.degenerate for row in alone)


def by_hand(rollouts: Sequence[Rollout], rule: str, shares: dict[str, float]) -> list[float]:
    """What each token of each conversation counts, before the scale: a loop over the definition."""
    weights = []
    groups = {one.group_id for one in rollouts}
    for one in rollouts:
        peers = [other for other in rollouts if other.group_id == one.group_id]
        for conversation in one.turns:
            role = conversation.agent.split("_")[0]
            of_role = [t for t in one.turns if t.agent.split("_")[0] == role]
            tokens = sum(len(t.generation.completion_ids) for t in one.turns)
            role_tokens = sum(len(t.generation.completion_ids) for t in of_role)
            present = {t.agent.split("_")[0] for t in one.turns}
            part = shares[role] / sum(shares[name] for name in present)
            weights.append(
                {
                    "token_mean": 1.0,
                    "traj_mean": 1 / len(groups) / len(peers) / tokens,
                    "role_mean": part / len(groups) / len(peers) / role_tokens,
                }[rule]
            )
    return weights


CONVERSATION = st.tuples(
    st.sampled_from(["reader_0", "reader_1", "merger_0", "answerer_0"]), st.integers(1, 9)
)


@pytest.mark.parametrize("rule", ["token_mean", "traj_mean", "role_mean"])
@settings(max_examples=30)
@given(
    st.lists(st.lists(CONVERSATION, min_size=1, max_size=6), min_size=4, max_size=4),
    st.floats(0.1, 0.9),
)
def test_the_loss_is_the_weighted_sum_of_its_definition(
    rule: Any, talks: list[list[tuple[str, int]]], share: float
) -> None:
    shares = {"reader": share, "merger": 0.2, "answerer": 0.5}
    rollouts = [
        episode(str(i), reward, [turn(*one) for one in talk], group_id=group)
        for i, (reward, group, talk) in enumerate(
            zip([1.1, 0.0, 1.2, 1.0], ["g", "g", "h", "h"], talks, strict=True)
        )
    ]
    globs = {f"{role}_*": value for role, value in shares.items()}
    rows = make_rows(rollouts, dataclasses.replace(PIMEM, broadcast=rule, role_shares=globs))
    assert len(rows) == sum(map(len, talks))
    sizes = np.array([len(row.completion_ids) for row in rows])
    own = np.array([row.weight for row in rows])
    expected = np.array(by_hand(rollouts, rule, shares))
    scale = sizes.sum() / (expected * sizes).sum()  # the average token counts 1
    np.testing.assert_allclose(own, expected * scale, rtol=1e-9)


def test_no_row_is_lost_or_made_up() -> None:
    talks = [[turn("reader_0")] * 7, [turn("reader_1", tokens=3)], [turn("merger_0")] * 4]
    rollouts = [episode(str(i), float(i), talk) for i, talk in enumerate(talks)]
    for broadcast in ("token_mean", "traj_mean", "role_mean"):
        rows = make_rows(rollouts, dataclasses.replace(PIMEM, broadcast=broadcast))
        assert [row.rollout_id for row in rows] == ["0"] * 7 + ["1"] + ["2"] * 4


@pytest.mark.parametrize("reason", ["backend_error", "agents"])
def test_an_episode_that_nobody_answered_is_in_no_mean_and_in_no_loss(reason: str) -> None:
    lost = episode("x", 0.0, outcome="truncated", summary={"stop_reason": reason})
    broken = episode("y", 0.0, outcome="failed")
    # A limit from outside is different: it counts as it is.
    late = episode("z", 0.0, outcome="truncated", summary={"stop_reason": "calls"})
    rollouts = [episode("a", 1.2), lost, episode("b", 1.0), broken]
    assert trainable(rollouts, PIMEM) == [rollouts[0], rollouts[2]]
    assert advantages(make_rows(rollouts, PIMEM)) == {"a": {0.1}, "b": {-0.1}}
    assert set(advantages(make_rows([*rollouts, late], PIMEM))) == {"a", "b", "z"}
    assert make_rows([lost, broken], PIMEM) == []


GATE = dataclasses.replace(PIMEM, bonus_gate=0.5)


def test_a_group_that_is_seldom_right_gets_no_bonus() -> None:
    seldom = [episode("a", 1.2), episode("b", 0.0), episode("c", 0.0)]
    assert advantages(make_rows(seldom, GATE))["a"] == {round(2 / 3, 12)}  # 1 - mean of 1, 0, 0
    often = [episode("a", 1.2), episode("b", 1.0), episode("c", 0.0)]
    assert advantages(make_rows(often, GATE)) == advantages(make_rows(often, PIMEM))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.sampled_from("gh")), max_size=8),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_the_gate_is_that_of_its_definition(
    rows: list[tuple[bool, int, str]], accuracy: float
) -> None:
    rewards = [right * (1 + 0.1 * bonus) for right, bonus, _ in rows]
    bonuses = [right * 0.1 * bonus for right, bonus, _ in rows]
    gated = gated_rewards(
        rewards,
        bonuses,
        [right for right, _, _ in rows],
        groups=[group for _, _, group in rows],
        accuracy=accuracy,
    )
    for index, (_, _, group) in enumerate(rows):
        own = [right for right, _, other in rows if other == group]
        paid = sum(own) / len(own) >= accuracy
        assert gated[index] == pytest.approx(rewards[index] - (0 if paid else bonuses[index]))


def reads(*scores: int, first: int = 0) -> list[Turn]:
    """One reading turn over chunks, as one reader, and an answer."""
    return [
        *(
            turn("reader_0", chunk_index=first + place, status="no", read_score=score)
            for place, score in enumerate(scores)
        ),
        turn("answerer_0"),
    ]


def test_a_readers_verdict_is_mixed_into_its_advantage() -> None:
    rollouts = [
        episode("a", 1.0, reads(1, 1, 0)),
        episode("b", 0.0, reads(1, -1, 1)),
    ]
    rows = make_rows(rollouts, dataclasses.replace(PIMEM, read_weight=0.1))
    # Episodes: 0.5 and -0.5. Chunk 0: both right, so 0. Chunk 1: +1 and -1. Chunk 2: b alone has a
    # verdict. The answers have their episode's advantage.
    expected = [0.45, 0.45 + 0.1, 0.5, 0.5, -0.45, -0.45 - 0.1, -0.45, -0.5]
    np.testing.assert_allclose([row.advantage for row in rows], expected)


def test_verdicts_teach_where_all_episodes_are_worth_the_same() -> None:
    rollouts = [episode("a", 0.0, reads(1, 1)), episode("b", 0.0, reads(1, -1))]
    rows = make_rows(rollouts, dataclasses.replace(PIMEM, read_weight=0.5))
    assert [row.degenerate for row in rows] == [True, False, True, True, False, True]
    np.testing.assert_allclose([row.advantage for row in rows], [0, 0.5, 0, 0, -0.5, 0])
    assert all(row.degenerate for row in make_rows(rollouts, PIMEM))


def test_verdicts_are_compared_for_the_same_turn_chunk_and_group() -> None:
    scores = [1, -1, 1, -1, math.nan]
    steps = [("g", 1, 0), ("g", 1, 0), ("g", 2, 0), ("h", 1, 0), ("g", 1, 0)]
    np.testing.assert_allclose(step_advantages(scores, steps=steps), [1, -1, 0, 0, 0])


def test_only_the_malformed_reply_pays_for_itself() -> None:
    bad = turn("reader_0", status="malformed")
    rollouts = [
        episode("a", 1.0, [bad, turn("reader_0"), bad, turn("answerer_0")]),
        episode("b", 0.0),
    ]
    rows = make_rows(rollouts, dataclasses.replace(PIMEM, malformed_penalty=0.1))
    # Half of a's replies are malformed.
    np.testing.assert_allclose([row.advantage for row in rows], [0.45, 0.5, 0.45, 0.5, -0.5, -0.5])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"read_weight": 0.1}, "read_score"),
        ({"malformed_penalty": 0.1}, "status"),
        ({"bonus_gate": 0.1}, "reward_turns"),
    ],
)
def test_what_an_environment_does_not_say_cannot_be_used(
    changes: dict[str, float], key: str
) -> None:
    bare = [dataclasses.replace(turn("a"), info={})]
    rollouts = [episode("a", 1.0, bare, summary={}), episode("b", 0.0, bare, summary={})]
    assert len(make_rows(rollouts, PIMEM)) == 2
    with pytest.raises(ConfigError, match=f"needs '{key}' in the infos"):
        make_rows(rollouts, dataclasses.replace(PIMEM, **changes))


@pytest.mark.parametrize("name", ["bonus_gate", "read_weight", "malformed_penalty"])
def test_what_belongs_to_whole_episodes_is_refused_for_trees(name: str) -> None:
    with pytest.raises(ConfigError, match=f'{name} is for whole episodes: choose group="episodes"'):
        CreditSettings(**{name: 0.1})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"{name} must be at least 0"):
        credit_settings("pimem", **{name: -0.1})


def test_nothing_played_makes_no_rows() -> None:
    rules = dataclasses.replace(PIMEM, read_weight=0.1, malformed_penalty=0.1, bonus_gate=0.5)
    assert make_rows([], rules) == []
