"""What the AEC and the Parallel environment of the search tree share: options, spaces, renders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..judging.base import Judge
from ..random_state import draws_or_nothing
from ..shell import EpisodeEnd, Shell, reset_options
from ..spaces import TEXT_LIMIT, UnicodeText
from ..tasks import load_tasks
from ..tasks.code import CodeTask
from .consensus import TaskScoreFn, resolve_score_fn
from .drawing import tree_to_image
from .episode import FEATURES, Episode, Rules
from .feedback_level import check_level
from .infos import REQUEST_FIELDS, Info
from .node_table import table_bounds
from .presets import resolve_selector
from .prompts import Prompts
from .rendering import tree_to_text
from .search import TreeSearch
from .selection import Selector
from .sources import JudgeHandle, JudgeSource, PromptsHandle, TaskSet
from .tokens import TokenCounter, resolve_counter
from .tree import Node, SearchTree

OUTSIDE = ("seconds", "agents", "max_cycles")
"""Reasons that truncate: time is up, every agent has failed for good, enough steps."""

Observation = dict[str, Any]
Infos = dict[str, Info]
Action = str | Mapping[str, Any]


class Ending(EpisodeEnd):
    """Why an episode is over: a reason of `StopReason` or "max_cycles"; empty while it runs."""

    __slots__ = ()
    OUTSIDE = OUTSIDE


class TreeShell(Shell):
    """What both environments have in common; `TreeSearchEnv` explains the options."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "tree_search_v0",
        **Shell.metadata,
        "shared_reward": False,
        "request_info_keys": REQUEST_FIELDS,
    }

    def __init__(
        self,
        *,
        tasks: str | Sequence[CodeTask] = "tiny_code",
        judge: JudgeSource = "code",
        agents: int | Sequence[str] = 2,
        budget: int = 8,
        selector: str | Selector = "default",
        agent_mix: float = 0.0,
        select: Literal["search", "agent"] = "search",
        prompts: str | Prompts = "prose",
        feedback_level: str = "full",
        roles: Mapping[str, str] | None = None,
        score_fn: str | TaskScoreFn | None = None,
        score_weight: float = 1.0,
        agent_budgets: Mapping[str, int] | None = None,
        max_tokens: int | None = None,
        count_tokens: str | TokenCounter | None = None,
        stop_on_solved: bool = False,
        expand_solved: bool = True,
        max_seconds: float | None = None,
        max_cycles: int | None = None,
        render_mode: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(render_mode=render_mode, max_cycles=max_cycles)
        if not (isinstance(budget, int | np.integer) and budget >= 1):
            raise ValueError(
                f"budget is a number of nodes, a whole one of at least 1, got {budget!r}"
            )
        if select not in ("search", "agent"):
            raise ValueError(f"select must be 'search' or 'agent', got {select!r}")
        self.possible_agents = _agent_names(agents)
        self.agents: list[str] = []
        self.budget = budget
        self._selector = resolve_selector(selector, agent_mix)
        self._score_fn = resolve_score_fn(score_fn)
        self._agent_budgets = dict(agent_budgets or {})
        self._search_options: dict[str, Any] = {
            "expand_solved": expand_solved,
            "max_tokens": max_tokens,
            "max_seconds": max_seconds,
            "stop_on_solved": stop_on_solved,
            "score_weight": score_weight,
            "clock": clock,
        }
        if max_tokens is not None:
            count_tokens = count_tokens or "words"
        self._rules = Rules(
            agents=tuple(self.possible_agents),
            budget=budget,
            prompts=PromptsHandle(prompts),
            feedback_level=check_level(feedback_level),
            roles=_role_lines(roles or {}, self.possible_agents),
            count_tokens=None if count_tokens is None else resolve_counter(count_tokens),
            agent_selects=select == "agent",
        )
        self._tasks = TaskSet(load_tasks(tasks))
        self._judge = JudgeHandle(judge)
        # Found wrong, an option is refused here and not at the first reset.
        team = _team(None, self.possible_agents, self._agent_budgets)
        self._episode = self._new_episode(self._tasks[0], team, seed=0)
        low, high = table_bounds(budget, len(self.possible_agents))
        self.state_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.observation_spaces = {agent: self._observes() for agent in self.possible_agents}
        self.action_spaces = {agent: self._acts() for agent in self.possible_agents}
        if self._rules.agent_selects:
            keys = (*REQUEST_FIELDS, "action_mask")
            self.metadata = {**self.metadata, "request_info_keys": keys}  # type: ignore[misc]

    @property
    def search(self) -> TreeSearch:
        """The search of the current or last episode; look, but change nothing."""
        return self._episode.search

    @property
    def tree(self) -> SearchTree:
        """The tree of the current or last episode."""
        return self._episode.search.tree

    @property
    def task(self) -> CodeTask:
        """The task of the current or last episode."""
        return self._episode.task

    @property
    def tasks(self) -> Sequence[CodeTask]:
        """The tasks that episodes are drawn from."""
        return self._tasks

    @property
    def judge(self) -> Judge:
        """The judge of the texts. It may be replaced between episodes; one is made when needed."""
        return self._judge

    @judge.setter
    def judge(self, judge: JudgeSource) -> None:
        self._judge.close()
        self._judge = JudgeHandle(judge)

    def observation_space(self, agent: str) -> gymnasium.Space[Observation]:
        """Return the space of `{"prompt", "features"}`, and `tree` where agents choose parents.

        The same object every time, as of `action_space`.
        """
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return the space of texts, or of `{"parent", "text"}` where agents choose parents."""
        return self.action_spaces[agent]

    def state(self) -> NDArray[np.float32]:
        """Return the tree as numbers, for centralised critics: [budget + 1, 6].

        Row 0 is the root, row i + 1 node i; columns: `node_table.COLUMNS`. Public facts only.
        """
        return self._episode.state()

    def _to_image(self) -> NDArray[np.uint8]:
        return tree_to_image(self.tree, self.possible_agents, best=self._best)

    def _to_text(self) -> str:
        return f"{self.task.task_id}\n{tree_to_text(self.tree, best=self._best)}"

    @property
    def _best(self) -> Node | None:
        """The node that infos call the best one."""
        return self._episode.best(self._ending().reason)

    def close(self) -> None:
        """Release the judge, if this environment made it."""
        self._judge.close()

    def _observes(self) -> gymnasium.spaces.Dict:
        parts: dict[str, gymnasium.Space[Any]] = {
            "prompt": UnicodeText(TEXT_LIMIT),
            "features": gymnasium.spaces.Box(0.0, 1.0, (FEATURES,), np.float32),
        }
        if self._rules.agent_selects:
            low, high = table_bounds(self.budget, len(self.possible_agents))
            parts["tree"] = gymnasium.spaces.Box(low, high, dtype=np.float32)
        return gymnasium.spaces.Dict(parts)

    def _acts(self) -> gymnasium.Space[Any]:
        text = UnicodeText(TEXT_LIMIT)
        if not self._rules.agent_selects:
            return text
        return gymnasium.spaces.Dict(parent=gymnasium.spaces.Discrete(self.budget + 1), text=text)

    @contextmanager
    def _starting(self, seed: int | None, options: Mapping[str, Any] | None) -> Iterator[None]:
        """Draw a task and start its tree; where anything raises, the old episode goes on.

        A selector, a reward model or prompts of one's own can, when they are first asked.
        """
        options = reset_options(options, "task", "agents")
        chosen = self._tasks.find(options)
        team = _team(options.get("agents"), self.possible_agents, self._agent_budgets)
        before = self._episode, self.agents
        with draws_or_nothing(self):
            self._seed(seed)
            # Both draws happen whatever the options say, so that they do not shift later episodes.
            drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
            seed = int(self.np_random.integers(2**31))
            try:
                self._episode = self._new_episode(chosen or drawn, team, seed)
                self.agents = list(team)
                yield
            except BaseException:
                self._episode, self.agents = before
                raise

    def _new_episode(self, task: CodeTask, team: Sequence[str], seed: int) -> Episode:
        budgets = self._agent_budgets
        if len(team) < len(self.possible_agents):
            budgets = {agent: nodes for agent, nodes in budgets.items() if agent in team}
        search = TreeSearch(
            team,
            self._selector,
            self.budget,
            seed,
            agent_budgets=budgets,
            score_fn=None if self._score_fn is None else self._score_fn.of(task),
            **self._search_options,
        )
        return Episode(task, search, self._rules)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put the episode back where it was if anything raises.

        Once the verdicts are there, a reward model, a selector or prompts of one's own can.
        """
        before = self._episode.mark()
        try:
            yield
        except BaseException:
            self._episode.undo(before)
            raise

    def _ask(self, k: int) -> Ending:
        """Ask `k` agents at most for an expansion each, or say why the episode is over."""
        ending = self._ending()
        if not ending.over:
            self._episode.ask(k)
            if not self._episode.asked:
                ending = self._ending()  # time ran out between two looks at the clock
        return ending

    def _ending(self) -> Ending:
        reason: str = self._episode.search.stop_reason
        if not reason and self._episode.cycles == self.max_cycles:
            reason = "max_cycles"
        return Ending(reason)

    def _infos(self, ending: Ending) -> Infos:
        return self._episode.infos(ending.reason)


def _agent_names(agents: int | Sequence[str]) -> list[str]:
    if isinstance(agents, int):
        if agents < 1:
            raise ValueError(f"agents must be at least 1, got {agents}")
        return [f"coder_{index}" for index in range(agents)]
    if isinstance(agents, str):
        raise ValueError(f"agents is a number or a list of names, got the string {agents!r}")
    if not isinstance(agents, Iterable):
        raise ValueError(f"agents is a whole number or a list of names, got {agents!r}")
    names = list(agents)
    for name in names:
        # Names stand in prompts, pictures, terminals and files.
        if not (isinstance(name, str) and name and name.isprintable()):
            raise ValueError(
                f"an agent's name is a text of printable characters on one line, got {name!r}"
            )
    return names


def _role_lines(roles: Mapping[str, str], agents: Sequence[str]) -> dict[str, str]:
    for agent, line in roles.items():
        if agent not in agents:
            raise ValueError(f"roles for unknown agent {agent!r}; the agents are {list(agents)}")
        if not isinstance(line, str) or len(line.splitlines()) > 1:
            raise ValueError(f"roles[{agent!r}] must be one line of text, got {line!r:.200}")
    return dict(roles)


def _team(wanted: Any, possible: Sequence[str], budgets: Mapping[str, int]) -> list[str]:
    """Return the agents of an episode, in the order of the possible ones; None: all."""
    named = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else []
    team = [agent for agent in possible if wanted is None or agent in named]
    if wanted is not None and (not team or any(agent not in team for agent in named)):
        raise ValueError(
            f"options['agents'] must name one or more of {list(possible)}, got {wanted!r}"
        )
    if team and all(budgets.get(agent) == 0 for agent in team):
        raise ValueError(
            f"none of {team} may make a node, by agent_budgets={dict(budgets)}; give one of them a "
            "budget above 0"
        )
    return team
