"""What `fail` of a memory environment must do: scenarios, beside plain episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..parallel_memory.shell import OUTSIDE
from .episodes import MAX_TURNS, Player
from .failures import Failing
from .frames import assert_same

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
    _play(Failing(player, env, SEED), lambda turn: turn % EVERY == EVERY - 1)
    reason = _play(Failing(player, env, SEED), lambda turn: True)
    assert reason in OUTSIDE, (
        f"stop_reason is {reason!r} after every call failed; where nobody answers there is nothing "
        "to score, and the episode is truncated (backend_error)"
    )
    reason = _play(Failing(player, env, SEED, permanent=True), lambda turn: True)
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


def _play(episode: Failing, fails: Callable[[int], bool]) -> str:
    """Play an episode in which some turns fail; return what ended it."""
    turn = 0
    while not episode.over:
        assert turn < MAX_TURNS, f"the episode did not end within {MAX_TURNS} steps of failures"
        episode.act(fails=fails(turn))
        turn += 1
    return episode.reason
