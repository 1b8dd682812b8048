"""One way to drive any text environment: PettingZoo AEC, PettingZoo Parallel or Gymnasium.

A driver turns an environment into a sequence of frames. A frame says who must speak now and what
the step before it gave to whom. Drivers are synchronous and keep no history; `collect` adds both.

What is asked of an environment: observations are a `Dict` with a `"prompt"` string (or a bare
string), actions are strings, infos are flat. Optional: `info["active"]` (Parallel: must this agent
speak now?), `info["task_id"]`, and in `metadata` `supports_fail` (there is a `fail(agent, reason,
permanent=...)`) and `shared_reward` (see `step_reward`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .errors import ConfigError
from .rollout import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One agent that must speak now."""

    agent: str
    prompt: str
    observation: Mapping[str, Any]
    info: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The environment after a reset, a step or a failure."""

    asks: tuple[Ask, ...]
    """Who must speak now; empty once the episode is over."""
    rewards: Mapping[str, float] = field(default_factory=dict)
    """What the step gave to each agent; empty after a reset or a failure."""
    infos: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    """Every agent's info after the step."""
    truncated: bool = False
    """Whether the episode was cut off from outside; meaningful once `asks` is empty."""


class Driver(Protocol):
    """A text environment behind one interface."""

    env_id: str
    shared_reward: bool | None
    """Whether equal rewards are one team reward; None where the environment does not say."""

    def reset(self, *, seed: int, options: Mapping[str, Any] | None) -> None:
        """Start an episode."""
        ...

    def step(self, actions: Mapping[str, str]) -> None:
        """Pass on what the asked agents said. An agent left out has failed (see `fail`).

        When this raises, the same step may be tried again: steps are atomic by contract.
        """
        ...

    def fail(self, agent: str, reason: str, *, permanent: bool) -> bool:
        """Say that `agent` will not answer.

        Returns:
            Whether the episode can go on.
        """
        ...

    def frame(self) -> Frame:
        """Describe the environment as it stands; call it once after each of the above."""
        ...

    def close(self) -> None:
        """Release the environment."""
        ...


def make_driver(env: Any) -> Driver:
    """Return the driver for `env`, by what it offers.

    Raises:
        ConfigError: `env` is none of the three kinds.
    """
    if hasattr(env, "agent_selection") or hasattr(env, "agent_iter"):
        return AECDriver(env)
    if hasattr(env, "possible_agents"):
        return ParallelDriver(env)
    if hasattr(env, "reset") and hasattr(env, "step"):
        return GymDriver(env)
    raise ConfigError(
        "expected a PettingZoo AEC or Parallel environment or a Gymnasium one, "
        f"got {type(env).__name__}"
    )


def step_reward(rewards: Mapping[str, float], shared: bool | None) -> float:
    """Return what one step adds to the episode's reward, a team reward counted once.

    Args:
        rewards: agent -> what the step gave to it.
        shared: `metadata["shared_reward"]`. True: all agents are given one reward, counted once.
            False: every reward is an agent's own, and they add up. None: it counts once if there
            are two agents or more and all are given the same, else they add up.
    """
    values = list(rewards.values())
    if not values:
        return 0.0
    same = min(values) == max(values)
    if shared and not same:
        raise ConfigError(
            f"the environment declares shared_reward=True but gave different rewards: {rewards}"
        )
    if shared or (shared is None and same):
        return float(values[0])
    return float(sum(values))


def plain_info(info: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the scalars and strings of `info` as plain Python values; arrays are left out."""
    plain: dict[str, Scalar] = {}
    for key, value in info.items():
        if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a NumPy scalar
            value = value.item()
        if isinstance(value, int | float | str):  # bool is an int
            plain[key] = value
    return plain


def _ask(agent: str, observation: Any, info: Mapping[str, Any]) -> Ask:
    if isinstance(observation, str):
        observation = {"prompt": observation}
    if not isinstance(observation, Mapping) or not isinstance(observation.get("prompt"), str):
        raise ConfigError(
            f'expected an observation with a "prompt" string for agent {agent!r}, '
            f"got {type(observation).__name__}"
        )
    return Ask(
        agent=agent,
        prompt=observation["prompt"],
        observation=observation,
        info=plain_info(info),
    )


class AECDriver:
    """One agent speaks at a time; the environment chooses which."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._truncated = False
        self._rewarded = False
        self.env_id = _env_id(env)
        self.shared_reward = _shared_reward(env)

    def reset(self, *, seed: int, options: Mapping[str, Any] | None) -> None:
        """See `Driver`."""
        self._truncated = self._rewarded = False
        self._env.reset(seed=seed, options=None if options is None else dict(options))

    def step(self, actions: Mapping[str, str]) -> None:
        """See `Driver`; without an action nothing happens, `fail` has moved the game on."""
        self._rewarded = False
        for action in actions.values():
            self._env.step(action)
            self._rewarded = True

    def fail(self, agent: str, reason: str, *, permanent: bool) -> bool:
        """See `Driver`."""
        if not self._env.metadata.get("supports_fail", False):
            return False
        # Through `unwrapped`: a wrapper need not pass on methods that are not PettingZoo's.
        self._env.unwrapped.fail(agent, reason, permanent=permanent)
        return True

    def frame(self) -> Frame:
        """See `Driver`."""
        env = self._env
        # Taken before the dead agents leave: leaving deletes their infos and clears the rewards.
        infos = {agent: plain_info(info) for agent, info in env.infos.items()}
        rewards = (
            {agent: float(reward) for agent, reward in env.rewards.items()}
            if self._rewarded
            else {}
        )
        asks: tuple[Ask, ...] = ()
        while env.agents:
            agent = env.agent_selection
            if not (env.terminations[agent] or env.truncations[agent]):
                asks = (_ask(agent, env.observe(agent), env.infos[agent]),)
                break
            self._truncated |= bool(env.truncations[agent] and not env.terminations[agent])
            env.step(None)
        return Frame(asks=asks, rewards=rewards, infos=infos, truncated=self._truncated)

    def close(self) -> None:
        """See `Driver`."""
        self._env.close()


class ParallelDriver:
    """All active agents speak in every step; the others' actions are ignored by contract."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._observations: Mapping[str, Any] = {}
        self._infos: Mapping[str, Mapping[str, Any]] = {}
        self._rewards: Mapping[str, float] = {}
        self._truncated = False
        self._can_fail = bool(env.metadata.get("supports_fail", False))
        self.env_id = _env_id(env)
        self.shared_reward = _shared_reward(env)

    def reset(self, *, seed: int, options: Mapping[str, Any] | None) -> None:
        """See `Driver`."""
        self._observations, self._infos = self._env.reset(
            seed=seed, options=None if options is None else dict(options)
        )
        self._rewards, self._truncated = {}, False

    def step(self, actions: Mapping[str, str]) -> None:
        """See `Driver`."""
        idle = dict.fromkeys((a for a in self._env.agents if not self._active(a)), "")
        self._observations, self._rewards, terminations, truncations, self._infos = self._env.step(
            {**idle, **actions}
        )
        self._truncated |= any(
            cut and not terminations.get(agent, False) for agent, cut in truncations.items()
        )

    def fail(self, agent: str, reason: str, *, permanent: bool) -> bool:
        """See `Driver`; leaving the agent out of the next step says it too."""
        announce: Callable[..., None] | None = getattr(self._env.unwrapped, "fail", None)
        if self._can_fail and announce is not None:
            announce(agent, reason, permanent=permanent)
        return self._can_fail

    def frame(self) -> Frame:
        """See `Driver`."""
        live = list(self._env.agents)
        active = [agent for agent in live if self._active(agent)]
        if live and not active:
            raise ConfigError(
                f"{self.env_id}: {len(live)} agents are alive but none is active; an environment "
                'must keep one agent\'s info["active"] true until it ends'
            )
        return Frame(
            asks=tuple(_ask(a, self._observations[a], self._infos[a]) for a in active),
            rewards={agent: float(reward) for agent, reward in self._rewards.items()},
            infos={agent: plain_info(info) for agent, info in self._infos.items()},
            truncated=self._truncated,
        )

    def close(self) -> None:
        """See `Driver`."""
        self._env.close()

    def _active(self, agent: str) -> bool:
        return bool(self._infos[agent].get("active", True))


class GymDriver:
    """A single-agent environment; `info["agent"]`, where present, names who speaks."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._observation: Any = None
        self._info: Mapping[str, Any] = {}
        self._rewards: dict[str, float] = {}
        self._speaker = ""
        self._over = self._truncated = False
        self.env_id = str(env.spec.id) if env.spec is not None else type(env.unwrapped).__name__
        self.shared_reward: bool | None = False

    def reset(self, *, seed: int, options: Mapping[str, Any] | None) -> None:
        """See `Driver`."""
        self._observation, self._info = self._env.reset(
            seed=seed, options=None if options is None else dict(options)
        )
        self._rewards, self._over, self._truncated, self._speaker = {}, False, False, ""

    def step(self, actions: Mapping[str, str]) -> None:
        """See `Driver`."""
        ((agent, action),) = actions.items()
        self._observation, reward, terminated, truncated, self._info = self._env.step(action)
        self._rewards, self._speaker = {agent: float(reward)}, agent
        self._over = bool(terminated or truncated)
        self._truncated = bool(truncated and not terminated)

    def fail(self, agent: str, reason: str, *, permanent: bool) -> bool:
        """See `Driver`; Gymnasium knows no way to go on without an action."""
        return False

    def frame(self) -> Frame:
        """See `Driver`."""
        agent = str(self._info.get("agent", "agent_0"))
        info = plain_info(self._info)
        return Frame(
            asks=() if self._over else (_ask(agent, self._observation, self._info),),
            rewards=self._rewards,
            # The info after the action belongs to who acted, and to who acts next.
            infos={agent: info, **({self._speaker: info} if self._speaker else {})},
            truncated=self._truncated,
        )

    def close(self) -> None:
        """See `Driver`."""
        self._env.close()


def _env_id(env: Any) -> str:
    return str(env.metadata.get("name", type(env.unwrapped).__name__))


def _shared_reward(env: Any) -> bool | None:
    value = env.metadata.get("shared_reward")
    return None if value is None else bool(value)
