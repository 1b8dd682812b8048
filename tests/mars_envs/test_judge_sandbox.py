"""The judge over real sandboxes: recorded programs get the verdicts recorded with them.

A sample of them: `tests/sandbox/test_agreement.py` runs them all.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mars_envs.errors import JudgeUnavailable
from mars_envs.judging import CodeJudge, Verdict
from mars_envs.judging.code import close_shared_sandboxes
from mars_envs.tasks import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    OutputRule,
    load_tasks,
)
from trainers.policies import Recording, load_recordings
from trainers.policies.replay import reply_text

DOUBLE = CodeTask(
    task_id="double",
    statement="Print twice n.",
    public=(
        ExpectedCase(name="p1", input="1\n", expected="2\n"),
        ExpectedCase(name="p2", input="5\n", expected="10\n"),
    ),
    hidden=(ExpectedCase(name="h1", input="-3\n", expected="-6\n"),),
    time_limit_s=1.0,
)
FUNCTION = CodeTask(
    task_id="f",
    statement="Write f.",
    public=(AssertBody(name="public/1", body="assert f(1) == 2"),),
    hidden=(AssertBody(name="hidden", body="def check(c):\n    assert c(5) == 6\n"),),
    entry_point="f",
)

LEETCODE = CodeTask(
    task_id="lcb/1",
    statement="Return pairs.",
    public=(FunctionCall(name="p1", arguments="[3, 1]\n2", expected="[[1, 2], [3, 2]]"),),
    hidden=(FunctionCall(name="h1", arguments="[]\n0", expected="[]"),),
    entry_point="pairs",
    rule=OutputRule(order="outer"),
)
FACTORS = CodeTask(
    task_id="factors",
    statement="Print two factors.",
    public=(ExpectedCase(name="p1", input="15\n", expected="3 5\n"),),
    checker="""
def check(input, output, expected):
    words = output.split()
    if len(words) != 2 or not all(map(str.isdecimal, words)):
        return False, "not two numbers"
    return int(words[0]) * int(words[1]) == int(input)
""",
)


@pytest.fixture(
    scope="module",
    params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)],
)
def judge(request: pytest.FixtureRequest) -> Iterator[CodeJudge]:
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
    yield CodeJudge(request.param)
    close_shared_sandboxes()


def fenced(program: str) -> str:
    return reply_text(Recording(text=program, form="full_program"))


@pytest.mark.parametrize(
    ("program", "status", "score"),
    [
        ("print(2 * int(input()))", "accepted", 1.0),
        ("print(2)", "wrong_answer", 0.5),
        ("print(abs(2 * int(input())))", "wrong_answer", 1.0),
        ("print(1 / 0)", "runtime_error", 0.0),
        ("print(", "compile_error", 0.0),
        ("print('\0')", "compile_error", 0.0),
        ("print('\ud800')", "compile_error", 0.0),
        ("while True: pass", "time_limit_exceeded", 0.0),
        ("x = [0] * 10**9", "memory_limit_exceeded", 0.0),
        ("while True: print('x' * 9999)", "output_limit_exceeded", 0.0),
    ],
)
def test_each_kind_of_program_has_its_verdict(
    judge: CodeJudge, program: str, status: str, score: float
) -> None:
    verdict = judge.judge(DOUBLE, fenced(program))
    assert (verdict.status, verdict.score) == (status, score)
    assert verdict.solved == (status == "accepted")
    assert verdict.program == program


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        ("def f(n):\n    return n + 1", "accepted", None),
        ("def f(n):\n    return 2", "wrong_answer", None),
        ("def f(n):\n    return n", "wrong_answer", "returned 1"),
        ("def f(n):\n    return [][n]", "runtime_error", "line 2, in f"),
        ("def g(n):\n    return n", "runtime_error", "no function 'f'"),
        ("def f(n) return", "compile_error", "SyntaxError"),
    ],
)
def test_each_kind_of_function_has_its_verdict(
    judge: CodeJudge, program: str, status: str, error: str | None
) -> None:
    verdict = judge.judge(FUNCTION, fenced(program))
    assert verdict.status == status
    failure = verdict.feedback.failure
    assert (failure is None) == (error is None)
    if failure is not None:
        assert failure.input == "assert f(1) == 2"
        assert error is not None
        assert error in failure.error


@pytest.mark.parametrize(
    ("line", "status", "actual", "error"),
    [
        ("return [(x, k) for x in xs]", "accepted", "", ""),
        ("return [[x, k] for x in xs] or None", "wrong_answer", "", ""),
        ("return [[x, x] for x in xs]", "wrong_answer", "[[3, 3], [1, 1]]", "the items differ"),
        ("return xs[5]", "runtime_error", "", "list index out of range"),
        ("return 'x' * 9_999_999", "output_limit_exceeded", "", "returned too large a value"),
    ],
)
def test_a_function_is_judged_by_what_it_returns(
    judge: CodeJudge, line: str, status: str, actual: str, error: str
) -> None:
    program = f"class Solution:\n    def pairs(self, xs: List[int], k: int):\n        {line}"
    verdict = judge.judge(LEETCODE, fenced(program))
    assert verdict.status == status
    failure = verdict.feedback.failure
    assert (failure is None) == (verdict.score == 1.0)
    if failure is not None:
        assert (failure.input, failure.expected) == ("[3, 1]\n2", "[[1, 2], [3, 2]]")
        assert failure.actual == actual
        assert error in failure.error


def test_a_task_may_bring_a_checker(judge: CodeJudge) -> None:
    assert judge.judge(FACTORS, fenced("print(5, 3)")).solved
    wrong = judge.judge(FACTORS, fenced("print('five')"))
    assert (wrong.status, wrong.score) == ("wrong_answer", 0.0)
    assert wrong.feedback.failure is not None
    assert wrong.feedback.failure.error == "not two numbers"


def test_a_broken_checker_is_no_verdict(judge: CodeJudge) -> None:
    task = replace(FACTORS, checker="def check(input, output, expected): 1 / 0")
    with pytest.raises(JudgeUnavailable, match=r"'factors'.*CheckerFailed.*ZeroDivisionError"):
        judge.judge(task, fenced("print(5, 3)"))


def test_feedback_of_a_crash_names_only_the_program(judge: CodeJudge) -> None:
    failure = judge.judge(
        DOUBLE, fenced("def f():\n    raise KeyError(object())\nf()")
    ).feedback.failure
    assert failure is not None
    assert failure.error == (
        'File "solution.py", line 3, in <module>\n  f()\n'
        'File "solution.py", line 2, in f\n  raise KeyError(object())\n'
        "KeyError: <object object at 0x…>"
    )


def test_the_same_program_gets_the_same_verdict_from_the_cache(judge: CodeJudge) -> None:
    program = fenced("# asked twice\nprint(int(input()) + 1)")
    first, second = judge.judge(DOUBLE, program), judge.judge(DOUBLE, program)
    assert not first.cached
    assert second.cached
    assert first.feedback == second.feedback


def test_a_pickled_judge_gives_the_same_verdict(judge: CodeJudge) -> None:
    program = fenced("print(3)")
    woken = pickle.loads(pickle.dumps(judge))
    assert woken.judge(DOUBLE, program).feedback == judge.judge(DOUBLE, program).feedback


def test_a_redefined_helper_does_not_reach_the_tests(judge: CodeJudge) -> None:
    task = CodeTask(
        task_id="inverse",
        statement="Write undo.",
        public=(AssertBody(name="p", body="assert undo(shift(3)) == 3"),),
        entry_point="undo",
        helpers="def shift(n):\n    return n + 1\n\n\ndef undo(n):\n    ''' Invert shift. '''\n",
    )
    assert judge.judge(task, fenced("def undo(n):\n    return n - shift(0)")).solved
    cheat = "def shift(n):\n    return n\n\ndef undo(n):\n    return n"
    assert judge.judge(task, fenced(cheat)).status == "wrong_answer"


def judge_all(
    judge: CodeJudge, asked: list[tuple[CodeTask, Recording]], prefix: bool = False
) -> list[Verdict]:
    def one(pair: tuple[CodeTask, Recording]) -> Verdict:
        task, recording = pair
        return judge.judge(task, reply_text(recording, prefix=task.helpers if prefix else None))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(one, asked))


def kattis(data_dir: Path) -> list[tuple[CodeTask, Recording]]:
    path = data_dir / "problems" / "kattis_problems.jsonl"
    tasks = {task.task_id: task for task in load_tasks(path)}
    return [
        (tasks[task_id], recording)
        for task_id, recordings in load_recordings(path).items()
        for recording in recordings
    ]


def check_kattis(judge: CodeJudge, asked: list[tuple[CodeTask, Recording]]) -> None:
    verdicts = judge_all(judge, asked)
    wrong = [
        (task.task_id, recording.source, verdict.status)
        for (task, recording), verdict in zip(asked, verdicts, strict=True)
        if verdict.solved != (recording.label == "AC")
    ]
    assert wrong == []


@pytest.mark.data
def test_some_judges_submissions_get_their_recorded_verdicts(
    judge: CodeJudge, data_dir: Path
) -> None:
    asked = [pair for pair in kattis(data_dir) if pair[0].time_limit_s <= 1.0]
    check_kattis(judge, asked[::6])


def canonicals(data_dir: Path) -> list[tuple[CodeTask, Recording]]:
    path = data_dir / "functions" / "humaneval.jsonl"
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        (task, Recording(text=record["canonical_solution"], form="completion"))
        for task, record in zip(load_tasks(path), records, strict=True)
    ]


@pytest.mark.data
@pytest.mark.parametrize("number", [32, 33, 38, 47, 50])
def test_awkward_canonical_solutions_are_accepted(
    judge: CodeJudge, data_dir: Path, number: int
) -> None:
    asked = canonicals(data_dir)[number]
    assert judge_all(judge, [asked], prefix=True)[0].solved


@pytest.mark.data
@pytest.mark.slow
def test_some_recorded_samples_pass_exactly_as_recorded(judge: CodeJudge, data_dir: Path) -> None:
    tasks = load_tasks(
        data_dir / "functions" / "humaneval.jsonl",
        public_tests=data_dir / "functions" / "humanevalpack_bugs.jsonl",
    )
    by_id = {task.task_id: task for task in tasks}
    recordings = load_recordings(data_dir / "generations" / "codegen16b_pool.jsonl")
    every = [(by_id[task_id], one) for task_id, found in recordings.items() for one in found]
    asked = every[::9]
    verdicts = judge_all(judge, asked)
    assert 10 < sum(verdict.solved for verdict in verdicts) < 20
    assert [verdict.solved for verdict in verdicts] == [one.label == "pass" for _, one in asked]
