"""The search tree as a PettingZoo Parallel environment: every agent expands one node per round.

In a round the search gives each agent a parent of its own choice; an expansion that is still
pending counts as an observation at its arms' mean, so that the agents spread. Wide rounds make
shallow trees: many trees at once are the better parallelism (`TreeSearchEnv`), this one shortens a
single tree. Everything else is as in `TreeSearchEnv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pettingzoo import ParallelEnv

from .shell import Action, Infos, Observation, TreeShell


def parallel_env(**options: Any) -> ParallelTreeSearchEnv:
    """Return the environment; options are those of `ParallelTreeSearchEnv`."""
    return ParallelTreeSearchEnv(**options)


class ParallelTreeSearchEnv(
    TreeShell,
    ParallelEnv[str, Observation, Action],  # type: ignore[misc]  # untyped
):
    """One shared search tree per episode, grown by all agents at once.

    `info["active"]` says who must act. In the last round, or when an agent has spent its own
    budget, some agents are not active: their actions are ignored. An active agent that is missing
    from `actions` has failed to answer: its expansion makes no node and spends no budget.

    Args:
        judge_threads: how many texts of a round are judged at a time; None: all. The outcome does
            not depend on it.
        **options: those of `TreeSearchEnv`. `max_cycles` counts rounds.

    Raises:
        InvalidTask: no usable task.
        ValueError: an option out of range or of an unknown name.

    Example:
        >>> env = ParallelTreeSearchEnv(
        ...     tasks="mars_envs.testing:stub_tasks", judge="mars_envs.testing:StubJudge", budget=3
        ... )
        >>> observations, infos = env.reset(seed=0)
        >>> while env.agents:
        ...     active = [agent for agent in env.agents if infos[agent]["active"]]
        ...     _, rewards, _, _, infos = env.step(dict.fromkeys(active, "print(1)"))
        >>> len(env.tree)
        3
    """

    metadata: ClassVar[dict[str, Any]] = {**TreeShell.metadata, "is_parallelizable": True}

    def __init__(self, *, judge_threads: int | None = None, **options: Any) -> None:
        if judge_threads is not None and judge_threads < 1:
            raise ValueError(f"judge_threads must be at least 1 or None, got {judge_threads!r}")
        super().__init__(**options)
        self._judge_threads = judge_threads

    @property
    def max_turns(self) -> int:
        """The most actions of active agents that one episode takes."""
        if self.max_cycles is None:
            return self.budget
        return min(self.budget, self.max_cycles * len(self.possible_agents))

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], Infos]:
        """Start the tree of another task; see `TreeSearchEnv.reset`.

        Returns:
            Observations and infos of all agents.
        """
        with self._starting(seed, options):
            ending = self._ask(len(self.agents))
            infos = self._infos(ending)
            observations = self._observations()
        return observations, infos

    def step(
        self, actions: Mapping[str, Action]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Judge the texts of all active agents, attach them, and give everyone another parent.

        Nodes are attached in the order of `agents`, whoever's verdict came first.

        Args:
            actions: agent -> action. An active agent that is missing has failed.

        Returns:
            Observations, rewards, terminations, truncations and infos of all agents.

        Raises:
            JudgeUnavailable: a verdict failed; nothing has changed, the step may be repeated.
            TypeError: an action is no text (and no choice, where agents choose).
            ValueError: an action for an agent that is not there, or a parent outside of its space.
            ProtocolError: no episode is running.
        """
        self._check_running()
        unknown = sorted(set(actions) - set(self.agents))
        if unknown:
            raise ValueError(f"actions for {unknown}, but the agents are {self.agents}")
        answers = {
            agent: self._episode.read(actions[agent])
            for agent in self._episode.asked
            if agent in actions
        }
        texts = [answer.text for answer in answers.values()]
        verdicts = self._judge.judge_all(self.task, texts, self._judge_threads)
        # Nothing has changed up to here, so a judge that raises leaves the episode as it was.
        pairs = zip(answers.items(), verdicts, strict=True)
        with self._all_or_nothing():
            nodes = self._episode.settle(
                {agent: (answer, verdict) for (agent, answer), verdict in pairs}
            )
            self._episode.cycles += 1
            ending = self._ask(len(self.agents))
            infos = self._infos(ending)
            observations = self._observations()
        rewards = dict.fromkeys(self.agents, 0.0)
        rewards.update({agent: 1.0 for agent, node in nodes.items() if node.solved})
        terminations = dict.fromkeys(self.agents, ending.terminated)
        truncations = dict.fromkeys(self.agents, ending.truncated)
        if ending.over:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        """Say before the next `step` that no text will come from an active agent.

        Nothing else changes before that step, which goes on without the agent; leaving an agent
        out of `actions` says the same without a reason.

        Args:
            agent: an active agent.
            reason: kept in `TreeSearch.abandoned`.
            permanent: retire the agent for this episode. When no agent is left, the episode is
                truncated.

        Raises:
            ProtocolError: it is not this agent's turn.
        """
        self._episode.fail(agent, reason, permanent=permanent)

    def _observations(self) -> dict[str, Observation]:
        return {agent: self._episode.observe(agent) for agent in self.agents}
