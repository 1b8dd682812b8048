"""Contest problems with their tests in JSON: APPS, TACO, DeepCoder, verl and SYNTHETIC-1.

| layout | statement | tests |
| --- | --- | --- |
| APPS, TACO | `question` | `input_output`: inputs, outputs, perhaps `fn_name` |
| DeepCoder, rLLM | `problem` or `question` | `tests` or `ground_truth`: a list, or as in APPS |
| verl | `prompt`, a list of messages | `reward_model.ground_truth` |
| SYNTHETIC-1, Prime Intellect | `prompt` | `verification_info.test_cases` |

Tests may be JSON or JSON in a string. There is one set of them only, so search and reward share it
(the task is marked `oracle` and its tests are not shown), unless it is split (see `split`). Outputs
are compared line by line, numbers with a tolerance of 1e-6 where one of them has a point or an
exponent. The solutions in a record are not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from .cases import (
    AUTO,
    Kind,
    contest_task,
    entry_point,
    kind_of,
    make_test,
    numbered,
    seconds,
    texts,
    with_starter_code,
)
from .code import CodeTask, FunctionCall, Test
from .records import Record

REQUIRED_APPS = ("question|problem", "input_output")
"""Fields by which APPS and TACO are recognised; `|` between those of which one is enough."""

REQUIRED_DEEPCODER = ("problem|question", "tests|ground_truth")
"""Fields by which DeepCoder is recognised."""

REQUIRED_VERL = ("prompt", "reward_model")
"""Fields by which verl's layout is recognised."""

REQUIRED_SYNTHETIC = ("prompt", "verification_info")
"""Fields by which SYNTHETIC-1 is recognised."""

_IDS = ("task_id", "problem_id", "question_id", "id", "uid")
_META = ("difficulty", "source", "data_source", "url", "platform", "name")


def task_from_apps_record(record: Record) -> CodeTask:
    """Build a task from one problem of APPS or TACO.

    Raises:
        InvalidTask: a field is missing or wrong, or there is no test.
    """
    return _task(record, _either(record, "question", "problem"), record, "input_output")


def task_from_deepcoder_record(record: Record) -> CodeTask:
    """Build a task from one problem of DeepCoder's data set, or as rLLM prepares it.

    Raises:
        InvalidTask: a field is missing or wrong, or there is no test.
    """
    field = "tests" if record.has("tests") else "ground_truth"
    return _task(record, _either(record, "problem", "question"), record, field)


def task_from_verl_record(record: Record) -> CodeTask:
    """Build a task from one row in verl's layout; the last message of the prompt is the statement.

    Raises:
        InvalidTask: a field is missing or wrong, or there is no test.
    """
    messages = record.children("prompt")
    return _task(
        record, messages[-1].filled("content"), record.child("reward_model"), "ground_truth"
    )


def task_from_synthetic_record(record: Record) -> CodeTask:
    """Build a task from one problem of SYNTHETIC-1 or Prime Intellect's coding problems.

    Raises:
        InvalidTask: a field is missing or wrong, there is no test, or it is not for Python.
    """
    info = record.opened("verification_info").child("verification_info")
    if info.text("language", "python") not in ("python", "python3"):
        raise info.error("language", '"python"', fix="leave out problems in other languages")
    return _task(record, record.filled("prompt"), info, "test_cases")


def _task(record: Record, statement: str, holder: Record, field: str) -> CodeTask:
    """Build a task whose tests are the `field` of `holder`."""
    tests, function = _tests(holder, field)
    if any(isinstance(test, FunctionCall) for test in tests):
        function = function or holder.text("fn_name", "") or _function(record)
    starter_code = record.text("starter_code", "")
    return contest_task(
        record,
        task_id=numbered(record, *_IDS),
        statement=with_starter_code(statement, starter_code),
        public=tests,
        hidden=(),
        function=entry_point(function, starter_code) if function else None,
        rule=AUTO,
        time_limit_s=seconds(record, "time_limit"),
        meta=texts(record, *_META),
    )


def _tests(holder: Record, field: str) -> tuple[Sequence[Test], str]:
    """Return the tests, and the name of the function that they call, where they say it."""
    opened = holder.opened(field)
    if isinstance(opened.data.get(field), dict):
        return _columns(opened.child(field), field)
    entries = opened.children(field)
    functions = {_named(entry) for entry in entries}
    if len(functions) > 1:
        raise opened.error(field, "tests of one function", fix=f"they name {sorted(functions)}")
    kinds = [_kind(entry) for entry in entries]
    if len(set(kinds)) > 1:
        raise opened.error(
            field,
            "tests of one kind",
            fix="a task has tests on standard input or of a function, not both",
        )
    tests = [
        make_test(entry, kind, f"test/{number}")
        for number, (entry, kind) in enumerate(zip(entries, kinds, strict=True), start=1)
    ]
    return tests, functions.pop()


def _columns(table: Record, field: str) -> tuple[Sequence[Test], str]:
    """Read tests that are kept as a list of inputs and a list of outputs."""
    columns: list[list[object]] = []
    for name in ("inputs", "outputs"):
        column = table.data.get(name)
        if not isinstance(column, list):
            raise table.error(name, "a list with an entry for each test", fix="correct it")
        columns.append(column)
    if not columns[0]:
        raise table.error("inputs", "at least one entry", fix="leave the record out")
    if len(columns[0]) != len(columns[1]):
        raise table.error(
            "outputs", f"as many entries as `inputs` has, {len(columns[0])}", fix="correct them"
        )
    function = table.text("fn_name", "")
    tests = []
    for index, (given, wanted) in enumerate(zip(*columns, strict=True)):
        names = f"inputs[{index}]", f"outputs[{index}]"
        entry = table.inner(dict(zip(names, (given, wanted), strict=True)), "")
        kind: Kind = "call" if function else "stdin"
        tests.append(make_test(entry, kind, f"test/{index + 1}", input=names[0], output=names[1]))
    return tests, function


def _kind(entry: Record) -> Kind:
    for field in ("testtype", "type"):
        if entry.has(field):
            return kind_of(entry, field)
    return "call" if _named(entry) else "stdin"


def _named(entry: Record) -> str:
    if entry.has("fn_name"):
        return entry.text("fn_name")
    return entry.child("metadata").text("func_name", "") if entry.has("metadata") else ""


def _function(record: Record) -> str:
    """Return the function that the record's own `metadata` names."""
    opened = record.opened("metadata") if record.data.get("metadata") else record
    if not isinstance(opened.data.get("metadata"), dict):
        return ""
    metadata = opened.child("metadata")
    return metadata.text("func_name", "") or metadata.text("fn_name", "")


def _either(record: Record, first: str, second: str) -> str:
    return record.filled(first if record.has(first) else second)
