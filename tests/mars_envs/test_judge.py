"""The judge over a stand-in for the sandbox; test_judge_sandbox.py runs real programs."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import sandbox
from mars_envs.errors import InvalidTask, JudgeUnavailable
from mars_envs.judging import CodeJudge, JudgeStats
from mars_envs.judging import code as judging_code
from mars_envs.judging.helpers import with_helpers
from mars_envs.tasks import AssertBody, CodeTask, ExpectedCase, OutputRule
from sandbox import AssertCase, Capabilities, Case, CaseResult, Limits, Program, Report, Status

Answer = Callable[[Program, Case], CaseResult]

TASK = CodeTask(
    task_id="double",
    statement="Print twice n.",
    public=(
        ExpectedCase(name="p1", input="1\n", expected="2\n"),
        ExpectedCase(name="p2", input="2\n", expected="4\n"),
    ),
    hidden=(
        ExpectedCase(name="h1", input="3\n", expected="6\n"),
        ExpectedCase(name="h2", input="4\n", expected="8\n"),
        ExpectedCase(name="h3", input="5\n", expected="10\n"),
    ),
    time_limit_s=1.5,
    memory_mb=100,
)
REPLY = "Here:\n```python\nprint(2 * int(input()))\n```"


class StandIn:
    """Answers each case by a function, and remembers what it was asked."""

    def __init__(self, answer: Answer, *, cached: bool = False) -> None:
        self.answer = answer
        self.cached = cached
        self.asked: list[tuple[Program, tuple[Case, ...], Limits | None]] = []
        self.closed = 0
        self.capabilities = Capabilities(backend="stand-in", isolated=False)
        self.fingerprint = "0"

    def grade(
        self,
        program: Program,
        cases: Sequence[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        self.asked.append((program, tuple(cases), limits))
        results: list[CaseResult] = []
        for case in cases:
            results.append(self.answer(program, case))
            if stop_at_first_failure and results[-1].status is not Status.ACCEPTED:
                break
        bad = [result.status for result in results if result.status is not Status.ACCEPTED]
        return Report(
            status=bad[0] if bad else Status.ACCEPTED,
            cases=tuple(results),
            backend="stand-in",
            isolated=False,
            cached=len(results) if self.cached else 0,
        )

    def close(self) -> None:
        self.closed += 1


def fails(*names: str, status: Status = Status.WRONG_ANSWER) -> StandIn:
    return StandIn(
        lambda _, case: CaseResult(
            name=case.name, status=status if case.name in names else Status.ACCEPTED
        )
    )


def judge_of(stand_in: StandIn, **options: float) -> CodeJudge:
    return CodeJudge(stand_in, **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_sandbox_stays_open() -> Iterator[None]:
    yield
    judging_code.close_shared_sandboxes()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    """Every sandbox that is opened by name, in order."""
    made: list[StandIn] = []

    def open_sandbox(name: str, **_: object) -> StandIn:
        made.append(fails())
        return made[-1]

    monkeypatch.setattr(sandbox, "open_sandbox", open_sandbox, raising=False)
    return made


def test_a_program_that_passes_everything_is_solved() -> None:
    verdict = judge_of(fails()).judge(TASK, REPLY)
    assert (verdict.score, verdict.solved, verdict.status) == (1.0, True, "accepted")
    assert (verdict.public_passed, verdict.public_total) == (2, 2)
    assert verdict.program == "print(2 * int(input()))"
    assert not verdict.cached


def test_the_score_is_the_share_of_public_tests() -> None:
    verdict = judge_of(fails("p1")).judge(TASK, REPLY)
    assert (verdict.score, verdict.solved, verdict.status) == (0.5, False, "wrong_answer")
    assert (verdict.feedback.passed, verdict.feedback.total) == (1, 2)


def test_hidden_tests_run_only_after_every_public_one_passed() -> None:
    failing, passing = fails("p2"), fails()
    judge_of(failing).judge(TASK, REPLY)
    judge_of(passing).judge(TASK, REPLY)
    assert [[case.name for case in cases] for _, cases, _ in failing.asked] == [["p1", "p2"]]
    assert [len(cases) for _, cases, _ in passing.asked] == [2, 3]


def test_hidden_tests_stop_at_the_first_failure() -> None:
    judge = judge_of(fails("h2", "h3"))
    verdict = judge.judge(TASK, REPLY)
    assert (verdict.score, verdict.solved, verdict.status) == (1.0, False, "wrong_answer")
    assert judge.stats.cases == 4


def test_feedback_is_the_same_whatever_the_hidden_tests_say() -> None:
    solved = judge_of(fails()).judge(TASK, REPLY)
    for status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR):
        missed = judge_of(fails("h1", status=status)).judge(TASK, REPLY)
        assert missed.status == status
        assert missed.feedback == solved.feedback
        assert missed.score == solved.score


def test_an_oracle_task_is_solved_by_its_public_tests() -> None:
    task = CodeTask(task_id="o", statement="s", public=TASK.public, oracle=True)
    assert judge_of(fails()).judge(task, REPLY).solved
    assert not judge_of(fails("p2")).judge(task, REPLY).solved


@pytest.mark.parametrize("reply", ["", "I cannot.", "print('\0')", "\ud800"])
def test_a_reply_without_code_is_not_run(reply: str) -> None:
    stand_in = fails()
    verdict = judge_of(stand_in).judge(TASK, reply)
    assert (verdict.score, verdict.solved, verdict.status) == (0.0, False, "no_code")
    assert verdict.program == ""
    assert verdict.feedback.status == "no_code"
    assert stand_in.asked == []


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.ACCEPTED])
def test_every_status_of_the_sandbox_is_passed_on(status: Status) -> None:
    verdict = judge_of(fails("p1", "p2", status=status)).judge(TASK, REPLY)
    assert (verdict.status, verdict.score) == (status.value, 0.0)
    assert type(verdict.status) is str


def test_limits_and_rule_come_from_the_task() -> None:
    stand_in = fails()
    rule = OutputRule(kind="tokens", case_sensitive=False, float_abs=1e-3, float_rel=1e-4)
    task = CodeTask(
        task_id="r", statement="s", public=TASK.public, rule=rule, time_limit_s=3, memory_mb=64
    )
    judge_of(stand_in).judge(task, REPLY)
    _, (case, _), limits = stand_in.asked[0]
    assert limits == Limits(cpu_s=3, memory_mb=64)
    assert isinstance(case, sandbox.StdioCase)
    assert case.checker == sandbox.Checker(
        kind="tokens", case_sensitive=False, float_abs=1e-3, float_rel=1e-4
    )


def test_limits_can_be_overridden() -> None:
    stand_in = fails()
    judge_of(stand_in, time_limit_s=4, memory_mb=999, time_factor=1.5).judge(TASK, REPLY)
    assert stand_in.asked[0][2] == Limits(cpu_s=6, memory_mb=999)
    with pytest.raises(ValueError, match="time_factor must be positive"):
        CodeJudge(time_factor=0)


def test_a_task_whose_limits_cannot_be_set_is_named() -> None:
    task = CodeTask(task_id="r", statement="s", public=TASK.public, memory_mb=16)
    with pytest.raises(InvalidTask, match=r"task 'r' cannot be judged: Limits\.memory_mb must be"):
        judge_of(fails()).judge(task, REPLY)


def test_assert_tests_get_the_trusted_helpers() -> None:
    stand_in = fails()
    task = CodeTask(
        task_id="a",
        statement="s",
        public=(AssertBody(name="a1", body="assert f(1) == helper(1)"),),
        entry_point="f",
        helpers="def helper(n):\n    return n\n\n\ndef f(n):\n    ''' doc '''\n",
    )
    judge_of(stand_in).judge(task, "def helper(n): return 'mine'\ndef f(n): return helper(n)")
    (case,) = stand_in.asked[0][1]
    assert case == AssertCase(
        name="a1", body="assert f(1) == helper(1)", entry_point="f", helpers=task.helpers
    )


def test_an_unsupported_case_is_a_status() -> None:
    def answer(program: Program, case: Case) -> CaseResult:
        raise sandbox.UnsupportedCase("passes a function to the candidate")

    judge = judge_of(StandIn(answer))
    verdict = judge.judge(TASK, REPLY)
    assert (verdict.status, verdict.score, verdict.solved) == ("unsupported", 0.0, False)
    assert judge.stats == JudgeStats(nodes=1, unsupported=1)


@pytest.mark.parametrize("kind", [sandbox.SandboxUnavailable, sandbox.WorkerDied])
def test_trouble_of_the_sandbox_is_never_a_score(kind: type[sandbox.SandboxError]) -> None:
    def answer(program: Program, case: Case) -> CaseResult:
        raise kind("no engine answers")

    judge = judge_of(StandIn(answer))
    with pytest.raises(
        JudgeUnavailable, match=r"no engine answers.*`mars-envs sandbox doctor`"
    ) as r:
        judge.judge(TASK, REPLY)
    assert isinstance(r.value.__cause__, kind)
    assert judge.stats == JudgeStats()


def test_a_sandbox_that_does_not_open_is_never_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_sandbox(*_: object, **__: object) -> None:
        raise sandbox.SandboxUnavailable("neither docker nor bubblewrap")

    monkeypatch.setattr(sandbox, "open_sandbox", open_sandbox, raising=False)
    with pytest.raises(JudgeUnavailable, match="neither docker nor bubblewrap"):
        CodeJudge().judge(TASK, REPLY)


def test_a_sandbox_is_opened_at_the_first_judgement_and_shared(opened: list[StandIn]) -> None:
    first, second = CodeJudge("bubblewrap"), CodeJudge("bubblewrap")
    assert opened == []
    first.judge(TASK, REPLY)
    second.judge(TASK, REPLY)
    assert len(opened) == 1
    first.close()
    assert opened[0].closed == 0
    CodeJudge("docker").judge(TASK, REPLY)
    assert len(opened) == 2
    judging_code.close_shared_sandboxes()
    assert [made.closed for made in opened] == [1, 1]
    first.judge(TASK, REPLY)
    assert len(opened) == 3


def test_a_pickled_judge_opens_its_sandbox_by_name(opened: list[StandIn]) -> None:
    judge = judge_of(fails(), time_factor=2.0)
    judge.judge(TASK, REPLY)
    woken = pickle.loads(pickle.dumps(judge))
    assert woken.stats == JudgeStats()
    assert woken.judge(TASK, REPLY) == judge.judge(TASK, REPLY)
    assert len(opened) == 1
    assert opened[0].asked[0][2] == Limits(cpu_s=3.0, memory_mb=100)


def test_a_deep_copy_shares_the_open_sandbox(opened: list[StandIn]) -> None:
    stand_in = fails()
    copy.deepcopy(judge_of(stand_in)).judge(TASK, REPLY)
    assert len(stand_in.asked) == 2
    assert opened == []


def test_a_forked_child_opens_its_own(
    opened: list[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = CodeJudge("bubblewrap")
    judge.judge(TASK, REPLY)
    with monkeypatch.context() as child:
        child.setattr(judging_code.os, "getpid", lambda: -1)
        judge.judge(TASK, REPLY)
        judging_code.close_shared_sandboxes()
    assert [made.closed for made in opened] == [0, 1]


def test_statistics_count_nodes_cases_and_cache_hits() -> None:
    stand_in = fails("p2")
    judge = judge_of(stand_in)
    judge.judge(TASK, REPLY)
    stand_in.cached = True
    assert judge.judge(TASK, REPLY).cached
    judge.judge(TASK, "nothing")
    assert judge.stats == JudgeStats(nodes=3, cached_nodes=1, cases=4, cached_cases=2, no_code=1)
    assert judge.stats.hit_rate == 0.5
    assert JudgeStats().hit_rate == 0.0


def test_statistics_are_right_under_threads() -> None:
    judge = judge_of(fails())
    threads = [
        threading.Thread(target=lambda: [judge.judge(TASK, REPLY) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert judge.stats.nodes == 200
    assert judge.stats.cases == 1000


def test_a_stranger_named_sandbox_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stranger = types.ModuleType("sandbox")
    stranger.__file__ = str(tmp_path / "sandbox.py")
    monkeypatch.setitem(sys.modules, "sandbox", stranger)
    with pytest.raises(ImportError, match=r"found another one at .*sandbox\.py; rename or remove"):
        CodeJudge().judge(TASK, REPLY)


HELPERS = '''import math
from typing import List


def helper(n):
    return n


def f(xs: List[int]):
    """ Doc. """
'''


def test_a_program_gets_the_helpers_it_lacks() -> None:
    program = "def f(xs):\n    return helper(xs)\n"
    joined = with_helpers(program, HELPERS, "f")
    assert joined.endswith("\n\n" + program)
    namespace: dict[str, Callable[[int], int]] = {}
    exec(joined, namespace)
    assert namespace["f"](3) == 3
    assert "Doc." not in joined


@pytest.mark.parametrize(
    "program",
    [
        "def f(xs):\n    return xs\n",
        "def helper(n):\n    return 2\n\ndef f(xs):\n    return helper(xs)\n",
        "from typing import List\ndef f(xs: List[int]):\n    return xs",
        HELPERS + "    return helper(xs)\n",
        "def f(:\n    return helper(1)",
        "def f(): return helper('\0')",
        "def f(): return helper('\ud800')",
    ],
)
def test_a_program_that_lacks_nothing_is_left_as_it_is(program: str) -> None:
    assert with_helpers(program, HELPERS, "f") == program


def test_a_type_of_the_prompt_is_available() -> None:
    namespace: dict[str, object] = {}
    exec(with_helpers("def f(xs: List[int]):\n    return xs\n", HELPERS, "f"), namespace)
    assert "f" in namespace


def test_a_future_import_stays_first() -> None:
    program = "'''doc'''\nfrom __future__ import annotations\ndef f(xs):\n    return helper(xs)"
    compile(with_helpers(program, HELPERS, "f"), "solution.py", "exec")


def test_a_program_may_replace_a_helper_for_itself_only() -> None:
    program = "def f(xs):\n    return helper(math.floor(xs))\nhelper = str\n"
    namespace: dict[str, Callable[[float], object]] = {}
    exec(with_helpers(program, HELPERS, "f"), namespace)
    assert namespace["f"](3.5) == "3"


@pytest.mark.parametrize(
    ("extract", "program"),
    [("default", "print(1)"), ("lcb", "2"), (str.upper, "```PYTHON\nPRINT(1)\n```\n```\n2\n```")],
)
def test_the_program_is_taken_out_by_the_rule_that_was_asked_for(
    extract: str | Callable[[str], str | None], program: str
) -> None:
    judge = CodeJudge(fails(), extract=extract)  # type: ignore[arg-type]
    assert judge.judge(TASK, "```python\nprint(1)\n```\n```\n2\n```").program == program
