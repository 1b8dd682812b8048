"""The check of Gymnasium environments: single-agent views and others whose actions are texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

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


def check_text_gym(
    make_env: Callable[[], gymnasium.Env[Any, Any]],
    *,
    policy: TextPolicy = odd_policy,
    seeds: Sequence[int] = (0, 1),
    info_fields: Mapping[str, type] | None = None,
) -> None:
    """Check a Gymnasium environment whose actions are texts, over whole episodes.

    Complements `gymnasium.utils.env_checker.check_env`, which takes one step.

    Args:
        make_env: makes the environment anew.
        policy: speaks; its agent is `info["agent"]`, where there is one, else "".
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
        assert_same(trace, game.play(first, seed), f"seed {seed}, replayed")
        for name, clone in CLONES:
            resumed = game.play(second, seed, clone_at=len(trace) // 2, clone=clone)
            assert_same(trace, resumed, f"seed {seed}, continued from a {name}")
        first.close()
        second.close()


class _Game:
    """Plays episodes with one policy."""

    def __init__(self, policy: TextPolicy, info_fields: Mapping[str, type] | None) -> None:
        self._policy = policy
        self._info_fields = info_fields

    def play(
        self,
        env: gymnasium.Env[Any, Any],
        seed: int,
        *,
        clone_at: int | None = None,
        clone: Callable[[Any], Any] | None = None,
    ) -> list[Frame]:
        """Play one episode to its end and return a frame for the reset and for every step."""
        observation, info = env.reset(seed=seed)
        keys = InfoKeys()
        self._check(env, observation, info, keys)
        trace: list[Frame] = [{"observation": plain(observation), "info": plain(info)}]
        over = False
        while not over:
            turn = len(trace) - 1
            assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} steps"
            if clone is not None and turn == clone_at:
                env = clone(env)
            action = self._policy(str(info.get("agent", "")), observation, info, turn)
            before = info
            observation, reward, terminated, truncated, info = env.step(action)
            assert_fresh("the agent", before, info)
            self._check(env, observation, info, keys)
            assert isinstance(reward, int | float), f"a reward is a plain number, got {reward!r}"
            for flag in (terminated, truncated):
                assert isinstance(flag, bool), (
                    f"terminated and truncated are plain bools, got {flag!r}; wrap it in bool()"
                )
            over = terminated or truncated
            trace.append(
                {
                    "observation": plain(observation),
                    "reward": reward,
                    "terminated": terminated,
                    "truncated": truncated,
                    "info": plain(info),
                }
            )
        return trace

    def _check(self, env: Any, observation: Any, info: Mapping[str, Any], keys: InfoKeys) -> None:
        check_observation(env.observation_space, observation, "the agent")
        check_info(info, self._info_fields, env.action_space)
        keys.check("the agent", info)
