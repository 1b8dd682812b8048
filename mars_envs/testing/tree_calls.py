"""What teams and `fail` of a tree environment must do: scenarios, beside plain episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tree_search.shell import OUTSIDE
from .episodes import Player
from .failures import Failing
from .frames import assert_same
from .resets import check_later_reset

SEED = 0


def check_teams(player: Player, make_env: Callable[[], Any]) -> None:
    """Check that `reset(options={"agents": [...]})` chooses the agents of an episode.

    Raises:
        AssertionError: it does not.
    """
    env = make_env()
    _, moment = player.begin(env, SEED)
    able = [agent for agent, info in moment.infos.items() if info["own_nodes_left"] > 0]
    team = able[-1:]
    start = check_later_reset(player, env, {"agents": team})
    assert list(start["infos"]) == team, (
        f"reset(options={{'agents': {team}}}) began an episode of {list(start['infos'])}; the "
        "option chooses the agents, and the others are not in `agents`"
    )
    # A whole episode of them keeps all the rules, the whole budget included.
    player.play(env, SEED, options={"agents": team})
    env.close()


def check_failures(player: Player, make_env: Callable[[], Any]) -> None:
    """Check that a failure makes no node and retires nobody, unless it is `permanent`.

    Raises:
        AssertionError: it does.
    """
    env = make_env()
    before = player.play(env, SEED)
    rounds = len(env.possible_agents) + 1
    episode = Failing(player, env, SEED)
    for _ in range(rounds):
        # `fail` must be harmless, but cycles and seconds go on.
        if not episode.over:
            episode.act()
    assert episode.reason in ("", "max_cycles", "seconds"), (
        f"the episode ended ({episode.reason}) after fail(agent, reason) for everybody, "
        f"{rounds} times; a failure that is not permanent spends no budget and retires nobody"
    )
    episode = Failing(player, env, SEED, permanent=True)
    while not episode.over and len(episode.retired) < rounds - 1:
        episode.act()
    assert episode.reason in OUTSIDE, (
        f"stop_reason is {episode.reason!r} after fail(agent, reason, permanent=True) for every "
        "agent; where nobody is left, the episode is truncated (agents)"
    )
    assert_same(
        before,
        player.play(env, SEED),
        "an episode after others in which agents failed (which is forgotten at reset)",
    )
    env.close()
