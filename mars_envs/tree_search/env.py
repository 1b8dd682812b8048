"""MARS² as a PettingZoo environment: several coders grow one tree of programs.

The search chooses (parent, agent); that agent is `agent_selection` and sees a prompt, its text is
judged and becomes a node. One episode is one tree of one task. The environment is a thin shell over
`TreeSearch`; tokens, chat templates and models live elsewhere.

Reward: 1.0 to the acting agent, on its own step, if all public and hidden tests pass, else 0.0. A
bad completion is data. When the judge itself fails, `step` raises and nothing has changed, the
random generator included: the same step may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ..errors import ProtocolError
from ..spaces import TEXT_LIMIT, UnicodeText, replace_surrogates
from ..tasks import load_tasks
from ..tasks.code import CodeTask
from .infos import REQUEST_FIELDS, LastAction, Scalar, describe
from .presets import resolve_selector
from .prompts import ParentView, Prompts
from .prose_prompts import excerpt
from .rendering import tree_to_text
from .search import TreeSearch
from .selection import Expansion, Selector
from .sources import JudgeHandle, JudgeSource, PromptsHandle, TaskSet
from .tree import ROOT, SearchTree

FEATURES = 5
Observation = dict[str, Any]


def raw_env(**options: Any) -> TreeSearchEnv:
    """Return the bare environment; options are those of `TreeSearchEnv`."""
    return TreeSearchEnv(**options)


def env(**options: Any) -> OrderEnforcingWrapper[str, Observation, str]:
    """Return the environment in PettingZoo's order checks.

    Not in `AssertOutOfBoundsWrapper`: an overlong or unencodable text is data here, not an error.
    """
    return OrderEnforcingWrapper(raw_env(**options))


class TreeSearchEnv(AECEnv[str, Observation, str]):  # type: ignore[misc]  # untyped
    """One shared search tree per episode, in the reference order of MARS².

    Args:
        tasks: a built-in name, a file or "module:function" (see `tasks.load_tasks`), or tasks.
        judge: "code", "module:name", something that makes a judge, or a judge.
        agents: how many coders (`coder_0` …), or their names.
        budget: nodes of a tree; spending it terminates the episode.
        selector: "default", "paper", "marti_code", "best_of_n", "module:name", or a selector.
        agent_mix: share of choices in which the agent is drawn uniformly; 0 in the papers.
        prompts: "prose", "compact", a module or "module:name" with `root` and `refine`, or those.
        stop_on_solved: terminate as soon as a node passes every public test.
        expand_solved: whether a node that passes every public test may be refined.
        max_cycles: steps after which the episode is truncated from outside; None: never.
        render_mode: "ansi", "human" or None.

    Raises:
        InvalidTask: no usable task.
        ValueError: an option out of range or of an unknown name.

    Example:
        >>> env = TreeSearchEnv(
        ...     tasks="mars_envs.testing:stub_tasks", judge="mars_envs.testing:StubJudge", budget=2
        ... )
        >>> env.reset(seed=0)
        >>> for agent in env.agent_iter():
        ...     observation, reward, terminated, truncated, info = env.last()
        ...     env.step(None if terminated or truncated else "print(1)")
        >>> len(env.tree)
        2
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "tree_search_v0",
        "render_modes": ["ansi", "human"],
        "render_fps": 1,
        "is_parallelizable": False,
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
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be 'ansi', 'human' or None, got {render_mode!r}")
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
        self._search = self._new_search(seed=0)
        self._task = self._tasks[0]
        self._expansion: Expansion | None = None
        self.observation_spaces = {agent: _observation_space() for agent in self.possible_agents}
        self.action_spaces = {agent: UnicodeText(TEXT_LIMIT) for agent in self.possible_agents}

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that episodes are drawn from."""
        if self._np_random is None:
            self._np_random, _ = seeding.np_random()
        return self._np_random

    @property
    def tree(self) -> SearchTree:
        """The tree of the current or last episode."""
        return self._search.tree

    @property
    def task(self) -> CodeTask:
        """The task of the current or last episode."""
        return self._task

    @property
    def tasks(self) -> Sequence[CodeTask]:
        """The tasks that episodes are drawn from."""
        return self._tasks

    @property
    def max_turns(self) -> int:
        """The most actions that one episode takes."""
        return min(self.budget, self.max_cycles or self.budget)

    def observation_space(self, agent: str) -> gymnasium.Space[Observation]:
        """Return the space of `{"prompt", "features"}`: the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[str]:
        """Return the space of texts: the same object every time."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start the tree of another task.

        Args:
            seed: starts the random stream anew; None goes on with it.
            options: `{"task": task_id}` chooses the task instead of drawing it. Other options are
                ignored, as PettingZoo asks.

        Raises:
            ValueError: there is no such task.
        """
        chosen = self._tasks.find(options or {})
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        # Both draws happen whatever the options say, so that they do not shift later episodes.
        drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        self._search = self._new_search(seed=int(self.np_random.integers(2**31)))
        self._task = chosen or drawn
        self._cycles = 0
        self._last = {agent: LastAction() for agent in self.possible_agents}
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection: str | None = None
        self._next_turn()

    def observe(self, agent: str) -> Observation:
        """Return what `agent` sees: its prompt if it is its turn, else an empty one."""
        mine = self._expansion if self._is_asked(agent) else None
        prompt = "" if mine is None else self._prompt(mine)
        return {"prompt": prompt, "features": self._features(agent, mine)}

    def step(self, action: str | None) -> None:
        """Judge the selected agent's text, attach it, and choose who is next.

        Raises:
            JudgeUnavailable: the judge failed; nothing has changed.
            TypeError: the action is no string.
            ProtocolError: no episode is running.
        """
        if not self.agents:
            raise ProtocolError("no episode is running; call reset() first")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise TypeError(f"an action is a text (str), got {type(action).__name__}")
        expansion = self._running_expansion()
        text = replace_surrogates(action[:TEXT_LIMIT])
        verdict = self._judge.judge(self._task, text)
        # Nothing has changed up to here, so a judge that raises leaves the episode as it was.
        node = self._search.tell(expansion.id, verdict, text)
        assert node is not None
        self._last[agent] = LastAction(
            node_id=node.id,
            truncated=len(action) > TEXT_LIMIT,
            repaired=text != action[:TEXT_LIMIT],
        )
        self._cycles += 1
        self._pay(agent, 1.0 if node.solved else 0.0)
        self._next_turn()

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        """Say that no text will come from the selected agent; the search chooses again.

        The expansion enters no statistic, spends no budget and earns nothing. Like after a step,
        what the agent was paid since its last turn counts as collected.

        Args:
            agent: the agent whose turn it is.
            reason: kept in `TreeSearch.abandoned`.
            permanent: retire the agent for this episode. When no agent is left, the episode is
                truncated.

        Raises:
            ProtocolError: it is not this agent's turn.
        """
        if not self._is_asked(agent):
            asked = self.agent_selection if self._expansion else "nobody"
            raise ProtocolError(f"{agent!r} cannot fail: it is the turn of {asked}")
        self._search.fail(self._running_expansion().id, reason)
        if permanent:
            self._search.retire(agent)
        self._pay(agent, 0.0)
        self._next_turn()

    def render(self) -> str | None:
        """Return the tree as text ("ansi"), or print it ("human")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        text = f"{self._task.task_id}\n{tree_to_text(self.tree)}"
        if self.render_mode == "human":
            print(text)
            return None
        return text

    def close(self) -> None:
        """Release the judge, if this environment made it."""
        self._judge.close()

    def _new_search(self, seed: int) -> TreeSearch:
        return TreeSearch(
            self.possible_agents,
            self._selector,
            self.budget,
            seed,
            expand_solved=self._expand_solved,
        )

    def _is_asked(self, agent: str) -> bool:
        return self._expansion is not None and self._expansion.agent == agent

    def _running_expansion(self) -> Expansion:
        if self._expansion is None:
            raise ProtocolError("no episode is running; call reset() first")
        return self._expansion

    def _pay(self, agent: str, reward: float) -> None:
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.rewards[agent] = reward
        self._accumulate_rewards()

    def _next_turn(self) -> None:
        """Choose who expands what next, or end the episode."""
        best = self.tree.best
        solved = self._stop_on_solved and best is not None and best.solved_public
        terminated = self._search.nodes_left == 0 or solved
        truncated = not terminated and (
            self._cycles == self.max_cycles or not self._search.live_agents
        )
        self._expansion = None
        if not (terminated or truncated):
            (self._expansion,) = self._search.ask()
            self.agent_selection = self._expansion.agent
        self.terminations = dict.fromkeys(self.agents, terminated)
        self.truncations = dict.fromkeys(self.agents, truncated)
        self.infos = {agent: self._info(agent) for agent in self.agents}
        if terminated or truncated:
            self._deads_step_first()

    def _info(self, agent: str) -> dict[str, Scalar]:
        return describe(
            self._task,
            self.tree,
            last=self._last[agent],
            expansion=self._expansion if self._is_asked(agent) else None,
            nodes_left=self._search.nodes_left,
        )

    def _prompt(self, expansion: Expansion) -> str:
        if expansion.parent_id == ROOT:
            text = self._prompts.value.root(self._task, expansion.agent)
        else:
            node = self.tree[expansion.parent_id]
            view = ParentView(
                reply=node.reply,
                program=node.verdict.program,
                feedback=node.verdict.feedback,
                solved_public=node.solved_public,
            )
            text = self._prompts.value.refine(self._task, view, expansion.agent)
        text = replace_surrogates(text)
        # Room for the note that says how much was left out of the middle.
        return text if len(text) <= TEXT_LIMIT else excerpt(text, TEXT_LIMIT - 100)

    def _features(self, agent: str, expansion: Expansion | None) -> NDArray[np.float32]:
        """Return, each as a share in [0, 1] and 0 where it is not this agent's turn: [5].

        Depth of the parent, its score, nodes below it; then budget left, the agent's own nodes.
        """
        parent = [0.0, 0.0, 0.0]
        if expansion is not None:
            parent_id = expansion.parent_id
            parent = [
                self.tree.depth(parent_id) / self.budget,
                0.0 if parent_id == ROOT else self.tree[parent_id].score,
                self.tree.descendants(parent_id) / self.budget,
            ]
        own = sum(node.agent == agent for node in self.tree)
        left = self._search.nodes_left
        return np.array([*parent, left / self.budget, own / self.budget], dtype=np.float32)


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
