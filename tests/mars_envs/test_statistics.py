"""Running sums: what each arm has earned, and that what is supposed leaves no trace."""

from __future__ import annotations

import pickle
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.errors import ProtocolError
from mars_envs.tree_search import ROOT, Beta, Gaussian, Posterior, SearchTree, Statistics
from mars_envs.tree_search.statistics import FEW, Sums
from mars_envs.tree_search.tree import verdict_of_score

Grown = list[tuple[int, str, float]]
AGENTS = "abc"

trees = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(AGENTS), st.floats(0, 1)), max_size=14
).map(lambda steps: [(pick % (i + 1) - 1, agent, s) for i, (pick, agent, s) in enumerate(steps)])


def grown(
    nodes: Grown, credit: Literal["shared", "own", "agents"], prior: Posterior | None = None
) -> tuple[SearchTree, Statistics]:
    tree, statistics = SearchTree(), Statistics(AGENTS, credit, prior or Beta())
    for parent, agent, score in nodes:
        statistics.observe(tree.add(parent, agent, verdict_of_score(score)))
    return tree, statistics


def sums(scores: list[float]) -> tuple[float, float, float]:
    return pytest.approx((len(scores), sum(scores), sum(s * s for s in scores)), abs=1e-9)  # type: ignore[no-any-return]


def test_a_grandchild_is_credited_to_its_grandparents_cont_and_its_parents_gen() -> None:
    # A chain root, 0, 1 with the values 0 and 1.
    _, statistics = grown([(ROOT, "a", 0.0), (0, "a", 1.0)], "shared")
    assert statistics.gen(ROOT) == sums([0.0])
    assert statistics.cont(ROOT) == sums([1.0])
    assert statistics.child(0) == sums([0.0, 1.0])
    assert statistics.gen(0) == sums([1.0])
    assert statistics.child(1) == sums([1.0])
    assert statistics.cont(0) == sums([])


@settings(deadline=None)
@given(trees)
def test_shared_arms_pool_what_their_definition_says(nodes: Grown) -> None:
    tree, statistics = grown(nodes, "shared")
    for top in range(-1, len(nodes)):
        below = [n for n in tree if top == ROOT or (n.id != top and tree[top] in tree.path(n.id))]
        assert statistics.gen(top) == sums([n.score for n in below if n.parent_id == top])
        assert statistics.cont(top) == sums([n.score for n in below if n.parent_id != top])
        if top != ROOT:
            assert statistics.child(top) == sums([tree[top].score, *(n.score for n in below)])
        assert list(statistics.open_children(top)) == [n.id for n in tree.children(top)]
    for agent in AGENTS:
        assert statistics.agent(agent) == sums([n.score for n in tree if n.agent == agent])


@settings(deadline=None)
@given(trees)
def test_where_agents_have_their_own_arms_the_author_of_the_child_on_the_path_is_credited(
    nodes: Grown,
) -> None:
    tree, statistics = grown(nodes, "own")
    for top in range(-1, len(nodes)):
        for agent in AGENTS:
            children = [child for child in tree.children(top) if child.agent == agent]
            gen = [child.score for child in children]
            cont = [
                n.score
                for n in tree
                if any(child.id != n.id and child in tree.path(n.id) for child in children)
            ]
            assert statistics.gen(top, agent) == sums(gen)
            assert statistics.cont(top, agent) == sums(cont)
            assert statistics.agent(agent, top) == sums(gen + cont)
            assert list(statistics.open_children(top, agent)) == [n.id for n in children]


@settings(deadline=None)
@given(trees)
def test_without_node_arms_the_agents_alone_are_known(nodes: Grown) -> None:
    tree, statistics = grown(nodes, "agents")
    for agent in AGENTS:
        assert statistics.agent(agent) == sums([n.score for n in tree if n.agent == agent])


@settings(deadline=None)
@given(
    trees,
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from(AGENTS)), max_size=6),
    st.sampled_from(["shared", "own", "agents"]),
    st.sampled_from([Beta(), Gaussian()]),
)
def test_what_was_supposed_is_forgotten_to_the_last_bit(
    nodes: Grown,
    pending: list[tuple[int, str]],
    credit: Literal["shared", "own", "agents"],
    prior: Posterior,
) -> None:
    _, statistics = grown(nodes, credit, prior)
    before = pickle.dumps(statistics)
    for pick, agent in pending:
        statistics.suppose(pick % (len(nodes) + 1) - 1, agent)
    assert statistics.supposed == len(pending)
    statistics.restore()
    assert pickle.dumps(statistics) == before


def test_a_supposed_expansion_counts_as_one_value_at_the_mean_of_each_arm() -> None:
    # By hand, Beta(.5, .5): GEN of the root has earned [1], so its mean is 1.5 / 2; agent b has
    # earned nothing, so 0.5. A second one is supposed on top of the first.
    _, statistics = grown([(ROOT, "a", 1.0)], "shared")
    statistics.suppose(ROOT, "b")
    assert statistics.gen(ROOT) == Sums(2.0, 1.75, 1.5625)
    assert statistics.agent("b") == Sums(1.0, 0.5, 0.25)
    assert statistics.cont(ROOT) == Sums(0.0, 0.0, 0.0)
    statistics.suppose(ROOT, "b")
    # A value at the mean leaves the mean where it is.
    assert statistics.gen(ROOT) == Sums(3.0, 2.5, 2.125)
    assert statistics.agent("b") == Sums(2.0, 1.0, 0.5)


def test_a_supposed_refinement_counts_for_every_arm_on_its_path() -> None:
    _, statistics = grown([(ROOT, "a", 0.0), (0, "b", 0.5)], "own")
    statistics.suppose(1, "c")
    assert statistics.gen(1, "c").n == 1
    assert statistics.agent("c", 1).n == 1
    assert statistics.child(1).n == 2
    assert statistics.cont(0, "b").n == 1
    assert statistics.agent("b", 0).n == 2
    assert statistics.child(0).n == 3
    assert statistics.cont(ROOT, "a").n == 2
    assert statistics.agent("a", ROOT).n == 3
    assert statistics.agent("c", ROOT).n == 0


def test_a_node_that_may_not_be_expanded_keeps_its_sums_but_is_not_drawn() -> None:
    tree, statistics = SearchTree(), Statistics(["a"], "shared")
    for score in (1.0, 0.0):
        node = tree.add(ROOT, "a", verdict_of_score(score))
        statistics.observe(node, opened=score < 1.0)
    assert list(statistics.open_children(ROOT)) == [1]
    assert statistics.child(0) == sums([1.0])
    assert statistics.gen(ROOT) == sums([1.0, 0.0])


@pytest.mark.parametrize("prior", [Beta(), Gaussian()])
@pytest.mark.parametrize("credit", ["shared", "own"])
@pytest.mark.parametrize("children", [1, FEW, FEW + 1, 40])
def test_a_node_draws_its_children_from_the_stream_as_if_one_by_one(
    prior: Posterior, credit: Literal["shared", "own"], children: int
) -> None:
    rng = np.random.default_rng(0)
    nodes: Grown = [(ROOT, "b", float(rng.random() < 0.5)) for _ in range(children)]
    nodes += [(int(rng.integers(children)), "b", float(rng.random() < 0.5)) for _ in range(30)]
    _, statistics = grown(nodes, credit, prior)
    for seed in range(50):
        one_by_one = np.random.default_rng(seed)
        drawn = [prior.sample(*statistics.child(i), one_by_one) for i in range(children)]
        at_once = np.random.default_rng(seed)
        assert statistics.draw_child(at_once, ROOT, "b") == int(np.argmax(drawn))
        assert at_once.random() == one_by_one.random(), "both leave the stream at the same place"


def test_nothing_is_observed_while_something_is_supposed() -> None:
    tree, statistics = grown([(ROOT, "a", 1.0)], "shared")
    statistics.suppose(0, "b")
    node = tree.add(ROOT, "a", verdict_of_score(0.5))
    with pytest.raises(ProtocolError, match=r"call restore\(\) before observe\(\)"):
        statistics.observe(node)
    statistics.restore()
    statistics.observe(node)
    assert statistics.gen(ROOT) == sums([1.0, 0.5])


def test_prior_means_move_the_agents_arms_alone() -> None:
    for credit, agent_at in (("shared", ROOT), ("own", 0)):
        tree = SearchTree()
        statistics = Statistics("ab", credit, Beta(), {"b": 0.99})  # type: ignore[arg-type]
        statistics.observe(tree.add(ROOT, "a", verdict_of_score(0.0)))
        rng = np.random.default_rng(0)
        drawn = [statistics.draw_agent(rng, "b", agent_at) for _ in range(500)]
        assert np.mean(drawn) == pytest.approx(0.99, abs=0.02)  # s.e. 0.07 / sqrt(500)
        statistics.suppose(0, "b")
        assert statistics.agent("b", agent_at).total == pytest.approx(0.99)
        assert statistics.gen(0, "b").total == 0.5


def test_prior_means_are_of_known_agents() -> None:
    with pytest.raises(ValueError, match="prior_means names c; the agents are a, b"):
        Statistics("ab", "shared", Beta(), {"c": 0.5})


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(8)))
def test_siblings_may_arrive_in_any_order(order: list[int]) -> None:
    # Eight values with few binary digits, so that sums are exact in any order.
    values = [0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 0.75, 0.5]
    _, first = grown([(ROOT, "a", value) for value in values], "shared")
    _, second = grown([(ROOT, "a", values[index]) for index in order], "shared")
    assert first.gen(ROOT) == second.gen(ROOT)
    assert first.agent("a") == second.agent("a")
    assert sorted(map(first.child, range(8))) == sorted(map(second.child, range(8)))
