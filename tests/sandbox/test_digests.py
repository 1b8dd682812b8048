"""Digests of answers: equal exactly where the checker tells no difference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import (
    Checker,
    CheckerProgram,
    FunctionCase,
    Limits,
    Program,
    Status,
    StdioCase,
    ValueChecker,
    compare,
    digests,
    values,
)
from sandbox.grader import Grader, RunCache
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool

TOKENS = Checker(kind="tokens")
CLOSE = Checker(kind="tokens", float_abs=1e-6, float_rel=1e-6)


@pytest.mark.parametrize(
    ("one", "other", "checker", "equal"),
    [
        (b"1 2\n", b"1 2  \n\n", Checker(), True),
        (b"1 2\n", b"1  2\n", Checker(), False),
        (b"1 2\n", b"1\n2\n", Checker(), False),
        (b"1 2\n", b" 1\n2\n", TOKENS, True),
        (b"12\n", b"1 2\n", TOKENS, False),
        (b"1 2", b"1  2", Checker(kind="tokens", space_change_sensitive=True), False),
        (b"YES", b"yes", TOKENS, False),
        (b"YES", b"yes", Checker(kind="tokens", case_sensitive=False), True),
        (b"0.333333333", b"0.33333334", CLOSE, True),
        (b"0.3333", b"0.3334", CLOSE, False),
        (b"1", b"1.0000000001", CLOSE, True),
        (b"-0.0", b"0", CLOSE, True),
        (b"+07", b"7", CLOSE, True),
        (b"1000001", b"1000002", CLOSE, False),
        (b"1e999", b"2e999", CLOSE, False),
        (b"nan", b"0", CLOSE, False),
        (b"x 1.0", b"x 1", Checker(kind="auto"), True),
        (b"x 1.0\n2", b"x 1\n3", Checker(kind="auto"), False),
        (b"\xff", b"\xfe", Checker(), False),
        (b"<f at 0x7f00a1>", b"<f at 0x55e0>", Checker(), True),
        (b"", b"\n", Checker(), True),
    ],
)
def test_outputs_are_normalised_as_their_checker_reads_them(
    one: bytes, other: bytes, checker: Checker, equal: bool
) -> None:
    assert (digests.of_output(one, checker) == digests.of_output(other, checker)) is equal


@pytest.mark.parametrize(
    ("one", "other", "checker", "equal"),
    [
        ((1, 2), [1, 2], ValueChecker(), True),
        ([1, 2], [2, 1], ValueChecker(), False),
        ([1, 2], [2, 1], ValueChecker(order="outer"), True),
        ([[1, 2]], [[2, 1]], ValueChecker(order="outer"), False),
        ([[1, 2]], [[2, 1]], ValueChecker(order="any"), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ValueChecker(), True),
        ({1, 2}, {2, 1}, ValueChecker(), True),
        (1, "1", ValueChecker(), False),
        (1, True, ValueChecker(), True),
        (1, 1.0, ValueChecker(), True),
        (0.1 + 0.2, 0.3, ValueChecker(), True),
        (0.1 + 0.2, 0.3, ValueChecker(float_abs=None, float_rel=None), False),
        (0.25, 0.26, ValueChecker(), False),
        (None, [], ValueChecker(), False),
        (float("nan"), float("nan"), ValueChecker(), True),
        ([1 << 20_000], [(1 << 20_000) + 1], ValueChecker(), False),
        (1.5 + 2j, 1.5 + 3j, ValueChecker(), False),
        ("<f at 0x7f00a1>", "<f at 0x55e0>", ValueChecker(), True),
        ("\ud800", "\udfff", ValueChecker(), False),
    ],
)
def test_values_are_normalised_as_their_checker_reads_them(
    one: Any, other: Any, checker: ValueChecker, equal: bool
) -> None:
    mine, theirs = (digests.of_value(values.tree_of(value), checker) for value in (one, other))
    assert (mine == theirs) is equal


@given(
    st.binary(max_size=60) | st.text("01 .e-\nab", max_size=30).map(str.encode),
    st.text("01 .e-\nab", max_size=30),
    st.sampled_from([Checker(), TOKENS, Checker(kind="tokens", case_sensitive=False)]),
)
def test_without_tolerances_digests_are_equal_exactly_where_the_comparison_accepts(
    output: bytes, expected: str, checker: Checker
) -> None:
    same = digests.of_output(output, checker) == digests.of_output(expected.encode(), checker)
    assert same is compare.matches(output, expected, checker)


@given(st.binary(max_size=200), st.sampled_from(["lines", "tokens", "auto"]), st.booleans())
def test_any_bytes_have_a_digest(output: bytes, kind: Any, case_sensitive: bool) -> None:
    digest = digests.of_output(output, Checker(kind=kind, case_sensitive=case_sensitive))
    assert len(digest) == digests.CHARACTERS


def test_a_report_has_digests_of_what_was_not_accepted_by_a_comparison() -> None:
    anything = CheckerProgram(source="def check(input, output, expected):\n    return True")
    cases = [
        StdioCase(name="right", stdin="", expected="7"),
        StdioCase(name="wrong", stdin="", expected="8"),
        StdioCase(name="wrong too", stdin="1", expected="9"),
        StdioCase(name="custom", stdin="", expected="", checker=anything),
        FunctionCase(name="call", entry_point="f", args=(), expected=1),
        FunctionCase(name="right call", entry_point="f", args=(), expected=7),
        FunctionCase(name="no such", entry_point="g", args=(), expected=7),
    ]
    with Grader(WorkerPool(LocalBackend(), size=1), cache=RunCache()) as grader:
        program = Program("print(7)\ndef f():\n    return 7")
        first, again = (grader.grade(program, cases, Limits()) for _ in range(2))
    found = {case.name: case.digest for case in first.cases}
    assert found == {case.name: case.digest for case in again.cases}
    assert again.cached == len(cases)
    seven = digests.of_output(b"7\n", Checker())
    assert found == {
        "right": "",
        "wrong": seven,
        "wrong too": seven,
        "custom": seven,
        "call": digests.of_value(7, ValueChecker()),
        "right call": "",
        "no such": "",
    }
    assert first.cases[1].status is Status.WRONG_ANSWER
