"""Every variant of credit against plain loops over its definition, and what holds for all trees."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.credit import (
    MISSING_PARENT,
    CreditSettings,
    ancestor_advantages,
    episode_credit,
    group_advantages,
    overlong_penalty,
    path_returns,
    shape_rewards,
    token_weights,
    tree_credit,
)

NAN = math.nan
EXACT = 0.0  # eps: the definition without the small number that guards the division

Tree = tuple[list[float], list[int], list[str]]


@st.composite
def trees(draw: st.DrawFn, *, missing: bool = False, levels: int = 5) -> Tree:
    """Rewards on a grid, so that groups are either equal or clearly apart; parents; agents."""
    size = draw(st.integers(1, 10))
    reward = st.integers(0, levels - 1).map(lambda step: step / (levels - 1))
    rewards = draw(
        st.lists(reward | st.just(NAN) if missing else reward, min_size=size, max_size=size)
    )
    lowest = MISSING_PARENT if missing else -1
    parents = [draw(st.integers(lowest, node - 1)) for node in range(size)]
    return rewards, parents, draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))


def known(value: float) -> bool:
    return not math.isnan(value)


# --- the definitions, word by word ------------------------------------------------------------


def shape_by_hand(
    rewards: Sequence[float], parents: Sequence[int], gamma: float, lam: float
) -> list:
    shaped = []
    for node, reward in enumerate(rewards):
        siblings = [
            rewards[other]
            for other in range(len(rewards))
            if other != node
            and parents[node] != MISSING_PARENT
            and parents[other] == parents[node]
            and known(rewards[other])
        ]
        parent = rewards[parents[node]] if parents[node] >= 0 else NAN
        parts = []
        if known(parent):
            parts.append(((1 - lam) if siblings else 1.0, parent))
        if siblings:
            parts.append((lam if known(parent) else 1.0, statistics.fmean(siblings)))
        baseline = sum(share * value for share, value in parts) if parts else reward
        shaped.append(reward + gamma * (reward - baseline))
    return shaped


def return_by_hand(
    node: int, values: Sequence[float], parents: Sequence[int], discount: float, branches: str
) -> float:
    if not known(values[node]):
        return NAN
    ahead = [
        return_by_hand(child, values, parents, discount, branches)
        for child in range(len(values))
        if parents[child] == node and known(values[child])
    ]
    if not ahead:
        return values[node]
    return values[node] + discount * (max(ahead) if branches == "best" else statistics.fmean(ahead))


def ancestors_of(node: int, parents: Sequence[int]) -> list[int]:
    """Return the ancestors, nearest first; the root (-1) is everybody's."""
    chain = []
    while parents[node] >= 0:
        node = parents[node]
        chain.append(node)
    return [*chain, -1]


def compare_by_hand(
    values: Sequence[float], parents: Sequence[int], agents: Sequence[str], settings: CreditSettings
) -> list[float]:
    valid = [node for node in range(len(values)) if known(values[node])]
    leave_out = settings.estimator == "leave_one_out"

    def above(node: int, members: Sequence[int]) -> float:
        others = [values[m] for m in members if not leave_out or m != node]
        return values[node] - statistics.fmean(others) if others else 0.0

    def flat(members: Sequence[int]) -> bool:
        return max(values[m] for m in members) - min(values[m] for m in members) < 1e-6

    result = [0.0] * len(values)
    for node in valid:
        if settings.group == "ancestors":
            if flat(valid):
                continue
            result[node] = statistics.fmean(
                above(node, [m for m in valid if top in ancestors_of(m, parents)])
                for top in ancestors_of(node, parents)
            )
            continue
        own = [m for m in valid if settings.group == "tree" or agents[m] == agents[node]]
        if flat(own):
            continue
        result[node] = above(node, own)
        if settings.estimator == "standard":
            yardstick = valid if settings.group == "agent_baseline" else own
            spread = statistics.stdev(values[m] for m in yardstick)
            result[node] /= spread + settings.eps
    if settings.group == "ancestors" and settings.estimator == "standard" and len(valid) > 1:
        spread = statistics.stdev(result[node] for node in valid)
        result = [value / (spread + settings.eps) for value in result]
    return result


GROUPS = ("tree", "agent", "agent_baseline", "ancestors")
ESTIMATORS = ("standard", "mean", "leave_one_out")
RETURNS = ("own", "mean", "best")


@given(
    trees(missing=True),
    st.sampled_from(list(itertools.product(GROUPS, ESTIMATORS, RETURNS))),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_every_variant_agrees_with_its_definition(
    tree: Tree, variant: tuple[Any, Any, Any], gamma: float, lam: float
) -> None:
    rewards, parents, agents = tree
    group, estimator, returns = variant
    settings = CreditSettings(
        gamma=gamma, lam=lam, group=group, estimator=estimator, returns=returns, discount=0.25
    )
    penalties = [-0.125 * (node % 3) for node in range(len(rewards))]
    credit = tree_credit(rewards, parents, agents=agents, penalties=penalties, settings=settings)
    shaped = shape_by_hand(rewards, parents, gamma, lam)
    values = shaped
    if returns != "own":
        values = [
            return_by_hand(node, shaped, parents, 0.25, returns) for node in range(len(shaped))
        ]
    values = [value + fine for value, fine in zip(values, penalties, strict=True)]
    np.testing.assert_allclose(credit.shaped, shaped, atol=1e-12)
    np.testing.assert_allclose(credit.values, values, atol=1e-12)
    np.testing.assert_allclose(
        credit.advantages, compare_by_hand(values, parents, agents, settings), atol=1e-6
    )


# --- what holds for all trees -----------------------------------------------------------------


@given(trees(missing=True), st.sampled_from(GROUPS), st.sampled_from(RETURNS), st.randoms())
def test_the_order_of_the_nodes_does_not_matter(
    tree: Tree, group: Any, returns: Any, random: Any
) -> None:
    rewards, parents, agents = tree
    settings = CreditSettings(group=group, returns=returns)
    order = list(range(len(rewards)))
    random.shuffle(order)  # order[new] = old
    place = {old: new for new, old in enumerate(order)} | {-1: -1, -2: -2}
    moved = tree_credit(
        [rewards[old] for old in order],
        [place[parents[old]] for old in order],
        agents=[agents[old] for old in order],
        settings=settings,
    )
    straight = tree_credit(rewards, parents, agents=agents, settings=settings)
    np.testing.assert_allclose(moved.advantages, straight.advantages[order], atol=1e-9)
    np.testing.assert_array_equal(moved.degenerate, straight.degenerate[order])


@given(trees(), st.sampled_from(GROUPS), st.floats(0.25, 4), st.floats(-3, 3))
def test_the_scale_and_the_origin_of_rewards_do_not_matter(
    tree: Tree, group: Any, scale: float, shift: float
) -> None:
    rewards, parents, agents = tree
    settings = CreditSettings(group=group, eps=EXACT)
    plain = tree_credit(rewards, parents, agents=agents, settings=settings)
    moved = [scale * reward + shift for reward in rewards]
    other = tree_credit(moved, parents, agents=agents, settings=settings)
    np.testing.assert_allclose(other.advantages, plain.advantages, atol=1e-9)


@given(trees(missing=True), st.sampled_from(GROUPS), st.permutations("xyz"))
def test_the_names_of_the_agents_do_not_matter(tree: Tree, group: Any, names: list[str]) -> None:
    rewards, parents, agents = tree
    settings = CreditSettings(group=group)
    renamed = [names["abc".index(agent)] for agent in agents]
    plain = tree_credit(rewards, parents, agents=agents, settings=settings)
    other = tree_credit(rewards, parents, agents=renamed, settings=settings)
    assert other.advantages.tolist() == plain.advantages.tolist()


@given(trees(missing=True), st.sampled_from(GROUPS), st.sampled_from(ESTIMATORS))
def test_degenerate_nodes_have_no_advantage_and_unknown_ones_are_degenerate(
    tree: Tree, group: Any, estimator: Any
) -> None:
    rewards, parents, agents = tree
    settings = CreditSettings(group=group, estimator=estimator)
    credit = tree_credit(rewards, parents, agents=agents, settings=settings)
    assert np.isfinite(credit.advantages).all()
    assert (credit.advantages[credit.degenerate] == 0).all()
    assert credit.degenerate[np.isnan(rewards)].all()
    if sum(map(known, rewards)) < 2:
        assert credit.degenerate.all()  # a node alone can be compared with nothing


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12))
def test_without_refinements_ancestors_and_tree_are_the_same_group(values: list[int]) -> None:
    fresh = [-1] * len(values)
    np.testing.assert_allclose(
        ancestor_advantages(values, fresh).advantages, group_advantages(values).advantages
    )


@given(trees(), st.floats(0, 1))
def test_returns_without_a_future_are_the_rewards(tree: Tree, discount: float) -> None:
    rewards, parents, _ = tree
    assert path_returns(rewards, parents, discount=0.0).tolist() == rewards
    flat = [-1] * len(rewards)
    assert path_returns(rewards, flat, discount=discount, branches="best").tolist() == rewards


# --- examples that can be followed by eye -----------------------------------------------------


def test_returns_flow_back_along_paths() -> None:
    # 0 -> (1 -> 3, 2)
    rewards, parents = [0.0, 1.0, 0.0, 1.0], [-1, 0, 0, 1]
    best = path_returns(rewards, parents, discount=0.5, branches="best")
    assert best.tolist() == [0.5 * 1.5, 1.5, 0.0, 1.0]
    mean = path_returns(rewards, parents, discount=0.5, branches="mean")
    assert mean.tolist() == [0.5 * 0.75, 1.5, 0.0, 1.0]


def test_a_fined_answer_is_not_its_parents_fault() -> None:
    settings = CreditSettings(returns="best", gamma=0.0)
    fined = tree_credit([0.0, 1.0], [-1, 0], penalties=[0.0, -1.0], settings=settings)
    assert fined.values.tolist() == [0.5, 0.0]


def test_the_agents_baseline_takes_out_who_is_better_and_keeps_one_scale() -> None:
    rewards, agents = [1.0, 0.0, 0.0, 0.0], ["a", "a", "b", "b"]
    settings = CreditSettings(group="agent_baseline", gamma=0.0, eps=EXACT)
    credit = tree_credit(rewards, [-1] * 4, agents=agents, settings=settings)
    # The tree's sample standard deviation is 0.5; b's nodes are all alike.
    np.testing.assert_allclose(credit.advantages, [1.0, -1.0, 0.0, 0.0])
    assert credit.degenerate.tolist() == [False, False, True, True]


def test_leaving_one_out_compares_with_the_others() -> None:
    result = group_advantages([1, 0, 0], baseline="leave_one_out", scale="none")
    np.testing.assert_allclose(result.advantages, [1.0, -0.5, -0.5])


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_seven_times_point_seven_says_nothing(group: Any, estimator: Any) -> None:
    rewards = np.full(7, 0.7, dtype=np.float32)
    settings = CreditSettings(group=group, estimator=estimator)
    credit = tree_credit(
        rewards, [-1, -1, 0, 0, 2, 2, 5], agents=list("aabbabb"), settings=settings
    )
    assert (credit.advantages == 0).all()
    assert credit.degenerate.all()


def test_a_node_whose_parent_was_lost_is_compared_but_not_shaped() -> None:
    parents = [-1, MISSING_PARENT, MISSING_PARENT, 1]
    shaped = shape_rewards([0.0, 1.0, 0.0, 0.0], parents, gamma=0.5)
    assert shaped.tolist() == [0.0, 1.0, 0.0, -0.5]  # its own child is shaped by it


def test_a_node_that_was_lost_is_nobodys_baseline() -> None:
    rewards, parents = [NAN, 1.0, 0.0, NAN], [-1, 0, 0, 0]
    shaped = shape_rewards(rewards, parents, gamma=0.5)
    np.testing.assert_equal(shaped, [NAN, 1.5, -0.5, NAN])
    credit = tree_credit(rewards, parents)
    np.testing.assert_allclose(credit.advantages, [0, 0.7071, -0.7071, 0], atol=1e-4)
    assert credit.degenerate.tolist() == [True, False, False, True]


def test_lost_nodes_break_the_path() -> None:
    values = path_returns([1.0, NAN, 1.0], [-1, 0, 1], discount=0.5)
    np.testing.assert_equal(values, [1.0, NAN, 1.0])


def test_episodes_are_compared_within_their_group() -> None:
    # The worked example of docs/pi-mem.md: 1.1, 1.0, 0, 1.2.
    settings = CreditSettings(group="episodes", estimator="mean")
    rewards, groups = [1.1, 1.0, 0.0, 1.2, 5.0], ["q"] * 4 + ["alone"]
    credit = episode_credit(rewards, groups=groups, settings=settings)
    np.testing.assert_allclose(credit.advantages, [0.275, 0.175, -0.825, 0.375, 0.0])
    assert credit.degenerate.tolist() == [False] * 4 + [True]
    with pytest.raises(ValueError, match="compares rollouts"):
        tree_credit([1.0], [-1], settings=settings)


# --- what a token counts ----------------------------------------------------------------------

EPISODES = st.lists(
    st.tuples(
        st.integers(0, 9), st.sampled_from("pq"), st.sampled_from("xyz"), st.sampled_from("rma")
    ),
    min_size=1,
    max_size=12,
)


def weights_by_hand(rows: list[tuple[int, str, str, str]], rule: str, shares: dict) -> list[float]:
    spoken = [row for row in rows if row[0]]
    everything = sum(row[0] for row in rows)
    result = []
    for tokens, group, episode, role in rows:
        if not tokens:
            result.append(0.0)
            continue
        groups = len({row[1] for row in spoken})
        peers = len({row[2] for row in spoken if row[1] == group})
        own = [row for row in spoken if row[1:3] == (group, episode)]
        part = 1.0
        if rule == "role_mean":
            part = shares[role] / sum(shares[name] for name in {row[3] for row in own})
            own = [row for row in own if row[3] == role]
        result.append(part / groups / peers / sum(row[0] for row in own) * everything)
    return result


@given(EPISODES, st.sampled_from(["traj_mean", "role_mean"]), st.booleans())
def test_weights_agree_with_their_definition(
    rows: list[tuple[int, str, str, str]], rule: Any, equal: bool
) -> None:
    tokens, groups, episodes, roles = map(list, zip(*rows, strict=True))
    shares = {"r": 1.0, "m": 1.0, "a": 1.0} if equal else {"r": 0.5, "m": 0.2, "a": 0.3}
    weights = token_weights(
        tokens, rule=rule, trajectories=episodes, groups=groups, roles=roles,
        shares=None if equal else shares,
    )  # fmt: skip
    if sum(tokens):
        np.testing.assert_allclose(weights, weights_by_hand(rows, rule, shares))
        assert (weights * tokens).sum() == pytest.approx(sum(tokens))


def test_a_long_episode_weighs_as_much_as_a_short_one() -> None:
    # Two episodes of one group: 30 tokens in two conversations, and 10 in one.
    options: Any = {"tokens": [10, 20, 10], "trajectories": ["x", "x", "y"]}
    assert token_weights(**options).tolist() == [1, 1, 1]
    weights = token_weights(**options, rule="traj_mean")
    np.testing.assert_allclose(weights, [20 / 30, 20 / 30, 2.0])
    by_role = token_weights(**options, rule="role_mean", roles=["reader", "answerer", "reader"])
    np.testing.assert_allclose(by_role, [1.0, 0.5, 2.0])


def test_a_role_that_gets_nothing_counts_nothing() -> None:
    weights = token_weights(
        [5, 5, 5], rule="role_mean", trajectories=["x", "x", "y"], roles=["r", "a", "r"],
        shares={"r": 0.0, "a": 1.0},
    )  # fmt: skip
    np.testing.assert_allclose(weights, [0.0, 1.5, 0.0])


def test_weights_need_what_their_rule_speaks_of() -> None:
    with pytest.raises(ValueError, match="needs `roles`"):
        token_weights([1], rule="role_mean", trajectories=["x"])
    with pytest.raises(ValueError, match=r"a share of every role, got none of \['a'\]"):
        token_weights([1], rule="role_mean", trajectories=["x"], roles=["a"], shares={"r": 1.0})
    with pytest.raises(ValueError, match="expected 1 trajectories"):
        token_weights([1], trajectories=["x", "y"])
    rule: Any = "mean"
    with pytest.raises(ValueError, match=r"rule is one of .*'traj_mean'.*, got 'mean'"):
        token_weights([1], rule=rule, trajectories=["x"])
    for tokens in (-1, math.nan):
        with pytest.raises(ValueError, match="numbers of tokens of at least 0"):
            token_weights([tokens], trajectories=["x"])


@pytest.mark.parametrize("shares", [{"a": -1.0, "b": 1.0}, {"a": 0.0, "b": 0.0}])
def test_shares_by_which_nothing_would_be_learned_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares of at least 0, not all of them 0"):
        token_weights(
            [1, 1], rule="role_mean", trajectories=["x", "x"], roles=["a", "b"], shares=shares
        )


def test_any_number_of_groups_is_compared_in_one_sweep() -> None:
    """Looking through all values for each group would take 250 billion looks."""
    count = 500_000
    groups = [*range(count), 7, 9]
    result = group_advantages([1.0] * count + [3.0, 1.0], groups=groups, scale="none")
    assert np.flatnonzero(result.advantages).tolist() == [7, count]
    assert result.advantages[[7, count]].tolist() == [-1.0, 1.0]
    assert (~result.degenerate).sum() == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: group_advantages([0.0, math.inf]), "expected finite values"),
        (lambda: shape_rewards([0.0, 1.0], [-1.0, 0.5]), "expected parents that are whole numbers"),
        (lambda: group_advantages([0.0, 1.0], ddof=3), "ddof must be 0 or 1, got 3"),
        (lambda: overlong_penalty([math.nan], max_tokens=9), "expected the length of every"),
        (lambda: CreditSettings(gamma=math.inf), "gamma must be finite"),
        (lambda: CreditSettings(ddof=3), "ddof must be at most 1"),
    ],
)
def test_what_would_end_in_advantages_without_meaning_is_refused(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()
