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
from types import ModuleType
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


@pytest.fixture(scope="module")
def shapes(repo_dir: Path, load_module: Callable[[Path], ModuleType]) -> ModuleType:
    """The script that prints the tables of docs/mars2.md."""
    return load_module(repo_dir / "examples" / "tree_shapes.py")


def compare(shapes: ModuleType, order: str, prior: str, nodes: int, trees: tuple[int, int]) -> None:
    ours, theirs = trees
    mine = np.array([shapes.our_shape(order, prior, nodes, seed) for seed in range(ours)])
    yours = np.array([shapes.their_shape(order, prior, nodes, seed) for seed in range(theirs)])
    error = np.sqrt(mine.var(axis=0, ddof=1) / ours + yours.var(axis=0, ddof=1) / theirs)
    # Five figures in each of eight comparisons: 4 standard errors fail by chance once in 400 runs.
    assert np.all(np.abs(mine.mean(axis=0) - yours.mean(axis=0)) <= 4 * error), (
        mine.mean(axis=0),
        yours.mean(axis=0),
        error,
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", ["node first", "agent first"])
@pytest.mark.parametrize("prior", ["beta", "gaussian"])
def test_trees_of_eight_have_treequests_shape(shapes: ModuleType, order: str, prior: str) -> None:
    pytest.importorskip("treequest")
    compare(shapes, order, prior, 8, (1000, 300))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["node first", "agent first"])
@pytest.mark.parametrize("prior", ["beta", "gaussian"])
def test_trees_of_sixty_have_treequests_shape(shapes: ModuleType, order: str, prior: str) -> None:
    pytest.importorskip("treequest")
    compare(shapes, order, prior, 60, (400, 80))


def check_specified(shapes: ModuleType, prior: str, nodes: int, batch: int, trees: int) -> None:
    for chance, expected in zip(shapes.CHANCES, shapes.SPECIFIED[prior, nodes, batch], strict=True):
        found = np.array(
            [shapes.specified_shape(prior, nodes, batch, chance, seed) for seed in range(trees)]
        )
        error = found.std(axis=0, ddof=1) / trees**0.5
        # Where all our trees agree, the share of such trees is known to about 3 / trees.
        error[2] = max(error[2], 1.0 / trees)
        rounding = (0.05, 0.005 if nodes == 8 else 0.05, 0.005)
        # Both the table and ours are samples, and the table is rounded.
        assert np.all(np.abs(found.mean(axis=0) - expected) <= 4 * error + rounding), (
            chance,
            found.mean(axis=0),
            expected,
            error,
        )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("prior", ["beta", "gaussian"])
def test_trees_of_eight_behave_as_measured(shapes: ModuleType, prior: str, batch: int) -> None:
    check_specified(shapes, prior, 8, batch, trees=600)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["beta", "gaussian"])
def test_trees_of_sixty_behave_as_measured(shapes: ModuleType, prior: str) -> None:
    check_specified(shapes, prior, 60, 1, trees=300)


def test_the_tables_are_printed(shapes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("treequest")
    shapes.main(["live", "--trees", "3", "--theirs", "2", "--nodes", "3"])
    shapes.main(["specified", "--trees", "3", "--nodes", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("| node first | ", "| agent first | ")) for line in lines) == 4
    assert sum(line.startswith(("| gaussian | 8 |", "| beta | 8 |")) for line in lines) == 4
