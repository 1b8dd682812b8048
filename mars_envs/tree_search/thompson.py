"""The two selectors of MARS²: Thompson sampling from the root down, node first or agent first.

On the way, every node draws from its GEN and its CONT; GEN ends the descent there, CONT goes on
into the child of the largest draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .agent_rules import THOMPSON, AgentRule, check_mix, choose_agent
from .posteriors import Posterior, check_prior
from .selection import Choice, SearchView
from .statistics import JEFFREYS, Statistics
from .tree import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthGuide:
    """Dynamic depth-guided exploration of MARS²-T+: widening wears off.

    A draw g of GEN at depth d becomes max(g, 0) * γ(d)^c with γ(d) = max(start - slope * d, floor),
    where c counts the expansions so far, pending ones included, of nodes at that depth: the search
    first explores widely and is then pushed down.
    """

    start: float = 0.98
    slope: float = 0.02
    floor: float = 0.5

    def __post_init__(self) -> None:
        if not (0.0 < self.floor <= self.start <= 1.0 and self.slope >= 0.0):
            raise ValueError(f"DepthGuide needs 0 < floor <= start <= 1 and slope >= 0, got {self}")

    def weighted(self, drawn: float, view: SearchView, depth: int) -> float:
        """Return a GEN draw at a depth with its weight."""
        tree = view.tree
        waiting = sum(tree.depth(expansion.parent_id) == depth for expansion in view.pending)
        gamma = max(self.start - self.slope * depth, self.floor)
        return max(drawn, 0.0) * gamma ** (tree.width(depth + 1) + waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thompson:
    prior: Posterior = JEFFREYS
    agent_mix: float = 0.0
    """Share of draws of an agent in which it is drawn uniformly instead."""
    agent_rule: AgentRule = THOMPSON
    prior_means: Mapping[str, float] = field(default_factory=dict)
    """What is expected of an agent before it has answered, by name."""
    depth_guide: DepthGuide | None = None

    def __post_init__(self) -> None:
        check_mix(self.agent_mix)
        check_prior(self.prior)

    def _gen_wins(
        self, view: SearchView, rng: np.random.Generator, node_id: int, depth: int, agent: str = ""
    ) -> bool:
        """Draw from GEN and from CONT of a node; of equal draws GEN's wins."""
        gen, cont = view.statistics.draw_gen_and_cont(rng, node_id, agent)
        if self.depth_guide is not None:
            gen = self.depth_guide.weighted(gen, view, depth)
        return gen >= cont

    def _agent(self, view: SearchView, rng: np.random.Generator, node_id: int) -> str:
        return choose_agent(self.agent_rule, self.agent_mix, view, node_id, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeThenAgent(_Thompson):
    """First the node, then the agent: the order of the released MARS² code.

    The node arms are shared by all agents; each agent has one arm for the whole tree, with the
    values of its own nodes.
    """

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return empty statistics with shared node arms."""
        return Statistics(agents, "shared", self.prior, self.prior_means)

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Descend from the root until GEN wins, then choose the agent."""
        arms, node_id, depth = view.statistics, ROOT, 0
        while arms.open_children(node_id):
            if self._gen_wins(view, rng, node_id, depth):
                break
            node_id, depth = arms.draw_child(rng, node_id), depth + 1
        return Choice(node_id, self._agent(view, rng, node_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentThenNode(_Thompson):
    """First the agent, then one of that agent's own children: the order of the paper's text.

    Every pair of node and agent has its own GEN, CONT and agent arms ("stack" in TreeQuest). Below
    a node the agent is drawn anew. A deeper value is credited to the agent that wrote the child on
    the path, not to the author of the new node. Nodes of a retired agent are descended into no
    more, since only their own author's draw leads there. `agent_mix`, `agent_rule` and
    `prior_means` hold at every node on the way, for the agents' arms there.
    """

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return empty statistics with arms for every pair of node and agent."""
        return Statistics(agents, "own", self.prior, self.prior_means)

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Draw an agent, then GEN or CONT among its children; descend until GEN wins."""
        arms, node_id, depth = view.statistics, ROOT, 0
        while True:
            agent = self._agent(view, rng, node_id)
            if not arms.open_children(node_id, agent):
                return Choice(node_id, agent)
            if self._gen_wins(view, rng, node_id, depth, agent):
                return Choice(node_id, agent)
            node_id, depth = arms.draw_child(rng, node_id, agent), depth + 1
