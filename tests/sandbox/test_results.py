"""What a report says of a program that was stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from sandbox import (
    AssertCase,
    Case,
    FunctionCase,
    Grader,
    Limits,
    Program,
    Status,
    StdioCase,
    open_sandbox,
)

LIMITS = Limits(cpu_s=0.2, wall_s=1.0, output_bytes=1000)
STDIO = StdioCase(name="stdio", stdin="", expected="")
CALL = FunctionCase(name="call", entry_point="f", args=(), expected=1)
ASSERT = AssertCase(name="assert", entry_point="f", body="assert f() == 1")
SPIN = "while True: pass"
SLEEP = "import time; time.sleep(60)"
USED = r"used 0\.\d\d of 0\.2 s of CPU time"
GUARD = r"ended by the wall-clock guard after \d\.\d s"


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with open_sandbox("bubblewrap", workers=1) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("program", "case", "message"),
    [
        (SPIN, STDIO, USED),
        (SLEEP, STDIO, GUARD),
        (f"def f():\n    {SPIN}", CALL, USED),
        (f"def f():\n    {SLEEP}", CALL, GUARD),
        (f"def f():\n    {SPIN}", ASSERT, USED),
    ],
)
def test_a_program_that_ran_too_long_is_told_by_which_clock(
    grader: Grader, program: str, case: Case, message: str
) -> None:
    (result,) = grader.grade(Program(program), [case], LIMITS).cases
    assert result.status is Status.TIME_LIMIT_EXCEEDED
    assert re.search(message, result.message), result.message


def test_a_program_that_wrote_too_much_is_told_the_limit(grader: Grader) -> None:
    (result,) = grader.grade(Program("print('x' * 5000)"), [STDIO], LIMITS).cases
    assert result.status is Status.OUTPUT_LIMIT_EXCEEDED
    assert result.message == "wrote more than 1000 bytes"
