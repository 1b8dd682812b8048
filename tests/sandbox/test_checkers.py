"""Custom checkers: what they are asked, what they may say, and what their failures are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import (
    CaseResult,
    CheckerFailed,
    CheckerProgram,
    FunctionCase,
    Grader,
    Limits,
    Program,
    RunCache,
    Status,
    StdioCase,
)
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool

FACTORS = CheckerProgram(
    source="""
def check(input, output, expected):
    n = int(input)
    words = output.split()
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        return False, "two whole numbers are wanted"
    a, b = map(int, words)
    return a * b == n and 1 < a < n, f"{a} * {b} is not {n}"
"""
)
ECHO = Program("print(input())")


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(WorkerPool(LocalBackend(), size=1), cache=RunCache()) as grader:
        yield grader


def judged(grader: Grader, source: str, checker: CheckerProgram, stdin: str = "15") -> CaseResult:
    case = StdioCase(name="factors", stdin=stdin, expected="3 5", checker=checker)
    return grader.grade(Program(source), [case]).cases[0]


def saying(verdict: str, **limits: Any) -> CheckerProgram:
    source = f"def check(input, output, expected):\n    return {verdict}\n"
    return CheckerProgram(source=source, limits=Limits(cpu_s=1.0, **limits))


def test_a_checker_accepts_any_right_answer(grader: Grader) -> None:
    for answer, status in (
        ("3 5", Status.ACCEPTED),
        ("5\\n3", Status.ACCEPTED),
        ("1 15", Status.WRONG_ANSWER),
        ("2 7", Status.WRONG_ANSWER),
        ("three five", Status.WRONG_ANSWER),
    ):
        assert judged(grader, f"print('{answer}')", FACTORS).status is status
    assert judged(grader, "print('2 7')", FACTORS).message == "2 * 7 is not 15"


def test_a_checker_sees_the_three_texts_as_they_are(grader: Grader) -> None:
    checker = saying("(input, output, expected) == ('15', 'a\\x00\\udcff\\n', '3 5')")
    program = "import sys; sys.stdout.buffer.write(b'a\\x00\\xff\\n')"
    assert judged(grader, program, checker).status is Status.ACCEPTED


def test_a_checker_of_a_function_sees_values(grader: Grader) -> None:
    checker = CheckerProgram(
        source="def check(args, value, expected):\n"
        "    return sorted(value) == expected and args == [[2, 1], {'k': (1,)}]"
    )
    case = FunctionCase(
        name="f", entry_point="f", args=([2, 1], {"k": (1,)}), expected=[1, 2], checker=checker
    )
    for answer, status in (("(2, 1)", Status.ACCEPTED), ("[2]", Status.WRONG_ANSWER)):
        program = Program(f"def f(x, y): return {answer}")
        assert grader.grade(program, [case]).cases[0].status is status


def test_scores_and_messages_are_reported(grader: Grader) -> None:
    case = judged(grader, "print(1)", saying("True, 'half\\n\\x1b[31mway', 0.5"))
    assert (case.status, case.score, case.message) == (Status.ACCEPTED, 0.5, "half [31mway")
    case = judged(grader, "print(1)", saying("False, 'far off', 0"))
    assert (case.status, case.score) == (Status.WRONG_ANSWER, 0.0)
    assert judged(grader, "print(1)", saying("True")).score is None


def test_a_program_that_failed_is_not_shown_to_the_checker(grader: Grader) -> None:
    for source, status in (
        ("1 / 0", Status.RUNTIME_ERROR),
        ("print(", Status.COMPILE_ERROR),
        ("print('x' * 2_000_000)", Status.OUTPUT_LIMIT_EXCEEDED),
    ):
        assert judged(grader, source, saying("1 / 0")).status is status


@pytest.mark.parametrize(
    ("checker", "reason"),
    [
        (saying("1 / 0"), "ZeroDivisionError"),
        (saying("None"), "TypeError: check\\(\\) returns a bool"),
        (saying("1"), "TypeError: check\\(\\) returns a bool"),
        (saying("True, 5"), "TypeError: check\\(\\) returns a bool"),
        (saying("True, '', 2"), "the score is a number from 0 to 1"),
        (saying("True, '', 'x'"), "TypeError"),
        (saying("(True, '', 1, 2)"), "ValueError"),
        (saying("[0 for _ in iter(int, 1)]"), "limit_exceeded"),
        (saying("__import__('os')._exit(0)"), "ended before it gave a verdict"),
        (saying("__import__('sys').exit(0)"), "ended before it gave a verdict"),
        (CheckerProgram(source="def check(:"), "SyntaxError"),
        (CheckerProgram(source="x = 1"), "KeyError: 'check'"),
    ],
)
def test_a_checker_without_a_verdict_is_a_failure_of_the_sandbox(
    grader: Grader, checker: CheckerProgram, reason: str
) -> None:
    with pytest.raises(CheckerFailed, match=reason):
        judged(grader, "print(1)", checker)


def test_what_a_checker_prints_is_not_its_verdict(grader: Grader) -> None:
    checker = CheckerProgram(
        source="def check(input, output, expected):\n"
        "    print('[true, \"\", 1.0]')\n"
        "    return False"
    )
    assert judged(grader, "print(1)", checker).status is Status.WRONG_ANSWER


def test_the_same_question_is_asked_once(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    run = grader.run_checker

    def counted(source: bytes, stdin: bytes, limits: Limits) -> Any:
        asked.append(stdin)
        return run(source, stdin, limits)

    monkeypatch.setattr(grader, "run_checker", counted)
    cases = [
        StdioCase(name=str(n), stdin="35", expected=expected, checker=FACTORS)
        for n, expected in enumerate(("5 7", "5 7", "7 5"))
    ]
    for stop in (True, False):
        report = grader.grade(Program("print(5, 7)"), cases, stop_at_first_failure=stop)
        assert report.accepted
    assert len(asked) == 2


def test_a_checker_runs_apart_from_programs_on_every_backend(pool: WorkerPool) -> None:
    """Both look for a file of the other's, in a pool each; neither sees one."""
    look = "__import__('os').listdir('/tmp')"
    program = Program(f"open('/tmp/mine', 'w').write('x'); print({look})")
    checker = saying(f"(output == \"['mine']\\n\" and {look} == [])")
    case = StdioCase(name="apart", stdin="", expected="", checker=checker)
    broken = StdioCase(name="broken", stdin="", expected="", checker=saying("1 / 0"))
    with WorkerPool(pool.backend, size=1) as own:
        grader = Grader(pool, own)
        assert grader.grade(program, [case]).accepted
        with pytest.raises(CheckerFailed, match="ZeroDivisionError"):
            grader.grade(program, [broken])
        assert grader.grade(program, [case]).accepted


def test_checkers_do_not_wait_for_the_programs_that_wait_for_them() -> None:
    cases = [
        StdioCase(name=str(n), stdin=str(n), expected="", checker=saying("True")) for n in range(3)
    ]
    with Grader(WorkerPool(LocalBackend(), size=1)) as grader:
        assert grader.grade(ECHO, cases, stop_at_first_failure=True).accepted
