"""The check of PettingZoo Parallel environments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pettingzoo import ParallelEnv

from .episodes import Player, check_repeats, made
from .frames import Frame, TextPolicy, assert_same
from .moments import Moment, Spaces, state_of
from .stubs import assert_speaks, odd_policy

_FAILING_ROUNDS = (0, 1)
"""Of an episode; others may be asked in the second one than in the first."""


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
    env = made(make_env, ParallelEnv)
    for agent in env.possible_agents:
        assert_speaks(policy, env.action_space(agent))
    env.close()
    check_parallel(Player(form=ParallelForm(policy), info_fields=info_fields), make_env, seeds)


def check_parallel(player: Player, make_env: Callable[[], Any], seeds: Sequence[int]) -> None:
    """Check that episodes repeat, whatever idle agents say and however agents fail."""

    def with_form(**options: Any) -> Player:
        form = dataclasses.replace(player.form, **options)  # type: ignore[type-var]
        return dataclasses.replace(player, form=form)

    def more(first: Any, second: Any, seed: int, trace: list[Frame]) -> None:
        assert_same(
            trace,
            with_form(idle_action="an idle agent's text").play(second, seed),
            f"seed {seed}, with other actions of agents that are not active (which do not count)",
        )
        if first.metadata.get("supports_fail", False):
            for turn in _FAILING_ROUNDS:
                assert_same(
                    with_form(tells=False).play(first, seed, fail_at=turn),
                    with_form(tells=True).play(second, seed, fail_at=turn),
                    f"seed {seed}, an agent that is missing from the actions, and one that fail() "
                    "was called for (which must come to the same)",
                )

    check_repeats(player, make_env, seeds, more)


@dataclass(frozen=True, slots=True)
class ParallelForm:
    """Plays Parallel environments."""

    policy: TextPolicy
    idle_action: str = ""
    """What agents say that are not asked."""
    tells: bool = True
    """Whether an agent that gives no action says so with `fail`."""

    def spaces(self, env: Any) -> Spaces:
        """Return its spaces."""
        return Spaces(
            observation=env.observation_space,
            action=env.action_space,
            state=getattr(env.unwrapped, "state_space", None),
        )

    def begin(self, env: Any, seed: int | None, options: Mapping[str, Any] | None) -> Moment:
        """Reset it."""
        observations, infos = env.reset(seed=seed, options=options)
        live = tuple(env.agents)
        zero, no = dict.fromkeys(live, 0.0), dict.fromkeys(live, False)
        return _look(env, live, (observations, zero, no, no, infos))

    def look_again(self, env: Any, moment: Moment) -> Moment:
        """Return the moment: an environment of this form says each thing once."""
        return moment

    def act(
        self, env: Any, moment: Moment, turn: int, *, failing: int = 0, permanent: bool = False
    ) -> Moment:
        """Let all active agents act, but for those that fail."""
        missing = moment.asked[:failing]
        actions = {
            agent: self.policy(agent, moment.observations[agent], moment.infos[agent], turn)
            if agent in moment.asked
            else self._idle(env.action_space(agent))
            for agent in moment.alive
            if agent not in missing
        }
        if self.tells or permanent:
            for agent in missing:
                env.unwrapped.fail(agent, "no text", permanent=permanent)
        returned = env.step(actions)
        counted = {agent: actions[agent] for agent in moment.asked if agent not in missing}
        return _look(env, moment.alive, returned, movers=moment.asked, actions=counted)

    def _idle(self, space: Any) -> Any:
        """Return an action that does not count: the text, or some action of another space."""
        return self.idle_action if space.contains(self.idle_action) else space.sample()


def _look(
    env: Any,
    live: tuple[str, ...],
    returned: tuple[Any, ...],
    *,
    movers: tuple[str, ...] = (),
    actions: Mapping[str, Any] | None = None,
) -> Moment:
    observations, rewards, terminations, truncations, infos = returned
    alive = tuple(env.agents)
    staying = [agent for agent in live if not (terminations.get(agent) or truncations.get(agent))]
    assert set(alive) == set(staying), (
        f"`agents` is {list(alive)} after a step that left {staying} alive: an agent leaves "
        "when it is terminated or truncated and only then; one that has nothing to say stays, "
        "with info['active'] false"
    )
    asked = tuple(agent for agent in alive if infos.get(agent, {}).get("active", True))
    assert asked or not alive, (
        f"{len(alive)} agents are alive but none is active, so the episode cannot go on; "
        "keep info['active'] true for somebody until it ends"
    )
    return Moment(
        agents=live,
        observations=observations,
        infos=infos,
        rewards=rewards,
        terminations=terminations,
        truncations=truncations,
        alive=alive,
        asked=asked,
        state=state_of(env),
        actions=actions or {},
        movers=movers,
    )
