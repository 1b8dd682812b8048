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

_KINDS = _FRESH, _REFINEMENT = AGENT_TOTALS[:2], AGENT_TOTALS[2:]
_CHILDREN, _DESCENDANTS = 0, 1


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
        self._column = {name: index for index, name in enumerate(layout.row_fields)}
        self._place = {name: index for index, name in enumerate(layout.total_fields)}
        self._numbers = np.zeros(layout.size, np.float32)
        layout.rows(self._numbers)[0, self._column["valid"]] = 1.0
        # Counts and sums stay apart and in float64, so that means do not drift.
        self._counts = np.zeros((layout.budget, 2 + len(layout.agents)))
        self._sums = np.zeros_like(self._counts)
        self._agent = {name: 2 + index for index, name in enumerate(layout.agents)}
        self._of_agents = {(name, kind): [0, 0.0] for name in layout.agents for kind in _KINDS}
        self._best: Node | None = None

    def add(self, tree: SearchTree, node: Node) -> None:
        """Take in the latest node of `tree`; nodes come in order of their ids."""
        column, rows = self._column, self.layout.rows(self._numbers)
        row, parent_row, agent = node.id + 1, node.parent_id + 1, node.agent
        if row < self.layout.budget:
            new = rows[row]
            new[column["valid"]] = new[column[f"author.{agent}"]] = 1.0
            new[column["parent"]] = (parent_row + 1) / self.layout.budget
            new[column["depth"]] = node.depth / self.layout.budget
            new[column["score"]] = new[column["subtree_best"]] = node.score
            new[column["solved_public"]] = node.solved_public
            new[column["parent_score"]] = rows[parent_row, column["score"]]
        self._count(rows, parent_row, _CHILDREN, "children", "children_score", node.score)
        names = (f"children_of.{agent}", f"children_score_of.{agent}")
        self._count(rows, parent_row, self._agent[agent], *names, node.score)
        ancestor = node.parent_id
        while True:
            self._count(
                rows, ancestor + 1, _DESCENDANTS, "descendants", "descendants_score", node.score
            )
            best_below = column["subtree_best"]
            rows[ancestor + 1, best_below] = max(rows[ancestor + 1, best_below], node.score)
            if ancestor == ROOT:
                break
            ancestor = tree[ancestor].parent_id
        self._add_to_totals(node)
        if self._best is None or node.score >= self._best.score:
            if self._best is not None and self._best.id + 1 < self.layout.budget:
                rows[self._best.id + 1, column["best"]] = 0.0
            if row < self.layout.budget:
                rows[row, column["best"]] = 1.0
            self._best = node

    def observe(self, nodes_left: int) -> NDArray[np.float32]:
        """Return the numbers as one fresh vector of `layout.size`."""
        numbers = self._numbers.copy()
        totals = self.layout.totals(numbers)
        totals[self._place["nodes_left"]] = nodes_left / self.layout.budget
        totals[self._place["best_score"]] = 0.0 if self._best is None else self._best.score
        return numbers

    def _count(
        self, rows: Any, row: int, index: int, count_name: str, mean_name: str, score: float
    ) -> None:
        self._counts[row, index] += 1.0
        self._sums[row, index] += score
        count = self._counts[row, index]
        rows[row, self._column[count_name]] = count / self.layout.budget
        rows[row, self._column[mean_name]] = self._sums[row, index] / count

    def _add_to_totals(self, node: Node) -> None:
        kind = _FRESH if node.parent_id == ROOT else _REFINEMENT
        counted = self._of_agents[node.agent, kind]
        counted[0] += 1
        counted[1] += node.score
        totals = self.layout.totals(self._numbers)
        totals[self._place[f"{kind[0]}.{node.agent}"]] = counted[0] / self.layout.budget
        totals[self._place[f"{kind[1]}.{node.agent}"]] = counted[1] / counted[0]


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
