"""The host-side comparison: what is equal, and what a hostile output cannot do to it."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.compare import explain, matches
from sandbox.types import Checker

LINES = Checker()
TOKENS = Checker(kind="tokens")
KATTIS = Checker(kind="tokens", case_sensitive=False)
CLOSE = Checker(kind="tokens", float_abs=1e-6, float_rel=1e-6)
AUTO = Checker(kind="auto")

words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=6)
spaces = st.text(" \t\n\r\v\f", min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"1 2\n", "1 2"),
        (b"1 2  \r\n3\t\n\n\n", "1 2\n3\n"),
        (b"", "\n\n"),
        ("é\n".encode(), "é"),
    ],
)
def test_lines_ignore_trailing_space_and_trailing_blank_lines(output: bytes, expected: str) -> None:
    assert matches(output, expected, LINES)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b" 1 2\n", "1 2"),
        (b"1  2", "1 2"),
        (b"\n1 2", "1 2"),
        (b"1\n\n2", "1\n2"),
        (b"1 2 3", "1 2"),
        (b"Yes", "yes"),
        (b"1.0", "1"),
        (b"", "0"),
    ],
)
def test_lines_see_every_other_difference(output: bytes, expected: str) -> None:
    assert not matches(output, expected, LINES)


def test_tokens_ignore_the_amount_and_kind_of_whitespace() -> None:
    assert matches(b"  1\t2\n\n3 ", "1 2 3\n", TOKENS)
    assert not matches(b"12 3", "1 2 3", TOKENS)


def test_case_is_ignored_only_when_asked() -> None:
    assert matches("YES É".encode(), "yes é", KATTIS)
    assert not matches(b"YES", "yes", TOKENS)
    assert matches(b"a B", "A b", Checker(case_sensitive=False))


@pytest.mark.parametrize(
    ("output", "expected", "same"),
    [
        (b"0.3333333", "0.33333333333", True),
        (b"0.3334", "0.33333333333", False),
        (b"1000000.5", "1000000.0", True),  # relative error 5e-7
        (b"0.0000005", "0.0", True),  # absolute error 5e-7
        (b"3", "3.0000001", True),
        (b"3.", "3", True),
        (b".5", "5e-1", True),
        (b"100000000000000000", "100000000000000001", False),
        (b"1000001", "1000000", False),
        (b"007", "7", True),
        (b"-0", "0", True),
        (b"-7", "7", False),
        (b"+7", "7", True),
        (b"nan", "nan", True),
        (b"nan", "1.0", False),
        (b"inf", "1e999", False),
        (b"1e999", "2e999", False),
        (b"0x10", "16.0", False),
        (b"1_0", "10.0", False),
        ("１.0".encode(), "1.0", False),
    ],
)
def test_tolerances_accept_close_decimals_and_exact_integers(
    output: bytes, expected: str, same: bool
) -> None:
    assert matches(output, expected, CLOSE) is same


def test_either_tolerance_accepts_a_token() -> None:
    absolute = Checker(kind="tokens", float_abs=0.1)
    relative = Checker(kind="tokens", float_rel=0.1)
    assert matches(b"0.05", "0.0", absolute)
    assert not matches(b"0.05", "0.0", relative)
    assert matches(b"105.0", "100.0", relative)
    assert not matches(b"105.0", "100.0", absolute)
    assert matches(b"105.0 0.05", "100.0 0.0", Checker(kind="tokens", float_abs=0.1, float_rel=0.1))


def test_tolerances_work_inside_lines() -> None:
    checker = Checker(float_abs=0.01)
    assert matches(b"x 1.001 y\n", "x 1.0 y", checker)
    assert not matches(b"x 1.1 y\n", "x 1.0 y", checker)
    assert not matches(b"x\n1.001 y\n", "x 1.0 y", checker)


@pytest.mark.parametrize("checker", [LINES, TOKENS, KATTIS, CLOSE])
@pytest.mark.parametrize("output", [b"yes\x00", b"\x00yes", b"y\xffes", b"yes\xed\xa0\x80"])
def test_nul_and_undecodable_bytes_never_equal_clean_text(checker: Checker, output: bytes) -> None:
    assert not matches(output, "yes", checker)


def test_an_expected_text_with_any_lone_surrogate_is_compared_without_an_error() -> None:
    assert not matches(b"?", "\ud800", LINES)
    assert matches(b"a\xff", "a\udcff", LINES)


@pytest.mark.parametrize(
    "output",
    [
        b"9" * 2_000_000,
        b"0" * 2_000_000 + b"x",
        b"1" * 2_000_000 + b"x",
        b"1e" + b"9" * 2_000_000,
        b"1." + b"3" * 2_000_000,
        b"1\n" * 1_000_000,
        b" " * 2_000_000 + b"x",
        b" \n" * 1_000_000 + b"x",
    ],
    ids=["digits", "zeros", "ones", "exponent", "fraction", "lines", "spaces", "blank lines"],
)
@pytest.mark.parametrize("checker", [CLOSE, Checker(float_abs=1e-6, case_sensitive=False)])
def test_hostile_outputs_cost_linear_time(output: bytes, checker: Checker) -> None:
    start = time.process_time()
    assert not matches(output, "1.5 2\n" * 1000, checker)
    assert time.process_time() - start < 2.0


def test_huge_integers_that_differ_only_in_leading_zeros_are_equal() -> None:
    digits = "7" * 100_000
    assert matches(b"000" + digits.encode(), digits, CLOSE)


def test_the_explanation_names_the_place_and_quotes_nothing() -> None:
    assert explain(b"1 2 4", "1 2 3", TOKENS) == "token 3 differs"
    assert explain(b"a\nsecret", "a\nb", LINES) == "line 2 differs"
    assert explain(b"1", "1 2 3", TOKENS) == "expected 3 tokens, got 1"
    assert explain(b"1", "1", TOKENS) is None


@given(st.lists(words, max_size=8), st.data())
def test_any_spacing_of_the_same_tokens_is_equal(tokens: list[str], data: st.DataObject) -> None:
    def spaced() -> str:
        return "".join(token + data.draw(spaces) for token in tokens)

    assert matches(spaced().encode(), spaced(), TOKENS)


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from([LINES, TOKENS, KATTIS]))
def test_exact_comparison_is_symmetric(left: str, right: str, checker: Checker) -> None:
    assert matches(left.encode(), right, checker) == matches(right.encode(), left, checker)


@given(st.binary(max_size=40), st.sampled_from([LINES, TOKENS, KATTIS, CLOSE]))
def test_every_output_equals_itself(output: bytes, checker: Checker) -> None:
    assert matches(output, output.decode("utf-8", "surrogateescape"), checker)


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_integers_are_equal_exactly_when_they_are_the_same_number(a: int, b: int) -> None:
    assert matches(str(a).encode(), str(b), CLOSE) == (a == b)


@given(
    st.decimals(-1000, 1000, places=9).map(lambda value: f"{value:.9f}"),
    st.decimals(-1000, 1000, places=9).map(lambda value: f"{value:.9f}"),
    st.sampled_from([1e-6, 1e-2, 0.5]),
)
def test_tolerance_agrees_with_exact_arithmetic(a: str, b: str, tolerance: float) -> None:
    error = abs(Fraction(a) - Fraction(b))
    bound = max(Fraction(tolerance), Fraction(tolerance) * abs(Fraction(b)))
    if abs(error - bound) > Fraction(1, 10**12):  # closer than that is float noise
        checker = Checker(kind="tokens", float_abs=tolerance, float_rel=tolerance)
        assert matches(a.encode(), b, checker) == (error <= bound)


@pytest.mark.data
def test_every_recorded_kattis_answer_is_accepted_and_its_first_half_is_not(data_dir: Path) -> None:
    checked = 0
    with (data_dir / "problems" / "kattis_problems.jsonl").open() as file:
        for line in file:
            for test in json.loads(line)["tests"]:
                tokens = test["answer"].split()
                if len(tokens) > 1:
                    assert matches("\n".join(tokens).upper().encode(), test["answer"], KATTIS)
                    half = " ".join(tokens[: len(tokens) // 2]).encode()
                    assert not matches(half, test["answer"], KATTIS)
                    checked += 1
    assert checked >= 100


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"0.3333333\n", "0.33333333"),
        (b"Case 1: 2.50", "Case 1: 2.5"),
        (b"1e3 7", "1000 7"),
        (b"1", "1.0"),
        (b"1.0", "1"),
        (b"-0.0 5", "0.0 5"),
        (b"100000000000.0", "100000000001.0"),
    ],
)
def test_the_auto_rule_takes_close_numbers_where_one_has_a_point_or_an_exponent(
    output: bytes, expected: str
) -> None:
    assert matches(output, expected, AUTO)
    assert matches(expected.encode(), output.decode(), AUTO)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"100000000000000000", "100000000000000001"),
        (b"007", "7"),
        (b"0.5", "0.500002"),
        (b"0.5 x", "0.5000001 y"),
        (b"nan", "nan.0"),
        (b"inf", "1e999"),
        (b"1e999", "2e999"),
        (b"1.0 2", "1 2 3"),
        (b"1.0\n2", "1 2.0"),
        (b"1.0\x00", "1"),
        (b"0x1.8", "1.5"),
        (b"1_0.0", "10"),
        (b"YES 1.0", "yes 1"),
    ],
)
def test_the_auto_rule_takes_nothing_else(output: bytes, expected: str) -> None:
    assert not matches(output, expected, AUTO)


@given(st.integers(), st.integers())
def test_the_auto_rule_compares_whole_numbers_exactly(left: int, right: int) -> None:
    assert matches(str(left).encode(), str(right), AUTO) is (left == right)


def test_a_space_sensitive_checker_sees_every_blank() -> None:
    exact = Checker(kind="tokens", case_sensitive=False, space_change_sensitive=True)
    assert matches(b"Yes 1\n\n", "yes 1\n\n", exact)
    for output in (b"Yes  1\n\n", b"Yes\t1\n\n", b" Yes 1\n\n", b"Yes 1\n", b"Yes 1 \n\n"):
        assert not matches(output, "yes 1\n\n", exact)
    close = Checker(kind="tokens", space_change_sensitive=True, float_abs=1e-3)
    assert matches(b"a 1.0001\n", "a 1\n", close)
    assert not matches(b"a  1.0001\n", "a 1\n", close)


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "sets"},
        {"space_change_sensitive": True},
        {"float_abs": -1.0},
        {"float_rel": float("nan")},
        {"kind": "auto", "float_abs": 1e-3},
    ],
)
def test_checkers_that_contradict_themselves_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Checker|tolerance"):
        Checker(**settings)
