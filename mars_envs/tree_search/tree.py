"""The search tree: what was tried, in which order, from where, and how it was judged.

A tree is pure, append-only data. A node is a whole answer, never a reasoning step; the root stands
for the task itself and has no answer. Ids are given in order of creation, so a parent always
precedes its children. Statistics of the search are not kept here: they follow from the tree
(`statistics.Statistics`). What is asked of a tree at every turn (`best`, `descendants`, `count`,
`width`, `alike`, `solved`) is kept up to date by `add` and costs nothing to read.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from ..judging.base import CaseFeedback, Feedback, Verdict

ROOT = -1
"""Id of the root, which is the task and not a node."""
NOTHING = -2
"""Stands for "no node" where an id is expected."""
TREE_VERSION = 1


@lru_cache(maxsize=256)
def verdict_of_score(score: float) -> Verdict:
    """Return a verdict for searches that know nothing but a score: 1.0 is solved."""
    score = float(score)
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
    value: float
    """What drove the search, in [0, 1]: the public score, or its blend with a `score_fn`."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # frozen, like all that it holds

    @property
    def score(self) -> float:
        """The public score in [0, 1]."""
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
        self._children: dict[int, list[int]] = {}
        self._below: list[int] = []
        self._width: list[int] = [1]
        self._unsolved: list[int] = []
        self._best: Node | None = None
        self._counts: Counter[str] = Counter()
        self._behaviours: Counter[tuple[str, ...]] = Counter()
        self._known_behaviours = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, node_id: int) -> Node:
        if not 0 <= node_id < len(self._nodes):
            raise self._unknown(node_id)
        return self._nodes[node_id]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchTree) and self._nodes == other._nodes

    __hash__ = None  # type: ignore[assignment]  # it grows

    def draft(
        self,
        parent_id: int,
        agent: str,
        verdict: Verdict,
        reply: str = "",
        *,
        value: float | None = None,
    ) -> Node:
        """Return the node that `add` would append, without appending it.

        Raises:
            KeyError: there is no such parent.
            ValueError: the score or the value is not a number in [0, 1].
        """
        score = verdict.score
        value = score if value is None else value
        for name, number in (("score", score), ("value", value)):
            if not (math.isfinite(number) and 0.0 <= number <= 1.0):
                raise ValueError(f"a {name} must be a number in [0, 1], got {number!r}")
        return Node(
            id=len(self._nodes),
            parent_id=parent_id,
            agent=agent,
            depth=self.depth(parent_id) + 1,
            reply=reply,
            # Whether a cache answered is a fact about the machine, not about the answer.
            verdict=dataclasses.replace(verdict, cached=False) if verdict.cached else verdict,
            value=value,
        )

    def add(
        self,
        parent_id: int,
        agent: str,
        verdict: Verdict,
        reply: str = "",
        *,
        value: float | None = None,
    ) -> Node:
        """Append one node and return it.

        Args:
            parent_id: the node that it refines, or `ROOT`.
            agent: who wrote it.
            verdict: what the judge said.
            reply: what the agent said.
            value: what drives the search; None: the public score.

        Raises:
            KeyError: there is no such parent.
            ValueError: the score or the value is not a number in [0, 1].
        """
        node = self.draft(parent_id, agent, verdict, reply, value=value)
        self.attach(node)
        return node

    def attach(self, node: Node) -> None:
        """Append a node that `draft` made.

        Raises:
            ValueError: another node was appended since the draft.
        """
        if node.id != len(self._nodes):
            raise ValueError(f"expected node {len(self._nodes)} next, got {node.id!r}")
        self._nodes.append(node)
        self._children.setdefault(node.parent_id, []).append(node.id)
        self._below.append(0)
        ancestor = node.parent_id
        while ancestor != ROOT:
            self._below[ancestor] += 1
            ancestor = self._nodes[ancestor].parent_id
        if node.depth == len(self._width):
            self._width.append(0)
        self._width[node.depth] += 1
        self._counts[node.agent] += 1
        if not node.solved_public:
            self._unsolved.append(node.id)
        if self._best is None or node.score >= self._best.score:
            self._best = node
        if node.verdict.signature:
            self._behaviours[node.verdict.signature] += 1
            self._known_behaviours += 1

    def depth(self, node_id: int) -> int:
        """Return the depth of a node; the root has depth 0."""
        return 0 if node_id == ROOT else self[node_id].depth

    def children(self, node_id: int) -> list[Node]:
        """Return the children of a node or of the root, oldest first."""
        self._check(node_id)
        return [self._nodes[child] for child in self._children.get(node_id, ())]

    def path(self, node_id: int) -> list[Node]:
        """Return the nodes from just below the root down to `node_id`; empty for the root."""
        nodes: list[Node] = []
        while node_id != ROOT:
            nodes.append(self[node_id])
            node_id = nodes[-1].parent_id
        return nodes[::-1]

    def descendants(self, node_id: int) -> int:
        """Return how many nodes lie below a node or below the root."""
        self._check(node_id)
        return len(self._nodes) if node_id == ROOT else self._below[node_id]

    def count(self, agent: str) -> int:
        """Return how many nodes an agent has written."""
        return self._counts[agent]

    def width(self, depth: int) -> int:
        """Return how many nodes lie at a depth: 1 at 0, where the root is."""
        return self._width[depth] if depth < len(self._width) else 0

    @property
    def max_depth(self) -> int:
        """The depth of the deepest node; 0 for an empty tree."""
        return len(self._width) - 1

    @property
    def unsolved(self) -> Sequence[int]:
        """The ids of the nodes that fail some public test, in order. Not a copy: do not change."""
        return self._unsolved

    @property
    def solved(self) -> bool:
        """Whether some node passes every public test."""
        return len(self._unsolved) < len(self._nodes)

    def alike(self, verdict: Verdict) -> int:
        """Return how many nodes behave as `verdict` says; 0 where it has no signature."""
        return self._behaviours[verdict.signature]

    @property
    def known_behaviours(self) -> int:
        """How many nodes have a signature."""
        return self._known_behaviours

    @property
    def best(self) -> Node | None:
        """The answer of the search: the highest public score, of equals the latest."""
        return self._best

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
        if not isinstance(data, Mapping):
            raise ValueError(f"expected a search tree as an object, got {type(data).__name__}")
        if data.get("version") != TREE_VERSION:
            raise ValueError(
                f"expected a search tree of version {TREE_VERSION}, got {data.get('version')!r}"
            )
        tree = cls()
        for record in data["nodes"]:
            node = tree.draft(
                record["parent_id"],
                record["agent"],
                verdict_from_json(record["verdict"]),
                record["reply"],
                value=record.get("value"),
            )
            if node.id != record["id"]:
                raise ValueError(f"expected node {node.id} next, got {record['id']!r}")
            tree.attach(node)
        return tree

    def _check(self, node_id: int) -> None:
        if not ROOT <= node_id < len(self._nodes):
            raise self._unknown(node_id)

    def _unknown(self, node_id: int) -> KeyError:
        return KeyError(f"no node {node_id}; this tree has the nodes 0 to {len(self) - 1}")


def verdict_from_json(data: Mapping[str, Any]) -> Verdict:
    """Rebuild a verdict from what `dataclasses.asdict` made of it."""
    feedback = dict(data["feedback"])
    if feedback["failure"] is not None:
        feedback["failure"] = CaseFeedback(**feedback["failure"])
    # Trees that were written before there were signatures have none.
    signature = tuple(data.get("signature", ()))
    return Verdict(**{**data, "feedback": Feedback(**feedback), "signature": signature})
