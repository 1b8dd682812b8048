"""Thompson sampling over the tree: how often each choice is made, and what its options change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.tree_search import (
    PRESETS,
    ROOT,
    UCB,
    AgentThenNode,
    Beta,
    Choice,
    DepthGuide,
    Expansion,
    Gaussian,
    NodeThenAgent,
    Posterior,
    SearchTree,
    SearchView,
    Selector,
    Turns,
    resolve_selector,
)
from mars_envs.tree_search.tree import verdict_of_score

Grown = list[tuple[int, str, float]]


def view_of(
    nodes: Grown,
    selector: Selector,
    agents: tuple[str, ...] = ("a",),
    *,
    expand_solved: bool = True,
    pending: tuple[Expansion, ...] = (),
) -> SearchView:
    """Grow a tree of (parent, agent, score) and observe it as the search does."""
    tree, statistics = SearchTree(), selector.statistics("abc")
    for parent, agent, score in nodes:
        node = tree.add(parent, agent, verdict_of_score(score))
        statistics.observe(node, opened=expand_solved or not node.solved_public)
    for expansion in pending:
        statistics.suppose(expansion.parent_id, expansion.agent)
    return SearchView(
        tree=tree,
        statistics=statistics,
        agents=agents,
        pending=pending,
        expand_solved=expand_solved,
    )


def frequencies(selector: Selector, view: SearchView, draws: int = 6000) -> Counter[Choice]:
    rng = np.random.default_rng(1)
    return Counter(selector.select(view, rng) for _ in range(draws))


@pytest.mark.parametrize(
    ("prior", "score", "expected"),
    [
        (Gaussian(), 0.0, 0.500),
        (Gaussian(), 1.0, 0.726),
        (Beta(), 0.0, 0.298),
        (Beta(), 1.0, 0.702),
    ],
)
def test_gen_beats_cont_after_one_child_as_often_as_measured(
    prior: Posterior, score: float, expected: float
) -> None:
    selector = NodeThenAgent(prior=prior)
    counts = frequencies(selector, view_of([(ROOT, "a", score)], selector), draws=10_000)
    # 3.6 standard errors, beside the third digit of what was measured with 4e5 draws.
    assert counts[Choice(ROOT, "a")] / 10_000 == pytest.approx(expected, abs=0.018)


def test_with_one_agent_both_orders_choose_alike() -> None:
    nodes: Grown = [(ROOT, "a", 0.0), (0, "a", 1.0), (0, "a", 0.0), (ROOT, "a", 1.0)]
    first, second = NodeThenAgent(), AgentThenNode()
    assert frequencies(first, view_of(nodes, first)) == frequencies(second, view_of(nodes, second))


@pytest.mark.parametrize("selector", [NodeThenAgent(), AgentThenNode()])
def test_the_better_agent_is_chosen_more_often(selector: Selector) -> None:
    nodes: Grown = [(ROOT, "a", 1.0)] * 4 + [(ROOT, "b", 0.0)] * 4
    view = view_of(nodes, selector, ("a", "b"))
    counts = Counter(choice.agent for choice in frequencies(selector, view, 500).elements())
    assert counts["a"] > 450


@pytest.mark.parametrize("kind", [NodeThenAgent, AgentThenNode])
def test_agent_mix_sets_the_share_of_uniform_choices(
    kind: type[NodeThenAgent] | type[AgentThenNode],
) -> None:
    nodes: Grown = [(ROOT, "a", 1.0)] * 60 + [(ROOT, "b", 0.0)] * 60
    selector = kind(agent_mix=0.5)
    view = view_of(nodes, selector, ("a", "b"))
    counts = frequencies(selector, view, 4000)
    # Thompson never chooses b after 60 failures; half of the uniform half does. In agent order
    # the first draw shows in which agent's children the search descended.
    first: Counter[str] = Counter()
    for choice, count in counts.items():
        below = kind is AgentThenNode and choice.parent_id != ROOT
        first[view.tree[choice.parent_id].agent if below else choice.agent] += count
    assert first["b"] / 4000 == pytest.approx(0.25, abs=0.03)


def test_a_mix_of_zero_leaves_the_random_stream_alone() -> None:
    nodes: Grown = [(ROOT, "a", 1.0), (0, "b", 0.0)]
    view = view_of(nodes, NodeThenAgent(), ("a", "b"))
    assert frequencies(resolve_selector("default", 0.0), view) == frequencies(
        NodeThenAgent(prior=Beta(0.5, 0.5)), view
    )


def test_in_agent_order_an_agent_descends_through_its_own_children_only() -> None:
    selector = AgentThenNode()
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "b", 1.0)]
    view = view_of(nodes, selector, ("a",))
    assert {choice.parent_id for choice in frequencies(selector, view)} == {ROOT, 0}


@pytest.mark.parametrize("selector", [NodeThenAgent(), AgentThenNode(agent_mix=0.3)])
def test_solved_nodes_are_left_alone_when_asked(selector: Selector) -> None:
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "a", 0.0), (1, "a", 1.0)]
    closed = view_of(nodes, selector, expand_solved=False)
    opened = view_of(nodes, selector)
    assert {choice.parent_id for choice in frequencies(selector, closed)} == {ROOT, 1}
    assert {choice.parent_id for choice in frequencies(selector, opened)} == {ROOT, 0, 1, 2}


# Rules for agents -----------------------------------------------------------------------------


def test_ucb_chooses_the_agent_of_the_highest_bound() -> None:
    # By hand: a has the mean 0.75 of 4, b 0.5 of 2, ln 6 = 1.7918.
    # a: 0.75 + sqrt(2) * sqrt(1.7918 / 4) = 1.6966;  b: 0.5 + sqrt(2) * sqrt(1.7918 / 2) = 1.8385.
    nodes: Grown = [(ROOT, "a", s) for s in (1.0, 1.0, 1.0, 0.0)]
    nodes += [(ROOT, "b", 1.0), (ROOT, "b", 0.0)]
    rng = np.random.default_rng(0)
    selector = NodeThenAgent(agent_rule=UCB())
    view = view_of(nodes, selector, ("a", "b"))
    assert UCB().choose(view, ROOT, rng) == "b"
    assert UCB(exploration=0.1).choose(view, ROOT, rng) == "a"
    assert {choice.agent for choice in frequencies(selector, view, 200)} == {"b"}


def test_ucb_tries_every_agent_first() -> None:
    view = view_of([(ROOT, "a", 1.0)], PRESETS["ucb"], ("a", "b", "c"))
    assert UCB().choose(view, ROOT, np.random.default_rng(0)) == "b"


def test_ucb_leaves_gen_and_cont_to_thompson() -> None:
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "b", 0.0)]
    by_ucb, by_thompson = NodeThenAgent(agent_rule=UCB()), NodeThenAgent()
    counts = frequencies(by_ucb, view_of(nodes, by_ucb, ("a", "b")))
    others = frequencies(by_thompson, view_of(nodes, by_thompson, ("a", "b")))

    def at_root(found: Counter[Choice]) -> float:
        return sum(n for choice, n in found.items() if choice.parent_id == ROOT) / 6000

    # Four standard errors of a difference of shares.
    assert at_root(counts) == pytest.approx(at_root(others), abs=4 * (0.5 / 6000) ** 0.5)


@pytest.mark.parametrize("kind", [NodeThenAgent, AgentThenNode])
def test_agents_may_take_turns_while_thompson_chooses_the_node(
    kind: type[NodeThenAgent] | type[AgentThenNode],
) -> None:
    selector = kind(agent_rule=Turns())
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "b", 0.0), (ROOT, "a", 0.0)]
    view = view_of(nodes, selector, ("a", "b"))
    assert Turns().choose(view, ROOT, np.random.default_rng(0)) == "b"
    assert len({choice.parent_id for choice in frequencies(selector, view, 300)}) > 1


def test_an_agent_that_is_expected_to_be_better_is_tried_first() -> None:
    selector = NodeThenAgent(prior_means={"b": 0.9})
    counts = frequencies(selector, view_of([], selector, ("a", "b")))
    # Beta(.9, .1) against Beta(.5, .5): P(b > a) = 0.8750 by numerical integration.
    assert counts[Choice(ROOT, "b")] / 6000 == pytest.approx(0.875, abs=4 * 0.33 / 6000**0.5)


# Depth-guided exploration of T+ ---------------------------------------------------------------


def test_widening_at_a_depth_wears_off_with_every_expansion_there() -> None:
    # Spec §5.2: g * gamma(d) ** c with gamma(d) = max(0.98 - 0.02 d, 0.5).
    nodes: Grown = [(ROOT, "a", 0.0), (ROOT, "a", 0.0), (0, "a", 0.0)]
    pending = (Expansion(3, 0, "a"),)
    view = view_of(nodes, NodeThenAgent(), pending=pending)
    guide = DepthGuide()
    assert guide.weighted(0.5, view, 0) == pytest.approx(0.5 * 0.98**2)
    assert guide.weighted(0.5, view, 1) == pytest.approx(0.5 * 0.96**2)
    assert guide.weighted(0.5, view, 2) == 0.5
    assert DepthGuide(slope=0.5).weighted(1.0, view, 1) == pytest.approx(0.5**2)


def test_a_negative_draw_is_not_raised_by_its_weight() -> None:
    view = view_of([(ROOT, "a", 0.0)], NodeThenAgent())
    assert DepthGuide().weighted(-0.3, view, 0) == 0.0


@pytest.mark.parametrize("kind", [NodeThenAgent, AgentThenNode])
def test_a_guided_search_widens_as_seldom_as_its_weight_says(
    kind: type[NodeThenAgent] | type[AgentThenNode],
) -> None:
    # Three hundred children of 0.5: GEN draws Beta(150.5, 150.5), which is 0.5 within 0.03, and
    # CONT the prior, whose distribution function is (2 / pi) * asin(sqrt(x)).
    nodes: Grown = [(ROOT, "a", 0.5)] * 300
    for guide, weight in ((None, 1.0), (DepthGuide(start=0.999, slope=0.0), 0.999**300)):
        selector = kind(depth_guide=guide)
        wide = frequencies(selector, view_of(nodes, selector), 3000)[Choice(ROOT, "a")] / 3000
        expected = 2 / np.pi * np.arcsin(np.sqrt(0.5 * weight))
        assert wide == pytest.approx(expected, abs=4 * 0.5 / 3000**0.5 + 0.002)


@pytest.mark.parametrize("wrong", [{"floor": 0.0}, {"start": 1.1}, {"start": 0.4}, {"slope": -0.1}])
def test_a_guide_s_numbers_are_shares(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="DepthGuide needs"):
        DepthGuide(**wrong)


# Every selector -------------------------------------------------------------------------------

trees = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 1.0])),
    max_size=14,
).map(lambda steps: [(pick % (i + 1) - 1, agent, s) for i, (pick, agent, s) in enumerate(steps)])


@settings(max_examples=40, deadline=None)
@given(trees, st.integers(0, 2**31), st.booleans())
def test_equal_seeds_choose_alike_and_only_what_may_be_chosen(
    nodes: Grown, seed: int, expand_solved: bool
) -> None:
    for name, selector in PRESETS.items():
        agents = ("a", "c")
        view = view_of(nodes, selector, agents, expand_solved=expand_solved)
        first = selector.select(view, np.random.default_rng(seed))
        assert first == selector.select(view, np.random.default_rng(seed)), name
        assert first.agent in agents, name
        assert view.may_expand(first.parent_id), name
