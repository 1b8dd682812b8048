from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.judging.base import Feedback
from mars_envs.judging.feedback import INPUT_CHARS, OUTPUT_CHARS, public_feedback, trim
from mars_envs.tasks import AssertBody, CodeTask, ExpectedCase

TASK = CodeTask(
    task_id="t",
    statement="s",
    public=(
        ExpectedCase(name="one", input="1\n", expected="2\n"),
        ExpectedCase(name="two", input="2\n", expected="4\n"),
        ExpectedCase(name="three", input="3\n", expected="6\n"),
    ),
    hidden=(ExpectedCase(name="secret", input="777\n", expected="888\n"),),
)
ASSERT_TASK = CodeTask(
    task_id="t",
    statement="s",
    public=(AssertBody(name="public/1", body="assert f(1) == 2\n"),),
    entry_point="f",
)


@dataclass
class Outcome:
    status: str = "accepted"
    exit_code: int | None = 0
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    message: str = ""


def feedback(*outcomes: Outcome, task: CodeTask = TASK) -> Feedback:
    return public_feedback(task, outcomes, time_limit_s=1.5, memory_mb=256)


def error(status: str = "runtime_error", **fields: object) -> str:
    outcome = dataclasses.replace(Outcome(status), **fields)  # type: ignore[arg-type]
    failure = feedback(outcome).failure
    assert failure is not None
    return failure.error


def test_it_counts_the_public_tests() -> None:
    found = feedback(Outcome(), Outcome("wrong_answer"), Outcome())
    assert (found.passed, found.total, found.status) == (2, 3, "wrong_answer")


def test_all_passed_is_no_failure() -> None:
    found = feedback(Outcome(), Outcome(), Outcome())
    assert found == Feedback(passed=3, total=3, status="accepted")


def test_the_first_failing_test_is_shown() -> None:
    failure = feedback(
        Outcome(), Outcome("wrong_answer", stdout="5\n"), Outcome("runtime_error")
    ).failure
    assert failure is not None
    assert (failure.name, failure.status) == ("two", "wrong_answer")
    assert (failure.input, failure.expected, failure.actual) == ("2", "4", "5")


def test_tests_that_may_not_be_shown_leave_counts_and_status() -> None:
    task = dataclasses.replace(TASK, show_tests=False)
    found = feedback(Outcome("wrong_answer", stdout="9"), Outcome(), Outcome(), task=task)
    assert found == Feedback(passed=2, total=3, status="wrong_answer")


def test_a_failing_assert_is_shown_as_it_stands() -> None:
    outcome = Outcome("wrong_answer", message="assert f(1) == 2; the last call returned 3")
    failure = feedback(outcome, task=ASSERT_TASK).failure
    assert failure is not None
    assert failure.input == "assert f(1) == 2"
    assert failure.error == "the last call returned 3"


def test_a_long_text_keeps_both_ends() -> None:
    assert trim("a" * 60 + "b" * 60, 30) == "a" * 20 + "…[90 characters left out]…" + "b" * 10
    assert trim("ab", 2) == "ab"


def test_inputs_and_outputs_are_trimmed() -> None:
    task = dataclasses.replace(
        TASK, public=(ExpectedCase(name="long", input="7" * 9999, expected="8" * 9999),)
    )
    failure = feedback(Outcome("wrong_answer", stdout="9" * 9999), task=task).failure
    assert failure is not None
    assert failure.input.count("7") == INPUT_CHARS
    assert failure.expected.count("8") == OUTPUT_CHARS
    assert failure.actual.count("9") == OUTPUT_CHARS + 3  # three nines in the count left out


def test_a_traceback_shows_its_last_frames_and_the_exception() -> None:
    stderr = (
        "debug output\nTraceback (most recent call last):\n"
        '  File "solution.py", line 9, in <module>\n    main()\n'
        '  File "solution.py", line 7, in main\n    a(3)\n'
        '  File "solution.py", line 4, in a\n    b(x)\n    ^^^^\n'
        '  File "/opt/python/lib/python3.11/json/decoder.py", line 1, in b\n'
        "    return y[5]\n           ~^^^\n"
        "IndexError: list index out of range\n"
    )
    assert error(stderr=stderr, exit_code=1) == (
        'File "solution.py", line 7, in main\n  a(3)\n'
        'File "solution.py", line 4, in a\n  b(x)\n'
        'File "decoder.py", line 1, in b\n  return y[5]\n'
        "IndexError: list index out of range"
    )


def test_the_last_of_chained_tracebacks_counts() -> None:
    stderr = (
        "Traceback (most recent call last):\n"
        '  File "solution.py", line 1, in <module>\n    int("x")\n'
        "ValueError: invalid literal\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "solution.py", line 3, in <module>\n    {}[1]\n'
        "KeyError: 1\n"
    )
    assert error(stderr=stderr) == 'File "solution.py", line 3, in <module>\n  {}[1]\nKeyError: 1'


def test_a_cut_off_traceback_still_names_the_exception() -> None:
    stderr = 'n f\n  File "solution.py", line 3, in f\n    f()\nRecursionError: too deep\n'
    assert (
        error(stderr=stderr) == 'File "solution.py", line 3, in f\n  f()\nRecursionError: too deep'
    )


def test_a_syntax_error_shows_its_line() -> None:
    stderr = (
        '  File "solution.py", line 1\n    print(\n         ^\n'
        "SyntaxError: '(' was never closed\n"
    )
    assert error("compile_error", stderr=stderr) == (
        "File \"solution.py\", line 1\n  print(\nSyntaxError: '(' was never closed"
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ValueError: <f object at 0x7f12ab34cd56>", "ValueError: <f object at 0x…>"),
        ("ValueError: <f object at 0x1f2>", "ValueError: <f object at 0x…>"),
        ("FileNotFoundError: '/tmp/a1b2/in.txt'", "FileNotFoundError: 'in.txt'"),
        ("OSError: /usr/lib/x.so: no", "OSError: x.so: no"),
        ("ValueError: 1/2/3 and a/b", "ValueError: 1/2/3 and a/b"),
        ("ValueError: \ud800\udcff", "ValueError: \\ud800\\udcff"),
    ],
)
def test_errors_are_the_same_everywhere(line: str, shown: str) -> None:
    assert error(stderr=f"Traceback (most recent call last):\n{line}\n") == shown


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (Outcome("time_limit_exceeded", message="2.013 s"), "ran longer than 1.5 s"),
        (Outcome("memory_limit_exceeded"), "used more than 256 MiB of memory"),
        (Outcome("output_limit_exceeded"), "printed too much"),
        (Outcome("runtime_error", exit_code=3), "exited with status 3"),
        (Outcome("runtime_error", exit_code=None, signal=11), "ended by SIGSEGV"),
        (Outcome("runtime_error", signal=11, message="ended by signal 11"), "ended by SIGSEGV"),
        (Outcome("runtime_error", signal=9, message="it ended early"), "it ended early"),
        (Outcome("runtime_error", exit_code=None, signal=99), "ended by signal 99"),
        (Outcome("runtime_error", message="no function named f"), "no function named f"),
        (Outcome("wrong_answer", message="took 0.31 s"), "took …"),
        (Outcome("wrong_answer", stderr="Traceback (most recent call last):\nX: y"), ""),
    ],
)
def test_each_kind_of_failure_has_its_words(outcome: Outcome, shown: str) -> None:
    failure = feedback(outcome).failure
    assert failure is not None
    assert failure.error == shown


@pytest.mark.parametrize(
    "status", ["time_limit_exceeded", "memory_limit_exceeded", "output_limit_exceeded"]
)
def test_output_of_a_stopped_program_is_not_shown(status: str) -> None:
    failure = feedback(Outcome(status, stdout="x" * 17)).failure
    assert failure is not None
    assert failure.actual == ""


def test_addresses_in_the_output_do_not_vary() -> None:
    first, second = (
        feedback(Outcome("wrong_answer", stdout=f"<object object at {address}> 0xff\n")).failure
        for address in ("0x7f0000000001", "0x55aa")
    )
    assert first == second
    assert first is not None
    assert first.actual == "<object object at 0x…> 0xff"


@given(
    st.sampled_from(["wrong_answer", "runtime_error", "compile_error"]),
    *[st.text(st.characters(), max_size=400)] * 3,
)
def test_every_text_can_be_encoded(status: str, stdout: str, stderr: str, message: str) -> None:
    outcome = Outcome(status, stdout=stdout, stderr=f"Error {stderr}", message=message)
    failure = feedback(outcome).failure
    assert failure is not None
    for field in dataclasses.fields(failure):
        getattr(failure, field.name).encode("utf-8")
