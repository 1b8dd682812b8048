"""MBPP records: a function described in a sentence or two, judged by a few asserts.

Three layouts: MBPP as published, full (`text`) or sanitized (`prompt`), with its asserts in
`test_list`; EvalPlus' MBPP+ (`assertion`: asserts at the top level, imports before them); and MBPP
in HumanEval's layout as LDB and MultiPL-E have it (`test`: a `check` with the asserts). In all of
them, the first assert is the public test, as in MBPP's own prompts, and all of them together are
the hidden one; a body of one assert serves both, the task then being marked `oracle` and its test
not shown. Where MBPP+ is published in MBPP's layout, its script `test` is a second hidden test.
The asserts of `challenge_test_list` are not used, as MBPP's own evaluation does not use them.

LDB's files take the first function of a solution for the one asked for, which for some tasks is a
helper (Mbpp/18): the function that the asserts call is the entry point, then.

Three tasks of MBPP+ ask for a tuple or list that its reference solution makes from a set, in one
fixed order (Mbpp/2 for `(4, 5)`), and one for a set (Mbpp/140). EvalPlus' own harness compares
their answers as sets, whatever they come in, although the asserts in its data do not say so; here
the asserts are rewritten to say it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from ..parsing import parse
from .code import AssertBody, CodeTask
from .numpy_free import without_numpy
from .records import Record

REQUIRED_PLUS = ("task_id", "prompt", "entry_point", "assertion")
"""Fields by which MBPP+ is recognised."""

REQUIRED_CHECK = ("task", "prompt", "entry_point", "test")
"""Fields by which MBPP in HumanEval's layout is recognised."""

REQUIRED_ORIGINAL = ("task_id", "code", "test_list")
"""Fields by which MBPP as published is recognised."""

AS_SETS = ("Mbpp/2", "Mbpp/140", "Mbpp/579", "Mbpp/769")
"""Tasks of MBPP+ whose answers may come in any order, but for those whose asserts say so."""

TIME_LIMIT_S = 3.0
"""CPU seconds per test: HumanEval's published timeout, which MBPP's harnesses use, too."""


def task_from_plus_record(record: Record) -> CodeTask:
    """Build a task from one problem of MBPP+.

    Raises:
        InvalidTask: a field is missing or wrong, or the asserts do not parse.
    """
    task_id = record.filled("task_id")
    return _task(record, task_id, "assertion", helpers="", as_sets=task_id in AS_SETS)


def task_from_check_record(record: Record) -> CodeTask:
    """Build a task from one problem in HumanEval's layout, its id in `task`.

    Raises:
        InvalidTask: a field is missing or wrong, or the test does not parse.
    """
    return _task(record, record.filled("task"), "test", helpers=record.filled("prompt"))


def task_from_original_record(record: Record) -> CodeTask:
    """Build a task from one problem of MBPP as its authors publish it.

    The statement ends with the first assert, which is what names the function. The published
    solution, `code`, is looked at for the name of the function alone.

    Raises:
        InvalidTask: a field is missing or wrong, or the asserts do not parse.
    """
    number = record.data.get("task_id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise record.error("task_id", "the number of a problem of MBPP", fix="write it unquoted")
    task_id = f"Mbpp/{number}"
    asserts = record.strings("test_list")
    imports = record.strings("test_imports", required=False)
    setup = "\n".join([record.text("test_setup_code", ""), *imports]).strip()
    text = record.filled("prompt" if record.has("prompt") else "text")
    fields = {
        "prompt": f'"""\n{text.strip()}\n{asserts[0].strip()}\n"""\n',
        "test_list": "\n".join([setup, *asserts]).strip() + "\n",
        "entry_point": _function(record, asserts),
    }
    plus = without_numpy(record.filled("test")) if record.has("test") else ""
    return _task(
        record.inner(fields, ""),
        task_id,
        "test_list",
        helpers="",
        as_sets=bool(plus) and task_id in AS_SETS,
        further=(AssertBody(name="plus", body=plus),) if plus else (),
    )


def _function(record: Record, asserts: Sequence[str]) -> str:
    """Return the function that the first assert calls and the published solution defines."""
    sources = {"code": record.filled("code"), "test_list": asserts[0]}
    nodes: dict[str, list[ast.AST]] = {}
    for field, source in sources.items():
        try:
            nodes[field] = list(ast.walk(parse(source)))
        except (SyntaxError, ValueError) as error:
            raise record.error(field, "Python source", fix=f"it does not parse: {error}") from error
    defined = {node.name for node in nodes["code"] if isinstance(node, ast.FunctionDef)}
    # As in `f(g(1)) == 2`: the outermost call comes first.
    for node in nodes["test_list"]:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in defined:
                return name
    raise record.error(
        "test_list", "asserts that call a function which `code` defines", fix="correct them"
    )


def first_assert(body: str) -> str | None:
    """Cut a test body after its first assert, at the top level or in its `check`.

    Returns:
        The shorter body; None where it would be the same test, or there is no such assert.
    """
    module = parse(body)
    block = module.body
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            block = node.body
    asserts = [index for index, node in enumerate(block) if isinstance(node, ast.Assert)]
    if len(asserts) < 2:
        return None
    end = block[asserts[0]].end_lineno or 0
    return "\n".join(body.split("\n")[:end]).strip("\n") + "\n"


def tested_function(body: str, entry_point: str) -> str:
    """Return the function that a test body is about: `entry_point`, unless it calls another alone.

    Args:
        body: asserts at the top level, or a `check` that may call its parameter.
        entry_point: the function that the record names.
    """
    module = parse(body)
    check = next((n for n in module.body if isinstance(n, ast.FunctionDef)), None)
    nodes = list(ast.walk(check or module))
    bound = set(vars(builtins)) | {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if entry_point in used or used & {arg.arg for arg in (check.args.args if check else ())}:
        return entry_point
    called = {
        n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    } - bound
    return called.pop() if len(called) == 1 else entry_point


def compare_as_sets(body: str) -> str:
    """Rewrite `assert f(…) == value` at the top level as `assert set(f(…)) == set(value)`."""
    module = parse(body)
    for node in module.body:
        match node:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                text = f"set({ast.unparse(left)}) == set({ast.unparse(right)})"
                node.test = ast.parse(text, mode="eval").body
    return ast.unparse(module) + "\n"


def _task(
    record: Record,
    task_id: str,
    field: str,
    *,
    helpers: str,
    as_sets: bool = False,
    further: Sequence[AssertBody] = (),
) -> CodeTask:
    body = record.filled(field)
    entry_point = record.filled("entry_point")
    try:
        body = compare_as_sets(body) if as_sets else body
        public = first_assert(body)
        entry_point = tested_function(body, entry_point)
    except (SyntaxError, ValueError) as error:
        raise record.error(field, "Python source", fix=f"it does not parse: {error}") from error
    hidden = (AssertBody(name="hidden", body=body), *further)
    shown = () if public is None else (AssertBody(name="public/1", body=public),)
    return CodeTask(
        task_id=task_id,
        statement=record.filled("prompt"),
        public=shown or hidden,
        hidden=hidden if shown else (),
        entry_point=entry_point,
        helpers=helpers,
        time_limit_s=TIME_LIMIT_S,
        oracle=not shown,
        show_tests=bool(shown),
    )
