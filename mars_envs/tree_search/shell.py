"""What the AEC and the Parallel environment of the search tree share: options, spaces, renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from ..errors import ProtocolError
from ..spaces import TEXT_LIMIT, UnicodeText
from ..tasks import load_tasks
from ..tasks.code import CodeTask
from .episode import FEATURES, Episode, Rules
from .infos import REQUEST_FIELDS, Scalar
from .node_table import table_bounds
from .presets import resolve_selector
from .prompts import Prompts
from .rendering import tree_to_text
from .search import TreeSearch
from .selection import Selector
from .sources import JudgeHandle, JudgeSource, PromptsHandle, TaskSet
from .tree import SearchTree

OUTSIDE = ("seconds", "agents", "max_cycles")
"""Reasons that truncate: time is up, every agent has failed for good, enough steps."""

Observation = dict[str, Any]
Infos = dict[str, dict[str, Scalar]]


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an episode is over: a reason of `StopReason` or "max_cycles"; empty while it runs."""

    reason: str = ""

    @property
    def over(self) -> bool:
        """Whether nobody is asked any more."""
        return self.reason != ""

    @property
    def truncated(self) -> bool:
        """Whether a limit from outside ended it; budgets of the task terminate."""
        return self.reason in OUTSIDE

    @property
    def terminated(self) -> bool:
        """Whether the task's own rules ended it."""
        return self.over and not self.truncated


class TreeShell:
    """What both environments have in common; `TreeSearchEnv` explains the options."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "tree_search_v0",
        "render_modes": ["ansi", "human"],
        "render_fps": 1,
        "supports_fail": True,
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
        prompts: str | Prompts = "prose",
        stop_on_solved: bool = False,
        expand_solved: bool = True,
        max_cycles: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            known = ", ".join(map(repr, modes))
            raise ValueError(f"render_mode must be {known} or None, got {render_mode!r}")
        if max_cycles is not None and max_cycles < 1:
            raise ValueError(f"max_cycles must be at least 1 or None, got {max_cycles!r}")
        self.possible_agents = _agent_names(agents)
        self.agents: list[str] = []
        self.budget = budget
        self.max_cycles = max_cycles
        self.render_mode = render_mode
        self._selector = resolve_selector(selector, agent_mix)
        self._prompts = PromptsHandle(prompts)
        self._stop_on_solved = stop_on_solved
        self._expand_solved = expand_solved
        self._tasks = TaskSet(load_tasks(tasks))
        self._judge = JudgeHandle(judge)
        self._np_random: np.random.Generator | None = None
        # Found wrong, an option is refused here and not at the first reset.
        self._episode = self._new_episode(self._tasks[0], seed=0)
        self.observation_spaces = {agent: _observation_space() for agent in self.possible_agents}
        self.action_spaces = {agent: UnicodeText(TEXT_LIMIT) for agent in self.possible_agents}
        low, high = table_bounds(budget, len(self.possible_agents))
        self.state_space = gymnasium.spaces.Box(low, high, dtype=np.float32)

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that episodes are drawn from."""
        if self._np_random is None:
            self._np_random, _ = seeding.np_random()
        return self._np_random

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

    def observation_space(self, agent: str) -> gymnasium.Space[Observation]:
        """Return the space of `{"prompt", "features"}`: the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[str]:
        """Return the space of texts: the same object every time."""
        return self.action_spaces[agent]

    def state(self) -> NDArray[np.float32]:
        """Return the tree as numbers, for centralised critics: [budget + 1, 6].

        Row 0 is the root, row i + 1 node i; columns: `node_table.COLUMNS`. Public facts only.
        """
        return self._episode.state()

    def render(self) -> str | None:
        """Return the tree as text ("ansi"), or print it ("human")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        text = f"{self.task.task_id}\n{tree_to_text(self.tree)}"
        if self.render_mode == "human":
            print(text)
            return None
        return text

    def close(self) -> None:
        """Release the judge, if this environment made it."""
        self._judge.close()

    def _start(self, seed: int | None, options: Mapping[str, Any]) -> None:
        """Draw a task and start its tree; nothing changes where the options are wrong."""
        chosen = self._tasks.find(options)
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        # Both draws happen whatever the options say, so that they do not shift later episodes.
        drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        self._episode = self._new_episode(chosen or drawn, int(self.np_random.integers(2**31)))
        self.agents = list(self._episode.search.agents)

    def _new_episode(self, task: CodeTask, seed: int) -> Episode:
        search = TreeSearch(
            self.possible_agents,
            self._selector,
            self.budget,
            seed,
            expand_solved=self._expand_solved,
            stop_on_solved=self._stop_on_solved,
        )
        rules = Rules(agents=tuple(self.possible_agents), budget=self.budget, prompts=self._prompts)
        return Episode(task, search, rules)

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

    def _check_running(self) -> None:
        if not self.agents:
            raise ProtocolError("no episode is running; call reset() first")


def _agent_names(agents: int | Sequence[str]) -> list[str]:
    if isinstance(agents, int):
        if agents < 1:
            raise ValueError(f"agents must be at least 1, got {agents}")
        return [f"coder_{index}" for index in range(agents)]
    if isinstance(agents, str):
        raise ValueError(f"agents is a number or a list of names, got the string {agents!r}")
    return list(agents)


def _observation_space() -> gymnasium.spaces.Dict:
    return gymnasium.spaces.Dict(
        prompt=UnicodeText(TEXT_LIMIT),
        features=gymnasium.spaces.Box(0.0, 1.0, (FEATURES,), np.float32),
    )
