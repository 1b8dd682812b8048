"""Reports: order, verdicts, messages, what is run and what is remembered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sandbox import Grader, RunCache, SandboxError, UnsupportedCase
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.types import (
    AssertCase,
    Checker,
    Limits,
    Program,
    Status,
    StdioCase,
)
from sandbox.worker import Execution

ADD = Program("print(sum(map(int, input().split())))")


def stdio(stdin: str, expected: str, **checker: object) -> StdioCase:
    return StdioCase(
        name=f"{stdin}->{expected}",
        stdin=stdin,
        expected=expected,
        checker=Checker(**checker),  # type: ignore[arg-type]
    )


RIGHT, WRONG = stdio("1 2", "3"), stdio("1 2", "4")
ASSERT = AssertCase(name="assert", body="assert f(2) == 4", entry_point="f")


class CountingPool(WorkerPool):
    """Counts the runs that reach the pool."""

    def __init__(self, **options: int) -> None:
        super().__init__(LocalBackend(), **options)
        self.runs = 0

    def run_many(
        self,
        source: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        stop: Callable[[Execution], bool] | None = None,
    ) -> list[Execution]:
        done = super().run_many(source, stdins, limits, stop=stop)
        self.runs += len(done)
        return done


@pytest.fixture
def counting() -> Iterator[CountingPool]:
    with CountingPool(size=2) as pool:
        yield pool


@pytest.fixture
def grader(counting: CountingPool) -> Iterator[Grader]:
    with Grader(counting, cache=RunCache()) as grader:
        yield grader


def test_a_right_program_is_accepted(grader: Grader) -> None:
    report = grader.grade(ADD, [RIGHT, stdio("5 5\n", "10")])
    assert report.accepted
    assert (report.passed, len(report.cases), report.cached) == (2, 2, 0)
    assert (report.backend, report.isolated) == ("local", False)
    case = report.cases[0]
    assert (case.name, case.stdout, case.exit_code) == ("1 2->3", "3\n", 0)
    assert case.cpu_s > 0


def test_the_first_failure_decides_and_the_rest_is_still_run(grader: Grader) -> None:
    report = grader.grade(ADD, [RIGHT, WRONG, stdio("x", "1"), RIGHT])
    assert report.status is Status.WRONG_ANSWER
    assert [case.status for case in report.cases] == [
        Status.ACCEPTED,
        Status.WRONG_ANSWER,
        Status.RUNTIME_ERROR,
        Status.ACCEPTED,
    ]
    assert report.passed == 2


def test_messages_say_what_failed(grader: Grader) -> None:
    report = grader.grade(ADD, [WRONG, stdio("x", "1")])
    assert report.cases[0].message == "line 1 differs"
    assert report.cases[1].message.startswith("ValueError: invalid literal")
    assert "Traceback" in report.cases[1].stderr
    compiled = grader.grade(Program("print("), [RIGHT]).cases[0]
    assert (compiled.status, compiled.message) == (
        Status.COMPILE_ERROR,
        "SyntaxError: '(' was never closed",
    )


def test_cases_may_come_from_a_generator(grader: Grader) -> None:
    report = grader.grade(ADD, (case for case in (RIGHT, WRONG)))
    assert report.status is Status.WRONG_ANSWER
    assert [case.status for case in report.cases] == [Status.ACCEPTED, Status.WRONG_ANSWER]


def test_awaited_cases_may_come_from_an_iterator(grader: Grader) -> None:
    report = asyncio.run(grader.agrade(ADD, iter([WRONG])))
    assert (report.status, len(report.cases)) == (Status.WRONG_ANSWER, 1)


def test_a_generator_without_cases_gets_no_report(grader: Grader) -> None:
    with pytest.raises(ValueError, match="at least one case"):
        grader.grade(ADD, iter(()))


def test_a_case_that_was_lost_is_no_accepted_case(
    grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.grading.Grading.results", lambda self, cases: [])
    with pytest.raises(SandboxError, match="a result for each of 2 cases, got 0"):
        grader.grade(ADD, [RIGHT, RIGHT])


@pytest.mark.parametrize(
    ("program", "cases", "limits", "message"),
    [
        ("print(1)", [RIGHT], None, r"wrap the text: Program\(source\)"),
        (ADD, RIGHT, None, r"got one case; write \[StdioCase"),
        (ADD, 5, None, "cases is a list of cases, got 5"),
        (ADD, ["1 2"], None, "a StdioCase, a FunctionCase or an AssertCase, not '1 2'"),
        (ADD, [RIGHT], 2.0, r"limits is a sandbox\.Limits or None, got 2\.0; say, Limits\("),
    ],
)
def test_what_is_no_program_case_or_limit_is_named(
    grader: Grader, program: Any, cases: Any, limits: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        grader.grade(program, cases, limits)
    with pytest.raises(TypeError, match=message):
        asyncio.run(grader.agrade(program, cases, limits))


def test_the_checker_of_each_case_is_used(grader: Grader) -> None:
    program = Program("print('YES  0.3333333')")
    loose = {"kind": "tokens", "case_sensitive": False, "float_abs": 1e-6}
    report = grader.grade(program, [stdio("", "yes 0.33333333", **loose), stdio("", "yes")])
    assert [case.status for case in report.cases] == [Status.ACCEPTED, Status.WRONG_ANSWER]


def test_input_ends_with_a_newline_unless_it_is_empty(grader: Grader) -> None:
    program = Program("import sys; print(repr(sys.stdin.read()))")
    report = grader.grade(program, [stdio("a", r"'a\n'"), stdio("a\n", r"'a\n'"), stdio("", "''")])
    assert report.accepted


def test_output_that_is_not_text_is_kept_and_not_accepted(grader: Grader) -> None:
    program = Program("import sys; sys.stdout.buffer.write(b'ok\\xff\\x00')")
    case = grader.grade(program, [stdio("", "ok")]).cases[0]
    assert (case.status, case.stdout) == (Status.WRONG_ANSWER, "ok\udcff\x00")


@pytest.mark.parametrize("source", ["a\x00b", "\ud800", "x = '\udcff'"])
def test_sources_that_are_no_text_do_not_compile(grader: Grader, source: str) -> None:
    assert grader.grade(Program(source), [RIGHT]).status is Status.COMPILE_ERROR
    assert grader.grade(Program(source), [ASSERT]).status is Status.COMPILE_ERROR


def test_the_same_run_is_made_once_whatever_is_expected(
    grader: Grader, counting: CountingPool
) -> None:
    assert grader.grade(ADD, [RIGHT, WRONG]).cached == 1
    again = grader.grade(ADD, [WRONG, stdio("1 2\n", "3", kind="tokens")])
    assert again.cached == 2
    assert [case.status for case in again.cases] == [Status.WRONG_ANSWER, Status.ACCEPTED]
    assert counting.runs == 1
    assert (grader.stats.hits, grader.stats.misses) == (3, 1)


def test_other_limits_or_another_program_are_other_runs(
    grader: Grader, counting: CountingPool
) -> None:
    grader.grade(ADD, [RIGHT])
    grader.grade(ADD, [RIGHT], Limits(cpu_s=3))
    grader.grade(Program(ADD.source + "\n"), [RIGHT])
    assert counting.runs == 3


def test_time_and_memory_verdicts_are_not_remembered(
    grader: Grader, counting: CountingPool
) -> None:
    slow, big = Program("import time; time.sleep(9)"), Program("x = bytearray(1 << 40)")
    for program in (slow, big):
        for _ in range(2):
            report = grader.grade(program, [RIGHT], Limits(wall_s=0.3))
            assert report.status in (
                Status.TIME_LIMIT_EXCEEDED,
                Status.MEMORY_LIMIT_EXCEEDED,
            )
            assert report.cached == 0
    assert counting.runs == 4


def test_repeated_runs_are_not_remembered(
    counting: CountingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_many(
        source: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        stop: Callable[[Execution], bool],
    ) -> None:
        stop(Execution(status=None, stdout=b"3", retried=True))

    monkeypatch.setattr(counting, "run_many", run_many)
    grader = Grader(counting, cache=RunCache())
    assert grader.grade(ADD, [RIGHT]).cached == 0
    assert grader.grade(ADD, [RIGHT]).cached == 0


def test_assert_outcomes_are_remembered_by_the_whole_case(grader: Grader) -> None:
    program = Program("def f(x): return 2 * x")
    assert grader.grade(program, [ASSERT]).cached == 0
    assert grader.grade(program, [ASSERT]).cached == 1
    other = AssertCase(name="assert", body="assert f(2) == 5", entry_point="f")
    report = grader.grade(program, [other, ASSERT])
    assert report.cached == 1
    assert [case.status for case in report.cases] == [Status.WRONG_ANSWER, Status.ACCEPTED]


def test_without_a_cache_everything_runs(counting: CountingPool) -> None:
    grader = Grader(counting)
    for _ in range(2):
        assert grader.grade(ADD, [RIGHT, RIGHT]).cached == 0
    assert counting.runs == 4
    assert grader.stats.hits == grader.stats.misses == 0


@pytest.mark.parametrize("cached", [True, False])
def test_stopping_at_the_first_failure_leaves_the_rest_out(
    counting: CountingPool, cached: bool
) -> None:
    grader = Grader(counting, cache=RunCache() if cached else None)
    cases = [RIGHT, stdio("2 2", "5"), stdio("3 3", "6"), ASSERT]
    report = grader.grade(ADD, cases, stop_at_first_failure=True)
    assert [case.status for case in report.cases] == [Status.ACCEPTED, Status.WRONG_ANSWER]
    assert counting.runs == 2


def test_stdio_and_assert_cases_mix_in_order(grader: Grader) -> None:
    program = Program("def f(x): return 2 * x\nif __name__ == '__main__': print(f(int(input())))")
    report = grader.grade(program, [stdio("2", "4"), ASSERT, stdio("3", "6")])
    assert [case.name for case in report.cases] == ["2->4", "assert", "3->6"]
    assert report.accepted


def test_an_assert_failure_is_reported_with_its_source_line(grader: Grader) -> None:
    case = grader.grade(Program("def f(x): return x"), [ASSERT]).cases[0]
    assert case.status is Status.WRONG_ANSWER
    assert case.message == "assert f(2) == 4; the last call returned 2"
    error = grader.grade(Program("def f(x): return 1 / 0"), [ASSERT]).cases[0]
    assert error.message.startswith("ZeroDivisionError: division by zero")
    assert "line 1, in f" in error.stderr


def test_a_broken_test_raises_and_leaves_the_grader_usable(grader: Grader) -> None:
    broken = AssertCase(name="broken", body="assert g(1) == f(1)", entry_point="f")
    with pytest.raises(UnsupportedCase, match="NameError"):
        grader.grade(Program("def f(x): return 2 * x"), [broken])
    assert grader.grade(Program("def f(x): return 2 * x"), [ASSERT]).accepted


def test_no_cases_and_unknown_cases_are_refused(grader: Grader) -> None:
    with pytest.raises(ValueError, match="at least one case"):
        grader.grade(ADD, [])
    with pytest.raises(TypeError, match="StdioCase"):
        grader.grade(ADD, ["1 2"])  # type: ignore[list-item]


def test_a_closed_grader_refuses_to_grade(counting: CountingPool) -> None:
    grader = Grader(counting)
    grader.close()
    grader.close()
    with pytest.raises(RuntimeError, match="closed"):
        grader.grade(ADD, [RIGHT])


async def test_awaited_gradings_overlap(grader: Grader) -> None:
    program = Program("import time; time.sleep(0.4); print(input())")
    cases = [[stdio(str(n), str(n))] for n in range(2)]
    start = time.monotonic()
    reports = await asyncio.gather(*(grader.agrade(program, case) for case in cases))
    assert all(report.accepted for report in reports)
    # One after the other would take twice the sleep, and start-up on top.
    slept = sum(report.cases[0].wall_s for report in reports)
    assert time.monotonic() - start < slept


def test_more_threads_than_workers_grade_asserts_without_deadlock() -> None:
    with WorkerPool(LocalBackend(), size=1) as pool, Grader(pool) as grader:
        programs = [Program(f"def f(x): return 2 * x + {n % 2}") for n in range(6)]
        with ThreadPoolExecutor(6) as threads:
            jobs = [threads.submit(grader.grade, program, [ASSERT]) for program in programs]
            accepted = [job.result(60).accepted for job in jobs]
    assert accepted == [True, False] * 3


def test_the_same_run_in_two_threads_is_made_once(grader: Grader, counting: CountingPool) -> None:
    program = Program("import time; time.sleep(0.3); print(3)")
    barrier = threading.Barrier(4)

    def work(_: int) -> int:
        barrier.wait()
        return grader.grade(program, [RIGHT]).cached

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(work, range(4))) == [0, 1, 1, 1]
    assert counting.runs == 1


def test_a_remembered_case_costs_next_to_nothing(grader: Grader) -> None:
    cases = [stdio(f"{n} 1", str(n + 1)) for n in range(5)]
    grader.grade(ADD, cases)
    start = time.process_time()
    for _ in range(200):
        grader.grade(ADD, cases)
    per_case_s = (time.process_time() - start) / 1000
    assert per_case_s < 0.0005


def test_the_fingerprint_is_stable_and_depends_on_the_backend(grader: Grader) -> None:
    class Other(LocalBackend):
        fingerprint = "other"  # type: ignore[assignment]

    with WorkerPool(Other(), size=1) as pool:
        assert Grader(pool).fingerprint != grader.fingerprint
    with WorkerPool(LocalBackend(), size=1) as pool:
        assert Grader(pool).fingerprint == grader.fingerprint


def test_messages_are_one_line_without_control_characters(grader: Grader) -> None:
    hostile = r"a\x1b[2J\r\u2028b\u202ec\x00\x85 \ud800" + "d" * 1000
    source = f"import sys\nsys.stderr.write({hostile!a})\nsys.exit(1)".replace("\\\\", "\\")
    message = grader.grade(Program(source), [RIGHT]).cases[0].message
    assert len(message) <= 300
    assert message.isprintable()
    body = AssertCase(name="lines", body="assert f(1) == '''a\n\n  b'''", entry_point="f")
    case = grader.grade(Program("def f(x): return '\\x1b'"), [body]).cases[0]
    assert case.message.isprintable()
    assert case.message.startswith("assert f(1) == '''a b'''")
