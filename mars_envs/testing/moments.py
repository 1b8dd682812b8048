"""All that an environment says at one turn, in one shape for all three forms, and its rules.

A `Moment` is what stands after `reset` or after a turn. A `Witness` looks at the moments of one
episode in their order: each must be right by itself, and fit the ones before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .frames import Frame, InfoKeys, assert_fresh, check_info, check_observation, plain

Rule = Callable[["Moment"], None]
"""Raises AssertionError where a moment breaks what it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What an environment says after `reset`, or after a turn."""

    agents: tuple[str, ...]
    """Those whom the moment is about: alive now, or until the turn that led here."""
    observations: Mapping[str, Any]
    infos: Mapping[str, Mapping[str, Any]]
    rewards: Mapping[str, Any]
    terminations: Mapping[str, Any]
    truncations: Mapping[str, Any]
    alive: tuple[str, ...]
    """The environment's `agents`."""
    asked: tuple[str, ...]
    """Who must act now, or take a dead step (AEC)."""
    state: Any = None
    """`state()`, where there is a `state_space`."""
    actions: Mapping[str, Any] = field(default_factory=dict)
    """What was done in the turn that led here, by those who were asked."""
    movers: tuple[str, ...] = ()
    """Whose turn that was, those included that failed to act; nobody after `reset`."""
    owed: float | None = None
    """What `last()` pays to the agent whose turn it is; None in other forms than AEC."""

    @property
    def over(self) -> bool:
        """Whether nobody acts any more."""
        return all(self.terminations[a] or self.truncations[a] for a in self.agents)

    def frame(self) -> Frame:
        """Return the moment as data that compares with `==`."""
        return {
            "agents": self.alive,
            "asked": self.asked,
            "observations": plain(self.observations),
            "rewards": dict(self.rewards),
            "owed": self.owed,
            "terminations": dict(self.terminations),
            "truncations": dict(self.truncations),
            "infos": plain(self.infos),
            "state": plain(self.state),
            "actions": plain(self.actions),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Spaces:
    """What the members of a moment belong to."""

    observation: Callable[[str], Any]
    action: Callable[[str], Any]
    state: Any = None


def state_of(env: Any) -> Any:
    """Return the state of a PettingZoo environment, where it has a `state_space`; else None.

    Raises:
        AssertionError: it has such a space, and no state.
    """
    if getattr(env.unwrapped, "state_space", None) is None:
        return None
    try:
        return env.state()
    except Exception as error:
        raise AssertionError(
            f"state() raised {error!r}; where there is a state_space, it returns an array of it at "
            "every moment, after the end too"
        ) from error


class Witness:
    """Looks at the moments of one episode.

    Args:
        spaces: of the environment.
        info_fields: see `check_info`.
        rule: what else must hold of each moment.
    """

    def __init__(
        self, spaces: Spaces, info_fields: Mapping[str, type] | None, rule: Rule | None
    ) -> None:
        self._spaces = spaces
        self._info_fields = info_fields
        self._rule = rule
        self._keys = InfoKeys()
        self._earned: dict[str, float] = {}
        self._before: tuple[Moment, Frame] | None = None

    def see(self, moment: Moment) -> Frame:
        """Check the next moment, and return it as data.

        Raises:
            AssertionError: it breaks a rule.
        """
        self._check_parts(moment)
        for agent in moment.agents:
            check_observation(self._spaces.observation(agent), moment.observations[agent], agent)
            check_info(moment.infos[agent], self._info_fields, self._spaces.action(agent))
            self._keys.check(agent, moment.infos[agent])
            _check_reward(agent, moment.rewards[agent])
            _check_flags(agent, moment.terminations[agent], moment.truncations[agent])
        self._check_state(moment.state)
        self._check_payment(moment)
        if self._before is not None:
            _check_fresh(*self._before, moment)
        if self._rule is not None:
            self._rule(moment)
        frame = moment.frame()
        self._before = moment, frame
        return frame

    def _check_parts(self, moment: Moment) -> None:
        for name in ("observations", "rewards", "terminations", "truncations", "infos"):
            part = getattr(moment, name)
            assert set(part) == set(moment.agents), (
                f"{name} are for {sorted(part)}, but the agents that were alive are "
                f"{sorted(moment.agents)}; answer all of them, in the last step, too"
            )

    def _check_state(self, state: Any) -> None:
        if self._spaces.state is None:
            return
        belongs = isinstance(state, np.ndarray) and self._spaces.state.contains(state)
        assert belongs, (
            f"state() must be an array in state_space, got {state!r:.300}, which is not in "
            f"{self._spaces.state!r:.300}; mind shape, dtype and bounds"
        )

    def _check_payment(self, moment: Moment) -> None:
        """Check that `last()` pays what an agent got since its own last turn."""
        for agent in moment.movers:
            self._earned[agent] = 0.0
        for agent, reward in moment.rewards.items():
            self._earned[agent] = self._earned.get(agent, 0.0) + reward
        if moment.owed is not None:
            (agent,) = moment.asked
            expected = self._earned[agent]
            assert math.isclose(moment.owed, expected, rel_tol=1e-9, abs_tol=1e-9), (
                f"last() pays {moment.owed!r} to {agent}, but `rewards` came to {expected!r} since "
                "its last turn; call _accumulate_rewards() after `rewards` is complete, and set "
                "the acting agent's cumulative reward to 0 before"
            )


def _check_reward(agent: str, reward: Any) -> None:
    number = isinstance(reward, int | float) and not isinstance(reward, bool)
    assert number, f"the reward of {agent} must be a plain number, got {reward!r}"
    assert math.isfinite(reward), (
        f"the reward of {agent} must be finite, got {reward!r}: one such number spoils every mean "
        "and every gradient; a bad action earns a number, too"
    )


def _check_flags(agent: str, terminated: Any, truncated: Any) -> None:
    for flag in (terminated, truncated):
        assert isinstance(flag, bool), (
            f"terminations and truncations are plain bools, got {flag!r} for {agent}; wrap it in "
            "bool()"
        )


def _check_fresh(before: Moment, frame: Frame, now: Moment) -> None:
    """Check that a turn left what was given out before it as it was, and made all anew."""
    for name in ("observations", "infos", "state"):
        assert plain(getattr(before, name)) == frame[name], (
            f"the {name} of a turn changed after the next one: whoever kept them sees them change; "
            "make new arrays and dicts at every step"
        )
    if now.movers:
        for agent in now.agents:
            assert_fresh(agent, before.infos[agent], now.infos[agent])
