"""Tests as data sets of contest problems keep them in JSON, and what such data sets have in common.

A test has an input and an output. For programs that read standard input both are texts, or lists of
lines. For functions the input is either a text with one JSON value a line, the output then being
JSON, too (LiveCodeBench), or a list of arguments, the output then being the value itself, which
some data sets wrap in a list of one item (APPS, TACO).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from ..errors import InvalidTask
from .code import CodeTask, ExpectedCase, FunctionCall, OutputRule, Test
from .records import Record

Kind = Literal["stdin", "call"]

KINDS: dict[str, Kind] = {
    "stdin": "stdin",
    "stdin_stdout": "stdin",
    "functional": "call",
    "function_call": "call",
}
"""What data sets call the two kinds of test."""

TIME_LIMIT_S = 6.0
"""CPU seconds per test: the timeout of LiveCodeBench's harness, which DeepCoder's uses, too."""

MOST_SECONDS = 60.0
"""A published limit above this is taken for a mistake, and cut."""

MEMORY_MB = 1024
"""These data sets publish no limit that is meant for Python."""

AUTO = OutputRule(kind="auto")
"""For data sets that do not say whether numbers have to be exact."""

_CLASS = re.compile(r"^class\s+Solution\b", re.MULTILINE)
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)")


def kind_of(record: Record, field: str) -> Kind:
    """Return the kind of a test that a field names.

    Raises:
        InvalidTask: it names none.
    """
    word = record.text(field)
    if word not in KINDS:
        raise record.error(
            field, f"one of {', '.join(KINDS)}", fix="other kinds of test cannot be judged"
        )
    return KINDS[word]


def make_test(
    record: Record, kind: Kind, name: str, *, input: str = "input", output: str = "output"
) -> Test:
    """Make a test.

    Args:
        record: has its input and output.
        kind: what the input is for.
        name: of the test.
        input: the field with the input.
        output: the field with the output.

    Raises:
        InvalidTask: one of them is missing or of the wrong type.
    """
    if kind == "stdin":
        return ExpectedCase(name=name, input=_text(record, input), expected=_text(record, output))
    value = record.data.get(input)
    others: tuple[str, ...] = ()
    if isinstance(value, str):
        arguments, expected = record.text(input), _json_text(record, output)
    elif isinstance(value, list):
        if output not in record.data:
            raise record.error(output, "the value that is returned", fix="add it, null for None")
        arguments = "\n".join(map(json.dumps, value))
        result = record.data[output]
        expected = json.dumps(result)
        if isinstance(result, list) and len(result) == 1:
            others = (json.dumps(result[0]),)
    else:
        raise record.error(
            input,
            "a list of arguments, or a text with one JSON value a line",
            fix="write the arguments of one call",
        )
    try:
        return FunctionCall(name=name, arguments=arguments, expected=expected, alternatives=others)
    except InvalidTask as error:
        raise record.error(input, "JSON values, one a line", fix=str(error)) from error


def entry_point(name: str, starter_code: str) -> str:
    """Return how to call a function: as a method where the starter code has a class `Solution`."""
    return f"Solution.{name}" if _CLASS.search(starter_code) else name


def with_starter_code(statement: str, starter_code: str) -> str:
    """Return a statement with the code that a solution has to complete, if there is any."""
    if not starter_code.strip():
        return statement
    code = starter_code.rstrip()
    return f"{statement.rstrip()}\n\nComplete this starter code:\n\n```python\n{code}\n```\n"


def numbered(record: Record, *fields: str) -> str:
    """Return the id that one of `fields` holds, or one made of the file's name and the line."""
    for field in fields:
        value = record.data.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{record.origin}/{value}" if record.origin else str(value)
        if isinstance(value, str) and value.strip():
            return record.filled(field)
    return f"{record.origin}/{record.line}" if record.origin else f"task/{record.line}"


def seconds(record: Record, field: str) -> float:
    """Return the published time limit, e.g. `"2.0 seconds"`, but at least `TIME_LIMIT_S`.

    Published limits are meant for compiled languages; one that says nothing of seconds is left out.
    """
    value = record.data.get(field)
    if isinstance(value, str) and "second" in value and (match := _NUMBER.match(value)):
        value = float(match[1])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(max(TIME_LIMIT_S, min(value, MOST_SECONDS)))
    return TIME_LIMIT_S


def texts(record: Record, *fields: str) -> dict[str, str]:
    """Return the fields that hold a text or a number, as texts: for the `meta` of a task.

    Raises:
        InvalidTask: a text holds lone surrogates.
    """
    return {
        field: record.text(field) if isinstance(value, str) else str(value)
        for field in fields
        if isinstance(value := record.data.get(field), str | int | float)
        and str(value).strip()
        and not isinstance(value, bool)
    }


def contest_task(
    record: Record,
    *,
    task_id: str,
    statement: str,
    public: Sequence[Test],
    hidden: Sequence[Test],
    function: str | None,
    rule: OutputRule,
    time_limit_s: float = TIME_LIMIT_S,
    meta: dict[str, str],
) -> CodeTask:
    """Make a task; where there is one set of tests only, it serves search and reward, unseen.

    Raises:
        InvalidTask: there is no test, or a test calls a function that has no name.
    """
    tests = (*public, *hidden)
    if any(isinstance(test, FunctionCall) for test in tests) and not function:
        raise InvalidTask(
            f"{record.place}: its tests call a function, but nothing says which; expected its name "
            "in `func_name` of `metadata`, or in `fn_name`"
        )
    oracle = not (public and hidden)
    return CodeTask(
        task_id=task_id,
        statement=statement,
        public=tuple(public or hidden),
        hidden=() if oracle else tuple(hidden),
        entry_point=function if isinstance(tests[0], FunctionCall) else None,
        rule=rule,
        time_limit_s=time_limit_s,
        memory_mb=MEMORY_MB,
        oracle=oracle,
        show_tests=not oracle,
        meta=meta,
    )


def _text(record: Record, field: str) -> str:
    """Return a text, which may be kept as a list of its lines."""
    value = record.data.get(field)
    if not isinstance(value, list):
        return record.text(field)
    if any(not isinstance(line, str | int | float) for line in value):
        raise record.error(field, "a text, or a list of its lines", fix="one line per entry")
    return record.inner({field: "\n".join(map(str, value))}, "").text(field)


def _json_text(record: Record, field: str) -> str:
    """Return a value as JSON, which is how a text holds it already."""
    value: Any = record.data.get(field)
    return record.filled(field) if isinstance(value, str) else json.dumps(value)
