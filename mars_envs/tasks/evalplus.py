"""HumanEval+ as EvalPlus publishes it: inputs, and a solution that says what is right for them.

The loader runs nothing. A hidden test carries inputs and the canonical solution; the sandbox runs
that solution in the process of the test, beside the program's, whenever it judges. `base` holds
HumanEval's own inputs, `plus/1` and so on EvalPlus' further ones. Values are compared as EvalPlus
does it: equal, or numbers within `atol` (1e-6 where it is 0 and the right value has floats); of
`find_zero` any zero will do. Public tests are those of HumanEval (see `humaneval`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..parsing import parse
from .code import AssertBody, CodeTask
from .humaneval import task_with_hidden
from .records import Record

REQUIRED = ("task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input")
"""Fields by which the format is recognised."""

MOST_CHARACTERS = 250_000
"""Inputs whose right value is longer, written out, are left out when a test runs: the sandbox
carries a mebibyte at most, and three problems have inputs with larger values (15, 100, 130)."""

INPUTS_PER_TEST = 200
"""Each test has the time limit for itself, and some problems have a thousand inputs."""

_BODY = """
import copy
import json

known = {{}}
exec({solution!a}, known)
inputs = json.loads({inputs!a})


def is_float(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def is_close(got, right, atol):
    if isinstance(right, (list, tuple)):
        same = isinstance(got, (list, tuple)) and len(got) == len(right)
        return same and all(is_close(a, b, atol) for a, b in zip(got, right))
    if not isinstance(right, (int, float)) or not isinstance(got, (int, float)):
        return got == right
    return got == right or abs(got - right) <= atol + 1e-07 * abs(right)


def check(candidate):
    for arguments in inputs:
        right = known[{name!a}](*copy.deepcopy(arguments))
        if len(repr(right)) > {most}:
            continue
        got = candidate(*arguments)
        if {name!a} == "find_zero":
            assert abs(known["poly"](*arguments, got)) <= {atol!r}
        elif got != right:
            atol = {atol!r} or (1e-06 if is_float(right) else 0)
            assert atol and is_close(got, right, atol)
""".lstrip()


def task_from_record(record: Record, *, public_tests: Mapping[str, str] | None = None) -> CodeTask:
    """Build a task from one problem.

    Args:
        record: a line of the data set.
        public_tests: per task id, a test body in HumanEvalPack's form.

    Raises:
        InvalidTask: a field is missing or wrong, or the solution does not parse.
    """
    solution = record.filled("prompt") + record.filled("canonical_solution")
    try:
        parse(solution)
    except (SyntaxError, ValueError) as error:
        raise record.error(
            "canonical_solution",
            "what continues `prompt` to a function",
            fix=f"it does not parse: {error}",
        ) from error
    name = record.filled("entry_point")
    atol = record.amount("atol") if record.has("atol") else 0.0
    parts = {"base": inputs(record, "base_input")}
    plus = inputs(record, "plus_input")
    for start in range(0, len(plus), INPUTS_PER_TEST):
        part = plus[start : start + INPUTS_PER_TEST]
        parts[f"plus/{start // INPUTS_PER_TEST + 1}"] = part
    hidden = [
        AssertBody(
            name=key,
            body=_BODY.format(
                solution=solution,
                inputs=json.dumps(part),
                name=name,
                atol=atol,
                most=MOST_CHARACTERS,
            ),
        )
        for key, part in parts.items()
        if part
    ]
    if not hidden:
        raise record.error("base_input", "at least one input", fix="leave the record out")
    return task_with_hidden(record, hidden, public_tests=public_tests)


def inputs(record: Record, field: str) -> list[list[Any]]:
    """Return inputs without expected outputs: for each call, its positional arguments.

    Raises:
        InvalidTask: the field is no list of lists.
    """
    value = record.data.get(field)
    if not isinstance(value, list) or not all(isinstance(item, list) for item in value):
        raise record.error(field, "a list with a list of arguments for each call", fix="correct it")
    return value
