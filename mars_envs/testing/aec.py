"""The check of PettingZoo AEC environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pettingzoo import AECEnv

from .episodes import Player, check_repeats, made
from .frames import Frame, TextPolicy, assert_same
from .moments import Moment, Spaces, state_of
from .stubs import assert_speaks, odd_policy


def check_text_aec(
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy = odd_policy,
    seeds: Sequence[int] = (0, 1),
    info_fields: Mapping[str, type] | None = None,
) -> None:
    """Check a PettingZoo AEC environment whose actions are texts, over whole episodes.

    Args:
        make_env: makes the environment anew.
        policy: speaks for every agent; must depend on its arguments alone.
        seeds: one episode is played for each.
        info_fields: the exact keys and types of each info; None: only flat scalars, always with
            the same keys.

    Raises:
        AssertionError: the first rule that is broken.
    """
    env = made(make_env, AECEnv)
    for agent in env.possible_agents:
        assert_speaks(policy, env.action_space(agent))
    env.close()
    check_aec(Player(form=AecForm(policy), info_fields=info_fields), make_env, seeds)


def check_aec(player: Player, make_env: Callable[[], Any], seeds: Sequence[int]) -> None:
    """Check that episodes repeat, those in which an agent fails included."""

    def failures(first: Any, second: Any, seed: int, trace: list[Frame]) -> None:
        if first.metadata.get("supports_fail", False):
            once = player.play(first, seed, fail_at=1)
            again = player.play(second, seed, fail_at=1)
            assert_same(once, again, f"seed {seed}, with a failure")

    check_repeats(player, make_env, seeds, failures)


@dataclass(frozen=True, slots=True)
class AecForm:
    """Plays AEC environments."""

    policy: TextPolicy

    def spaces(self, env: Any) -> Spaces:
        """Return its spaces."""
        return Spaces(
            observation=env.observation_space,
            action=env.action_space,
            state=getattr(env.unwrapped, "state_space", None),
        )

    def begin(self, env: Any, seed: int | None, options: Mapping[str, Any] | None) -> Moment:
        """Reset it."""
        env.reset(seed=seed, options=options)
        return _look(env)

    def look_again(self, env: Any, moment: Moment) -> Moment:
        """Return what a copy says."""
        return _look(env, movers=moment.movers, actions=moment.actions)

    def act(
        self, env: Any, moment: Moment, turn: int, *, failing: int = 0, permanent: bool = False
    ) -> Moment:
        """Let the selected agent act, fail, or take its dead step."""
        (agent,) = moment.asked
        if moment.terminations[agent] or moment.truncations[agent]:
            env.step(None)
            return _look(env)
        if failing:
            _fail(env, agent, permanent=permanent)
            return _look(env, movers=(agent,))
        action = self.policy(agent, moment.observations[agent], moment.infos[agent], turn)
        env.step(action)
        return _look(env, movers=(agent,), actions={agent: action})


def _look(
    env: Any, *, movers: tuple[str, ...] = (), actions: Mapping[str, Any] | None = None
) -> Moment:
    agents = tuple(env.agents)

    def of_agents(part: Mapping[str, Any]) -> dict[str, Any]:
        return {agent: part[agent] for agent in agents if agent in part}

    return Moment(
        agents=agents,
        observations={agent: env.observe(agent) for agent in agents},
        infos=of_agents(env.infos),
        rewards=of_agents(env.rewards),
        terminations=of_agents(env.terminations),
        truncations=of_agents(env.truncations),
        alive=agents,
        asked=(env.agent_selection,) if agents else (),
        state=state_of(env),
        actions=actions or {},
        movers=movers,
        owed=env.last(observe=False)[1] if agents else None,
    )


def _fail(env: Any, agent: str, *, permanent: bool) -> None:
    """Say that no text comes from the selected agent, and check that the game goes on."""
    before = list(env.agents)
    # Through `unwrapped`: wrappers need not pass on methods that are not PettingZoo's.
    env.unwrapped.fail(agent, "no text", permanent=permanent)
    assert list(env.agents) == before, (
        f"fail({agent!r}) changed `agents` from {before} to {env.agents}; agents keep their place, "
        "and info['active'] says who must act"
    )
    for other in env.agents:
        paid = env.rewards[other]
        assert paid == 0, f"fail({agent!r}) paid {paid!r} to {other}; a failure earns nothing"
