"""One episode of the tree environments: who is asked for what, and what comes of the answers.

The core that the AEC and the Parallel environment share. No Gym, no judge: shells read an action
(`read`), have its text judged, and settle it (`settle`). Until `settle` nothing changes, so a judge
that raises leaves the episode as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ProtocolError
from ..judging.base import Verdict
from ..spaces import TEXT_LIMIT, replace_surrogates
from ..tasks.code import CodeTask
from .choosing import Shortlist, choice_mask, choice_prompt, is_open, no_choice, read_choice
from .feedback_level import FeedbackLevel, parent_view
from .infos import Info, LastAction, episode_facts, node_facts, own_facts, request_facts
from .node_table import NodeTable
from .prose_prompts import excerpt
from .search import Mark, TreeSearch
from .selection import Expansion
from .sources import PromptsHandle
from .tokens import TokenCounter, counted
from .tree import ROOT, Node
from .verdicts import check_verdict

FEATURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What all episodes of an environment have in common."""

    agents: tuple[str, ...]
    """The possible agents."""
    budget: int
    prompts: PromptsHandle
    feedback_level: FeedbackLevel = "full"
    roles: Mapping[str, str] = field(default_factory=dict)
    """One line for an agent, put last in all its prompts."""
    count_tokens: TokenCounter | None = None
    agent_selects: bool = False
    """Whether the acting agent chooses the parent (see `choosing`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An action as it is taken: a text that every space holds."""

    text: str
    parent_id: int | None = None
    """The parent that the agent chose; None: that of the search."""
    tokens: int = 0
    """0 where nobody counts them."""
    truncated: bool = False
    repaired: bool = False


@dataclass(slots=True)
class _Request:
    """An expansion that an agent is asked for, and its prompt once somebody wanted it."""

    expansion: Expansion
    prompt: str | None = field(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment of an episode that `Episode.undo` can go back to."""

    search: Mark
    cycles: int
    requests: Mapping[str, _Request]
    size: int
    last: Mapping[str, LastAction]


class Episode:
    """One tree of one task in the making.

    Args:
        task: what the agents answer.
        search: of this episode's agents; nothing asked yet.
        rules: those of the environment.
    """

    def __init__(self, task: CodeTask, search: TreeSearch, rules: Rules) -> None:
        self.task = task
        self.search = search
        self.cycles = 0
        self._rules = rules
        self._table, self._candidates = self._empty()
        self._requests: dict[str, _Request] = {}
        self._size = 0  # of the tree when agents were asked: the nodes that they may choose
        self._last = {agent: LastAction() for agent in search.agents}

    @property
    def asked(self) -> tuple[str, ...]:
        """The agents that must answer now, in the order of the environment's agents."""
        return tuple(agent for agent in self.search.agents if agent in self._requests)

    def ask(self, k: int) -> None:
        """Ask up to `k` different agents for one expansion each; the search chooses them."""
        self._requests = {}
        self._size = len(self.search.tree)
        free = list(self.search.agents)
        while free and len(self._requests) < k:
            for expansion in (found := self.search.ask(agents=free)):
                self._requests[expansion.agent] = _Request(expansion)
                free.remove(expansion.agent)
            if not found:
                break

    def read(self, action: Any) -> Answer:
        """Take an action: too long a text is cut, lone surrogates are replaced.

        Raises:
            TypeError: the action is no string.
            ValueError: its tokens cannot be counted.
        """
        rules, parent_id = self._rules, None
        if rules.agent_selects:
            action, parent_id = read_choice(action, rules.budget)
        elif not isinstance(action, str):
            raise TypeError(f"an action is a text (str), got {type(action).__name__}")
        cut = action[:TEXT_LIMIT]
        text = replace_surrogates(cut)
        return Answer(
            text=text,
            parent_id=parent_id,
            tokens=0 if rules.count_tokens is None else counted(rules.count_tokens, text),
            truncated=len(action) > TEXT_LIMIT,
            repaired=text != cut,
        )

    def settle(self, outcomes: Mapping[str, tuple[Answer, Verdict]]) -> dict[str, Node]:
        """Grow the tree by one node for each answer, in the order of the agents.

        Args:
            outcomes: agent -> its answer and the verdict on it. An agent that was asked and is
                not among them has failed: its expansion is abandoned.

        Returns:
            agent -> its new node.

        Raises:
            ValueError: a verdict is none (see `verdicts`); nothing has changed.
        """
        for agent, (_, verdict) in outcomes.items():
            check_verdict(verdict, agent)
        nodes: dict[str, Node] = {}
        for agent in self.asked:
            if agent not in outcomes:
                self.fail(agent, "no action was given")
                continue
            answer, verdict = outcomes[agent]
            expansion = self._requests.pop(agent).expansion
            chosen = answer.parent_id
            refused = chosen is not None and not self._may_expand(chosen)
            if chosen is not None and not refused:
                self.search.redirect(expansion.id, chosen)
            node = self.search.tell(expansion.id, verdict, answer.text, answer.tokens)
            assert node is not None  # its expansion was pending
            nodes[agent] = node
            self._enter(node)
            self._last[agent] = LastAction(
                node=node,
                tokens=answer.tokens,
                truncated=answer.truncated,
                repaired=answer.repaired,
                refused=refused,
            )
        return nodes

    def fail(self, agent: str, reason: str, *, permanent: bool = False) -> None:
        """Abandon what `agent` was asked for; retire it for this episode if `permanent`.

        Raises:
            ProtocolError: it is not asked for anything.
        """
        request = self._requests.pop(agent, None)
        if request is None:
            asked = ", ".join(self.asked) or "nobody"
            raise ProtocolError(f"{agent!r} cannot fail: it is the turn of {asked}")
        self.search.fail(request.expansion.id, reason)
        if permanent:
            self.search.retire(agent)

    def mark(self) -> Moment:
        """Return what `undo` needs to come back to this moment."""
        return Moment(
            search=self.search.mark(),
            cycles=self.cycles,
            requests=dict(self._requests),
            size=self._size,
            last=dict(self._last),
        )

    def undo(self, moment: Moment) -> None:
        """Go back to a moment, in time linear in the tree."""
        self.search.undo(moment.search)
        self.cycles = moment.cycles
        self._requests = dict(moment.requests)
        self._size = moment.size
        self._last = dict(moment.last)
        self._table, self._candidates = self._empty()
        for node in self.search.tree:
            self._enter(node)

    def best(self, stop_reason: str) -> Node | None:
        """Return the best node; a reward model has a say in the final choice only."""
        return self.search.answer if stop_reason else self.search.tree.best

    def infos(self, stop_reason: str) -> dict[str, Info]:
        """Return every agent's info, made afresh; the reason is empty while the episode runs."""
        search = self.search
        shared = episode_facts(
            self.task,
            search,
            best=self.best(stop_reason),
            stop_reason=stop_reason,
        )
        infos: dict[str, Info] = {
            agent: {
                **shared,
                **node_facts(search.tree, self._last[agent]),
                **own_facts(search, agent),
                **request_facts(search.tree, self._expansion(agent)),
            }
            for agent in search.agents
        }
        if self._rules.agent_selects:
            for agent, info in infos.items():
                info["action_mask"] = {"parent": self._mask(agent), "text": None}
        return infos

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what `agent` sees: `prompt` and `features`, and `tree` where agents choose."""
        request = self._requests.get(agent)
        if request is not None and request.prompt is None:
            request.prompt = self._prompt(request.expansion)
        observation = {
            "prompt": "" if request is None else request.prompt,
            "features": self._features(agent, request),
        }
        if self._rules.agent_selects:
            observation["tree"] = self.state()
        return observation

    def state(self) -> NDArray[np.float32]:
        """Return the tree as numbers: [budget + 1, 6], see `node_table`."""
        return self._table.array()

    def _empty(self) -> tuple[NodeTable, Shortlist]:
        """Return the views of a tree without nodes."""
        rules = self._rules
        return NodeTable(rules.budget, rules.agents), Shortlist(
            expand_solved=self.search.expand_solved, by_score=rules.feedback_level != "none"
        )

    def _enter(self, node: Node) -> None:
        self._table.add(node)
        if self._rules.agent_selects:
            self._candidates.add(node)

    def _expansion(self, agent: str) -> Expansion | None:
        request = self._requests.get(agent)
        return None if request is None else request.expansion

    def _may_expand(self, node_id: int) -> bool:
        return node_id < self._size and is_open(
            self.search.tree, node_id, expand_solved=self.search.expand_solved
        )

    def _mask(self, agent: str) -> NDArray[np.int8]:
        if agent not in self._requests:
            return no_choice(self._rules.budget)
        return choice_mask(
            self.search.tree, self._rules.budget, expand_solved=self.search.expand_solved
        )

    def _prompt(self, expansion: Expansion) -> str:
        rules, agent, tree = self._rules, expansion.agent, self.search.tree
        if rules.agent_selects:
            fresh = rules.prompts.value.root(self.task, agent)
            text = choice_prompt(fresh, self.task, tree, self._candidates, rules.feedback_level)
        elif expansion.parent_id == ROOT:
            text = rules.prompts.value.root(self.task, agent)
        else:
            view = parent_view(tree[expansion.parent_id], rules.feedback_level)
            text = rules.prompts.value.refine(self.task, view, agent)
        if agent in rules.roles:
            # Last, so that the prompts of a team that shares its weights share their beginnings.
            text = text.removesuffix("\n") + f"\n{rules.roles[agent]}\n"
        text = replace_surrogates(text)
        # Room for the note that says how much was left out of the middle.
        return text if len(text) <= TEXT_LIMIT else excerpt(text, TEXT_LIMIT - 100)

    def _features(self, agent: str, request: _Request | None) -> NDArray[np.float32]:
        """Return, each as a share in [0, 1] and 0 where it is not this agent's turn: [5].

        Depth of the parent, its score, nodes below it; then budget left, the agent's own nodes.
        """
        tree, budget = self.search.tree, self._rules.budget
        depth, score, below = 0.0, 0.0, 0.0
        if request is not None:
            parent_id = request.expansion.parent_id
            below = tree.descendants(parent_id) / budget
            if parent_id != ROOT:
                depth, score = tree[parent_id].depth / budget, tree[parent_id].score
        left, own = self.search.nodes_left / budget, tree.count(agent) / budget
        return np.array((depth, score, below, left, own), dtype=np.float32)
