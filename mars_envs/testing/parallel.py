"""The check of PettingZoo Parallel environments."""

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

_FAILING_ROUND = 1


def check_text_parallel(
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy = odd_policy,
    seeds: Sequence[int] = (0, 1),
    info_fields: Mapping[str, type] | None = None,
) -> None:
    """Check a PettingZoo Parallel environment whose actions are texts, over whole episodes.

    Where infos have a key `active`, agents that are not active stay in `agents`, and their actions
    are ignored.

    Args:
        make_env: makes the environment anew.
        policy: speaks for every active agent; must depend on its arguments alone.
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
        assert_same(
            trace,
            game.play(second, seed, idle_action="an idle agent's text"),
            f"seed {seed}, with other actions of agents that are not active (which do not count)",
        )
        if first.metadata.get("supports_fail", False):
            missing = game.play(first, seed, failing="missing")
            told = game.play(second, seed, failing="told")
            assert_same(
                missing,
                told,
                f"seed {seed}, an agent that is missing from the actions, and one that fail() "
                "was called for (which must come to the same)",
            )
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
        idle_action: str = "",
        failing: str | None = None,
    ) -> list[Frame]:
        """Play one episode to its end and return a frame for the reset and for every step."""
        observations, infos = env.reset(seed=seed)
        live = list(env.agents)
        zero = dict.fromkeys(live, 0.0)
        no = dict.fromkeys(live, False)
        trace: list[Frame] = []
        keys = InfoKeys()
        returned = (observations, zero, no, no, infos)
        self._check(env, live, returned, keys)
        trace.append(_frame(live, returned))
        while env.agents:
            turn = len(trace) - 1
            assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} steps"
            if clone is not None and turn == clone_at:
                env = clone(env)
            live = list(env.agents)
            active = [agent for agent in live if infos[agent].get("active", True)]
            assert active, (
                f"{len(live)} agents are alive but none is active, so the episode cannot go on; "
                "keep info['active'] true for somebody until it ends"
            )
            actions = {
                agent: self._policy(agent, observations[agent], infos[agent], turn)
                if agent in active
                else self._idle(env.action_space(agent), idle_action)
                for agent in live
            }
            if failing is not None and turn == _FAILING_ROUND:
                del actions[active[0]]
                if failing == "told":
                    env.unwrapped.fail(active[0], "no text", permanent=False)
            before = infos
            returned = env.step(actions)
            observations, _, _, _, infos = returned
            self._check(env, live, returned, keys)
            for agent in live:
                assert_fresh(agent, before[agent], infos[agent])
            trace.append(_frame(live, returned))
        return trace

    def _idle(self, space: Any, text: str) -> Any:
        """Return an action that does not count: the text, or some action of another space."""
        return text if space.contains(text) else space.sample()

    def _check(
        self, env: Any, live: Sequence[str], returned: tuple[Any, ...], keys: InfoKeys
    ) -> None:
        names = ("observations", "rewards", "terminations", "truncations", "infos")
        for name, part in zip(names, returned, strict=True):
            assert set(part) == set(live), (
                f"{name} are for {sorted(part)}, but the agents that were alive are "
                f"{sorted(live)}; answer all of them, in the last step, too"
            )
        observations, rewards, terminations, truncations, infos = returned
        for agent in live:
            check_observation(env.observation_space(agent), observations[agent], agent)
            check_info(infos[agent], self._info_fields, env.action_space(agent))
            keys.check(agent, infos[agent])
            assert isinstance(rewards[agent], int | float), (
                f"the reward of {agent} must be a plain number, got {rewards[agent]!r}"
            )
            for flag in (terminations[agent], truncations[agent]):
                assert isinstance(flag, bool), (
                    f"terminations and truncations are plain bools, got {flag!r} for {agent}"
                )
        staying = [a for a in live if not (terminations[a] or truncations[a])]
        assert set(env.agents) == set(staying), (
            f"`agents` is {env.agents} after a step that left {staying} alive: an agent leaves "
            "when it is terminated or truncated and only then; one that has nothing to say stays, "
            "with info['active'] false"
        )


def _frame(live: Sequence[str], returned: tuple[Any, ...]) -> Frame:
    observations, rewards, terminations, truncations, infos = returned
    return {
        "agents": list(live),
        "observations": plain(observations),
        "rewards": dict(rewards),
        "terminations": dict(terminations),
        "truncations": dict(truncations),
        "infos": plain(infos),
    }
