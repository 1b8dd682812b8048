"""The selector that takes the kind of expansion with the highest chance to pass."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mars_envs.judging import Verdict
from mars_envs.tree_search import (
    ROOT,
    Beta,
    Chances,
    Choice,
    Expansion,
    FreshOrRefine,
    SearchTree,
    SearchView,
    TreeSearch,
    resolve_selector,
)
from mars_envs.tree_search.simulated import (
    Coder,
    SimulatedTasks,
    grow,
    simulated_verdict,
)


def verdict(score: float) -> Verdict:
    return simulated_verdict(round(4 * score), 4, solved=score == 1.0)


def choose(
    tree: SearchTree,
    selector: FreshOrRefine,
    agents: tuple[str, ...] = ("a",),
    pending: tuple[Expansion, ...] = (),
    seed: int = 0,
) -> Choice:
    view = SearchView(
        tree=tree, statistics=selector.statistics(agents), agents=agents, pending=pending
    )
    return selector.select(view, np.random.default_rng(seed))


def grown(scores: list[tuple[int, float]], agent: str = "a") -> SearchTree:
    tree = SearchTree()
    for parent_id, score in scores:
        tree.add(parent_id, agent, verdict(score))
    return tree


def test_without_knowledge_fresh_answers_and_refinements_take_turns_until_one_passes() -> None:
    search = TreeSearch(["a"], "fresh_or_refine", budget=8, seed=0)
    while not search.done:
        for expansion in search.ask():
            search.tell(expansion.id, 0.0)
    assert [node.parent_id for node in search.tree] == [-1, 0, -1, 2, -1, 4, -1, 6]


def test_without_knowledge_all_agents_and_kinds_take_turns() -> None:
    search = TreeSearch(["a", "b"], "fresh_or_refine", budget=8, seed=0)
    while not search.done:
        for expansion in search.ask(4):
            search.tell(expansion.id, 0.0)
    kinds = [(node.agent, node.parent_id == ROOT) for node in search.tree]
    # Nothing can be refined while the first four are asked for: all of them are fresh.
    assert kinds[:4] == [("a", True), ("b", True), ("a", True), ("b", True)]
    assert all(kinds.count(kind) == 2 for kind in itertools.product("ab", (True, False)))


def test_what_passes_is_repeated_and_never_refined() -> None:
    tree = grown([(ROOT, 0.0), (0, 1.0)])
    assert choose(tree, FreshOrRefine()) == Choice(0, "a")
    assert choose(grown([(ROOT, 1.0)]), FreshOrRefine()) == Choice(ROOT, "a")


def test_beliefs_decide_and_failures_wear_them_down() -> None:
    # 0.5 · 4 / (4 + n) for refinements against 0.3 for the first fresh answer, 0.3 · 4 / 5 for the
    # second: after one fresh failure, refinements are 0.5, 0.4, 0.33, 0.29, 0.25, then 0.22.
    selector = FreshOrRefine(chances=Chances(fresh=Beta(1.2, 2.8), refine=Beta(2, 2)))
    choices = [choose(grown([(ROOT, 0.0)] + [(0, 0.0)] * n), selector).parent_id for n in range(6)]
    assert [choice == ROOT for choice in choices] == [False] * 5 + [True]


def test_each_agent_does_what_it_is_good_at() -> None:
    good, bad = Beta(8, 2), Beta(2, 8)
    selector = FreshOrRefine(
        of_agent={"a": Chances(fresh=good, refine=bad), "b": Chances(fresh=bad, refine=good)}
    )
    assert choose(SearchTree(), selector, ("a", "b")) == Choice(ROOT, "a")
    tree = grown([(ROOT, 0.0), (ROOT, 0.0)])
    assert choose(tree, selector, ("a", "b")) == Choice(1, "b")


def test_a_high_score_is_refined_first_until_tries_in_vain_count_against_it() -> None:
    # Expected values: (0.5 + 0.75 + 0.25 n) / (2 + n) against (0.5 + 0.25) / 2 = 0.375, so that
    # 0.625, 0.5, 0.4375 and 0.4 come first, and at n = 4 they are equal: the later node wins.
    refine = FreshOrRefine(chances=Chances(fresh=Beta(1, 99), refine=Beta(99, 1)))
    start = [(ROOT, 0.75), (ROOT, 0.25)]
    for tries, expected in enumerate([0, 0, 0, 0, 1]):
        tree = grown(start)
        for _ in range(tries):
            tree.add(0, "a", verdict(0.25))
        # Children compete too: 0.25 like node 1, but deeper.
        assert choose(tree, refine).parent_id == expected


def test_a_pending_expansion_counts_as_failed() -> None:
    tree = grown([(ROOT, 0.0)])
    assert choose(tree, FreshOrRefine()).parent_id == 0
    assert choose(tree, FreshOrRefine(), pending=(Expansion(1, 0, "a"),)).parent_id == ROOT


def test_agent_mix_sets_the_share_of_uniform_choices() -> None:
    selector = FreshOrRefine(of_agent={"b": Chances(fresh=Beta(9, 1))}, agent_mix=0.5)
    chosen = [choose(SearchTree(), selector, ("a", "b"), seed=seed).agent for seed in range(2_000)]
    # Half of the choices are b's, and half of the other half.
    assert chosen.count("b") / 2_000 == pytest.approx(0.75, abs=4 * math.sqrt(0.1875 / 2_000))
    assert resolve_selector("fresh_or_refine", agent_mix=0.5) == FreshOrRefine(agent_mix=0.5)


def failing(order: tuple[bool, ...], chances: Chances) -> float:
    """Return the chance that tries of these kinds all fail (fresh: True), by definition."""
    product, counts = 1.0, {True: 0, False: 0}
    for fresh in order:
        prior = chances.fresh if fresh else chances.refine
        product *= 1 - prior.a / (prior.a + prior.b + counts[fresh])
        counts[fresh] += 1
    return product


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_tries_fails_less_often(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.uniform(0.1, 4, size=4)
    chances = Chances(fresh=Beta(a, b), refine=Beta(c, d))
    budget = 7
    search = TreeSearch(["a"], FreshOrRefine(chances=chances), budget=budget, seed=0)
    while not search.done:
        for expansion in search.ask():
            search.tell(expansion.id, 0.0)
    chosen = tuple(node.parent_id == ROOT for node in search.tree)
    orders = [(True, *rest) for rest in itertools.product((True, False), repeat=budget - 1)]
    assert failing(chosen, chances) <= min(failing(order, chances) for order in orders) + 1e-12


@pytest.mark.slow
def test_beliefs_are_learned_from_trees_of_any_selector() -> None:
    source = SimulatedTasks({"a": Coder(fresh=0.3, refine=0.6), "b": Coder(fresh=0.6, refine=0.1)})
    for name in ("default", "fresh_or_refine"):
        fitted = FreshOrRefine.fitted(grow(source, name, 8, seed) for seed in range(400))
        for agent, coder in source.coders.items():
            # About 400 tries of each kind or more: 4 standard errors are 0.1.
            assert fitted.of_agent[agent].fresh.mean == pytest.approx(coder.fresh, abs=0.1)
            assert fitted.of_agent[agent].refine.mean == pytest.approx(coder.refine, abs=0.1)


@pytest.mark.slow
def test_how_much_tasks_differ_is_learned_too() -> None:
    def strength(ease: tuple[float, float] | None) -> float:
        source = SimulatedTasks({"a": Coder(fresh=0.6, refine=0.6)}, ease=ease)
        trees = [grow(source, "best_of_n", 8, seed) for seed in range(400)]
        prior = FreshOrRefine.fitted(trees).of_agent["a"].fresh
        return prior.a + prior.b

    # Uniform ease times 0.6 has mean 0.3 and variance 0.03: a Beta of strength 0.21 / 0.03 - 1 = 6.
    assert 3 < strength((1, 1)) < 12
    assert strength(None) > 50


def test_what_was_never_tried_keeps_the_prior() -> None:
    trees = [grow(SimulatedTasks({"a": Coder(fresh=0.3, refine=0.6)}), "best_of_n", 8, 0)]
    assert FreshOrRefine.fitted(trees).of_agent["a"].refine == Beta(0.5, 0.5)
    assert FreshOrRefine.fitted([]) == FreshOrRefine()
