"""The search as an ask/tell loop: no Gym, no language model.

`ask` says what to expand next, `tell` brings the judged answer, in any order and any number of
times; `fail` says that no answer will come. While several expansions are pending, each counts as a
pseudo-observation at the mean of its arms ("constant liar"), so that parallel expansions spread.

How many to have pending at once is the caller's choice: `ask(k)`, or `max_pending` as a bound.
Released MARS² asks one at a time; wide batches in small trees mean few refinements, so
2 at a budget of 8 and 5 at 60 are the most that is advised. Width comes from many trees.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ProtocolError
from ..judging.base import Verdict
from ..stopwatch import Stopwatch
from . import events
from .arguments import agent_names, as_number, outcome_of, text, whole_number
from .final import ScoreFn, blended, final_answer
from .ledger import Ledger
from .presets import resolve_selector
from .saving import restore_search, search_to_json, settings_of
from .selection import Expansion, SearchView, Selector, checked_choice
from .stopping import StopReason, StopRules
from .tree import ROOT, Node, SearchTree

EventSink = Callable[[Mapping[str, Any]], None]
"""Takes one change of a search, as plain data, before anyone can act on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment of a search that `TreeSearch.undo` can go back to."""

    nodes: int
    tokens: int
    asked: int
    pending: Mapping[int, Expansion]
    agents: tuple[str, ...]
    generator: Mapping[str, Any]


class TreeSearch:
    """Grows one tree until a stop rule ends it.

    Args:
        agents: names of the agents, at least one, each once.
        selector: a preset (see `PRESETS`), "module:name", or an object with the methods of
            `Selector`.
        budget: nodes to create; failed expansions do not count.
        seed: of the selector's draws; None takes fresh entropy.
        expand_solved: whether a node that passes every public test may be refined.
        agent_budgets: nodes that each agent may create; a spent agent is chosen no more.
        max_tokens: end when this many tokens were reported.
        max_seconds: end when the clock has run for this long since the first `ask`.
        stop_on_solved: end as soon as a node passes every public test.
        score_fn: a reward model for the final choice and, with a weight below 1, for the search.
        score_weight: w in [0, 1]; what drives the search is w * public score + (1 - w) * score_fn.
        max_pending: the most expansions that wait for an answer at once; None: no such bound.
        pseudo_observations: whether a pending expansion counts as a value at the mean of its arms.
            Without, expansions that are asked for together are drawn alike, as in TreeQuest.
        clock: seconds from any fixed moment; replaced in tests.

    Raises:
        ValueError: no agent, an agent named twice, a limit out of range, or an unknown selector.

    Example:
        >>> search = TreeSearch(["coder_0", "coder_1"], "default", budget=3, seed=0)
        >>> while not search.done:
        ...     for expansion in search.ask():
        ...         _ = search.tell(expansion.id, 0.5, reply="print(1)")
        >>> [node.id for node in search.tree], search.stop_reason
        ([0, 1, 2], 'nodes')
    """

    def __init__(
        self,
        agents: Sequence[str],
        selector: str | Selector = "default",
        budget: int = 8,
        seed: int | None = None,
        *,
        expand_solved: bool = True,
        agent_budgets: Mapping[str, int] | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        stop_on_solved: bool = False,
        score_fn: ScoreFn | None = None,
        score_weight: float = 1.0,
        max_pending: int | None = None,
        pseudo_observations: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.agents = agent_names(agents)
        if not self.agents or len(set(self.agents)) != len(self.agents):
            raise ValueError(f"agents must be one or more different names, got {self.agents!r}")
        if not 0.0 <= as_number(score_weight) <= 1.0:
            raise ValueError(f"score_weight must lie in [0, 1], got {score_weight!r}")
        if score_weight < 1.0 and score_fn is None:
            raise ValueError("a score_weight below 1 needs a score_fn to blend with")
        if max_pending is not None:
            max_pending = whole_number("max_pending", max_pending, least=1)
        self.rules = StopRules(
            budget=budget,
            agent_budgets=dict(agent_budgets or {}),
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            stop_on_solved=stop_on_solved,
        )
        for agent in self.rules.agent_budgets:
            self.check_agent(agent)
        self.expand_solved = expand_solved
        self.score_fn = score_fn
        self.score_weight = score_weight
        self.max_pending = max_pending
        self.pseudo_observations = pseudo_observations
        self.selector = resolve_selector(selector)
        self.tree = SearchTree()
        self.tokens = 0
        """Tokens reported so far."""
        self._statistics = self.selector.statistics(self.agents)
        self.rng = np.random.default_rng(seed)
        self.watch = Stopwatch(clock)
        self._unretired = self.agents
        self.ledger = Ledger()
        self._answer: tuple[int, Node | None] = (0, None)
        self.journal: EventSink | None = None
        """Where every change is written; see `journal.start_journal`."""

    @property
    def budget(self) -> int:
        """Nodes to create."""
        return self.rules.budget

    @property
    def live_agents(self) -> tuple[str, ...]:
        """The agents that may still be chosen: neither retired nor out of their own budget."""
        if not self.rules.agent_budgets:
            return self._unretired
        return tuple(agent for agent in self._unretired if self._allowance(agent) > 0)

    @property
    def retired(self) -> tuple[str, ...]:
        """The agents that were taken out with `retire`."""
        return tuple(agent for agent in self.agents if agent not in self._unretired)

    @property
    def pending(self) -> tuple[Expansion, ...]:
        """The expansions asked for and not yet settled, oldest first."""
        return tuple(self.ledger.pending.values())

    @property
    def abandoned(self) -> Mapping[int, str]:
        """Why each failed expansion failed, by its id."""
        return dict(self.ledger.abandoned)

    @property
    def nodes_left(self) -> int:
        """How much of the budget is left; pending expansions are not yet spent."""
        return self.rules.budget - len(self.tree)

    @property
    def seconds(self) -> float:
        """Seconds on the clock since the first `ask`; 0 without `max_seconds`.

        The clock is read only where it matters, so that all else is reproducible.
        """
        return self.watch.elapsed

    @property
    def done(self) -> bool:
        """Whether nothing more will be asked. What is pending may still be told."""
        return self.stop_reason != ""

    @property
    def stop_reason(self) -> StopReason:
        """Why the search is over; empty while it runs.

        Of several reasons the one that comes first in `StopReason`. Where no agent is left, the
        search runs until the last pending expansion is settled.
        """
        if reason := self.rules.reason(self.tree, self.tokens, self.watch):
            return reason
        if not self.ledger.pending and not self.live_agents:
            spent = all(self._allowance(agent) <= 0 for agent in self.agents)
            return "agent_budgets" if spent else "agents"
        return ""

    @property
    def answer(self) -> Node | None:
        """The node that answers the task: see `final.final_answer`. None for an empty tree."""
        if self._answer[0] != len(self.tree):
            self._answer = (len(self.tree), final_answer(self.tree, self.score_fn))
        return self._answer[1]

    def ask(self, k: int = 1, *, agents: Iterable[str] | None = None) -> list[Expansion]:
        """Return up to `k` new expansions: fewer near an end, none where no agent is left.

        Args:
            k: how many to ask for.
            agents: choose among these only, of those that may still be chosen; None: among all.

        Raises:
            ValueError: no whole `k` above 0, no such agent, or a choice that may not be made.
        """
        k = whole_number("ask for at least one expansion: k", k, least=1)
        among = None if agents is None else agent_names(agents)
        for agent in among or ():
            self.check_agent(agent)
        if self.rules.max_seconds is not None:
            self.watch.start()
        # A selector or a journal that raises leaves nothing asked; with a journal, no draw spent.
        before = self.rng.bit_generator.state if self.journal else None
        known = self.ledger.asked
        try:
            asked = self._ask(k, among)
            if asked and self.journal:
                self._write(events.asked(among, asked))
        except BaseException:
            self._statistics.restore()
            self.ledger.take_back(self.ledger.asked - known)
            if before is not None:
                self.rng.bit_generator.state = before
            raise
        return asked

    def redirect(self, expansion_id: int, parent_id: int) -> Expansion:
        """Move a pending expansion to another parent: an agent that chooses for itself.

        Raises:
            ProtocolError: the expansion is not pending.
            KeyError: there is no such node.
            ValueError: it is solved, and `expand_solved` is off.
        """
        expansion = self.ledger.find(expansion_id)
        if parent_id != ROOT:
            parent_id = self.tree[parent_id].id
            if self.tree[parent_id].solved_public and not self.expand_solved:
                raise ValueError(f"node {parent_id} is solved, and expand_solved is off")
        self._write(events.redirected(expansion, parent_id))
        self._statistics.restore()
        return self.ledger.move(expansion_id, parent_id)

    def tell(
        self, expansion_id: int, outcome: Verdict | float, reply: str = "", tokens: int = 0
    ) -> Node | None:
        """Attach the judged answer of an expansion and back its value up.

        Telling an expansion again changes nothing and returns its node. The answer of an
        expansion that failed meanwhile is dropped: None.

        Args:
            expansion_id: what is answered.
            outcome: the verdict, or just a score.
            reply: what the agent said.
            tokens: what the answer cost; counted for `max_tokens`.

        Raises:
            ProtocolError: no such expansion was ever asked for.
            TypeError: the reply is no text.
            ValueError: a score is not a number in [0, 1], or `tokens` no whole number above -1.
        """
        if expansion_id in self.ledger.told:
            return self.tree[self.ledger.told[expansion_id]]
        if expansion_id in self.ledger.abandoned:
            return None
        expansion = self.ledger.find(expansion_id)
        tokens = whole_number("tokens", tokens, least=0)
        node = self.tree.draft(
            expansion.parent_id, expansion.agent, outcome_of(outcome), text("reply", reply)
        )
        if self.score_fn is not None and self.score_weight < 1.0:
            node = blended(self.score_fn, self.score_weight, self.tree, node)
        if self.journal:
            self._write(events.told(expansion, node, tokens))
        # Nothing has changed up to here: a score_fn or a journal that raises leaves all as it was.
        self.attach(expansion, node, tokens)
        return node

    def fail(self, expansion_id: int, reason: str, tokens: int = 0) -> None:
        """Abandon an expansion: it enters no statistic and spends no nodes. Twice is harmless.

        Args:
            expansion_id: what will have no answer.
            reason: kept in `abandoned`.
            tokens: what was spent on it nevertheless; counted for `max_tokens`.

        Raises:
            ProtocolError: it was never asked for, or has its answer already.
            TypeError: the reason is no text.
            ValueError: `tokens` is no whole number above -1.
        """
        tokens = whole_number("tokens", tokens, least=0)
        reason = text("reason", reason)
        if expansion_id in self.ledger.told:
            raise ProtocolError(
                f"expansion {expansion_id} was answered by node {self.ledger.told[expansion_id]}; "
                "only a pending expansion can fail"
            )
        if expansion_id not in self.ledger.abandoned:
            expansion = self.ledger.find(expansion_id)
            self._write(events.failed(expansion, reason, tokens))
            self._statistics.restore()
            self.ledger.abandon(expansion, reason)
            self.tokens += tokens

    def retire(self, agent: str) -> None:
        """Choose this agent no more. Its nodes and its pending expansions stay.

        Raises:
            ValueError: there is no such agent.
        """
        self.check_agent(agent)
        self._write(events.retired(agent))
        self._unretired = tuple(name for name in self._unretired if name != agent)

    def mark(self) -> Mark:
        """Return what `undo` needs to come back to this moment; takes constant time."""
        return Mark(
            nodes=len(self.tree),
            tokens=self.tokens,
            asked=self.ledger.asked,
            pending=dict(self.ledger.pending),
            agents=self._unretired,
            generator=self.rng.bit_generator.state,
        )

    def undo(self, mark: Mark) -> None:
        """Go back to a moment, in time linear in the tree. Clocks run on, and a journal is not cut.

        `tree` is another object afterwards.
        """
        kept = list(self.tree)[: mark.nodes]
        self.tree = SearchTree()
        # Made anew: a selector that raised may have left it half way.
        self._statistics = self.selector.statistics(self.agents)
        for node in kept:
            self.tree.attach(node)
            self.observe(node)
        self._answer = (0, None)
        self.tokens = mark.tokens
        self.ledger.undo(mark.asked, mark.pending)
        self._unretired = mark.agents
        self.rng.bit_generator.state = mark.generator

    def save(self) -> dict[str, Any]:
        """Return the whole state, random generator included, as plain data for `json.dumps`.

        Configuration that is code (`score_fn`, the clock) is not part of it.
        """
        return search_to_json(self)

    @classmethod
    def load(
        cls,
        state: Mapping[str, Any],
        selector: str | Selector = "default",
        *,
        score_fn: ScoreFn | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> TreeSearch:
        """Rebuild a search that asks exactly what the saved one would have asked.

        Args:
            state: from `save`.
            selector: the one that the search was made with; it is configuration, not state.
            score_fn: likewise.
            clock: likewise; the seconds that had passed are state.

        Raises:
            ValueError: the state has another version, or belongs to another selector.
        """
        settings = settings_of(state)
        search = cls(selector=selector, score_fn=score_fn, clock=clock, **settings)
        restore_search(search, state)
        return search

    def check_agent(self, agent: str) -> None:
        """Raise ValueError where there is no such agent."""
        if agent not in self.agents:
            raise ValueError(f"no agent {agent!r}; the agents are {', '.join(self.agents)}")

    def _allowance(self, agent: str) -> float:
        """How many more nodes an agent may be asked for under its own budget."""
        limit = self.rules.agent_budgets.get(agent, math.inf)
        return limit - self.tree.count(agent) - self.ledger.waiting[agent]

    def _has_room(self) -> bool:
        """Whether one more expansion may be pending."""
        most = self.nodes_left if self.max_pending is None else self.max_pending
        return len(self.ledger.pending) < min(most, self.nodes_left) and not self.done

    def _ask(self, k: int, among: tuple[str, ...] | None) -> list[Expansion]:
        asked: list[Expansion] = []
        while len(asked) < k and self._has_room():
            able = self.live_agents
            if among is not None:
                able = tuple(agent for agent in able if agent in among)
            if not able:
                break
            asked.append(self.choose(able))
        return asked

    def choose(self, able: tuple[str, ...]) -> Expansion:
        """Choose one more expansion by one of these agents, whatever the stop rules say."""
        pending = self.pending
        if self.pseudo_observations:
            for waiting in pending[self._statistics.supposed :]:
                self._statistics.suppose(waiting.parent_id, waiting.agent)
        view = SearchView(
            tree=self.tree,
            statistics=self._statistics,
            agents=able,
            pending=pending,
            expand_solved=self.expand_solved,
        )
        return self.ledger.enter(checked_choice(self.selector.select(view, self.rng), view))

    def attach(self, expansion: Expansion, node: Node, tokens: int) -> None:
        """Let a drafted node answer an expansion."""
        # What is pending is supposed anew by the next choice, on what is known then.
        self._statistics.restore()
        self.tree.attach(node)
        self.ledger.answer(expansion, node.id)
        self.tokens += tokens
        self.observe(node)

    def observe(self, node: Node) -> None:
        """Back a node's value up."""
        self._statistics.observe(node, opened=self.expand_solved or not node.solved_public)

    def _write(self, event: dict[str, Any]) -> None:
        if self.journal:
            timed = self.rules.max_seconds is not None
            self.journal({**event, "seconds": self.seconds} if timed else event)
