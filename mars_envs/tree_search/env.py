"""MARS² as a PettingZoo AEC environment: several coders grow one tree of programs.

The search chooses (parent, agent); that agent is `agent_selection` and sees a prompt, its text is
judged and becomes a node. One episode is one tree of one task. The environment is a thin shell over
`Episode`; tokens, chat templates and models live elsewhere.

Reward: 1.0 to the acting agent, on its own step, if all public and hidden tests pass, else 0.0. A
bad completion is data. When the judge itself fails, `step` raises and nothing has changed, the
random generator included: the same step may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from .shell import Action, Ending, Infos, Observation, TreeShell


def raw_env(**options: Any) -> TreeSearchEnv:
    """Return the bare environment; options are those of `TreeSearchEnv`."""
    return TreeSearchEnv(**options)


def env(**options: Any) -> OrderEnforcingWrapper[str, Observation, Action]:
    """Return the environment in PettingZoo's order checks.

    Not in `AssertOutOfBoundsWrapper`: an overlong or unencodable text is data here, not an error.
    """
    return OrderEnforcingWrapper(raw_env(**options))


class TreeSearchEnv(TreeShell, AECEnv[str, Observation, Action]):  # type: ignore[misc]  # untyped
    """One shared search tree per episode, in the reference order of MARS².

    Args:
        tasks: a built-in name, a file or "module:function" (see `tasks.load_tasks`), or tasks.
        judge: "code", "module:name", something that makes a judge, or a judge.
        agents: how many coders (`coder_0` …), or their names.
        budget: nodes of a tree; spending it terminates the episode.
        selector: "default", "paper", "marti_code", "best_of_n", "module:name", or a selector.
        agent_mix: share of choices in which the agent is drawn uniformly; 0 in the papers.
        select: "search": the search chooses node and agent. "agent": it chooses the agent, which
            chooses the node: actions are `{"parent", "text"}`, see `choosing`.
        prompts: "prose", "compact", a module or "module:name" with `root` and `refine`, or those.
        feedback_level: what a refinement is told of its parent: "none", "verdict", "summary" or
            "full" (see `feedback_level`). It governs prompts; `features` are numbers as ever.
        roles: agent -> one line put last in its prompts, for teams of one model.
        score_fn: a reward model: "agreement", "module:name" or a callable of (task, tree, node).
        score_weight: w; the search is driven by w * public score + (1 - w) * score_fn. With 1 the
            model only breaks ties in the final choice.
        agent_budgets: agent -> nodes that it may make; spending all of them terminates.
        max_tokens: tokens of all texts, after which the episode terminates; None: no limit.
        count_tokens: what a text counts: "words", "module:name" or a callable; None: words, where
            there is a `max_tokens`, else nothing is counted.
        stop_on_solved: terminate as soon as a node passes every public test.
        expand_solved: whether a node that passes every public test may be refined.
        max_seconds: time after which the episode is truncated; None: no limit.
        max_cycles: steps after which the episode is truncated from outside; None: never.
        render_mode: "ansi" (text), "human" (printed), "rgb_array" (needs Pillow) or None.
        clock: seconds from any fixed moment, for `max_seconds`.

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

    metadata: ClassVar[dict[str, Any]] = {**TreeShell.metadata, "is_parallelizable": False}

    @property
    def max_turns(self) -> int:
        """The most actions that one episode takes."""
        return min(self.budget, self.max_cycles or self.budget)

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start the tree of another task.

        Args:
            seed: starts the random stream anew; None goes on with it.
            options: `{"task": task_id}` chooses the task instead of drawing it; `{"agents": [...]}`
                the agents of this episode, some of `possible_agents`. Others are ignored, as
                PettingZoo asks.

        Raises:
            ValueError: there is no such task or agent, or an option is a misspelling.
        """
        with self._starting(seed, options):
            ending = self._ask(1)
            infos = self._infos(ending)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._skip_agent_selection: str | None = None
        self.agent_selection = self.agents[0]  # where the episode is over at once
        self._next_turn(ending, infos)

    def observe(self, agent: str) -> Observation:
        """Return what `agent` sees: its prompt if it is its turn, else an empty one."""
        return self._episode.observe(agent)

    def step(self, action: Action | None) -> None:
        """Judge the selected agent's text, attach it, and choose who is next.

        Raises:
            JudgeUnavailable: the judge failed; nothing has changed.
            TypeError: the action is no text (and no choice, where agents choose).
            ValueError: a parent outside of its space.
            ProtocolError: no episode is running.
        """
        self._check_running()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        answer = self._episode.read(action)
        verdict = self._judge.judge(self.task, answer.text)
        # Nothing has changed up to here, so a judge that raises leaves the episode as it was.
        with self._all_or_nothing():
            node = self._episode.settle({agent: (answer, verdict)})[agent]
            self._episode.cycles += 1
            ending = self._ask(1)
            infos = self._infos(ending)
        self._pay(agent, 1.0 if node.solved else 0.0)
        self._next_turn(ending, infos)

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
        with self._all_or_nothing():
            self._episode.fail(agent, reason, permanent=permanent)
            ending = self._ask(1)
            infos = self._infos(ending)
        self._pay(agent, 0.0)
        self._next_turn(ending, infos)

    def _pay(self, agent: str, reward: float) -> None:
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.rewards[agent] = reward
        self._accumulate_rewards()

    def _next_turn(self, ending: Ending, infos: Infos) -> None:
        """Hand the turn to whom the search asks, or end the episode."""
        self.terminations = dict.fromkeys(self.agents, ending.terminated)
        self.truncations = dict.fromkeys(self.agents, ending.truncated)
        self.infos = infos
        if ending.over:
            self._deads_step_first()
        else:
            (self.agent_selection,) = self._episode.asked
