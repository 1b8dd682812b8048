"""Three classic tree searches, for comparison: UCT, best-first, and Tree of Thoughts by breadth.

They follow TreeQuest's implementations move by move (version 0.3.3: StandardMCTS, BestFirstSearch,
TreeOfThoughtsBFS), without queues: whom they would have queued follows from the tree. They expand a
node completely, with every agent, before they choose another, so they have no rule for agents. They
are made for one expansion at a time; pending ones count as children without a score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .selection import Choice, SearchView
from .statistics import Statistics
from .tree import ROOT


def _missing(view: SearchView, parent_id: int, samples: int) -> str | None:
    """Return the first agent with fewer than `samples` children here; None when all have them."""
    made = [child.agent for child in view.tree.children(parent_id)]
    made += [item.agent for item in view.pending if item.parent_id == parent_id]
    return next((agent for agent in view.agents if made.count(agent) < samples), None)


def _unfinished(view: SearchView, samples: int) -> Choice | None:
    """Return what is left of the expansion that was begun last."""
    if view.pending:
        parent_id = view.pending[-1].parent_id
    elif len(view.tree):
        parent_id = view.tree[len(view.tree) - 1].parent_id
    else:
        parent_id = ROOT
    agent = _missing(view, parent_id, samples) if view.may_expand(parent_id) else None
    return None if agent is None else Choice(parent_id, agent)


def _leaves(view: SearchView, node_ids: Iterable[int]) -> list[int]:
    """Return those that may be refined and have no children, pending ones included."""
    waiting = {item.parent_id for item in view.pending}
    return [
        node_id
        for node_id in node_ids
        if view.may_expand(node_id)
        and node_id not in waiting
        and not view.tree.descendants(node_id)
    ]


def _check_samples(samples: int) -> None:
    if samples < 1:
        raise ValueError(f"samples per agent must be at least 1, got {samples!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UCT:
    """Monte Carlo tree search with upper confidence bounds.

    From the root down it follows the child of the largest mean + exploration * prior *
    √(ln(visits of the parent) / visits), where mean and visits are those of the child's subtree and
    the prior is the softmax of the siblings' own values; at a leaf every agent answers `samples`
    times.
    """

    samples: int = 2
    exploration: float = math.sqrt(2.0)

    def __post_init__(self) -> None:
        _check_samples(self.samples)

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics in which a child's arm counts visits and sums values."""
        return Statistics(agents, "shared")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Finish the node that is being expanded, else descend to a leaf; draws nothing."""
        begun = _unfinished(view, self.samples)
        if begun is not None:
            return begun
        node_id, visits = ROOT, float(len(view.tree))
        while child := self._best_child(view, node_id, visits):
            node_id, visits = child
        return Choice(node_id, view.agents[0])

    def _best_child(
        self, view: SearchView, node_id: int, visits: float
    ) -> tuple[int, float] | None:
        """Return the child to follow and its visits; None at a leaf."""
        children = view.tree.children(node_id)
        values = np.array([child.value for child in children])
        able = [index for index, child in enumerate(children) if view.may_expand(child.id)]
        if not able:
            return None
        odds = np.exp(values - values.max())
        priors = odds / odds.sum()

        def bound(index: int) -> float:
            arm = view.statistics.child(children[index].id)
            explore = self.exploration * float(priors[index]) * math.sqrt(math.log(visits) / arm.n)
            return arm.total / arm.n + explore

        best = max(able, key=bound)
        return children[best].id, view.statistics.child(children[best].id).n


@dataclass(frozen=True, slots=True, kw_only=True)
class BestFirst:
    """Expands the leaf of the highest value, of equals the shallowest, then the oldest."""

    samples: int = 2

    def __post_init__(self) -> None:
        _check_samples(self.samples)

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics without node arms: the tree says enough."""
        return Statistics(agents, "agents")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Finish the node that is being expanded, else take the best leaf; draws nothing."""
        begun = _unfinished(view, self.samples)
        if begun is not None:
            return begun
        tree = view.tree
        best = min(
            _leaves(view, range(len(tree))),
            key=lambda node_id: (-tree[node_id].value, tree[node_id].depth, node_id),
            default=ROOT,
        )
        return Choice(best, view.agents[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOfThoughts:
    """Level by level: of the deepest level the `breadth` best are expanded, `size` times each.

    The agents share the `size` answers. The root is expanded once, by the first agent.
    """

    breadth: int = 3
    size: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.breadth <= self.size:
            raise ValueError(
                f"TreeOfThoughts needs 1 <= breadth <= size, got breadth={self.breadth!r}, "
                f"size={self.size!r}"
            )

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics without node arms: the tree says enough."""
        return Statistics(agents, "agents")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Finish the level that is being expanded, else begin with the next; draws nothing."""
        samples = max(1, self.size // len(view.agents))
        deepest = view.tree.max_depth
        for depth in (deepest - 1, deepest):
            level = self._level(view, depth) if depth > 0 else []
            # All answers of one agent come first, as TreeQuest's queue has them.
            for agent in view.agents:
                for node_id in level:
                    if _made(view, node_id, agent) < samples:
                        return Choice(node_id, agent)
        return Choice(ROOT, view.agents[0])

    def _level(self, view: SearchView, depth: int) -> list[int]:
        """Return the nodes of a depth that are expanded, best first."""
        level = [node for node in view.tree if node.depth == depth and view.may_expand(node.id)]
        level.sort(key=lambda node: -node.value)
        return [node.id for node in level[: self.breadth]]


def _made(view: SearchView, parent_id: int, agent: str) -> int:
    """Return how many children of a node an agent has made or is making."""
    made = sum(child.agent == agent for child in view.tree.children(parent_id))
    return made + sum(e.parent_id == parent_id and e.agent == agent for e in view.pending)
