"""The search as an ask/tell loop: no Gym, no language model, no clock.

`ask` says what to expand next, `tell` brings the judged answer, in any order and any number of
times; `fail` says that no answer will come. While several expansions are pending, each counts as a
pseudo-observation at the mean of its arms ("constant liar"), so that parallel expansions spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ProtocolError
from ..judging.base import Verdict
from .presets import resolve_selector
from .selection import Arm, SearchView, Selector, Statistics
from .tree import Node, SearchTree, verdict_of_score

SEARCH_VERSION = 1


@dataclass(frozen=True, slots=True)
class Expansion:
    """One request: `agent` is to expand `parent_id` (-1: the root, answer afresh)."""

    id: int
    parent_id: int
    agent: str


class TreeSearch:
    """Grows one tree to a budget of nodes.

    Args:
        agents: names of the agents, at least one, each once.
        selector: a preset ("default", "paper", "marti_code", "best_of_n"), "module:name", or an
            object with the methods of `Selector`.
        budget: nodes to create; failed expansions do not count.
        seed: of the selector's draws; None takes fresh entropy.
        expand_solved: whether a node that passes every public test may be refined.

    Raises:
        ValueError: no agent, an agent named twice, a budget below 1, or an unknown selector.

    Example:
        >>> search = TreeSearch(["coder_0", "coder_1"], "default", budget=3, seed=0)
        >>> while not search.done:
        ...     for expansion in search.ask():
        ...         _ = search.tell(expansion.id, 0.5, reply="print(1)")
        >>> [node.id for node in search.tree]
        [0, 1, 2]
    """

    def __init__(
        self,
        agents: Sequence[str],
        selector: str | Selector = "default",
        budget: int = 8,
        seed: int | None = None,
        *,
        expand_solved: bool = True,
    ) -> None:
        if not agents or len(set(agents)) != len(agents):
            raise ValueError(f"agents must be one or more different names, got {list(agents)!r}")
        if budget < 1:
            raise ValueError(f"budget is a number of nodes and must be at least 1, got {budget!r}")
        self.agents = tuple(agents)
        self.budget = budget
        self.expand_solved = expand_solved
        self.selector = resolve_selector(selector)
        self.tree = SearchTree()
        self._statistics = Statistics()
        self._rng = np.random.default_rng(seed)
        self._retired: set[str] = set()
        self._asked = 0
        self._pending: dict[int, Expansion] = {}
        self._told: dict[int, int] = {}
        self._abandoned: dict[int, str] = {}

    @property
    def live_agents(self) -> tuple[str, ...]:
        """The agents that may still be chosen."""
        return tuple(agent for agent in self.agents if agent not in self._retired)

    @property
    def pending(self) -> tuple[Expansion, ...]:
        """The expansions asked for and not yet settled, oldest first."""
        return tuple(self._pending.values())

    @property
    def abandoned(self) -> Mapping[int, str]:
        """Why each failed expansion failed, by its id."""
        return dict(self._abandoned)

    @property
    def nodes_left(self) -> int:
        """How much of the budget is left; pending expansions are not yet spent."""
        return self.budget - len(self.tree)

    @property
    def done(self) -> bool:
        """Whether nothing more will come: the budget is spent, or every agent is retired."""
        return self.nodes_left <= 0 or not (self.live_agents or self._pending)

    def ask(self, k: int = 1) -> list[Expansion]:
        """Return up to `k` new expansions: fewer near the end, none where no agent is left.

        Raises:
            ValueError: `k` is below 1.
        """
        if k < 1:
            raise ValueError(f"ask for at least one expansion, got k={k!r}")
        asked: list[Expansion] = []
        while len(asked) < k and len(self._pending) < self.nodes_left and self.live_agents:
            view = SearchView(
                tree=self.tree,
                statistics=self._with_pending(),
                agents=self.live_agents,
                expand_solved=self.expand_solved,
            )
            choice = self.selector.select(view, self._rng)
            expansion = Expansion(self._asked, choice.parent_id, choice.agent)
            self._asked += 1
            self._pending[expansion.id] = expansion
            asked.append(expansion)
        return asked

    def tell(self, expansion_id: int, outcome: Verdict | float, reply: str = "") -> Node | None:
        """Attach the judged answer of an expansion and back its score up.

        Telling an expansion again changes nothing and returns its node. The answer of an
        expansion that failed meanwhile is dropped: None.

        Raises:
            ProtocolError: no such expansion was ever asked for.
            ValueError: the score is not a number in [0, 1].
        """
        if expansion_id in self._told:
            return self.tree[self._told[expansion_id]]
        if expansion_id in self._abandoned:
            return None
        expansion = self._pending_expansion(expansion_id)
        verdict = outcome if isinstance(outcome, Verdict) else verdict_of_score(outcome)
        node = self.tree.add(expansion.parent_id, expansion.agent, verdict, reply)
        del self._pending[expansion_id]
        self._told[expansion_id] = node.id
        self._back_up(node)
        return node

    def fail(self, expansion_id: int, reason: str) -> None:
        """Abandon an expansion: it enters no statistic and spends no budget. Twice is harmless.

        Raises:
            ProtocolError: it was never asked for, or has its answer already.
        """
        if expansion_id in self._told:
            raise ProtocolError(
                f"expansion {expansion_id} was answered by node {self._told[expansion_id]}; "
                "only a pending expansion can fail"
            )
        if expansion_id not in self._abandoned:
            self._pending_expansion(expansion_id)
            del self._pending[expansion_id]
            self._abandoned[expansion_id] = reason

    def retire(self, agent: str) -> None:
        """Choose this agent no more. Its nodes and its pending expansions stay.

        Raises:
            ValueError: there is no such agent.
        """
        if agent not in self.agents:
            raise ValueError(f"no agent {agent!r}; the agents are {', '.join(self.agents)}")
        self._retired.add(agent)

    def save(self) -> dict[str, Any]:
        """Return the whole state, random generator included, as plain data for `json.dumps`."""
        return {
            "version": SEARCH_VERSION,
            "selector": repr(self.selector),
            "agents": list(self.agents),
            "retired": sorted(self._retired),
            "budget": self.budget,
            "expand_solved": self.expand_solved,
            "rng": self._rng.bit_generator.state,
            "tree": self.tree.to_json(),
            "asked": self._asked,
            "pending": [[item.id, item.parent_id, item.agent] for item in self.pending],
            "told": [list(item) for item in self._told.items()],
            "abandoned": [list(item) for item in self._abandoned.items()],
        }

    @classmethod
    def load(cls, state: Mapping[str, Any], selector: str | Selector = "default") -> TreeSearch:
        """Rebuild a search that asks exactly what the saved one would have asked.

        Args:
            state: from `save`.
            selector: the one that the search was made with; it is configuration, not state.

        Raises:
            ValueError: the state has another version, or belongs to another selector.
        """
        if state.get("version") != SEARCH_VERSION:
            raise ValueError(
                f"expected a search of version {SEARCH_VERSION}, got {state.get('version')!r}"
            )
        search = cls(
            state["agents"], selector, state["budget"], expand_solved=state["expand_solved"]
        )
        if repr(search.selector) != state["selector"]:
            raise ValueError(
                f"the search was saved with the selector {state['selector']}; load it with "
                f"selector=… of the same settings, not {search.selector!r}"
            )
        search.tree = SearchTree.from_json(state["tree"])
        for node in search.tree:
            search._back_up(node)
        search._rng.bit_generator.state = state["rng"]
        search._retired = set(state["retired"])
        search._asked = state["asked"]
        search._pending = {item[0]: Expansion(*item) for item in state["pending"]}
        search._told = dict(state["told"])
        search._abandoned = dict(state["abandoned"])
        return search

    def _pending_expansion(self, expansion_id: int) -> Expansion:
        if expansion_id not in self._pending:
            raise ProtocolError(
                f"expansion {expansion_id!r} was never asked for; use the ids that `ask` returned"
            )
        return self._pending[expansion_id]

    def _back_up(self, node: Node) -> None:
        arms = self.selector.arms(self.tree, node.parent_id, node.agent)
        self._statistics.observe([*arms, Arm("child", node.id)], node.score)

    def _with_pending(self) -> Statistics:
        if not self._pending:
            return self._statistics
        statistics = self._statistics.copy()
        for expansion in self._pending.values():
            for arm in self.selector.arms(self.tree, expansion.parent_id, expansion.agent):
                statistics.observe([arm], self.selector.expected(statistics.of(arm)))
        return statistics
