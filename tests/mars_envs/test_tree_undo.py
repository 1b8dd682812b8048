"""A step that raises changes nothing, whatever raised; and it costs nothing where nothing does."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.judging.base import Feedback, Verdict
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import TreeSearch
from mars_envs.tree_search.presets import resolve_selector

STUBS: dict[str, Any] = {"tasks": stub_tasks(), "judge": StubJudge, "budget": 6}


class Moody:
    """The default selector, which raises where it is told to."""

    def __init__(self) -> None:
        self.inner = resolve_selector("default")
        self.fails = False

    def statistics(self, agents: Any) -> Any:
        return self.inner.statistics(agents)

    def select(self, view: Any, rng: Any) -> Any:
        choice = self.inner.select(view, rng)
        if self.fails:
            self.fails = False
            raise OSError("the model that selects is down")
        return choice


def run(env: Any, moody: Any = None) -> list[Any]:
    """Play an episode; each step is first tried while something raises."""
    parallel = isinstance(env, ParallelTreeSearchEnv)
    infos = env.reset(seed=3)[1] if parallel else env.reset(seed=3)
    said: list[Any] = []
    while env.agents and (parallel or not any(env.terminations.values())):
        action: Any = f"print({len(said)})"
        if parallel:
            action = {a: f"{a} {action}" for a in env.agents if infos[a]["active"]}
        if moody is not None:
            state = env.state()
            moody.fails = True
            try:
                env.step(action)
            except OSError:
                assert (env.state() == state).all()
            else:  # the last step asks nobody, so it has come to pass
                moody.fails = False
                said.append(env.state().tolist())
                break
        returned = env.step(action)
        infos = returned[4] if parallel else env.infos
        said.append(env.state().tolist())
    return said


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
@pytest.mark.parametrize("select", ["search", "agent"])
def test_a_selector_that_raises_leaves_the_episode_as_it_was(kind: Any, select: str) -> None:
    moody = Moody()
    undisturbed = run(kind(**STUBS, select=select))
    assert run(kind(**STUBS, select=select, selector=moody), moody) == undisturbed


def test_prompts_that_raise_leave_a_round_as_it_was() -> None:
    down = SimpleNamespace(fails=False)

    def root(task: Any, agent: str) -> str:
        if down.fails:
            down.fails = False
            raise OSError("no prompt")
        return "answer"

    prompts: Any = SimpleNamespace(root=root, refine=lambda task, view, agent: root(task, agent))
    undisturbed = run(ParallelTreeSearchEnv(**STUBS, prompts=prompts))
    assert run(ParallelTreeSearchEnv(**STUBS, prompts=prompts), down) == undisturbed


def test_the_clock_runs_on_through_a_step_that_raises() -> None:
    now = [0.0]
    down = [False]

    def score(task: Any, tree: Any, node: Any) -> float:
        if down[0]:
            raise OSError("the reward model is down")
        return 0.5

    env = TreeSearchEnv(
        **STUBS, score_fn=score, score_weight=0.5, max_seconds=60, clock=lambda: now[0]
    )
    env.reset(seed=0)
    now[0], down[0] = 5.0, True
    with pytest.raises(OSError, match="down"):
        env.step("x")
    now[0], down[0] = 100.0, False
    env.step("x")
    assert env.infos["coder_0"]["stop_reason"] == "seconds"
    assert env.search.seconds == 100.0


def test_a_search_goes_back_to_a_mark_and_goes_on_as_if_nothing_had_been() -> None:
    search = TreeSearch(["a", "b"], "default", budget=20, seed=1)
    for _ in range(4):
        (expansion,) = search.ask()
        search.tell(expansion.id, 0.3)
    waiting, failing = search.ask(2)
    mark, saved = search.mark(), search.save()
    search.tell(waiting.id, 1.0, tokens=4)
    search.fail(failing.id, "no text", tokens=2)
    search.retire("a")
    search.ask(3)
    search.undo(mark)
    assert search.save() == saved
    twin = TreeSearch.load(saved)
    assert [search.ask(3), search.ask(2)] == [twin.ask(3), twin.ask(2)]


GOOD = Verdict(
    score=0.5,
    solved=False,
    status="wrong_answer",
    public_passed=1,
    public_total=2,
    feedback=Feedback(passed=1, total=2, status="wrong_answer"),
)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"score": "a"}, r"scores in \[0, 1\], got 'a' for coder_"),
        ({"solved": None}, "`solved` of a verdict is a bool, got None"),
        ({"public_passed": None}, "`public_passed` of a verdict is a number of tests"),
        ({"public_passed": 3}, "at most `public_total`, got 3 of 2"),
        ({"status": None}, "`status` of a verdict is a word, got None"),
        ({"feedback": None}, "`feedback` of a verdict is a Feedback, got None"),
        (None, "a judge must give a Verdict, got 0.5"),
    ],
)
def test_what_is_no_verdict_is_refused_before_anything_changes(wrong: Any, message: str) -> None:
    verdict: Any = 0.5 if wrong is None else dataclasses.replace(GOOD, **wrong)
    judge = SimpleNamespace(judge=lambda task, text: verdict, close=lambda: None)
    env = TreeSearchEnv(**{**STUBS, "judge": judge})
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step("x")
    assert len(env.tree) == 0
    env.judge = StubJudge()
    env.step("x")
    assert len(env.tree) == 1
