"""The tree of an episode, rebuilt from what infos say, and what must follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tree_search.tree import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A node, as the info of its author told."""

    id: int
    agent: str
    parent_id: int
    depth: int
    score: float
    solved: bool
    solved_public: bool
    tokens: int


class Shadow:
    """A tree that grows with the infos.

    Args:
        agents: the possible agents; their places number the authors.
        budget: nodes of a tree.
    """

    def __init__(self, agents: Sequence[str], budget: int) -> None:
        self.budget = budget
        self.nodes: list[Known] = []
        self._author = {agent: index + 1 for index, agent in enumerate(agents)}

    def grow(self, agent: str, info: Mapping[str, Any]) -> Known:
        """Add the node that an agent has just made.

        Raises:
            AssertionError: it is not the next node, or does not fit its parent.
        """
        number, parent = info["node_id"], info["node_parent_id"]
        assert number == len(self.nodes), (
            f"{agent} acted, so info['node_id'] must be {len(self.nodes)}, the next node, got "
            f"{number}; nodes are numbered as they come, in the order of `agents` within a round"
        )
        assert info["depth"] == self.depth(parent) + 1, (
            f"info['depth'] of {agent}'s node {number} is {info['depth']}, but its parent "
            f"{parent} is {self.depth(parent)} deep"
        )
        assert info["parent_solved"] == (parent != ROOT and self.nodes[parent].solved), (
            f"info['parent_solved'] of {agent}'s node {number} is {info['parent_solved']}, which "
            f"is not what was said of node {parent}"
        )
        node = Known(
            id=number,
            agent=agent,
            parent_id=parent,
            depth=info["depth"],
            score=info["score"],
            solved=info["solved"],
            solved_public=info["public_passed"] >= info["public_total"],
            tokens=info["tokens"],
        )
        self.nodes.append(node)
        return node

    def depth(self, node_id: int) -> int:
        """Return how deep a node is; 0 for the root."""
        return 0 if node_id == ROOT else self.nodes[node_id].depth

    def count(self, agent: str) -> int:
        """Return how many nodes an agent has made."""
        return sum(node.agent == agent for node in self.nodes)

    def below(self, node_id: int) -> int:
        """Return how many nodes are below a node, or the root."""
        if node_id == ROOT:
            return len(self.nodes)
        inside = {node_id}
        for node in self.nodes[node_id + 1 :]:
            if node.parent_id in inside:
                inside.add(node.id)
        return len(inside) - 1

    def state(self) -> NDArray[np.float32]:
        """Return what `state()` must be: float32 of shape [budget + 1, 6]."""
        rows = np.zeros((self.budget + 1, 6), np.float32)
        rows[0, 4:] = len(self.nodes), 1
        for node in self.nodes:
            rows[node.id + 1] = (
                node.parent_id + 1,
                self._author[node.agent],
                node.depth,
                node.score,
                self.below(node.id) + 1,
                1,
            )
        return rows

    def features(self, agent: str, expand_id: int | None) -> NDArray[np.float32]:
        """Return what `features` must be of an agent that is asked to expand a node, or nothing."""
        depth = score = below = 0.0
        if expand_id is not None:
            depth, below = self.depth(expand_id), self.below(expand_id)
            score = 0.0 if expand_id == ROOT else self.nodes[expand_id].score
        left = self.budget - len(self.nodes)
        counts = np.array([depth, 0, below, left, self.count(agent)]) / self.budget
        counts[1] = score
        return counts.astype(np.float32)
