"""What a numeric policy sees of a tree, against a tree read the long way round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mars_envs.tree_search import SearchTree, TreeControlEnv, observe_tree


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def expected_rows(tree: SearchTree, agents: Sequence[str], budget: int) -> list[dict[str, float]]:
    """Return what each row should say, by the names of its numbers."""
    nodes = list(tree)
    best = max(nodes, key=lambda node: (node.score, node.id), default=None)

    def below(node_id: int) -> list[Any]:
        direct = [node for node in nodes if node.parent_id == node_id]
        return direct + [node for child in direct for node in below(child.id)]

    rows = []
    for row in range(budget):
        node = nodes[row - 1] if 0 < row <= len(nodes) else None
        if row > len(nodes):
            numbers = dict.fromkeys(ROWS, 0.0)
            for agent in agents:
                for name in ("author", "children_of", "children_score_of"):
                    numbers[f"{name}.{agent}"] = 0.0
            rows.append(numbers)
            continue
        children = [other for other in nodes if other.parent_id == row - 1]
        descendants = below(row - 1)
        own = [] if node is None else [node.score]
        numbers = {
            "valid": 1.0,
            "parent": 0.0 if node is None else (node.parent_id + 2) / budget,
            "depth": 0.0 if node is None else node.depth / budget,
            "score": 0.0 if node is None else node.score,
            "solved_public": float(node is not None and node.score == 1.0),
            "best": float(node is not None and node is best),
            "parent_score": 0.0
            if node is None or node.parent_id < 0
            else nodes[node.parent_id].score,
            "children": len(children) / budget,
            "children_score": mean([child.score for child in children]),
            "descendants": len(descendants) / budget,
            "descendants_score": mean([other.score for other in descendants]),
            "subtree_best": max(own + [other.score for other in descendants], default=0.0),
        }
        for agent in agents:
            of_agent = [child.score for child in children if child.agent == agent]
            numbers[f"author.{agent}"] = float(node is not None and node.agent == agent)
            numbers[f"children_of.{agent}"] = len(of_agent) / budget
            numbers[f"children_score_of.{agent}"] = mean(of_agent)
        rows.append(numbers)
    return rows


ROWS = (
    "valid",
    "parent",
    "depth",
    "score",
    "solved_public",
    "best",
    "parent_score",
    "children",
    "children_score",
    "descendants",
    "descendants_score",
    "subtree_best",
)


def expected_totals(
    tree: SearchTree, agents: Sequence[str], budget: int, nodes_left: int
) -> dict[str, float]:
    totals = {
        "nodes_left": nodes_left / budget,
        "best_score": max((node.score for node in tree), default=0.0),
    }
    for agent in agents:
        fresh = [node.score for node in tree if node.agent == agent and node.parent_id == -1]
        mended = [node.score for node in tree if node.agent == agent and node.parent_id != -1]
        totals[f"fresh.{agent}"] = len(fresh) / budget
        totals[f"fresh_score.{agent}"] = mean(fresh)
        totals[f"refinements.{agent}"] = len(mended) / budget
        totals[f"refinement_score.{agent}"] = mean(mended)
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_the_observation_says_what_the_tree_says(seed: int) -> None:
    env = TreeControlEnv(coders="specialists", budget=12)
    agents, layout = env.agents, env.layout
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for step in range(1, 13):
        observation, *_ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert observation in env.observation_space
        for row, expected in enumerate(expected_rows(env.tree, agents, 12)):
            seen = dict(zip(layout.row_fields, layout.rows(observation)[row], strict=True))
            assert seen == pytest.approx(expected, abs=1e-6), row
        totals = dict(zip(layout.total_fields, layout.totals(observation), strict=True))
        expected_numbers = expected_totals(env.tree, agents, 12, 12 - step)
        assert totals == pytest.approx(expected_numbers, abs=1e-6)
        assert observe_tree(env.tree, agents, 12).tolist() == observation.tolist()


def test_a_tree_larger_than_the_budget_has_no_observation() -> None:
    env = TreeControlEnv(budget=3)
    env.reset(seed=0)
    for action in (0, 0, 0):
        env.step(action)
    with pytest.raises(ValueError, match="at most 2 nodes, got 3"):
        observe_tree(env.tree, env.agents, 2)
