"""Which node is expanded next, and by which agent: Thompson sampling over the arms of a tree.

A selector is frozen configuration. It draws only from the generator that it is handed, and keeps
nothing: what was observed lives in `Statistics`, which the caller holds. Every node u (and the
root) has two virtual arms, GEN ("make a new child of u") and CONT ("descend into a child of u"),
and one arm per child. Scores are credited without discount (`arms`): a child's arm pools its own
score and those of all its descendants, GEN those of the direct children, CONT those of all deeper
nodes. A node's own score therefore never enters its parent's CONT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from .posteriors import Beta, Posterior
from .tree import ROOT, Node, SearchTree

JEFFREYS = Beta(0.5, 0.5)


class Choice(NamedTuple):
    """Expand `parent_id` (`ROOT`: answer afresh) with `agent`."""

    parent_id: int
    agent: str


class Expansion(NamedTuple):
    """One request: `agent` is to expand `parent_id` (-1: the root, answer afresh)."""

    id: int
    parent_id: int
    agent: str


class Arm(NamedTuple):
    """Something that earns scores: `gen`, `cont`, `child` or `agent`, at a node.

    `agent` is empty for arms that all agents share.
    """

    kind: str
    node_id: int
    agent: str = ""


class Statistics:
    """The scores that each arm of one tree has earned, in order of arrival."""

    def __init__(self) -> None:
        self._scores: dict[Arm, tuple[float, ...]] = {}

    def of(self, arm: Arm) -> tuple[float, ...]:
        """Return the scores of an arm; empty while it has none."""
        return self._scores.get(arm, ())

    def observe(self, arms: Iterable[Arm], score: float) -> None:
        """Credit every one of `arms` with `score`."""
        for arm in arms:
            self._scores[arm] = (*self.of(arm), score)

    def copy(self) -> Statistics:
        """Return an independent copy."""
        twin = Statistics()
        twin._scores = dict(self._scores)
        return twin


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """All that a selector may know. Nothing here depends on hidden tests."""

    tree: SearchTree
    statistics: Statistics
    agents: tuple[str, ...]
    """The agents that may be chosen; never empty."""
    expand_solved: bool = True
    """Whether a node that passes every public test may be refined."""

    def children(self, node_id: int) -> list[Node]:
        """Return the children that may be expanded or descended into, oldest first.

        A node that may not be expanded has no children, so it can be left out whole.
        """
        nodes = self.tree.children(node_id)
        return nodes if self.expand_solved else [n for n in nodes if not n.solved_public]


class Selector(Protocol):
    """Chooses the next expansion, and says which arms its outcome is credited to."""

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Choose a node and an agent, drawing only from `rng`."""
        ...

    def arms(self, tree: SearchTree, parent_id: int, agent: str) -> list[Arm]:
        """Return the arms that earn the score of a new child of `parent_id` made by `agent`.

        The new child's own arm, `Arm("child", child_id)`, is not among them: every child earns
        its own score.
        """
        ...

    def expected(self, scores: Sequence[float]) -> float:
        """Return the score expected of an arm with these scores, in [0, 1].

        It stands in for the outcome of an expansion that is still pending.
        """
        ...


def _choose(
    arms: Sequence[Arm], statistics: Statistics, prior: Posterior, rng: np.random.Generator
) -> int:
    """Draw once from every arm and return the index of the largest draw, of equals the first."""
    draws = [prior.updated(statistics.of(arm)).draw(rng) for arm in arms]
    return max(range(len(draws)), key=draws.__getitem__)


def _expected(scores: Sequence[float], prior: Posterior) -> float:
    return min(1.0, max(0.0, prior.updated(scores).mean))


def _check_mix(agent_mix: float) -> None:
    if not 0.0 <= agent_mix <= 1.0:
        raise ValueError(f"agent_mix is a share and must lie in [0, 1], got {agent_mix!r}")


def _uniform(agents: Sequence[str], mix: float, rng: np.random.Generator) -> str | None:
    """With probability `mix` return any agent, all alike; a mix of 0 draws nothing from `rng`."""
    if mix > 0 and rng.random() < mix:
        return agents[int(rng.integers(len(agents)))]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeThenAgent:
    """First the node, then the agent: the order of the released MARS² code.

    The node arms are shared by all agents; each agent has one arm for the whole tree, with the
    scores of its own nodes.
    """

    prior: Posterior = JEFFREYS
    agent_mix: float = 0.0
    """Share of choices in which the agent is drawn uniformly instead."""

    def __post_init__(self) -> None:
        _check_mix(self.agent_mix)

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Descend from the root until GEN wins, then choose the agent."""
        node_id = ROOT
        while children := view.children(node_id):
            gen_or_cont = [Arm("gen", node_id), Arm("cont", node_id)]
            if _choose(gen_or_cont, view.statistics, self.prior, rng) == 0:
                break
            arms = [Arm("child", child.id) for child in children]
            node_id = children[_choose(arms, view.statistics, self.prior, rng)].id
        return Choice(node_id, self._agent(view, rng))

    def _agent(self, view: SearchView, rng: np.random.Generator) -> str:
        if len(view.agents) == 1:
            return view.agents[0]
        drawn = _uniform(view.agents, self.agent_mix, rng)
        if drawn is not None:
            return drawn
        arms = [Arm("agent", ROOT, agent) for agent in view.agents]
        return view.agents[_choose(arms, view.statistics, self.prior, rng)]

    def arms(self, tree: SearchTree, parent_id: int, agent: str) -> list[Arm]:
        """Return the arms that earn the score of a new child of `parent_id` made by `agent`."""
        arms = [Arm("agent", ROOT, agent), Arm("gen", parent_id)]
        for node in reversed(tree.path(parent_id)):
            arms += [Arm("child", node.id), Arm("cont", node.parent_id)]
        return arms

    def expected(self, scores: Sequence[float]) -> float:
        """Return the score expected of an arm with these scores."""
        return _expected(scores, self.prior)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentThenNode:
    """First the agent, then one of that agent's own children: the order of the paper's text.

    Every pair of node and agent has its own GEN, CONT and agent arms ("stack" in TreeQuest). Below
    a node the agent is drawn anew. A deeper score is credited to the agent that wrote the child on
    the path, not to the author of the new node. Nodes of a retired agent are descended into no
    more, since only their own author's draw leads there.
    """

    prior: Posterior = JEFFREYS
    agent_mix: float = 0.0
    """Share of draws, at every node on the way, in which the agent is drawn uniformly instead."""

    def __post_init__(self) -> None:
        _check_mix(self.agent_mix)

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Draw an agent, then GEN or CONT among its children; descend until GEN wins."""
        node_id = ROOT
        while True:
            agent = self._agent(view, node_id, rng)
            own = [child for child in view.children(node_id) if child.agent == agent]
            gen_or_cont = [Arm("gen", node_id, agent), Arm("cont", node_id, agent)]
            if not own or _choose(gen_or_cont, view.statistics, self.prior, rng) == 0:
                return Choice(node_id, agent)
            arms = [Arm("child", child.id) for child in own]
            node_id = own[_choose(arms, view.statistics, self.prior, rng)].id

    def _agent(self, view: SearchView, node_id: int, rng: np.random.Generator) -> str:
        if len(view.agents) == 1:
            return view.agents[0]
        drawn = _uniform(view.agents, self.agent_mix, rng)
        if drawn is not None:
            return drawn
        arms = [Arm("agent", node_id, agent) for agent in view.agents]
        return view.agents[_choose(arms, view.statistics, self.prior, rng)]

    def arms(self, tree: SearchTree, parent_id: int, agent: str) -> list[Arm]:
        """Return the arms that earn the score of a new child of `parent_id` made by `agent`."""
        arms = [Arm("gen", parent_id, agent), Arm("agent", parent_id, agent)]
        for node in reversed(tree.path(parent_id)):
            arms += [
                Arm("child", node.id),
                Arm("cont", node.parent_id, node.agent),
                Arm("agent", node.parent_id, node.agent),
            ]
        return arms

    def expected(self, scores: Sequence[float]) -> float:
        """Return the score expected of an arm with these scores."""
        return _expected(scores, self.prior)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootOnly:
    """Independent samples: every expansion answers afresh. The baseline, best-of-N.

    Agents take turns: the one with the fewest nodes, pending ones included, is next.
    """

    agent_mix: float = 0.0
    """Share of choices in which the agent is drawn uniformly instead."""

    def __post_init__(self) -> None:
        _check_mix(self.agent_mix)

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Choose the root, and the agent whose turn it is."""
        drawn = _uniform(view.agents, self.agent_mix, rng)
        if drawn is not None:
            return Choice(ROOT, drawn)
        counts = [len(view.statistics.of(Arm("agent", ROOT, agent))) for agent in view.agents]
        return Choice(ROOT, view.agents[counts.index(min(counts))])

    def arms(self, tree: SearchTree, parent_id: int, agent: str) -> list[Arm]:
        """Return the one arm that is kept: how often this agent answered."""
        return [Arm("agent", ROOT, agent)]

    def expected(self, scores: Sequence[float]) -> float:
        """Return 0: only the number of scores matters here."""
        return 0.0
