"""The check of Gymnasium environments: single-agent views and others whose actions are texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from .episodes import Player, check_repeats, made
from .frames import TextPolicy
from .moments import Moment, Spaces
from .stubs import assert_speaks, odd_policy

LEARNER = "the agent"
"""Who acts, in a moment of a Gymnasium environment."""


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
    env = made(make_env, gymnasium.Env)
    assert_speaks(policy, env.action_space)
    env.close()
    check_repeats(Player(form=GymForm(policy), info_fields=info_fields), make_env, seeds)


def check_prompt(moment: Moment) -> None:
    """Check that the agent of a view sees a prompt exactly where it is asked for something.

    Raises:
        AssertionError: it does not.
    """
    info, observation = moment.infos[LEARNER], moment.observations[LEARNER]
    prompt = observation["prompt"] if isinstance(observation, Mapping) else observation
    assert bool(prompt) == info["active"], (
        f"the prompt is {prompt!r:.200} and info['active'] {info['active']}; whoever is asked "
        "sees what to answer, and after the end nobody is asked"
    )


@dataclass(frozen=True, slots=True)
class GymForm:
    """Plays Gymnasium environments."""

    policy: TextPolicy

    def spaces(self, env: Any) -> Spaces:
        """Return its spaces."""
        return Spaces(
            observation=lambda _: env.observation_space, action=lambda _: env.action_space
        )

    def begin(self, env: Any, seed: int | None, options: Mapping[str, Any] | None) -> Moment:
        """Reset it."""
        observation, info = env.reset(seed=seed, options=options)
        return _look((observation, 0.0, False, False, info))

    def look_again(self, env: Any, moment: Moment) -> Moment:
        """Return the moment: an environment of this form says each thing once."""
        return moment

    def act(
        self, env: Any, moment: Moment, turn: int, *, failing: int = 0, permanent: bool = False
    ) -> Moment:
        """Act. Nobody can fail here."""
        info = moment.infos[LEARNER]
        agent = str(info.get("agent", ""))
        action = self.policy(agent, moment.observations[LEARNER], info, turn)
        return _look(env.step(action), actions={LEARNER: action})


def _look(returned: tuple[Any, ...], actions: Mapping[str, Any] | None = None) -> Moment:
    observation, reward, terminated, truncated, info = returned
    alive = () if terminated or truncated else (LEARNER,)
    return Moment(
        agents=(LEARNER,),
        observations={LEARNER: observation},
        infos={LEARNER: info},
        rewards={LEARNER: reward},
        terminations={LEARNER: terminated},
        truncations={LEARNER: truncated},
        alive=alive,
        asked=alive,
        actions=actions or {},
        movers=tuple(actions or ()),
    )
