"""How one of several agents is chosen: by Thompson sampling, by UCB, or in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .selection import SearchView


class AgentRule(Protocol):
    """Chooses among two or more agents."""

    def choose(self, view: SearchView, node_id: int, rng: np.random.Generator) -> str:
        """Return one of `view.agents`; `node_id` matters where agents have arms per node."""
        ...


@dataclass(frozen=True, slots=True)
class Thompson:
    """One draw from every agent's arm; the largest wins, of equals the first."""

    def choose(self, view: SearchView, node_id: int, rng: np.random.Generator) -> str:
        """Return an agent."""
        draw = view.statistics.draw_agent
        drawn = [draw(rng, agent, node_id) for agent in view.agents]
        return view.agents[drawn.index(max(drawn))]


@dataclass(frozen=True, slots=True)
class UCB:
    """Mean plus exploration * √(ln Σn / n); an agent without answers comes first."""

    exploration: float = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if not 0.0 <= self.exploration < math.inf:
            raise ValueError(f"exploration must be finite and at least 0, got {self.exploration!r}")

    def choose(self, view: SearchView, node_id: int, rng: np.random.Generator) -> str:
        """Return the agent of the highest bound, of equals the first; draws nothing."""
        arms = [view.statistics.agent(agent, node_id) for agent in view.agents]
        log = math.log(max(1.0, sum(arm.n for arm in arms)))
        bounds = [
            arm.total / arm.n + self.exploration * math.sqrt(log / arm.n) if arm.n else math.inf
            for arm in arms
        ]
        return view.agents[bounds.index(max(bounds))]


@dataclass(frozen=True, slots=True)
class Turns:
    """The agent with the fewest answers, pending ones included, is next; of equals the first."""

    def choose(self, view: SearchView, node_id: int, rng: np.random.Generator) -> str:
        """Return the agent whose turn it is; draws nothing."""
        counts = [view.statistics.agent(agent, node_id).n for agent in view.agents]
        return view.agents[counts.index(min(counts))]


THOMPSON = Thompson()
TURNS = Turns()


def check_mix(agent_mix: float) -> None:
    """Refuse a share outside [0, 1].

    Raises:
        ValueError: it is one.
    """
    if not 0.0 <= agent_mix <= 1.0:
        raise ValueError(f"agent_mix is a share and must lie in [0, 1], got {agent_mix!r}")


def choose_agent(
    rule: AgentRule, agent_mix: float, view: SearchView, node_id: int, rng: np.random.Generator
) -> str:
    """Choose by a rule or, with probability `agent_mix`, any agent, all alike.

    A single agent and a mix of 0 take nothing from `rng`.
    """
    agents = view.agents
    if len(agents) == 1:
        return agents[0]
    if agent_mix > 0 and rng.random() < agent_mix:
        return agents[int(rng.integers(len(agents)))]
    return rule.choose(view, node_id, rng)
