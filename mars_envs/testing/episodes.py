"""Playing whole episodes, in any form, and playing them again: what all the checks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .frames import CLONES, Frame, assert_same
from .moments import Moment, Rule, Spaces, Witness

MAX_TURNS = 100_000
"""Turns after which an episode counts as endless."""


class Form(Protocol):
    """How an environment of one form (AEC, Parallel, Gymnasium) is played."""

    def spaces(self, env: Any) -> Spaces:
        """Return its spaces."""
        ...

    def begin(self, env: Any, seed: int | None, options: Mapping[str, Any] | None) -> Moment:
        """Reset it."""
        ...

    def look_again(self, env: Any, moment: Moment) -> Moment:
        """Return what a copy of the environment says now, as far as it can be asked."""
        ...

    def act(
        self, env: Any, moment: Moment, turn: int, *, failing: int = 0, permanent: bool = False
    ) -> Moment:
        """Take a turn; the first `failing` agents of those that are asked give no action."""
        ...


def made(make_env: Callable[[], Any], kind: Any = object) -> Any:
    """Make an environment.

    Raises:
        AssertionError: nothing makes one here, or it is of another form.
    """
    assert callable(make_env), (
        f"expected something that makes the environment anew, as `lambda: MyEnv()` does, got "
        f"{make_env!r:.200}"
    )
    env = make_env()
    assert isinstance(env, kind), (
        f"expected something that makes a {kind.__module__}.{kind.__name__}, got a "
        f"{type(env).__name__}; check_text_aec, check_text_parallel and check_text_gym are for one "
        "form each"
    )
    return env


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Plays episodes, with a witness to each.

    Args:
        form: of the environments.
        info_fields: see `check_info`.
        rules: makes a rule for the moments of one episode of an environment.
    """

    form: Form
    info_fields: Mapping[str, type] | None = None
    rules: Callable[[Any], Rule] | None = None

    def begin(
        self, env: Any, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Witness, Moment]:
        """Begin an episode."""
        moment = self.form.begin(env, seed, options)
        rule = None if self.rules is None else self.rules(env)
        return Witness(self.form.spaces(env), self.info_fields, rule), moment

    def play(
        self,
        env: Any,
        seed: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        clone: tuple[int, str, Callable[[Any], Any]] | None = None,
        fail_at: int | None = None,
    ) -> list[Frame]:
        """Play one episode to its end.

        Args:
            env: the environment.
            seed: of the episode.
            options: of `reset`.
            clone: a turn at which the environment is replaced by a copy, what that is called, and
                how it is made.
            fail_at: a turn at which one agent fails to act.

        Returns:
            What the environment said after `reset` and after every turn, dead steps included.

        Raises:
            AssertionError: a rule is broken.
        """
        witness, moment = self.begin(env, seed, options)
        trace = [witness.see(moment)]
        while moment.asked:
            turn = len(trace) - 1
            assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} steps"
            if clone is not None and turn == clone[0]:
                _, name, copy = clone
                env = copy(env)
                moment = self.form.look_again(env, moment)
                assert_same(trace, [*trace[:-1], moment.frame()], f"seed {seed}, in a {name}")
            failing = int(turn == fail_at and not moment.over)
            moment = self.form.act(env, moment, turn, failing=failing)
            trace.append(witness.see(moment))
        return trace


def check_repeats(
    player: Player,
    make_env: Callable[[], Any],
    seeds: Sequence[int],
    more: Callable[[Any, Any, int, list[Frame]], None] | None = None,
) -> None:
    """Check that episodes repeat: elsewhere, in the same environment, and from copies.

    Args:
        player: plays.
        make_env: makes the environment anew.
        seeds: one episode is played for each.
        more: further checks, of (an environment, another one, seed, the episode).

    Raises:
        AssertionError: the first rule that is broken.
    """
    for seed in seeds:
        first, second = make_env(), make_env()
        trace = player.play(first, seed)
        assert_same(trace, player.play(second, seed), f"seed {seed}, played twice")
        # The same object again: nothing may leak from one episode into the next.
        assert_same(trace, player.play(first, seed), f"seed {seed}, replayed")
        middle = sum(map(_runs, trace)) // 2
        for name, copy in CLONES:
            resumed = player.play(second, seed, clone=(middle, name, copy))
            assert_same(trace, resumed, f"seed {seed}, continued from a {name}")
        if more is not None:
            more(first, second, seed, trace)
        first.close()
        second.close()


def _runs(frame: Frame) -> bool:
    flags = (*frame["terminations"].values(), *frame["truncations"].values())
    return bool(flags) and not any(flags)
