"""A search tree as numbers: one row for every node that may be a parent, and totals of each agent.

This is what a numeric policy sees of a tree. Everything is public: two trees that differ in hidden
success only have the same numbers. All values lie in [0, 1]; a mean over nothing is 0, and the
count beside it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tree import ROOT, Node, SearchTree

ROW_FIELDS = (
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
"""Numbers of a row that every tree has; three for each agent follow (`AGENT_ROW_FIELDS`)."""
AGENT_ROW_FIELDS = ("author", "children_of", "children_score_of")
"""Numbers of a row for each agent: wrote this node; its children by the agent, and their mean."""
TOTALS = ("nodes_left", "best_score")
"""Numbers of the whole tree that stand behind the rows."""
AGENT_TOTALS = ("fresh", "fresh_score", "refinements", "refinement_score")
"""Numbers of each agent over the whole tree: counts of its nodes, and their mean scores."""


@dataclass(frozen=True)
class Layout:
    """Which number stands where: `budget` rows (the root first, then nodes by id), then totals.

    Args:
        agents: names, in the order of actions.
        budget: nodes of a tree. The last node has no row: nothing can be made of it.
    """

    agents: tuple[str, ...]
    budget: int

    @cached_property
    def row_fields(self) -> tuple[str, ...]:
        """Names of the numbers of one row."""
        own = [f"{field}.{agent}" for field in AGENT_ROW_FIELDS for agent in self.agents]
        return (*ROW_FIELDS, *own)

    @cached_property
    def total_fields(self) -> tuple[str, ...]:
        """Names of the numbers behind the rows."""
        own = [f"{field}.{agent}" for field in AGENT_TOTALS for agent in self.agents]
        return (*TOTALS, *own)

    @cached_property
    def size(self) -> int:
        """Length of an observation."""
        return self.budget * len(self.row_fields) + len(self.total_fields)

    def rows(self, observation: Any) -> Any:
        """Return the rows of an observation, or of a batch: [..., budget, row fields].

        Arrays and tensors alike are viewed, not copied.
        """
        width = len(self.row_fields)
        return observation[..., : self.budget * width].reshape(
            *observation.shape[:-1], self.budget, width
        )

    def totals(self, observation: Any) -> Any:
        """Return the totals of an observation, or of a batch: [..., total fields]."""
        return observation[..., self.budget * len(self.row_fields) :]


class TreeRows:
    """Keeps the numbers of a growing tree: a new node costs its depth, not the size of the tree.

    Args:
        layout: of the numbers.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        agents, budget = layout.agents, layout.budget
        self._column = {name: index for index, name in enumerate(layout.row_fields)}
        self._agent = {name: index for index, name in enumerate(agents)}
        self._rows = np.zeros((budget, len(layout.row_fields)), np.float32)
        self._rows[0, self._column["valid"]] = 1.0
        # Sums stay in float64, so that means do not drift.
        self._descendants = np.zeros((budget, 2))
        self._children = np.zeros((budget, len(agents), 2))
        self._totals = np.zeros((len(agents), 2, 2))
        self._best: Node | None = None

    def add(self, tree: SearchTree, node: Node) -> None:
        """Take in the latest node of `tree`; nodes come in order of their ids."""
        column, budget = self._column, self.layout.budget
        parent_row, agent = node.parent_id + 1, self._agent[node.agent]
        row = node.id + 1
        if row < budget:
            self._rows[row, [column["valid"], column[f"author.{node.agent}"]]] = 1.0
            self._rows[row, column["parent"]] = (parent_row + 1) / budget
            self._rows[row, column["depth"]] = node.depth / budget
            self._rows[row, [column["score"], column["subtree_best"]]] = node.score
            self._rows[row, column["solved_public"]] = node.solved_public
            self._rows[row, column["parent_score"]] = self._rows[parent_row, column["score"]]
        self._totals[agent, int(node.parent_id != ROOT)] += (1.0, node.score)
        self._children[parent_row, agent] += (1.0, node.score)
        self._write_children(parent_row, node.agent)
        for ancestor in (*(item.id for item in tree.path(node.parent_id)), ROOT):
            self._write_descendant(ancestor + 1, node.score)
        if self._best is None or (node.score, node.id) > (self._best.score, self._best.id):
            self._best = node
            self._rows[:, column["best"]] = 0.0
            if row < budget:
                self._rows[row, column["best"]] = 1.0

    def observe(self, nodes_left: int) -> NDArray[np.float32]:
        """Return the numbers as one fresh vector of `layout.size`."""
        budget = self.layout.budget
        counts, sums = self._totals[..., 0], self._totals[..., 1]
        means = sums / np.maximum(counts, 1.0)
        totals = [
            (nodes_left / budget, 0.0 if self._best is None else self._best.score),
            counts[:, 0] / budget,
            means[:, 0],
            counts[:, 1] / budget,
            means[:, 1],
        ]
        return np.concatenate([self._rows.ravel(), *totals]).astype(np.float32)

    def _write_children(self, row: int, agent: str) -> None:
        column, budget = self._column, self.layout.budget
        count, total = self._children[row, self._agent[agent]]
        self._rows[row, column[f"children_of.{agent}"]] = count / budget
        self._rows[row, column[f"children_score_of.{agent}"]] = total / count
        count, total = self._children[row].sum(axis=0)
        self._rows[row, column["children"]] = count / budget
        self._rows[row, column["children_score"]] = total / count

    def _write_descendant(self, row: int, score: float) -> None:
        column = self._column
        self._descendants[row] += (1.0, score)
        count, total = self._descendants[row]
        self._rows[row, column["descendants"]] = count / self.layout.budget
        self._rows[row, column["descendants_score"]] = total / count
        self._rows[row, column["subtree_best"]] = max(
            self._rows[row, column["subtree_best"]], score
        )


def observe_tree(
    tree: SearchTree, agents: Sequence[str], budget: int, *, nodes_left: int | None = None
) -> NDArray[np.float32]:
    """Return the numbers of a whole tree, for a policy that acts outside `TreeControlEnv`.

    Args:
        tree: at most `budget` nodes, all by `agents`.
        agents: names, in the order of actions.
        budget: of the policy's environment.
        nodes_left: expansions left; None: what the tree leaves of the budget.

    Raises:
        ValueError: the tree is larger than the budget.
    """
    if len(tree) > budget:
        raise ValueError(f"expected a tree of at most {budget} nodes, got {len(tree)}")
    rows = TreeRows(Layout(tuple(agents), budget))
    for node in tree:
        rows.add(tree, node)
    return rows.observe(budget - len(tree) if nodes_left is None else nodes_left)
