"""Credit: the published vectors, a brute-force oracle, and what must hold for every tree."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.credit import (
    CreditSettings,
    credit_settings,
    group_advantages,
    is_mixed,
    overlong_penalty,
    shape_rewards,
    tree_credit,
)
from trainers.errors import ConfigError

REWARDS = [0, 1, 1, 1, 0, 0]
PARENTS = [-1, -1, 0, 2, 2, 0]
A, B, C, D = 0.9877, 0.7408, 0.9694, 0.7877


@pytest.mark.parametrize(
    ("gamma", "shaped", "advantages"),
    [
        (0.5, [-0.5, 1.5, 1.5, 1.25, -0.5, -0.25], [-A, A, A, B, -A, -B]),
        (0.3, [-0.3, 1.3, 1.3, 1.15, -0.3, -0.15], [-C, C, C, D, -C, -D]),
        (0.0, [0, 1, 1, 1, 0, 0], [-0.9129, 0.9129, 0.9129, 0.9129, -0.9129, -0.9129]),
    ],
)
def test_the_published_tree_gets_its_published_credit(
    gamma: float, shaped: list[float], advantages: list[float]
) -> None:
    credit = tree_credit(REWARDS, PARENTS, settings=CreditSettings(gamma=gamma))
    np.testing.assert_allclose(credit.shaped, shaped, atol=1e-12)
    np.testing.assert_allclose(credit.advantages, advantages, atol=1e-4)
    assert not credit.degenerate.any()


def test_baselines_are_raw_and_not_those_of_the_released_code() -> None:
    in_place = [-0.5, 1.5, 1.625, 1.0938, -0.6562, -0.125]
    assert not np.allclose(shape_rewards(REWARDS, PARENTS, gamma=0.5), in_place, atol=1e-3)


def test_inputs_are_not_changed() -> None:
    rewards, parents = np.array(REWARDS, dtype=np.float64), np.array(PARENTS)
    tree_credit(rewards, parents, penalties=np.ones(6))
    assert rewards.tolist() == REWARDS
    assert parents.tolist() == PARENTS


@pytest.mark.parametrize(
    ("rewards", "parents", "expected"),
    [
        ([1.0], [-1], [1.0]),  # a lone child of the root is not shaped
        ([0.0, 1.0], [-1, -1], [-0.3, 1.3]),  # no parent: siblings only
        ([0.0, 1.0], [-1, 0], [0.0, 1.3]),  # no siblings: parent only
        ([1.0, 1.0, 1.0], [-1, 0, 0], [1.0, 1.0, 1.0]),  # keeping it correct
        ([1.0, 0.0, 1.0], [-1, 0, 0], [1.0, -0.3, 1.15]),  # breaking it
        ([], [], []),
    ],
)
def test_missing_relatives_are_left_out_of_the_baseline(
    rewards: list[float], parents: list[int], expected: list[float]
) -> None:
    np.testing.assert_allclose(shape_rewards(rewards, parents), expected, atol=1e-12)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    size = draw(st.integers(1, 12))
    rewards = draw(st.lists(st.floats(-2, 2), min_size=size, max_size=size))
    return rewards, [draw(st.integers(-1, node - 1)) for node in range(size)]


def shape_by_hand(
    rewards: list[float], parents: list[int], gamma: float, lam: float
) -> list[float]:
    """The specification's words, node by node."""
    shaped = []
    for node, reward in enumerate(rewards):
        siblings = [
            rewards[other]
            for other in range(len(rewards))
            if parents[other] == parents[node] and other != node
        ]
        mean = sum(siblings) / len(siblings) if siblings else None
        parent = rewards[parents[node]] if parents[node] >= 0 else None
        if parent is not None and mean is not None:
            baseline = (1 - lam) * parent + lam * mean
        elif mean is not None:
            baseline = mean
        elif parent is not None:
            baseline = parent
        else:
            baseline = reward
        shaped.append(reward + gamma * (reward - baseline))
    return shaped


@given(trees(), st.floats(0, 1), st.floats(0, 1))
def test_shaping_agrees_with_the_definition(
    tree: tuple[list[float], list[int]], gamma: float, lam: float
) -> None:
    np.testing.assert_allclose(
        shape_rewards(*tree, gamma=gamma, lam=lam), shape_by_hand(*tree, gamma, lam), atol=1e-9
    )


@given(trees(), st.randoms(use_true_random=False))
def test_credit_does_not_depend_on_the_order_of_the_nodes(
    tree: tuple[list[float], list[int]], random: Any
) -> None:
    rewards, parents = tree
    order = list(range(len(rewards)))
    random.shuffle(order)  # order[new] = old
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    moved = tree_credit([rewards[o] for o in order], [place[parents[o]] for o in order])
    straight = tree_credit(rewards, parents)
    np.testing.assert_allclose(moved.advantages, straight.advantages[order], atol=1e-6)


@given(trees())
def test_advantages_of_a_group_are_centred_and_of_unit_spread(
    tree: tuple[list[float], list[int]],
) -> None:
    result = tree_credit(*tree)
    if result.degenerate.all():
        assert (result.advantages == 0).all()
        return
    assert abs(result.advantages.mean()) < 1e-6
    if np.ptp(result.shaped) > 1e-2:
        assert result.advantages.std(ddof=1) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("values", [[0.7] * 7, [1.0] * 8, [0.0] * 8, [0.3], [0.1, 0.1 + 5e-7]])
def test_groups_without_spread_get_exactly_zero(values: list[float]) -> None:
    result = group_advantages(np.array(values, dtype=np.float32))
    assert (result.advantages == 0).all()
    assert result.degenerate.all()


def test_a_group_of_one_right_and_one_wrong_gets_half_root_two() -> None:
    result = group_advantages([1, 0])
    np.testing.assert_allclose(result.advantages, [math.sqrt(0.5), -math.sqrt(0.5)], atol=1e-5)


def test_groups_are_normalised_apart_from_each_other() -> None:
    result = group_advantages([1, 5, 0, 5], groups=["a", "b", "a", "b"])
    np.testing.assert_allclose(result.advantages, [0.7071, 0, -0.7071, 0], atol=1e-4)
    assert result.degenerate.tolist() == [False, True, False, True]


def test_a_tree_may_be_split_by_agent() -> None:
    agents = ["a", "b", "a", "b", "b", "a"]
    settings = CreditSettings(group="agent", gamma=0.0)
    split = tree_credit(REWARDS, PARENTS, agents=agents, settings=settings)
    for agent in "ab":
        own = [i for i, name in enumerate(agents) if name == agent]
        alone = group_advantages([REWARDS[i] for i in own]).advantages
        np.testing.assert_allclose(split.advantages[own], alone)
    with pytest.raises(ValueError, match="needs `agents`"):
        tree_credit(REWARDS, PARENTS, settings=settings)


def test_a_penalty_shifts_the_whole_group() -> None:
    plain = tree_credit(REWARDS, PARENTS)
    fined = tree_credit(REWARDS, PARENTS, penalties=[0, -1, 0, 0, 0, 0])
    assert fined.values[1] == plain.shaped[1] - 1
    assert fined.shaped.tolist() == plain.shaped.tolist()
    assert fined.advantages[1] < plain.advantages[1]
    assert fined.advantages[0] > plain.advantages[0]


def test_advantages_are_clipped() -> None:
    rewards = [1.0] + [0.0] * 400
    free = tree_credit(rewards, [-1] * 401, settings=CreditSettings(clip=math.inf))
    assert free.advantages[0] > 10
    assert tree_credit(rewards, [-1] * 401).advantages[0] == 10


@pytest.mark.parametrize(
    ("length", "penalty"),
    [(0, 0), (30720, 0), (30721, -1 / 2048), (31744, -0.5), (32768, -1), (40000, -1)],
)
def test_overlong_answers_are_fined_linearly(length: int, penalty: float) -> None:
    result = overlong_penalty([length], max_tokens=32768, buffer=2048)
    np.testing.assert_allclose(result, [penalty])
    assert overlong_penalty([length], max_tokens=32768).tolist() == result.tolist()


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([-1], "expected 2 parents"),
        ([-1, 2], "expected parents from -1"),
        ([-3, 0], "expected parents from -1"),
        ([1, 0], "make a circle"),
        ([-1, 1], "make a circle"),
    ],
)
def test_trees_that_are_none_are_refused(parents: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape_rewards([0.0, 1.0], parents)


@pytest.mark.parametrize(
    ("rewards", "mixed"),
    [
        ([0, 0, 0], False),
        ([1, 1], False),
        ([0, 1, 1], True),
        ([0.5], True),
        ([0, math.nan, 1], True),
        ([0, math.nan], False),
        ([math.nan], False),
        ([], False),
    ],
)
def test_trees_all_right_or_all_wrong_are_not_mixed(rewards: list[float], mixed: bool) -> None:
    assert is_mixed(rewards) == mixed


def test_the_presets_are_what_papers_and_release_ask_for() -> None:
    assert credit_settings() == CreditSettings()
    assert (CreditSettings().gamma, CreditSettings().lam) == (0.3, 0.5)
    command_line = credit_settings("marti_cli")
    assert (command_line.gamma, command_line.lam) == (0.5, 0.5)
    np.testing.assert_allclose(
        tree_credit(REWARDS, PARENTS, settings=command_line).advantages,
        [-A, A, A, B, -A, -B],
        atol=1e-4,
    )
    # The released shaping never runs.
    released = tree_credit(REWARDS, PARENTS, settings=credit_settings("released"))
    assert released.shaped.tolist() == REWARDS
    assert credit_settings("rloo", gamma=0.5).gamma == 0.5
    with pytest.raises(ConfigError, match=r"expected a preset of .*'marti_cli'.*, got 'zzz'"):
        credit_settings("zzz")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gamma": math.nan}, "gamma must be at least 0, got nan"),
        ({"lam": 1.5}, "lam must be at most 1, got 1.5"),
        ({"group": "zzz"}, "group is one of .*, got 'zzz'"),
        ({"read_weight": "x"}, "read_weight is a number, got 'x'"),
        ({"gamma": True}, "gamma is a number, got True"),
        ({"role_shares": 5}, "role_shares says who has which share, as a dict, got 5"),
        ({"role_shares": {"a": -1.0}}, "at least 0, got -1.0 for 'a'"),
        ({"role_shares": {"a": math.nan}}, "at least 0, got nan for 'a'"),
        ({"role_shares": {"a": "x"}}, "at least 0, got 'x' for 'a'"),
        ({"role_shares": {"a": 0.0}}, "needs a share above 0"),
        ({"role_shares": {}}, "needs a share above 0"),
        ({"group": "episodes", "overlong_factor": 1.0}, "set overlong_factor=0"),
    ],
)
def test_settings_that_cannot_work_are_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CreditSettings(**setting)


@pytest.mark.data
def test_advantages_agree_with_the_reference_implementation(data_dir: Path) -> None:
    cases = json.loads((data_dir / "numeric" / "metrics.json").read_text())["grpo_advantages"]
    for case in cases["rows"]:
        values = [math.nan if r is None else r for group in case["rewards"] for r in group]
        groups = [i for i, group in enumerate(case["rewards"]) for _ in group]
        result = group_advantages(values, groups=groups, eps=1e-4, scale=case["scale_rewards"])
        np.testing.assert_allclose(
            result.advantages, case["expected"], atol=cases["tolerance"], err_msg=str(case)
        )
    assert len(cases["rows"]) == 19
