"""The two interfaces of PettingZoo over `MemoryShell`: all at once, or one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pettingzoo import AECEnv, ParallelEnv

from ..errors import ProtocolError
from .episode import Episode, Failure, Outcome, read_action
from .infos import Info
from .observations import Observation
from .shell import Infos, MemoryShell


class Rounds(MemoryShell, ParallelEnv[str, Observation, str]):  # type: ignore[misc]  # untyped
    """The Parallel form: in a step, every agent answers that has a call to answer."""

    metadata: ClassVar[dict[str, Any]] = {**MemoryShell.metadata, "is_parallelizable": True}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._failing: dict[str, Failure] = {}

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], Infos]:
        """Start another question.

        Args:
            seed: starts the random stream anew; None goes on with it.
            options: `{"task": task_id}` chooses the task instead of drawing it. Others are
                ignored, as PettingZoo asks, but for names that mean to choose one, as "tasks".

        Returns:
            Observations and infos of all agents.

        Raises:
            InvalidTask: there is no such task, or its document cannot be read.
            InvalidSetting: an option that is a misspelling, or part of a task.
        """
        self._begin(seed, options)
        self._failing = {}
        return {agent: self._observation(agent) for agent in self.agents}, self._infos()

    def step(
        self, actions: Mapping[str, str]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Take the replies of all active agents, and hand out the next calls.

        Args:
            actions: agent -> text. An active agent that is missing has failed. Texts of agents that
                are not active are ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos of all agents.

        Raises:
            TypeError: an action is no text.
            ValueError: an action for an agent that is not there.
            ProtocolError: no episode is running.
        """
        self._check_running()
        unknown = sorted(set(actions) - set(self.agents))
        if unknown:
            raise ValueError(f"actions for {unknown}, but the agents are {self.agents}")
        outcomes: dict[str, Outcome] = {
            agent: read_action(actions[agent]) for agent in self._asked() if agent in actions
        }
        outcomes.update(self._failing)
        self._go_on(outcomes)
        self._failing = {}
        agents, ending = self.agents, self._ending
        observations = {agent: self._observation(agent) for agent in agents}
        infos = self._infos()
        if ending.over:
            self.agents = []
        return (
            observations,
            dict.fromkeys(agents, self._score.reward),
            dict.fromkeys(agents, ending.terminated),
            dict.fromkeys(agents, ending.truncated),
            infos,
        )

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        """Say before the next `step` that no text will come from an active agent.

        Nothing else changes before that step; leaving the agent out of `actions` says the same
        without a reason. Its call has failed, and may be asked again.

        Args:
            agent: an active agent.
            reason: for the workflow.
            permanent: no text will come from it in this episode any more. Others of its role take
                its calls; where there are none, the episode is truncated.

        Raises:
            ProtocolError: it is not this agent's turn.
        """
        _check_asked(agent, self._asked())
        self._failing[agent] = Failure(reason=reason, permanent=permanent)

    def _width(self, episode: Episode) -> int:
        return episode.width


class TurnByTurn(MemoryShell, AECEnv[str, Observation, str]):  # type: ignore[misc]  # untyped
    """The AEC form: one call at a time, in the order of the workflow."""

    metadata: ClassVar[dict[str, Any]] = {**MemoryShell.metadata, "is_parallelizable": False}

    infos: dict[str, Info]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start another question.

        Args:
            seed: starts the random stream anew; None goes on with it.
            options: `{"task": task_id}` chooses the task instead of drawing it. Others are
                ignored, as PettingZoo asks, but for names that mean to choose one, as "tasks".

        Raises:
            InvalidTask: there is no such task, or its document cannot be read.
            InvalidSetting: an option that is a misspelling, or part of a task.
        """
        self._begin(seed, options)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._skip_agent_selection: str | None = None
        self.agent_selection = self.agents[0]
        self._hand_on()

    def observe(self, agent: str) -> Observation:
        """Return what `agent` sees: its call if it is its turn, else where the episode stands."""
        return self._observation(agent)

    def step(self, action: str | None) -> None:
        """Take the reply of the selected agent, and choose who is next.

        Raises:
            TypeError: the action is no text.
            ProtocolError: no episode is running.
        """
        self._check_running()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._go_on({agent: read_action(action)})
        self._pay(agent)
        self._hand_on()

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        """Say that no text will come from the selected agent; its call may be asked again.

        Args:
            agent: the agent whose turn it is.
            reason: for the workflow.
            permanent: no text will come from it in this episode any more. Others of its role take
                its calls; where there are none, the episode is truncated.

        Raises:
            ProtocolError: it is not this agent's turn.
        """
        _check_asked(agent, self._asked())
        self._go_on({agent: Failure(reason=reason, permanent=permanent)}, cycles=0)
        self._pay(agent)
        self._hand_on()

    def _width(self, episode: Episode) -> int:
        return 1

    def _pay(self, agent: str) -> None:
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, self._score.reward)
        self._accumulate_rewards()

    def _hand_on(self) -> None:
        """Hand the turn to whom the workflow asks, or end the episode."""
        self.terminations = dict.fromkeys(self.agents, self._ending.terminated)
        self.truncations = dict.fromkeys(self.agents, self._ending.truncated)
        self.infos = self._infos()
        if self._ending.over:
            self._deads_step_first()
        else:
            (self.agent_selection,) = self._asked()


def _check_asked(agent: str, asked: Mapping[str, Any]) -> None:
    if agent not in asked:
        raise ProtocolError(
            f"{agent!r} cannot fail: it is the turn of {', '.join(asked) or 'nobody'}"
        )
