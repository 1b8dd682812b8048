"""A PettingZoo environment as a Gymnasium one: one learner speaks for the agent whose turn it is.

`gym.make` can't return a PettingZoo environment, so the registered ids give this view. By default
the learner speaks for every agent (self-play with one policy); agents named in `partners` are
played by callables instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from .errors import ProtocolError
from .importing import import_object
from .random_state import draws_or_nothing

Partner = Callable[[Any, Mapping[str, Any]], str]
"""From an observation and an info to an action."""

_EMPTY_EPISODES = 100


class SingleAgentView(gymnasium.Env[Any, Any]):
    """Shows an AEC environment through the eyes of the agent whose turn it is.

    The reward of a step is what the acting agent itself receives until a learner's next turn, never
    a sum over agents. A step's info is the acting agent's, but for the keys that say what is asked
    next (`metadata["request_info_keys"]`): these are the next agent's, and `info["agent"]` names
    it (at the end: the one that acted last). When a judge or a partner raises, the same `step` may
    be repeated.

    Agents that are not asked (`info["active"]` false) are passed over with an empty text.

    Args:
        env: the AEC environment. A Parallel one goes through PettingZoo's `parallel_to_aec`; since
            its agents act at once, one of them may learn, and the others need partners.
        partners: agent -> callable of (observation, info), or its name as "module:name".

    Raises:
        ValueError: a partner for an agent that does not exist, no learner left, or learners with
            different spaces.
    """

    def __init__(self, env: Any, *, partners: Mapping[str, str | Partner] | None = None) -> None:
        self.env = env
        self.metadata = dict(env.metadata)
        self.render_mode = env.render_mode
        self._partners: dict[str, Partner] = {
            agent: import_object(partner) if isinstance(partner, str) else partner
            for agent, partner in (partners or {}).items()
        }
        agents = list(env.possible_agents)
        unknown = sorted(set(self._partners) - set(agents))
        if unknown:
            raise ValueError(f"partners for unknown agents {unknown}; the agents are {agents}")
        learners = [agent for agent in agents if agent not in self._partners]
        if not learners:
            raise ValueError("every agent has a partner, so no agent is left to learn")
        if len(learners) > 1 and env.metadata.get("is_parallelizable", False):
            # What an agent did is known when its round is over, at another agent's turn.
            raise ValueError(
                f"in this environment agents act at once, so one can learn, not {learners}; give "
                "the others partners"
            )
        self.observation_space = env.observation_space(learners[0])
        self.action_space = env.action_space(learners[0])
        for agent in learners[1:]:
            if (env.observation_space(agent), env.action_space(agent)) != (
                self.observation_space,
                self.action_space,
            ):
                raise ValueError(
                    f"{agent} and {learners[0]} have different spaces; give one of them a partner"
                )
        self._actor: str | None = None
        self._owed = 0.0
        self._running = False

    @property
    def max_turns(self) -> int | None:
        """The most steps of an episode, where the environment knows it."""
        return getattr(self.env.unwrapped, "max_turns", None)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode and let partners speak until a learner's turn.

        Where the environment cannot be reset, nothing has changed. Where a partner raises, no
        episode is running. Either way the same `reset` may be repeated.
        """
        with draws_or_nothing(self):
            super().reset(seed=seed)
            for _ in range(_EMPTY_EPISODES):
                # A fresh seed each time: the inner stream follows from this environment's own.
                self.env.reset(seed=int(self.np_random.integers(2**31)), options=options)
                self._running = False
                self._actor = None
                self._play_partners()
                if not self._over():
                    self._running = True
                    agent = self.env.agent_selection
                    return self.env.observe(agent), self._info(agent, agent)
        raise ProtocolError(
            f"partners alone finished {_EMPTY_EPISODES} episodes in a row before the learner's "
            "first turn; give the learner an agent that is chosen more often"
        )

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act for the agent whose turn it is, then let partners speak until a learner's turn."""
        if not self._running:
            raise ProtocolError("no episode is running; call reset() first")
        if self._actor is None:
            actor = self.env.agent_selection
            self.env.step(action)
            self._actor, self._owed = actor, float(self.env.rewards[actor])
        # Else a partner's turn was interrupted by an error: the learner's action is already taken.
        self._play_partners()
        actor, reward = self._actor, self._owed
        self._actor = None
        self._running = not self._over()
        agent = self.env.agent_selection if self._running else actor
        return (
            self.env.observe(agent),
            reward,
            bool(self.env.terminations[actor]),
            bool(self.env.truncations[actor]),
            self._info(actor, agent),
        )

    def render(self) -> Any:
        """Render the environment."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _over(self) -> bool:
        agent = self.env.agent_selection
        return bool(self.env.terminations[agent] or self.env.truncations[agent])

    def _play_partners(self) -> None:
        while not self._over():
            agent = self.env.agent_selection
            info = self.env.infos[agent]
            if not info.get("active", True):
                action = ""
            elif agent in self._partners:
                action = self._partners[agent](self.env.observe(agent), info)
            else:
                break
            self.env.step(action)
            if self._actor is not None:
                self._owed += float(self.env.rewards[self._actor])

    def _info(self, actor: str, agent: str) -> dict[str, Any]:
        asked = self.env.infos[agent]
        request = {key: asked[key] for key in self.metadata.get("request_info_keys", ())}
        return {**self.env.infos[actor], **request, "agent": agent}


class PromptOnly(gymnasium.ObservationWrapper[str, Any, Any]):
    """Shows the prompt alone: a plain `str`, as text-in, text-out loops expect it.

    For libraries that know no `Dict` observations (AgileRL's `MultiTurnEnv`, GEM-like loops).

    Args:
        env: an environment whose observations are a `Dict` with a text at "prompt".

    Raises:
        TypeError: they are not.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Dict) or "prompt" not in space.spaces:
            raise TypeError(f'PromptOnly needs a Dict observation with a "prompt", got {space}')
        self.observation_space = space["prompt"]

    @property
    def max_turns(self) -> int | None:
        """The most steps of an episode, where the environment knows it."""
        return getattr(self.unwrapped, "max_turns", None)

    def observation(self, observation: Any) -> str:
        """Return the prompt of an observation."""
        prompt: str = observation["prompt"]
        return prompt
