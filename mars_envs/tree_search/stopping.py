"""When a search ends: nodes, tokens, wall-clock, a solved task, or nobody left to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..stopwatch import Stopwatch
from .arguments import as_number, whole_number
from .tree import SearchTree

StopReason = Literal["", "solved", "nodes", "tokens", "seconds", "agent_budgets", "agents"]
"""Why a search is over; empty while it runs.

`solved`, `nodes`, `tokens` and `agent_budgets` are the task's own ends. `seconds` and `agents` (the
last agent was retired) come from outside.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules:
    """What ends a search. Every rule holds on its own; the first one that is met ends it."""

    budget: int = 8
    """Nodes to create; failed expansions do not count."""
    agent_budgets: Mapping[str, int] = field(default_factory=dict)
    """Nodes that an agent may create, by name; an agent that is not named has no limit of its own.

    A pending expansion counts until it fails.
    """
    max_tokens: int | None = None
    """Tokens after which nothing more is asked: the sum of what `tell` and `fail` reported."""
    max_seconds: float | None = None
    """Seconds on the clock, from the first `ask`, after which nothing more is asked."""
    stop_on_solved: bool = False
    """End as soon as a node passes every public test."""

    def __post_init__(self) -> None:
        # As plain numbers, so that whatever counts as one can be saved.
        nodes = {
            agent: whole_number(f"agent_budgets[{agent!r}]", limit, least=0)
            for agent, limit in self.agent_budgets.items()
        }
        object.__setattr__(self, "agent_budgets", nodes)
        budget = whole_number("budget is a number of nodes: it", self.budget, least=1)
        object.__setattr__(self, "budget", budget)
        if self.max_tokens is not None:
            tokens = whole_number("max_tokens, if not None,", self.max_tokens, least=1)
            object.__setattr__(self, "max_tokens", tokens)
        if self.max_seconds is not None and not as_number(self.max_seconds) > 0:
            raise ValueError(
                f"max_seconds must be above 0, or None for no limit, got {self.max_seconds!r}"
            )

    def reason(self, tree: SearchTree, tokens: int, watch: Stopwatch) -> StopReason:
        """Return which limit of the whole search is reached, if any."""
        if self.stop_on_solved and tree.solved:
            return "solved"
        if len(tree) >= self.budget:
            return "nodes"
        if self.max_tokens is not None and tokens >= self.max_tokens:
            return "tokens"
        if self.max_seconds is not None and watch.elapsed >= self.max_seconds:
            return "seconds"
        return ""
