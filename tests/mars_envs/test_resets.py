"""A reset that raises changes nothing: neither the episode nor what later ones draw."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mars_envs import (
    ParallelMemoryEnv,
    ParallelTreeSearchEnv,
    SingleAgentView,
    TreeSearchEnv,
    TurnBasedMemoryEnv,
)
from mars_envs.parallel_memory import compact_prompts as reading_prompts
from mars_envs.testing import StubJudge, stub_reading_tasks, stub_tasks
from mars_envs.tree_search import TreeControlEnv
from mars_envs.tree_search import compact_prompts as coding_prompts
from mars_envs.tree_search.presets import resolve_selector
from mars_envs.tree_search.simulated import RecordedTasks

FULL = OSError("the disk is full")


class Moody:
    """Everything of another object; its function `name` raises while `fails`."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._name:
            return found

        def guarded(*given: Any) -> Any:
            result = found(*given)
            if self.fails:
                raise FULL
            return result

        return guarded


def memory(kind: Any) -> tuple[Any, Moody]:
    moody = Moody(reading_prompts, "read")
    return kind(tasks=stub_reading_tasks(), chunk_tokens=9, prompts=moody), moody


def tree(kind: Any) -> tuple[Any, Moody]:
    moody = Moody(resolve_selector("default"), "select")
    return kind(tasks=stub_tasks(), judge=StubJudge, selector=moody), moody


def rounds() -> tuple[Any, Moody]:
    moody = Moody(coding_prompts, "root")
    return ParallelTreeSearchEnv(tasks=stub_tasks(), judge=StubJudge, prompts=moody), moody


def view() -> tuple[Any, Moody]:
    inner, moody = memory(TurnBasedMemoryEnv)
    return SingleAgentView(inner), moody


def seen(env: Any) -> Any:
    """What can be seen of the running episode."""
    bare = getattr(env, "env", env)
    task = bare.task.task_id
    return task, list(bare.agents), bare.state().tolist()


def drawn(env: Any, n: int = 12) -> list[str]:
    """The tasks of the next episodes."""
    tasks = []
    for _ in range(n):
        env.reset()
        tasks.append(seen(env)[0])
    return tasks


@pytest.mark.parametrize(
    "make",
    [
        lambda: memory(ParallelMemoryEnv),
        lambda: memory(TurnBasedMemoryEnv),
        lambda: tree(TreeSearchEnv),
        lambda: tree(ParallelTreeSearchEnv),
        rounds,
        view,
    ],
    ids=["readers", "turns", "tree", "rounds of selectors", "rounds of prompts", "view"],
)
@pytest.mark.parametrize("seed", [1, None])
def test_a_reset_that_raises_leaves_the_episode_and_later_draws(
    make: Callable[[], tuple[Any, Moody]], seed: int | None
) -> None:
    calm, _ = make()
    calm.reset(seed=5)
    env, moody = make()
    env.reset(seed=5)
    before = seen(env)
    moody.fails = True
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is full"):
            env.reset(seed=seed)
    moody.fails = False
    assert seen(env) == before
    assert drawn(env) == drawn(calm)


def test_a_first_reset_that_raises_leaves_no_generator() -> None:
    env, moody = memory(ParallelMemoryEnv)
    moody.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        env.reset(seed=5)
    assert env._np_random is None


def test_a_step_after_a_reset_that_raised_goes_on_with_the_old_episode() -> None:
    env, moody = tree(TreeSearchEnv)
    env.reset(seed=5)
    env.step("print(1)")
    moody.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        env.reset(seed=1, options={"agents": ["coder_1"]})
    moody.fails = False
    env.step("print(2)")
    assert [node.reply for node in env.tree] == ["print(1)", "print(2)"]


def test_a_view_goes_on_where_its_environment_cannot_be_reset() -> None:
    env, moody = view()
    env.reset(seed=5)
    moody.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        env.reset(seed=1)
    moody.fails = False
    assert env.step("<check>no</check>")[4]["n_calls"] == 1


def test_a_view_whose_partner_raises_draws_the_same_when_it_is_reset_again() -> None:
    down = SimpleNamespace(fails=False)

    def partner(observation: Any, info: Any) -> str:
        if down.fails:
            raise FULL
        return "<check>no</check>"

    def make() -> SingleAgentView:
        env, _ = memory(TurnBasedMemoryEnv)
        return SingleAgentView(env, partners={"reader_0": partner})

    calm, env = make(), make()
    for one in (calm, env):
        one.reset(seed=5)
    down.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        env.reset(seed=1)
    down.fails = False
    assert drawn(env) == drawn(calm)


def test_a_control_episode_keeps_its_luck_where_a_task_is_asked_for_that_there_is_not() -> None:
    def play(*, disturbed: bool) -> list[float]:
        env = TreeControlEnv(coders="specialists", budget=12)
        env.reset(seed=5)
        scores = []
        for _ in range(12):
            if disturbed:
                with pytest.raises(ValueError, match="none to ask for"):
                    env.reset(seed=1, options={"task": 7})
            scores.append(env.step(0)[4]["score"])
        return [*scores, *env.reset()[0].tolist(), env.step(0)[4]["score"], env._entropy]

    assert play(disturbed=True) == play(disturbed=False)


def test_a_control_environment_keeps_its_seed_where_a_reset_raises() -> None:
    env = TreeControlEnv(coders=RecordedTasks([{"a": [(0.0, False)]}]), budget=1)
    env.reset(seed=5)
    with pytest.raises(ValueError, match="no such task"):
        env.reset(seed=1, options={"task": 7})
    assert env.np_random_seed == 5
