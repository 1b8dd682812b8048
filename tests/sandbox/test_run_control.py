"""Which cases run, and that neither their order nor where a grading stops changes a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import (
    AssertCase,
    Case,
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
from sandbox.worker import Execution

AC, WA, RE = Status.ACCEPTED, Status.WRONG_ANSWER, Status.RUNTIME_ERROR
TLE, MLE, OLE = (
    Status.TIME_LIMIT_EXCEEDED,
    Status.MEMORY_LIMIT_EXCEEDED,
    Status.OUTPUT_LIMIT_EXCEEDED,
)
LIMITS = Limits(cpu_s=1.0, wall_s=60.0, memory_mb=256)


class ScriptedPool(WorkerPool):
    """Runs nothing: an input names the verdict that comes of it."""

    def __init__(self) -> None:
        super().__init__(LocalBackend(), size=1)
        self.runs = 0

    def run_many(
        self,
        source: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        stop: Callable[[Execution], bool] | None = None,
    ) -> list[Execution]:
        done = []
        for stdin in stdins:
            word = stdin.decode().split()[0]
            failed = None if word in (AC, WA) else Status(word)
            done.append(Execution(status=failed, stdout=b"yes" if word == AC else b"no"))
            self.runs += 1
            if stop is not None and stop(done[-1]):
                break
        return done


verdicts = st.lists(
    st.tuples(st.sampled_from([AC, AC, AC, WA, RE, TLE, MLE]), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


@given(verdicts, st.randoms(), st.booleans())
def test_verdicts_depend_on_the_case_alone(
    scripted: list[tuple[Status, int]], random: object, cached: bool
) -> None:
    """The oracle: a case has its own verdict, a program that of the first case that fails."""
    with Grader(ScriptedPool(), cache=RunCache() if cached else None) as grader:
        for _ in range(2):
            random.shuffle(scripted)  # type: ignore[attr-defined]
            cases = [
                StdioCase(name=str(i), stdin=f"{word} {number}", expected="yes")
                for i, (word, number) in enumerate(scripted)
            ]
            wanted = [word for word, _ in scripted]
            first = next((i for i, word in enumerate(wanted) if word is not AC), None)
            whole = grader.grade(Program(""), cases)
            assert [case.status for case in whole.cases] == wanted
            assert whole.status is (AC if first is None else wanted[first])
            short = grader.grade(Program(""), cases, stop_at_first_failure=True)
            assert short.status is whole.status
            prefix = len(cases) if first is None else first + 1
            assert [case.status for case in short.cases] == wanted[:prefix]


@given(verdicts)
def test_an_early_stop_runs_nothing_after_the_failure(scripted: list[tuple[Status, int]]) -> None:
    pool = ScriptedPool()
    with Grader(pool) as grader:
        cases = [StdioCase(name="", stdin=f"{word}", expected="yes") for word, _ in scripted]
        report = grader.grade(Program(""), cases, stop_at_first_failure=True)
        assert pool.runs == len(report.cases)


MIXED = Program(
    """
import sys

def f(x):
    if x == "loop":
        while True: pass
    if x == "raise":
        raise ValueError(x)
    if x == "much":
        return "x" * 2_000_000
    if x == "memory":
        return bytearray(1 << 30)
    return x

if __name__ == "__main__":
    print(f(input()))
"""
)


def stdio(word: str, expected: str) -> StdioCase:
    return StdioCase(name=f"stdio {word}", stdin=word, expected=expected)


def call(word: str, expected: str) -> FunctionCase:
    return FunctionCase(name=f"call {word}", entry_point="f", args=(word,), expected=expected)


def body(word: str, expected: str) -> AssertCase:
    text = f"assert f({word!r}) == {expected!r}"
    return AssertCase(name=f"assert {word}", body=text, entry_point="f")


CASES: list[tuple[Case, Status]] = [
    (stdio("a", "a"), AC),
    (call("a", "a"), AC),
    (body("a", "a"), AC),
    (stdio("b", "c"), WA),
    (call("b", "c"), WA),
    (body("b", "c"), WA),
    (stdio("raise", ""), RE),
    (call("raise", ""), RE),
    (body("raise", ""), RE),
    (stdio("much", ""), OLE),
    (call("much", ""), OLE),
    (call("loop", ""), TLE),
    (stdio("memory", ""), MLE),
    (call("memory", ""), MLE),
    (body("memory", ""), MLE),
    (stdio("d", "d"), AC),
    (call("d", "d"), AC),
]


@pytest.mark.parametrize("step", [1, 5, 12])
@pytest.mark.slow
def test_cases_of_every_kind_keep_their_verdicts_in_any_order(pool: WorkerPool, step: int) -> None:
    order = [CASES[step * n % len(CASES)] for n in range(len(CASES))]
    with WorkerPool(pool.backend, size=1) as own:
        grader = Grader(pool, own)
        report = grader.grade(MIXED, [case for case, _ in order], LIMITS)
        short = grader.grade(MIXED, [case for case, _ in order], LIMITS, stop_at_first_failure=True)
    assert [(result.name, result.status) for result in report.cases] == [
        (case.name, status) for case, status in order
    ]
    first = next(n for n, (_, status) in enumerate(order) if status is not AC)
    assert [result.status for result in short.cases] == [status for _, status in order[: first + 1]]
    assert short.status is report.status is order[first][1]
