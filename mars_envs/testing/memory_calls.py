"""What `fail` of a memory environment must do: scenarios, beside plain episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..parallel_memory.shell import OUTSIDE
from .episodes import MAX_TURNS, Player
from .frames import assert_same
from .moments import Moment, Witness

SEED = 0
EVERY = 3
"""Of the calls, one in so many fails."""


def check_failures(player: Player, make_env: Callable[[], Any]) -> None:
    """Check what comes of calls that fail: now and then, always, and for good.

    Raises:
        AssertionError: a failure is taken for a reply, or outlives its episode.
    """
    env = make_env()
    before = player.play(env, SEED)
    _play_failing(player, env, lambda turn: turn % EVERY == EVERY - 1)
    always = _play_failing(player, env, lambda turn: True)
    reason = _reason(always)
    assert reason in OUTSIDE, (
        f"stop_reason is {reason!r} after every call failed; where nobody answers there is nothing "
        "to score, and the episode is truncated (backend_error)"
    )
    gone = _play_failing(player, env, lambda turn: True, permanent=True)
    reason = _reason(gone)
    assert reason in OUTSIDE, (
        f"stop_reason is {reason!r} after fail(agent, reason, permanent=True) for whoever was "
        "asked; where nobody is left, the episode is truncated (agents)"
    )
    assert_same(
        before,
        player.play(env, SEED),
        "an episode after others in which agents failed (which is forgotten at reset)",
    )
    env.close()


def _play_failing(
    player: Player, env: Any, fails: Callable[[int], bool], *, permanent: bool = False
) -> Moment:
    """Play an episode in which all agents that are asked in some turns fail."""
    witness, moment = player.begin(env, SEED)
    witness.see(moment)
    retired: set[str] = set()
    turn = 0
    while not moment.over:
        assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} steps of failures"
        failing = len(moment.asked) if fails(turn) else 0
        if permanent:
            retired.update(moment.asked)
        moment = _act(player, env, witness, moment, turn, failing, permanent)
        again = [] if moment.over else sorted(retired.intersection(moment.asked))
        assert not again, (
            f"{again} are asked again after fail(agent, reason, permanent=True), which retires an "
            "agent for the episode"
        )
        turn += 1
    return moment


def _act(
    player: Player,
    env: Any,
    witness: Witness,
    moment: Moment,
    turn: int,
    failing: int,
    permanent: bool,
) -> Moment:
    moment = player.form.act(env, moment, turn, failing=failing, permanent=permanent)
    witness.see(moment)
    return moment


def _reason(moment: Moment) -> str:
    return str(next(iter(moment.infos.values()))["stop_reason"])
