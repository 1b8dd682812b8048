"""Selection: which arms are credited, and how often each choice is made."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.tree_search import (
    ROOT,
    AgentThenNode,
    Beta,
    Gaussian,
    NodeThenAgent,
    Posterior,
    RootOnly,
    SearchTree,
    SearchView,
    Selector,
    TreeSearch,
    resolve_selector,
)
from mars_envs.tree_search.selection import Arm, Choice, Statistics
from mars_envs.tree_search.tree import verdict_of_score

Grown = list[tuple[int, str, float]]


def view_of(nodes: Grown, selector: Selector, agents: tuple[str, ...] = ("a",)) -> SearchView:
    """Grow a tree of (parent, agent, score) and credit it as the search does."""
    tree, statistics = SearchTree(), Statistics()
    for parent, agent, score in nodes:
        node = tree.add(parent, agent, verdict_of_score(score))
        statistics.observe([*selector.arms(tree, parent, agent), Arm("child", node.id)], score)
    return SearchView(tree=tree, statistics=statistics, agents=agents)


def frequencies(selector: Selector, view: SearchView, draws: int = 6000) -> Counter[Choice]:
    rng = np.random.default_rng(1)
    return Counter(selector.select(view, rng) for _ in range(draws))


# Backup ---------------------------------------------------------------------------------------


def test_a_grandchild_is_credited_to_its_grandparent_s_cont_and_its_parent_s_gen() -> None:
    statistics = view_of([(ROOT, "a", 0.0), (0, "a", 1.0)], NodeThenAgent()).statistics
    assert statistics.of(Arm("gen", ROOT)) == (0.0,)
    assert statistics.of(Arm("cont", ROOT)) == (1.0,)
    assert statistics.of(Arm("child", 0)) == (0.0, 1.0)
    assert statistics.of(Arm("gen", 0)) == (1.0,)
    assert statistics.of(Arm("child", 1)) == (1.0,)
    assert statistics.of(Arm("cont", 0)) == ()


trees = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 1.0])),
    max_size=14,
).map(lambda steps: [(pick % (i + 1) - 1, agent, s) for i, (pick, agent, s) in enumerate(steps)])


@settings(deadline=None)
@given(trees)
def test_node_arms_pool_what_their_definition_says(nodes: Grown) -> None:
    view = view_of(nodes, NodeThenAgent())
    for top in range(-1, len(nodes)):
        below = [n for n in view.tree if top == ROOT or (top in _ids(view, n.id) and n.id != top)]
        near = [n.score for n in below if n.parent_id == top]
        far = [n.score for n in below if n.parent_id != top]
        assert view.statistics.of(Arm("gen", top)) == tuple(near)
        assert view.statistics.of(Arm("cont", top)) == tuple(far)
        if top != ROOT:
            own = [view.tree[top].score, *(n.score for n in below)]
            assert view.statistics.of(Arm("child", top)) == tuple(own)
    for agent in "abc":
        scores = tuple(n.score for n in view.tree if n.agent == agent)
        assert view.statistics.of(Arm("agent", ROOT, agent)) == scores


@settings(deadline=None)
@given(trees)
def test_in_agent_order_the_author_of_the_child_on_the_path_is_credited(nodes: Grown) -> None:
    view = view_of(nodes, AgentThenNode())
    for top in range(-1, len(nodes)):
        for agent in "abc":
            gen, cont, act = [], [], []
            for child in view.tree.children(top):
                if child.agent == agent:
                    gen.append((child.id, child.score))
                    cont += [
                        (n.id, n.score)
                        for n in view.tree
                        if child.id in _ids(view, n.id) and n.id != child.id
                    ]
            act = sorted(gen + cont)
            for kind, pairs in (("gen", gen), ("cont", sorted(cont)), ("agent", act)):
                scores = tuple(score for _, score in pairs)
                assert view.statistics.of(Arm(kind, top, agent)) == scores


def _ids(view: SearchView, node_id: int) -> list[int]:
    return [node.id for node in view.tree.path(node_id)]


# Frequencies ----------------------------------------------------------------------------------


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
    counts = frequencies(selector, view_of([(ROOT, "a", score)], selector), draws=8000)
    assert counts[Choice(ROOT, "a")] / 8000 == pytest.approx(expected, abs=0.018)


@pytest.mark.data
@pytest.mark.parametrize("strategy", ["multiarm_bandit_thompson", "stack"])
def test_root_decisions_are_as_frequent_as_treequest_s(data_dir: Path, strategy: str) -> None:
    rows = json.loads((data_dir / "numeric" / "treequest.json").read_text())
    rows = rows["abmcts_a_root_decisions"]["rows"]
    rows = [row for row in rows if row["strategy"] == strategy]
    assert rows
    for row in rows:
        prior = Beta() if row["dist"] == "beta" else Gaussian()
        kind = AgentThenNode if strategy == "stack" else NodeThenAgent
        selector = kind(prior=prior)
        view = view_of([(ROOT, "a", score) for score in row["root_children_scores"]], selector)
        counts = frequencies(selector, view, draws=row["draws"])
        for decision, share in row["decision_frequencies"].items():
            node_id = ROOT if decision == "GEN" else int(decision.removeprefix("child"))
            found = counts[Choice(node_id, "a")] / row["draws"]
            # Both sides are samples; the tolerance is the data's own.
            assert found == pytest.approx(share, abs=row["tolerance_abs"]), row


def test_with_one_agent_both_orders_choose_alike() -> None:
    nodes: Grown = [(ROOT, "a", 0.0), (0, "a", 1.0), (0, "a", 0.0), (ROOT, "a", 1.0)]
    first, second = NodeThenAgent(), AgentThenNode()
    assert frequencies(first, view_of(nodes, first)) == frequencies(second, view_of(nodes, second))


def grow(selector: Selector, p: float, seed: int, budget: int = 8) -> SearchTree:
    """Simulate: an answer is right with probability p, refining a right one with 0.9."""
    search = TreeSearch(["a"], selector, budget, seed)
    rng = np.random.default_rng([seed, 1])
    while not search.done:
        (expansion,) = search.ask()
        parent = expansion.parent_id
        right = 0.9 if parent != ROOT and search.tree[parent].solved else p
        search.tell(expansion.id, float(rng.random() < right))
    return search.tree


@pytest.mark.parametrize(
    ("prior", "p", "root_children", "mean_depth", "all_same"),
    [
        (Beta(), 0.3, 3.5, 1.75, 0.07),
        (Beta(), 0.05, 4.0, 1.68, 0.66),
        (Gaussian(), 0.3, 4.2, 1.58, 0.09),
        (Gaussian(), 0.7, 5.2, 1.42, 0.10),
    ],
)
def test_trees_of_eight_have_the_shape_that_was_measured(
    prior: Posterior, p: float, root_children: float, mean_depth: float, all_same: float
) -> None:
    grown = [grow(NodeThenAgent(prior=prior), p, seed) for seed in range(600)]
    children = [len(tree.children(ROOT)) for tree in grown]
    depths = [np.mean([node.depth for node in tree]) for tree in grown]
    same = [len({node.score for node in tree}) == 1 for tree in grown]
    error = np.std(children) / 600**0.5
    # Four standard errors, and the table's own rounding.
    assert np.mean(children) == pytest.approx(root_children, abs=4 * error + 0.05)
    assert np.mean(depths) == pytest.approx(
        mean_depth, abs=4 * float(np.std(depths)) / 600**0.5 + 0.006
    )
    assert np.mean(same) == pytest.approx(all_same, abs=4 * (0.25 / 600) ** 0.5)


# Agents ---------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("mix", [-0.1, 1.1, float("nan")])
@pytest.mark.parametrize("kind", [NodeThenAgent, AgentThenNode, RootOnly])
def test_a_mix_is_a_share(kind: type[RootOnly], mix: float) -> None:
    with pytest.raises(ValueError, match="agent_mix is a share"):
        kind(agent_mix=mix)


def test_in_agent_order_an_agent_descends_through_its_own_children_only() -> None:
    selector = AgentThenNode()
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "b", 1.0)]
    view = view_of(nodes, selector, ("a",))
    assert {choice.parent_id for choice in frequencies(selector, view)} == {ROOT, 0}


@pytest.mark.parametrize("selector", [NodeThenAgent(), AgentThenNode(agent_mix=0.3)])
def test_solved_nodes_are_left_alone_when_asked(selector: Selector) -> None:
    nodes: Grown = [(ROOT, "a", 1.0), (ROOT, "a", 0.0), (1, "a", 1.0)]
    open_view = view_of(nodes, selector)
    closed = SearchView(
        tree=open_view.tree,
        statistics=open_view.statistics,
        agents=open_view.agents,
        expand_solved=False,
    )
    assert {choice.parent_id for choice in frequencies(selector, closed)} == {ROOT, 1}
    assert {choice.parent_id for choice in frequencies(selector, open_view)} == {ROOT, 0, 1, 2}


# The baseline, and names ----------------------------------------------------------------------


def test_best_of_n_answers_afresh_and_takes_turns() -> None:
    search = TreeSearch(["a", "b"], "best_of_n", 6, 0)
    while not search.done:
        (expansion,) = search.ask()
        search.tell(expansion.id, 0.0)
    assert [node.parent_id for node in search.tree] == [ROOT] * 6
    assert [node.agent for node in search.tree] == ["a", "b"] * 3


def test_best_of_n_takes_turns_in_parallel_too() -> None:
    asked = TreeSearch(["a", "b", "c"], "best_of_n", 6, 0).ask(6)
    assert [expansion.agent for expansion in asked] == ["a", "b", "c"] * 2


def test_best_of_n_may_draw_agents_uniformly() -> None:
    selector = RootOnly(agent_mix=1.0)
    counts = frequencies(selector, view_of([(ROOT, "a", 1.0)] * 5, selector, ("a", "b")), 2000)
    assert counts[Choice(ROOT, "a")] / 2000 == pytest.approx(0.5, abs=0.05)


def test_presets_are_what_the_design_says() -> None:
    assert resolve_selector("default") == NodeThenAgent(prior=Beta(0.5, 0.5))
    assert resolve_selector("paper") == AgentThenNode(prior=Beta(0.5, 0.5))
    assert resolve_selector("marti_code") == NodeThenAgent(prior=Gaussian(0.0, 1.0, 1.0, 0.1))
    assert resolve_selector("best_of_n") == RootOnly()


def test_a_selector_can_be_named_by_its_module() -> None:
    name = "mars_envs.tree_search.selection:RootOnly"
    assert resolve_selector(name, agent_mix=0.5) == RootOnly(agent_mix=0.5)


def test_an_unknown_selector_names_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="unknown selector 'uct'; expected one of default, paper, marti_code"
    ):
        resolve_selector("uct")


def test_an_object_that_cannot_select_is_refused() -> None:
    with pytest.raises(ValueError, match="is no selector: it lacks select, arms, expected"):
        resolve_selector(3)  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(trees, st.integers(0, 2**31))
def test_equal_seeds_choose_alike(nodes: Grown, seed: int) -> None:
    for selector in (NodeThenAgent(), AgentThenNode(agent_mix=0.2), RootOnly()):
        view = view_of(nodes, selector, ("a", "b", "c"))
        first = selector.select(view, np.random.default_rng(seed))
        assert first == selector.select(view, np.random.default_rng(seed))
        assert first.agent in view.agents
        assert ROOT <= first.parent_id < len(view.tree)
