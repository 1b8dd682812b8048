"""When the tree helps: our search over simulated coders against a naive simulator of its own.

The naive simulator follows the rules and shares no line with the code under
test: its arms are lists of scores, gathered anew from all nodes before every draw, and its random
numbers are those of Python's `random`.
"""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import numpy as np
import pytest

from mars_envs.tree_search import (
    AgentThenNode,
    Beta,
    FreshOrRefine,
    Gaussian,
    NodeThenAgent,
    Posterior,
    Selector,
)
from mars_envs.tree_search.simulated import Coder, SimulatedTasks, grow

Chances = tuple[float, float, float]
"""Of a fresh answer, of refining what fails, and of keeping what passes."""


class Guess:
    """A node: who wrote it, below what, and whether it is right."""

    def __init__(self, parent: Guess | None, agent: int, right: bool) -> None:
        self.parent, self.agent, self.right = parent, agent, right
        self.children: list[Guess] = []
        self.depth: int = parent.depth + 1 if parent else 0


def below(node: Guess) -> list[Guess]:
    found = []
    for child in node.children:
        found += [child, *below(child)]
    return found


def scores(nodes: list[Guess]) -> list[float]:
    return [float(node.right) for node in nodes]


def mean(kind: str, seen: list[float]) -> float:
    n = len(seen)
    if kind == "beta":
        return (0.5 + sum(seen)) / (1 + n)
    return min(1.0, max(0.0, sum(seen) / (1 + n)))


def plausible(kind: str, seen: list[float]) -> float:
    """One Thompson draw: Beta(1/2, 1/2), or the normal model with m 0, kappa 1, nu 1, tau2 0.1."""
    n, total = len(seen), sum(seen)
    if kind == "beta":
        return random.betavariate(0.5 + total, 0.5 + n - total)
    average = total / n if n else 0.0
    squares = sum((x - average) ** 2 for x in seen)
    scale = 0.1 + squares + n * average**2 / (1 + n)  # nu' tau2'
    variance = (scale / 2) / random.gammavariate((1 + n) / 2, 1.0)
    return random.gauss(n * average / (1 + n), math.sqrt(variance / (1 + n)))


def first_largest(values: list[float]) -> int:
    return values.index(max(values))


class Waiting:
    """The arms of one tree at one moment: real scores, then one made-up score for each pending."""

    def __init__(self, root: Guess, order: str, kind: str) -> None:
        self.root, self.order, self.kind = root, order, kind
        self.extra: dict[Any, list[float]] = {}

    def seen(self, arm: Any) -> list[float]:
        what, node, agent = arm
        by_agent = [c for c in node.children if agent in (None, c.agent)]
        if what == "gen":
            real = by_agent
        elif what == "cont":
            real = [deep for child in by_agent for deep in below(child)]
        elif what == "child":
            real = [node, *below(node)]
        elif self.order == "node":  # the agent's arm of the whole tree
            real = [found for found in below(self.root) if found.agent == agent]
        else:  # the agent's arm at this node
            real = [deep for child in by_agent for deep in [child, *below(child)]]
        return scores(real) + self.extra.get(arm, [])

    def draw(self, arm: Any) -> float:
        return plausible(self.kind, self.seen(arm))

    def suppose(self, parent: Guess, agent: int) -> None:
        """Count an answer that is still pending, at the mean of each arm that it belongs to."""
        own = agent if self.order == "agent" else None
        arms: list[Any] = [("gen", parent, own)]
        if self.order == "node":
            arms.append(("agent", self.root, agent))
        else:
            arms.append(("agent", parent, agent))
        node = parent
        while node.parent is not None:
            via = node.agent if self.order == "agent" else None
            arms += [("child", node, None), ("cont", node.parent, via)]
            if self.order == "agent":
                arms.append(("agent", node.parent, via))
            node = node.parent
        for arm in arms:
            self.extra.setdefault(arm, []).append(mean(self.kind, self.seen(arm)))


def choose(arms: Waiting, agents: int) -> tuple[Guess, int]:
    def pick_agent(node: Guess) -> int:
        return first_largest([arms.draw(("agent", node, j)) for j in range(agents)])

    node = arms.root
    while True:
        agent = pick_agent(node) if arms.order == "agent" else None
        open_ = [c for c in node.children if agent in (None, c.agent)]
        if not open_ or arms.draw(("gen", node, agent)) >= arms.draw(("cont", node, agent)):
            break
        node = open_[first_largest([arms.draw(("child", c, None)) for c in open_])]
    return node, pick_agent(arms.root) if agent is None else agent


def naive_tree(
    order: str, kind: str, budget: int, batch: int, coders: list[Chances]
) -> list[Guess]:
    """Grow one tree and return its nodes in order of creation."""
    root = Guess(None, -1, False)
    made: list[Guess] = []
    while len(made) < budget:
        arms = Waiting(root, order, kind)
        chosen = []
        for _ in range(min(batch, budget - len(made))):
            chosen.append(choose(arms, len(coders)))
            arms.suppose(*chosen[-1])
        for parent, agent in chosen:
            fresh, refine, keep = coders[agent]
            chance = fresh if parent is root else keep if parent.right else refine
            made.append(Guess(parent, agent, random.random() < chance))
            parent.children.append(made[-1])
    return made


# (depth, agent, whether it is right) of every node, in order of creation
Tree = list[tuple[int, int, bool]]


def naive(order: str, kind: str, budget: int, batch: int, coders: list[Chances]) -> Tree:
    nodes = naive_tree(order, kind, budget, batch, coders)
    return [(node.depth, node.agent, node.right) for node in nodes]


def ours(
    selector: str | Selector, budget: int, batch: int, coders: list[Chances], seed: int
) -> Tree:
    source = SimulatedTasks(
        {str(i): Coder(fresh=f, refine=r, keep=k) for i, (f, r, k) in enumerate(coders)}
    )
    tree = grow(source, selector, budget, seed, batch=batch)
    return [(node.depth, int(node.agent), node.solved) for node in tree]


def figures(tree: Tree) -> list[float]:
    """What is compared: of one tree, what the study reports and where its nodes are."""
    right = [solved for _, _, solved in tree]
    return [
        float(any(right)),  # Pass@N
        float(np.mean(right)),
        float(sum(depth == 1 for depth, _, _ in tree)),  # children of the root
        float(np.mean([depth for depth, _, _ in tree])),
        float(np.mean([agent for _, agent, _ in tree])),
        float(all(right) or not any(right)),  # nothing to learn from in training
    ]


def assert_alike(first: list[Tree], second: list[Tree]) -> None:
    """Assert that the means of all figures agree within 4.5 standard errors of the difference."""
    a, b = (np.array([figures(tree) for tree in trees]) for trees in (first, second))
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    gap = np.abs(a.mean(axis=0) - b.mean(axis=0))
    assert (gap <= 4.5 * error + 1e-9).all(), (a.mean(axis=0), b.mean(axis=0), error)


PRIORS: dict[str, Posterior] = {"beta": Beta(0.5, 0.5), "gaussian": Gaussian(0.0, 1.0, 1.0, 0.1)}
ORDERS: dict[str, type[NodeThenAgent | AgentThenNode]] = {
    "node": NodeThenAgent,
    "agent": AgentThenNode,
}
TEAM = [(0.3, 0.1, 0.9), (0.1, 0.4, 0.8)]


@pytest.mark.parametrize("coders", [[(0.3, 0.15, 0.9)], [(0.3, 0.6, 0.9)], TEAM])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", ["beta", "gaussian"])
@pytest.mark.parametrize("order", ["node", "agent"])
def test_small_trees_are_those_of_the_naive_simulator(
    order: str, kind: str, batch: int, coders: list[Chances]
) -> None:
    random.seed(1)
    selector = ORDERS[order](prior=PRIORS[kind])
    assert_alike(
        [ours(selector, 8, batch, coders, seed) for seed in range(300)],
        [naive(order, kind, 8, batch, coders) for _ in range(300)],
    )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(("order", "kind"), [("node", "gaussian"), ("agent", "beta")])
def test_large_trees_are_those_of_the_naive_simulator(order: str, kind: str, batch: int) -> None:
    random.seed(2)
    coders = [(0.05, 0.025, 0.9), (0.05, 0.1, 0.9)]
    selector = ORDERS[order](prior=PRIORS[kind])
    assert_alike(
        [ours(selector, 60, batch, coders, seed) for seed in range(40)],
        [naive(order, kind, 60, batch, coders) for _ in range(40)],
    )


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("kind", ["beta", "gaussian"])
@pytest.mark.parametrize("order", ["node", "agent"])
@pytest.mark.parametrize(("budget", "batch", "trees"), [(8, 1, 200), (8, 4, 200), (60, 1, 25)])
def test_the_grid_of_the_study_is_that_of_the_naive_simulator(
    budget: int, batch: int, trees: int, order: str, kind: str, p: float
) -> None:
    random.seed(3)
    selector = ORDERS[order](prior=PRIORS[kind])
    for multiple in (0.0, 0.5, 1.0, 1.4):
        coders = [(p, multiple * p, 0.9)]
        assert_alike(
            [ours(selector, budget, batch, coders, seed) for seed in range(trees)],
            [naive(order, kind, budget, batch, coders) for _ in range(trees)],
        )


TASKS = 800


@functools.cache
def coverage(selector: str, refine: float) -> Any:
    """Return for each task whether some of 8 nodes is right; a fresh answer is at 0.3."""
    return covered(selector, refine)


def covered(selector: str | Selector, refine: float) -> Any:
    trees = (ours(selector, 8, 1, [(0.3, refine, 0.9)], seed) for seed in range(TASKS))
    return np.array([any(right for _, _, right in tree) for tree in trees], dtype=float)


@pytest.mark.slow
def test_thompson_sampling_wins_where_refinement_is_good_and_loses_where_it_is_not() -> None:
    baseline = coverage("best_of_n", 0.15)
    # 1 - 0.7 ^ 8
    assert baseline.mean() == pytest.approx(0.942, abs=4 * math.sqrt(0.942 * 0.058 / TASKS))
    gains = {refine: coverage("default", refine) - baseline for refine in (0.0, 0.15, 0.3, 0.6)}
    errors = {refine: gain.std() / math.sqrt(TASKS) for refine, gain in gains.items()}
    assert gains[0.6].mean() > 4 * errors[0.6]
    assert abs(gains[0.3].mean()) <= 4 * errors[0.3]
    # An independent simulator lost 6 points of coverage with half the rate, 14 to 19 with none.
    assert abs(gains[0.15].mean() + 0.06) <= 4 * errors[0.15]
    assert -0.19 - 4 * errors[0.0] <= gains[0.0].mean() <= -0.14 + 4 * errors[0.0]


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "fresh_or_refine"])
@pytest.mark.slow
def test_only_the_number_of_fresh_answers_decides_whether_a_tree_fails(selector: str) -> None:
    # Until a first success every selector sees the same: failures. So the chance that all fail is
    # that of its split between fresh answers and refinements in a tree where all do.
    splits = [ours(selector, 8, 1, [(0.0, 0.0, 0.9)], 10**6 + seed) for seed in range(400)]
    fresh = np.array([sum(depth == 1 for depth, _, _ in tree) for tree in splits])
    for refine in (0.15, 0.6):
        expected = 1 - 0.7**fresh * (1 - refine) ** (8 - fresh)
        error = expected.std() / math.sqrt(400) + math.sqrt(0.25 / TASKS)
        assert abs(coverage(selector, refine).mean() - expected.mean()) <= 4 * error


@pytest.mark.slow
def test_fitted_to_earlier_trees_a_search_loses_nothing_and_gains_more() -> None:
    for refine in (0.0, 0.15, 0.6):
        source = SimulatedTasks({"0": Coder(fresh=0.3, refine=refine)})
        earlier = (grow(source, "default", 8, 10**6 + seed) for seed in range(50))
        fitted = FreshOrRefine.fitted(earlier)
        # A fresh answer is the same whatever a refinement would be.
        baseline, thompson = coverage("best_of_n", 0.15), coverage("default", refine)
        gain = covered(fitted, refine)
        assert (gain - baseline).mean() >= -4 * (gain - baseline).std() / math.sqrt(TASKS)
        assert (gain - thompson).mean() >= -4 * (gain - thompson).std() / math.sqrt(TASKS)
        if refine < 0.3:
            assert (gain - thompson).mean() > 4 * (gain - thompson).std() / math.sqrt(TASKS)


@pytest.mark.parametrize("selector", ["paper", "fresh_or_refine"])
@pytest.mark.slow
def test_one_that_starts_well_and_one_that_repairs_what_is_close_beat_either_alone(
    selector: str,
) -> None:
    starter = Coder(fresh=0.2, refine=0.05, partial=0.7)
    repairer = Coder(fresh=0.05, refine=0.05, closeness=0.8)

    def solved(**coders: Coder) -> Any:
        source = SimulatedTasks(coders, public_tests=5)
        trees = (grow(source, selector, 8, seed) for seed in range(600))
        return np.array([any(node.solved for node in tree) for tree in trees], dtype=float)

    team = solved(a=starter, b=repairer)
    for alone in (solved(a=starter), solved(b=repairer)):
        assert (team - alone).mean() > 4 * (team - alone).std() / math.sqrt(600)
