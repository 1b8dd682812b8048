"""What `reset` must do with seeds and options, whatever the episodes are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .episodes import Player
from .frames import CLONES, Frame, assert_same

SEEDS = range(20)
"""Enough that two tasks, drawn alike often, are both drawn but for one case in half a million."""
ASKED_TASKS = 5
"""The most tasks that are asked for by name."""


def core(env: Any) -> Any:
    """Return the environment inside all wrappers and views."""
    env = env.unwrapped
    while hasattr(env, "env"):
        env = env.env.unwrapped
    return env


def check_resets(player: Player, make_env: Callable[[], Any]) -> None:
    """Check that the seed and the options of `reset` do what they are there for.

    Raises:
        AssertionError: one does not.
    """
    env, twin = make_env(), make_env()
    known = [task.task_id for task in getattr(core(env), "tasks", ())]
    seeded = [_start(player, env, seed) for seed in SEEDS]
    unseeded = [_start(player, env) for _ in SEEDS]
    _start(player, twin, SEEDS[-1])
    assert_same(
        unseeded,
        [_start(player, twin) for _ in SEEDS],
        f"resets without a seed after reset(seed={SEEDS[-1]}), in another environment",
    )
    for name, copy in CLONES:
        _start(player, twin, SEEDS[-1])
        resumed = copy(twin)
        assert_same(
            unseeded,
            [_start(player, resumed) for _ in SEEDS],
            f"resets without a seed of a {name} (which goes on with the random generator, too)",
        )
    for starts, how in ((seeded, "reset(seed=0), reset(seed=1), …"), (unseeded, "reset(), …")):
        drawn = {_task_of(start) for start in starts}
        assert len(drawn) > 1 or len(known) < 2, (
            f"{how} gave the task {min(drawn)!r} {len(SEEDS)} times of {len(SEEDS)}, with "
            f"{len(known)} tasks to draw from; draw the task from the generator that "
            "reset(seed=...) starts, and go on with it where there is no seed"
        )
    _check_same_reset(player, env, {"no such option": 1}, "an unknown option (to be ignored)")
    # Tasks that were met can be asked for; so can those that were not, where they are known.
    names = [*dict.fromkeys((*map(_task_of, seeded), *known))][:ASKED_TASKS]
    for name in names:
        start = check_later_reset(player, env, {"task": name})
        assert _task_of(start) == name, (
            f"reset(options={{'task': {name!r}}}) began the task {_task_of(start)!r}; the option "
            "chooses the task"
        )
    env.close()
    twin.close()


def check_later_reset(player: Player, env: Any, options: Mapping[str, Any]) -> Frame:
    """Reset with options, and check that they do not shift the episode after it."""
    _start(player, env, SEEDS[0])
    later = _start(player, env)
    start = _start(player, env, SEEDS[0], options)
    what = f"the reset() after reset(seed={SEEDS[0]}, options={dict(options)})"
    assert_same(
        [later],
        [_start(player, env)],
        f"{what}, and after reset(seed={SEEDS[0]}) (options shift no later episodes; draw as many "
        "numbers with them as without)",
    )
    return start


def _start(
    player: Player,
    env: Any,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Frame:
    witness, moment = player.begin(env, seed, options)
    return witness.see(moment)


def _task_of(start: Frame) -> str:
    return str(next(iter(start["infos"].values()))["task_id"])


def _check_same_reset(player: Player, env: Any, options: Mapping[str, Any], what: str) -> None:
    expected = _start(player, env, SEEDS[0])
    assert_same([expected], [_start(player, env, SEEDS[0], options)], f"reset with {what}")
