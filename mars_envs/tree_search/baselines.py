"""Fixed baselines: where the next answer starts does not depend on what was learned.

Agents take turns by default; any `AgentRule` will do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .agent_rules import TURNS, AgentRule, check_mix, choose_agent
from .selection import Choice, SearchView
from .statistics import Statistics
from .tree import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Baseline(ABC):
    agent_mix: float = 0.0
    """Share of choices in which the agent is drawn uniformly instead."""
    agent_rule: AgentRule = TURNS

    def __post_init__(self) -> None:
        check_mix(self.agent_mix)

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics that know the agents' values and nothing of nodes."""
        return Statistics(agents, "agents")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Choose the node by the class's rule, then the agent."""
        parent_id = self._parent(view, rng)
        return Choice(parent_id, choose_agent(self.agent_rule, self.agent_mix, view, ROOT, rng))

    @abstractmethod
    def _parent(self, view: SearchView, rng: np.random.Generator) -> int:
        """Return the node that the next answer refines, or `ROOT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootOnly(_Baseline):
    """Independent samples: every expansion answers afresh. Best-of-N.

    With `agent_rule=UCB()` it is the bandit over agents that TreeQuest calls MultiArmedBanditUCB.
    """

    def _parent(self, view: SearchView, rng: np.random.Generator) -> int:
        return ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOnly(_Baseline):
    """Every answer refines the one before it; a chain that may not go on starts anew at the root.

    Expansions that are asked for together refine the same node.
    """

    def _parent(self, view: SearchView, rng: np.random.Generator) -> int:
        latest = len(view.tree) - 1
        return latest if view.may_expand(latest) else ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomParent(_Baseline):
    """The root or any node that may be refined, all alike."""

    def _parent(self, view: SearchView, rng: np.random.Generator) -> int:
        able: Sequence[int] = range(len(view.tree)) if view.expand_solved else view.tree.unsolved
        drawn = int(rng.integers(len(able) + 1)) - 1
        return ROOT if drawn < 0 else able[drawn]
