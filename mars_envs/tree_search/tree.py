"""The search tree: what was tried, in which order, from where, and how it was judged.

A tree is pure, append-only data. A node is a whole answer, never a reasoning step; the root stands
for the task itself and has no answer. Ids are given in order of creation, so a parent always
precedes its children. Statistics of the search are not kept here: they follow from the tree
(`selection.Statistics`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..judging.base import CaseFeedback, Feedback, Verdict

ROOT = -1
"""Id of the root, which is the task and not a node."""
NOTHING = -2
"""Stands for "no node" where an id is expected."""
TREE_VERSION = 1


def verdict_of_score(score: float) -> Verdict:
    """Return a verdict for searches that know nothing but a score: 1.0 is solved."""
    solved = score >= 1.0
    status = "accepted" if solved else "wrong_answer"
    return Verdict(
        score=score,
        solved=solved,
        status=status,
        public_passed=int(solved),
        public_total=1,
        feedback=Feedback(passed=int(solved), total=1, status=status),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One judged answer."""

    id: int
    parent_id: int
    """The node that this one refines, or `ROOT` for a fresh answer."""
    agent: str
    depth: int
    """1 for a child of the root."""
    reply: str
    """What the agent said, as it stood."""
    verdict: Verdict

    @property
    def score(self) -> float:
        """The public score in [0, 1], which drives the search."""
        return self.verdict.score

    @property
    def solved(self) -> bool:
        """Whether public and hidden tests all passed: the reward, never seen by the search."""
        return self.verdict.solved

    @property
    def solved_public(self) -> bool:
        """Whether every public test passed: as much as the search may know."""
        return self.verdict.public_passed >= self.verdict.public_total


class SearchTree:
    """An append-only tree of judged answers below a root with id -1.

    Example:
        >>> tree = SearchTree()
        >>> first = tree.add(ROOT, "coder_0", verdict_of_score(0.0))
        >>> tree.add(first.id, "coder_1", verdict_of_score(1.0)).depth
        2
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._children: dict[int, list[int]] = {ROOT: []}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, node_id: int) -> Node:
        if not 0 <= node_id < len(self._nodes):
            raise KeyError(f"no node {node_id}; this tree has the nodes 0 to {len(self) - 1}")
        return self._nodes[node_id]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchTree) and self._nodes == other._nodes

    __hash__ = None  # type: ignore[assignment]  # it grows

    def add(self, parent_id: int, agent: str, verdict: Verdict, reply: str = "") -> Node:
        """Append one node and return it.

        Raises:
            KeyError: there is no such parent.
            ValueError: the score is not a number in [0, 1].
        """
        if not (math.isfinite(verdict.score) and 0.0 <= verdict.score <= 1.0):
            raise ValueError(f"a score must be a number in [0, 1], got {verdict.score!r}")
        node = Node(
            id=len(self._nodes),
            parent_id=parent_id,
            agent=agent,
            depth=self.depth(parent_id) + 1,
            reply=reply,
            # Whether a cache answered is a fact about the machine, not about the answer.
            verdict=dataclasses.replace(verdict, cached=False),
        )
        self._nodes.append(node)
        self._children[node.id] = []
        self._children[parent_id].append(node.id)
        return node

    def depth(self, node_id: int) -> int:
        """Return the depth of a node; the root has depth 0."""
        return 0 if node_id == ROOT else self[node_id].depth

    def children(self, node_id: int) -> list[Node]:
        """Return the children of a node or of the root, oldest first."""
        if node_id not in self._children:
            raise KeyError(f"no node {node_id}; this tree has the nodes 0 to {len(self) - 1}")
        return [self._nodes[child] for child in self._children[node_id]]

    def path(self, node_id: int) -> list[Node]:
        """Return the nodes from just below the root down to `node_id`; empty for the root."""
        nodes: list[Node] = []
        while node_id != ROOT:
            nodes.append(self[node_id])
            node_id = nodes[-1].parent_id
        return nodes[::-1]

    def descendants(self, node_id: int) -> int:
        """Return how many nodes lie below a node or below the root."""
        waiting = [child.id for child in self.children(node_id)]
        count = 0
        while waiting:  # not by recursion: a tree may be deeper than the stack
            count += 1
            waiting += self._children[waiting.pop()]
        return count

    @property
    def best(self) -> Node | None:
        """The answer of the search: the highest public score, of equals the latest (spec §5.1)."""
        return max(self._nodes, key=lambda node: (node.score, node.id), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain data for `json.dumps`."""
        return {
            "version": TREE_VERSION,
            "nodes": [dataclasses.asdict(node) for node in self._nodes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SearchTree:
        """Rebuild a tree from `to_json`.

        Raises:
            ValueError: the data has another version, or ids out of order.
        """
        if data.get("version") != TREE_VERSION:
            raise ValueError(
                f"expected a search tree of version {TREE_VERSION}, got {data.get('version')!r}"
            )
        tree = cls()
        for record in data["nodes"]:
            node = tree.add(
                record["parent_id"],
                record["agent"],
                _verdict_from_json(record["verdict"]),
                record["reply"],
            )
            if node.id != record["id"]:
                raise ValueError(f"expected node {node.id} next, got {record['id']!r}")
        return tree


def _verdict_from_json(data: Mapping[str, Any]) -> Verdict:
    feedback = dict(data["feedback"])
    if feedback["failure"] is not None:
        feedback["failure"] = CaseFeedback(**feedback["failure"])
    return Verdict(**{**data, "feedback": Feedback(**feedback)})
