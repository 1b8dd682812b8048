"""A search tree as one array of numbers: the state that a centralised critic sees.

Row 0 is the root and row i + 1 is node i, so that "row of the parent" and "choice of a parent"
(`select="agent"`) are one number. Rows that no node has taken yet are 0. Only public facts are
here. The table grows with the tree: appending a node costs its depth, not the size of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .tree import Node

COLUMNS = ("parent", "agent", "depth", "score", "visits", "valid")
"""parent: row of the parent; agent: 1 + place of the author among the possible agents; depth: of
the node, 0 for the root; score: the public one; visits: nodes of the subtree, the node included
(the root, which is none, excluded); valid: 1 where there is a node, or the root."""

_VISITS = COLUMNS.index("visits")


def table_bounds(budget: int, agents: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the lowest and highest entries of a table, each of shape [budget + 1, 6]."""
    high = np.array([budget, agents, budget, 1, budget, 1], dtype=np.float32)
    return np.zeros((budget + 1, 6), np.float32), np.tile(high, (budget + 1, 1))


class NodeTable:
    """The array of one growing tree.

    Args:
        budget: the most nodes.
        agents: the possible agents, whose places number the authors.
    """

    def __init__(self, budget: int, agents: Sequence[str]) -> None:
        self._agents = {agent: index + 1 for index, agent in enumerate(agents)}
        self._rows = np.zeros((budget + 1, len(COLUMNS)), dtype=np.float32)
        self._rows[0, -1] = 1.0
        # Plain lists beside the array: single entries of those are read and written faster.
        self._parents = [0]
        self._visits = [0]

    def add(self, node: Node) -> None:
        """Enter the node that was made last."""
        row = len(self._parents)
        parent = node.parent_id + 1
        self._parents.append(parent)
        self._visits.append(0)
        self._rows[row] = (parent, self._agents[node.agent], node.depth, node.score, 0, 1)
        while True:
            self._visits[row] += 1
            self._rows[row, _VISITS] = self._visits[row]
            if row == 0:
                break
            row = self._parents[row]

    def array(self) -> NDArray[np.float32]:
        """Return a copy of the whole table: float32 of shape [budget + 1, 6]."""
        return self._rows.copy()
