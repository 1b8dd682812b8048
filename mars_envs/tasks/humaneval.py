"""HumanEval records: a function to complete, judged by a body of asserts.

Hidden is the record's `test`. Public are, in this order: the entry in a file in HumanEvalPack's
layout (`task`, `public_test`), the docstring's doctest examples, or, where there are none, the
hidden test itself, the task then being marked `oracle` and its test not shown.
"""

from __future__ import annotations

import ast
import doctest
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..errors import InvalidTask
from ..parsing import parse
from .code import AssertBody, CodeTask, Test
from .files import read_records
from .numpy_free import without_numpy
from .records import Record

REQUIRED = ("task_id", "prompt", "entry_point", "test")
"""Fields by which the format is recognised."""

TIME_LIMIT_S = 3.0
"""CPU seconds per test: the timeout of the published harness."""

# Examples that contradict the data set's own reference solution and tests.
_WRONG_EXAMPLES = {"HumanEval/47": ("median([-10, 4, 6, 1000, 10, 20])",)}


def task_from_record(record: Record, *, public_tests: Mapping[str, str] | None = None) -> CodeTask:
    """Build a task from one problem.

    Args:
        record: a line of the data set.
        public_tests: per task id, a test body in HumanEvalPack's form.

    Raises:
        InvalidTask: a field is missing or wrong, or the code in one does not parse.
    """
    test = record.filled("test")
    _parse(record, "test", test)
    hidden = AssertBody(name="hidden", body=without_numpy(test))
    return task_with_hidden(record, (hidden,), public_tests=public_tests)


def task_with_hidden(
    record: Record, hidden: Sequence[Test], *, public_tests: Mapping[str, str] | None = None
) -> CodeTask:
    """Build a task from the prompt of a problem and its hidden tests.

    Args:
        record: has `task_id`, `prompt` and `entry_point`.
        hidden: its tests.
        public_tests: as for `task_from_record`.

    Raises:
        InvalidTask: a field is missing or wrong.
    """
    task_id = record.filled("task_id")
    prompt = record.filled("prompt")
    entry_point = record.filled("entry_point")
    function = next(
        (
            node
            for node in _parse(record, "prompt", prompt).body
            if isinstance(node, ast.FunctionDef) and node.name == entry_point
        ),
        None,
    )
    if function is None:
        raise record.error(
            "entry_point", "the name of a function that `prompt` opens", fix="correct the name"
        )
    bodies = split_asserts((public_tests or {}).get(task_id, ""), entry_point)
    if not bodies:
        docstring = ast.get_docstring(function) or ""
        bodies = doctest_asserts(docstring, entry_point, skip=_WRONG_EXAMPLES.get(task_id, ()))
    public = tuple(
        AssertBody(name=f"public/{number}", body=body)
        for number, body in enumerate(bodies, start=1)
    )
    return CodeTask(
        task_id=task_id,
        statement=prompt,
        public=public or tuple(hidden),
        hidden=tuple(hidden) if public else (),
        entry_point=entry_point,
        helpers=prompt,
        time_limit_s=TIME_LIMIT_S,
        oracle=not public,
        show_tests=bool(public),
    )


def read_public_tests(path: Path) -> dict[str, str]:
    """Read test bodies from a file in HumanEvalPack's layout.

    Raises:
        InvalidTask: the file cannot be read or a record lacks `task` or `public_test`.
    """
    bodies: dict[str, str] = {}
    for record in read_records(path):
        if isinstance(record, InvalidTask):
            raise record
        task_id = record.filled("task")
        bodies[task_id] = record.text("public_test")
    return bodies


def split_asserts(body: str, entry_point: str) -> list[str]:
    """Split `def check(entry_point): assert …; assert …` into one body per assert.

    One test per assert makes the public score a share instead of all or nothing, and lets feedback
    name the assert that failed. A check with other statements (or another parameter name) stays
    whole; one that asserts nothing about the function gives an empty list.
    """
    try:
        module = parse(body)
    except (SyntaxError, ValueError):
        return []
    checks = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    if len(checks) != 1 or not any(_calls(checks[0], name) for name in _names(checks[0])):
        return []
    check = checks[0]
    asserts = [node for node in check.body if isinstance(node, ast.Assert)]
    others = [
        node
        for node in check.body
        # A bare name or constant (HumanEval/129 has a lone `print`) does nothing.
        if not isinstance(node, ast.Assert)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Constant))
    ]
    if others or _names(check) != [entry_point]:
        return [ast.get_source_segment(body, check) or body]
    return [
        textwrap.dedent(ast.get_source_segment(body, node, padded=True) or "").strip()
        for node in asserts
        if _calls(node, entry_point)
    ]


def doctest_asserts(docstring: str, entry_point: str, *, skip: Iterable[str] = ()) -> list[str]:
    """Turn the doctest examples of a docstring into asserts.

    Only examples that call the function and whose output is a Python literal: others (tracebacks,
    prose after the value) cannot be compared by `==`.
    """
    try:
        examples = doctest.DocTestParser().get_examples(docstring)
    except ValueError:  # inconsistent indentation
        return []
    bodies: list[str] = []
    for example in examples:
        try:
            call = ast.parse(example.source.strip(), mode="eval")
            ast.literal_eval(example.want.strip())
        except (SyntaxError, ValueError):
            continue
        source = ast.unparse(call)  # drops a comment behind the call
        if _calls(call, entry_point) and source not in skip:
            bodies.append(f"assert {source} == {example.want.strip()}")
    return bodies


def _parse(record: Record, field: str, source: str) -> ast.Module:
    try:
        return parse(source)
    except (SyntaxError, ValueError) as error:
        raise record.error(field, "Python source", fix=f"it does not parse: {error}") from error


def _names(check: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in check.args.args]


def _calls(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == name
        for child in ast.walk(node)
    )
