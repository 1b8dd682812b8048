"""Our own format: one `CodeTask` per line of JSON, with every field of the dataclass.

A test is `{"kind": "stdio", "name", "input", "expected"}`, `{"kind": "assert", "name", "body"}` or
`{"kind": "call", "name", "arguments", "expected"}`, perhaps with `alternatives`, a probe `{"name",
"input"}`; `task_id`, `statement` and `public` are needed, everything else has the defaults of
`CodeTask`; but a task without hidden tests is an `oracle` one, unseen, unless it says otherwise.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, cast

from .code import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    OutputRule,
    Probe,
    ScoringGroup,
    Test,
)
from .records import Record

REQUIRED = ("task_id", "statement", "public")
"""Fields by which the format is recognised."""

_KINDS: dict[type, str] = {ExpectedCase: "stdio", AssertBody: "assert", FunctionCall: "call"}
_FIELDS = {field.name for field in dataclasses.fields(CodeTask)}


def task_to_json(task: CodeTask) -> dict[str, Any]:
    """Return `task` as plain JSON data; `task_from_json` is the way back."""
    data: dict[str, Any] = {
        field.name: getattr(task, field.name) for field in dataclasses.fields(CodeTask)
    }
    data["public"] = [_test_to_json(test) for test in task.public]
    data["hidden"] = [_test_to_json(test) for test in task.hidden]
    data["rule"] = dataclasses.asdict(task.rule)
    data["probes"] = [dataclasses.asdict(probe) for probe in task.probes]
    data["groups"] = [dataclasses.asdict(group) for group in task.groups]
    data["meta"] = dict(task.meta)
    return data


def task_from_json(data: dict[str, Any], *, file: str = "<task>", line: int = 1) -> CodeTask:
    """Build a task from JSON data.

    Args:
        data: what `task_to_json` returned, or the same by hand.
        file: named in errors.
        line: named in errors.

    Raises:
        InvalidTask: a field is missing, unknown or of the wrong type.
    """
    return task_from_record(Record(file=file, line=line, data=data))


def task_from_record(record: Record) -> CodeTask:
    """Build a task from one line of a file.

    Raises:
        InvalidTask: a field is missing, unknown or of the wrong type.
    """
    for name in record.data:
        if name not in _FIELDS:
            raise record.error(
                name, f"one of {', '.join(sorted(_FIELDS))}", fix="rename or remove the field"
            )
    meta: dict[str, str] = {}
    if record.has("meta"):
        child = record.child("meta")
        meta = {key: child.text(key) for key in child.data}
    hidden = tuple(_test(child) for child in record.children("hidden", required=False))
    oracle = record.flag("oracle", not hidden)
    return CodeTask(
        task_id=record.filled("task_id"),
        statement=record.filled("statement"),
        public=tuple(_test(child) for child in record.children("public")),
        hidden=hidden,
        entry_point=record.text("entry_point") if record.has("entry_point") else None,
        helpers=record.text("helpers", ""),
        rule=_rule(record.child("rule")) if record.has("rule") else OutputRule(),
        checker=record.text("checker", ""),
        probes=tuple(
            Probe(name=child.filled("name"), input=child.text("input"))
            for child in record.children("probes", required=False)
        ),
        groups=tuple(_group(child) for child in record.children("groups", required=False)),
        time_limit_s=record.number("time_limit_s", 2.0),
        memory_mb=int(record.number("memory_mb", 512)),
        oracle=oracle,
        show_tests=record.flag("show_tests", not oracle),
        meta=meta,
    )


def save_tasks(path: str | Path, tasks: Iterable[CodeTask]) -> None:
    """Write tasks as a file that `load_tasks` reads."""
    lines = (json.dumps(task_to_json(task), ensure_ascii=False) + "\n" for task in tasks)
    # Encoded before the file is opened, which empties it: an error leaves it as it was.
    Path(path).write_bytes("".join(lines).encode("utf-8"))


def _test_to_json(test: Test) -> dict[str, Any]:
    data = {"kind": _KINDS[type(test)], **dataclasses.asdict(test)}
    if not data.get("alternatives", True):
        del data["alternatives"]
    return data


def _test(record: Record) -> Test:
    likely = "assert" if record.has("body") else "call" if record.has("arguments") else "stdio"
    kind = record.text("kind", likely)
    if kind == "assert":
        return AssertBody(name=record.filled("name"), body=record.filled("body"))
    if kind == "stdio":
        return ExpectedCase(
            name=record.filled("name"),
            input=record.text("input"),
            expected=record.text("expected"),
        )
    if kind == "call":
        return FunctionCall(
            name=record.filled("name"),
            arguments=record.text("arguments"),
            expected=record.filled("expected"),
            alternatives=tuple(record.strings("alternatives", required=False)),
        )
    raise record.error("kind", '"stdio", "assert" or "call"', fix="name the kind of test")


def _group(record: Record) -> ScoringGroup:
    tests = record.data.get("tests")
    if not isinstance(tests, list | tuple) or not all(isinstance(name, str) for name in tests):
        raise record.error("tests", "a list of names of tests", fix="name the group's tests")
    return ScoringGroup(
        name=record.filled("name"),
        points=record.amount("points"),
        tests=tuple(tests),
    )


def _rule(record: Record) -> OutputRule:
    kind = record.text("kind", "lines")
    if kind not in ("lines", "tokens", "auto"):
        raise record.error("kind", '"lines", "tokens" or "auto"', fix="name how outputs compare")
    order = record.text("order", "given")
    if order not in ("given", "outer", "any"):
        raise record.error("order", '"given", "outer" or "any"', fix="name which order counts")
    return OutputRule(
        kind=cast(Literal["lines", "tokens", "auto"], kind),
        case_sensitive=record.flag("case_sensitive", True),
        space_change_sensitive=record.flag("space_change_sensitive", False),
        float_abs=record.amount("float_abs") if record.has("float_abs") else None,
        float_rel=record.amount("float_rel") if record.has("float_rel") else None,
        order=cast(Literal["given", "outer", "any"], order),
    )
