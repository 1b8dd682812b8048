"""The check of PettingZoo AEC environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .frames import (
    CLONES,
    MAX_TURNS,
    Frame,
    InfoKeys,
    TextPolicy,
    assert_fresh,
    assert_same,
    check_info,
    check_observation,
    plain,
)
from .stubs import odd_policy


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
    for seed in seeds:
        first, second = make_env(), make_env()
        game = _Game(policy, info_fields)
        trace = game.play(first, seed)
        assert_same(trace, game.play(second, seed), f"seed {seed}, played twice")
        # The same object again: nothing may leak from one episode into the next.
        assert_same(trace, game.play(first, seed), f"seed {seed}, replayed")
        for name, clone in CLONES:
            resumed = game.play(second, seed, clone_at=len(trace) // 2, clone=clone)
            assert_same(trace, resumed, f"seed {seed}, continued from a {name}")
        if first.metadata.get("supports_fail", False):
            once = game.play(first, seed, fail_at=1)
            assert_same(once, game.play(second, seed, fail_at=1), f"seed {seed}, with a failure")
        first.close()
        second.close()


class _Game:
    """Plays episodes with one policy."""

    def __init__(self, policy: TextPolicy, info_fields: Mapping[str, type] | None) -> None:
        self._policy = policy
        self._info_fields = info_fields

    def play(
        self,
        env: Any,
        seed: int,
        *,
        clone_at: int | None = None,
        clone: Callable[[Any], Any] | None = None,
        fail_at: int | None = None,
    ) -> list[Frame]:
        """Play one episode to its end and return a frame for every turn, dead steps included."""
        env.reset(seed=seed)
        trace: list[Frame] = []
        keys = InfoKeys()
        while env.agents:
            turn = len(trace)
            assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} turns"
            if clone is not None and turn == clone_at:
                env = clone(env)
            for agent in env.agents:
                self._check(env, agent, keys)
            agent = env.agent_selection
            observation, reward, terminated, truncated, info = env.last()
            over = terminated or truncated
            failing = turn == fail_at and not over
            action = None if over or failing else self._policy(agent, observation, info, turn)
            trace.append(
                {
                    "agent": agent,
                    "agents": list(env.agents),
                    "observations": {a: plain(env.observe(a)) for a in env.agents},
                    "reward": float(reward),
                    "terminated": terminated,
                    "truncated": truncated,
                    "infos": {a: plain(env.infos[a]) for a in env.agents},
                    "action": action,
                }
            )
            if failing:
                _fail(env, agent)
                continue
            seen = {a: env.infos[a] for a in env.agents}
            env.step(action)
            if not over:
                for a in env.agents:
                    assert_fresh(a, seen.get(a), env.infos[a])
        return trace

    def _check(self, env: Any, agent: str, keys: InfoKeys) -> None:
        info = env.infos[agent]
        check_observation(env.observation_space(agent), env.observe(agent), agent)
        check_info(info, self._info_fields, env.action_space(agent))
        keys.check(agent, info)


def _fail(env: Any, agent: str) -> None:
    """Say that no text comes from the selected agent, and check that the game goes on."""
    before = list(env.agents)
    # Through `unwrapped`: wrappers need not pass on methods that are not PettingZoo's.
    env.unwrapped.fail(agent, "no text", permanent=False)
    assert list(env.agents) == before, (
        f"fail({agent!r}) changed `agents` from {before} to {env.agents}; agents keep their place, "
        "and info['active'] says who must act"
    )
    for other in env.agents:
        paid = env.rewards[other]
        assert paid == 0, f"fail({agent!r}) paid {paid!r} to {other}; a failure earns nothing"
