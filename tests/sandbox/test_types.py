"""Records refuse what no sandbox could act on, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from sandbox import (
    AssertCase,
    Checker,
    CheckerProgram,
    FunctionCase,
    Limits,
    Program,
    Report,
    Status,
    StdioCase,
    ValueChecker,
)


@pytest.mark.parametrize(
    "setting",
    [
        {"cpu_s": 0},
        {"cpu_s": math.inf},
        {"cpu_s": math.nan},
        {"cpu_s": "3"},
        {"cpu_s": True},
        {"wall_s": 1e300},
        {"processes": 0.5},
        {"processes": True},
        {"memory_mb": 1.5},
        {"stderr_bytes": -1},
        {"tmp_mb": 1 << 50},
    ],
)
def test_a_limit_that_cannot_be_set_is_named(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=rf"Limits\.{name} must be a .* number"):
        Limits(**setting)


def test_a_limit_that_is_too_high_is_told_the_most() -> None:
    with pytest.raises(ValueError, match="from 1 to 1099511627775, got 1125899906842624"):
        Limits(tmp_mb=1 << 50)
    with pytest.raises(ValueError, match="86400 at most, got 86401"):
        Limits(cpu_s=86_401)


def test_memory_in_which_no_interpreter_starts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memory_mb .* from 32 to .*may not start\), got 31"):
        Limits(memory_mb=31)
    assert Limits(memory_mb=32).memory_mb == 32


def test_a_wall_limit_may_be_left_open() -> None:
    assert Limits(cpu_s=2, wall_s=None).wall_limit_s == 20.0


@pytest.mark.parametrize("source", [None, b"print(1)", 5])
def test_a_program_is_text(source: Any) -> None:
    with pytest.raises(TypeError, match=r"Program\.source is text \(str.*\), got"):
        Program(source)


def stdio(**fields: Any) -> StdioCase:
    return StdioCase(**{"name": "n", "stdin": "", "expected": "", **fields})


def function(**fields: Any) -> FunctionCase:
    return FunctionCase(**{"name": "n", "entry_point": "f", "args": (), "expected": 1, **fields})


def body(**fields: Any) -> AssertCase:
    return AssertCase(**{"name": "n", "body": "", "entry_point": "f", **fields})


@pytest.mark.parametrize(
    ("make", "field", "value", "message"),
    [
        (stdio, "name", 1, r"StdioCase\.name is text \(str\), got 1 \(of type int\)"),
        (stdio, "stdin", b"1", r"StdioCase\.stdin is text \(str; decode it first\), got b'1'"),
        (stdio, "expected", ["1"], r"StdioCase\.expected is text"),
        (stdio, "checker", ValueChecker(), r"checker is a Checker\(...\) or a CheckerProgram"),
        (body, "body", None, r"AssertCase\.body is text \(str\), got None"),
        (body, "helpers", 3, r"AssertCase\.helpers is text"),
        (body, "entry_point", print, r"AssertCase\.entry_point is text"),
        (function, "entry_point", None, r"FunctionCase\.entry_point is text"),
        (
            function,
            "args",
            "ab",
            r"args is a tuple of the arguments .* got 'ab' .* write \('ab',\)",
        ),
        (function, "args", 5, r"args is a tuple of the arguments of one call, got 5 \(of type int"),
        (function, "alternatives", {1}, r"alternatives is a tuple of further right answers"),
        (function, "arg_types", (None,), r"arg_types\[0\] is text"),
        (function, "compare_argument", "0", r"the number of an argument, from 0, or None, got '0'"),
        (
            function,
            "compare_argument",
            True,
            r"the number of an argument, from 0, or None, got Tru",
        ),
        (function, "checker", Checker(), r"checker is a ValueChecker\(...\) or a CheckerProgram"),
        (Checker, "case_sensitive", "no", r"Checker\.case_sensitive is True or False, got 'no'"),
        (ValueChecker, "iterables", 1, r"ValueChecker\.iterables is True or False, got 1"),
        (CheckerProgram, "source", None, r"CheckerProgram\.source is text"),
    ],
)
def test_a_field_of_another_type_is_named(
    make: Callable[..., object], field: str, value: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        make(**{field: value})


@pytest.mark.parametrize("name", ["", "a.b.c", "f()", "two sum", ".f", "Solution."])
def test_an_entry_point_is_a_function_or_a_method(name: str) -> None:
    with pytest.raises(ValueError, match=r"'twoSum', or of a method in a class, like 'Solution"):
        function(entry_point=name)


def test_only_a_known_world_can_be_assumed() -> None:
    with pytest.raises(ValueError, match="assume is nothing or leetcode, got 'codeforces'"):
        function(assume="codeforces")


@pytest.mark.parametrize("value", ["1e-6", -1.0, math.inf, math.nan, True])
@pytest.mark.parametrize("make", [Checker, ValueChecker])
def test_a_tolerance_is_a_number(make: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{make.__name__}\.float_rel is a number of at least 0"):
        make(float_rel=value)


def test_a_list_of_arguments_will_do() -> None:
    args: Any = [1, 2]
    assert function(args=args) == function(args=(1, 2))


def test_there_is_no_report_on_a_program_that_was_not_tested() -> None:
    with pytest.raises(ValueError, match="at least one case"):
        Report(status=Status.ACCEPTED, cases=(), backend="local", isolated=False)
