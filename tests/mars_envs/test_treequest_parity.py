"""The same as TreeQuest, the library that the released MARS² scripts search with.

Recorded: posterior updates (`test_posteriors`), deterministic traces and root decisions of PyPI
treequest 0.3.3. Live: the same simulated answers grow trees of the same shape in both.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mars_envs.importing import import_object
from mars_envs.tree_search import (
    ROOT,
    UCB,
    UCT,
    AgentThenNode,
    BestFirst,
    Beta,
    Gaussian,
    NodeThenAgent,
    Posterior,
    RootOnly,
    SearchTree,
    SearchView,
    Selector,
    TreeOfThoughts,
    TreeSearch,
)
from mars_envs.tree_search.tree import verdict_of_score


def recorded(data_dir: Path, name: str) -> list[dict[str, Any]]:
    rows = json.loads((data_dir / "numeric" / "treequest.json").read_text())[name]["rows"]
    assert rows
    return list(rows)


# Deterministic traces -------------------------------------------------------------------------


def score_of(path: str) -> float:
    """The recorded traces' rule."""
    return int(hashlib.sha256(path.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


MAKE: dict[str, Callable[[dict[str, Any]], Selector]] = {
    "StandardMCTS": lambda given: UCT(
        samples=given["samples_per_action"], exploration=given["exploration_weight"]
    ),
    "BestFirstSearch": lambda given: BestFirst(samples=given["num_samples"]),
    "TreeOfThoughtsBFS": lambda given: TreeOfThoughts(
        breadth=given["breadth_limit"], size=given["size_limit"]
    ),
    "MultiArmedBanditUCB": lambda given: RootOnly(agent_rule=UCB(given["exploration_weight"])),
}


def trace(selector: Selector, actions: list[str], steps: int) -> list[str]:
    search = TreeSearch(actions, selector, steps, 0)
    paths = {ROOT: "root"}
    made: Counter[tuple[int, str]] = Counter()
    while not search.done:
        (expansion,) = search.ask()
        pair = (expansion.parent_id, expansion.agent)
        path = f"{paths[expansion.parent_id]}/{expansion.agent}{made[pair]}"
        made[pair] += 1
        node = search.tell(expansion.id, score_of(path), reply=path)
        assert node is not None
        paths[node.id] = path
    return [node.reply for node in search.tree]


@pytest.mark.data
def test_the_deterministic_searches_follow_the_recorded_traces(data_dir: Path) -> None:
    rows = recorded(data_dir, "deterministic_traces")
    assert {row["algorithm"] for row in rows} == set(MAKE)
    for row in rows:
        selector = MAKE[row["algorithm"]](row["params"])
        found = trace(selector, row["actions"], row["steps"])
        assert found == row["expansion_order"], row["algorithm"]
        best = sorted(found, key=score_of, reverse=True)[:3]
        assert [(path, score_of(path)) for path in best] == [
            (item["path"], item["score"]) for item in row["top3"]
        ]


@pytest.mark.parametrize("actions", [["A"], ["A", "B"], ["A", "B", "C"]])
@pytest.mark.parametrize(
    ("selector", "name", "options"),
    [
        (
            UCT(samples=2, exploration=0.7),
            "standard_mcts:StandardMCTS",
            {"samples_per_action": 2, "exploration_weight": 0.7},
        ),
        (UCT(samples=1), "standard_mcts:StandardMCTS", {"samples_per_action": 1}),
        (BestFirst(samples=1), "best_first_search:BestFirstSearchAlgo", {"num_samples": 1}),
        (BestFirst(samples=3), "best_first_search:BestFirstSearchAlgo", {"num_samples": 3}),
        (
            TreeOfThoughts(breadth=2, size=4),
            "tree_of_thought_bfs:TreeOfThoughtsBFSAlgo",
            {"breadth_limit": 2, "size_limit": 4},
        ),
        (TreeOfThoughts(), "tree_of_thought_bfs:TreeOfThoughtsBFSAlgo", {}),
        (RootOnly(agent_rule=UCB()), "multi_armed_bandit_ucb:MultiArmedBanditUCBAlgo", {}),
    ],
)
def test_the_deterministic_searches_follow_treequest_live(
    selector: Selector, name: str, options: dict[str, Any], actions: list[str]
) -> None:
    pytest.importorskip("treequest")
    algorithm = import_object(f"treequest.algos.{name}")(**options)
    made: Counter[tuple[str, str]] = Counter()

    def generator(action: str) -> Callable[[str | None], tuple[str, float]]:
        def generate(parent: str | None) -> tuple[str, float]:
            parent = parent or "root"
            path = f"{parent}/{action}{made[parent, action]}"
            made[parent, action] += 1
            return path, score_of(path)

        return generate

    state = algorithm.init_tree()
    for _ in range(60):
        state = algorithm.step(state, {a: generator(a) for a in actions}, inplace=True)
    theirs = [path for path, _ in algorithm.get_state_score_pairs(state)]
    assert trace(selector, actions, 60) == theirs


# Root decisions -------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("strategy", ["multiarm_bandit_thompson", "stack"])
def test_root_decisions_are_as_frequent_as_recorded(data_dir: Path, strategy: str) -> None:
    rows = [r for r in recorded(data_dir, "abmcts_a_root_decisions") if r["strategy"] == strategy]
    assert len(rows) == 12
    for row in rows:
        prior = Beta() if row["dist"] == "beta" else Gaussian()
        kind = AgentThenNode if strategy == "stack" else NodeThenAgent
        selector: Selector = kind(prior=prior)
        tree, statistics = SearchTree(), selector.statistics(["A"])
        for score in row["root_children_scores"]:
            statistics.observe(tree.add(ROOT, "A", verdict_of_score(score)))
        view = SearchView(tree=tree, statistics=statistics, agents=("A",))
        rng = np.random.default_rng(1)
        counts = Counter(selector.select(view, rng).parent_id for _ in range(row["draws"]))
        for decision, share in row["decision_frequencies"].items():
            node_id = ROOT if decision == "GEN" else int(decision.removeprefix("child"))
            # Below the child the descent may go on; the tree has no deeper nodes here.
            found = counts[node_id] / row["draws"]
            # Both sides are samples; the tolerance is the data's own.
            assert found == pytest.approx(share, abs=row["tolerance_abs"]), row


# The shape of whole trees ---------------------------------------------------------------------

PRIORS: dict[str, Posterior] = {"beta": Beta(), "gaussian": Gaussian()}
STRATEGIES = {"multiarm_bandit_thompson": NodeThenAgent, "stack": AgentThenNode}
FRESH = {"a": 0.3, "b": 0.5}
"""Success from scratch, and after a wrong answer; a right one stays right with 0.9."""

Shape = tuple[float, ...]


def answer(rng: np.random.Generator, agent: str, parent_right: bool) -> float:
    return float(rng.random() < (0.9 if parent_right else FRESH[agent]))


def shape(nodes: list[tuple[int, int, str, float]]) -> Shape:
    """Of (parent, depth, agent, score): what is compared."""
    depths = [depth for _, depth, _, _ in nodes]
    return (
        sum(parent == ROOT for parent, *_ in nodes),
        sum(depths) / len(nodes),
        max(depths),
        sum(agent == "a" for *_, agent, _ in nodes) / len(nodes),
        sum(score for *_, score in nodes) / len(nodes),
    )


def our_shape(selector: Selector, budget: int, batch: int, seed: int) -> Shape:
    search = TreeSearch(sorted(FRESH), selector, budget, seed)
    rng = np.random.default_rng([seed, 1])
    while not search.done:
        for expansion in search.ask(batch):
            parent = expansion.parent_id
            right = parent != ROOT and search.tree[parent].score == 1.0
            search.tell(expansion.id, answer(rng, expansion.agent, right))
    return shape([(n.parent_id, n.depth, n.agent, n.score) for n in search.tree])


def their_shape(strategy: str, prior: str, budget: int, seed: int) -> Shape:
    treequest = pytest.importorskip("treequest")
    np.random.seed(seed)
    rng = np.random.default_rng([seed, 2])
    algorithm = treequest.ABMCTSA(dist_type=prior, model_selection_strategy=strategy)

    def generator(agent: str) -> Callable[[Any], tuple[Any, float]]:
        def generate(parent: Any) -> tuple[Any, float]:
            score = answer(rng, agent, parent is not None and parent[1] == 1.0)
            return (agent, score), score

        return generate

    state = algorithm.init_tree()
    functions = {agent: generator(agent) for agent in sorted(FRESH)}
    for _ in range(budget):
        state = algorithm.step(state, functions, inplace=True)
    return shape(
        [
            (node.parent.expand_idx, node.depth, node.state[0], node.score)
            for node in state.tree.get_nodes()[1:]
        ]
    )


def compare(strategy: str, prior: str, budget: int, ours: int, theirs: int) -> None:
    selector = STRATEGIES[strategy](prior=PRIORS[prior])
    mine = np.array([our_shape(selector, budget, 1, seed) for seed in range(ours)])
    yours = np.array([their_shape(strategy, prior, budget, seed) for seed in range(theirs)])
    error = np.sqrt(mine.var(axis=0, ddof=1) / ours + yours.var(axis=0, ddof=1) / theirs)
    # Five numbers in each of eight comparisons: 4 standard errors fail by chance once in 400 runs.
    assert np.all(np.abs(mine.mean(axis=0) - yours.mean(axis=0)) <= 4 * error), (
        mine.mean(axis=0),
        yours.mean(axis=0),
        error,
    )


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("prior", sorted(PRIORS))
def test_trees_of_eight_have_treequests_shape(strategy: str, prior: str) -> None:
    compare(strategy, prior, 8, ours=1000, theirs=300)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("prior", sorted(PRIORS))
def test_trees_of_sixty_have_treequests_shape(strategy: str, prior: str) -> None:
    compare(strategy, prior, 60, ours=400, theirs=80)


# The table of spec §1.8 -----------------------------------------------------------------------

# (prior, nodes, batch): for p = .05, .3, .7 the root's children, the mean depth and the share of
# trees in which every answer has the same score, as measured by an independent simulator.
TABLE = {
    ("gaussian", 8, 1): [(4.5, 1.55, 0.64), (4.2, 1.58, 0.09), (5.2, 1.42, 0.10)],
    ("gaussian", 8, 4): [(6.2, 1.23, 0.69), (6.6, 1.17, 0.06), (7.2, 1.10, 0.05)],
    ("beta", 8, 1): [(4.0, 1.68, 0.66), (3.5, 1.75, 0.07), (4.2, 1.60, 0.12)],
    ("beta", 8, 4): [(4.8, 1.40, 0.66), (5.5, 1.31, 0.07), (6.5, 1.19, 0.07)],
    ("gaussian", 60, 1): [(15.5, 2.1, 0.02), (9.7, 2.3, 0.0), (17.8, 1.9, 0.0)],
    ("beta", 60, 1): [(15.4, 2.2, 0.07), (6.9, 2.5, 0.0), (14.5, 2.1, 0.0)],
}


def bernoulli_shape(prior: str, budget: int, batch: int, p: float, seed: int) -> Shape:
    """One agent; right with probability p, refining a right one with 0.9."""
    selector = NodeThenAgent(prior=PRIORS[prior])
    # Like TreeQuest, the table's simulator draws a batch without knowing what is pending.
    search = TreeSearch(["a"], selector, budget, seed, pseudo_observations=False)
    rng = np.random.default_rng([seed, 1])
    while not search.done:
        for expansion in search.ask(batch):
            parent = expansion.parent_id
            right = parent != ROOT and search.tree[parent].score == 1.0
            search.tell(expansion.id, float(rng.random() < (0.9 if right else p)))
    tree = search.tree
    return (
        len(tree.children(ROOT)),
        sum(node.depth for node in tree) / len(tree),
        float(len({node.score for node in tree}) == 1),
    )


def check_table(prior: str, budget: int, batch: int, trees: int) -> None:
    for p, expected in zip((0.05, 0.3, 0.7), TABLE[prior, budget, batch], strict=True):
        found = np.array([bernoulli_shape(prior, budget, batch, p, seed) for seed in range(trees)])
        error = found.std(axis=0, ddof=1) / trees**0.5
        # Where all our trees agree, the share of such trees is known to about 3 / trees.
        error[2] = max(error[2], 1.0 / trees)
        rounding = (0.05, 0.005 if budget == 8 else 0.05, 0.005)
        # Both the table and ours are samples, and the table is rounded.
        assert np.all(np.abs(found.mean(axis=0) - expected) <= 4 * error + rounding), (
            p,
            found.mean(axis=0),
            expected,
            error,
        )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("prior", sorted(PRIORS))
def test_trees_of_eight_behave_as_measured(prior: str, batch: int) -> None:
    check_table(prior, 8, batch, trees=600)


@pytest.mark.slow
@pytest.mark.parametrize("prior", sorted(PRIORS))
def test_trees_of_sixty_behave_as_measured(prior: str) -> None:
    check_table(prior, 60, 1, trees=300)
