"""LiveCodeBench records (`code_generation` and `code_generation_lite`).

Public tests are public, private ones hidden. Programs that read standard input are compared as the
published harness does it: line by line, tokens that differ having to be equal decimals; and the
values that functions return exactly.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from .cases import contest_task, entry_point, kind_of, make_test, texts, with_starter_code
from .code import CodeTask, OutputRule, Test
from .packed import unpack
from .records import Record

REQUIRED = ("question_content", "public_test_cases")
"""Fields by which the format is recognised."""

RULE: Final = OutputRule(kind="lines", float_abs=0.0)
"""The published comparison."""


def task_from_record(record: Record) -> CodeTask:
    """Build a task from one problem.

    Raises:
        InvalidTask: a field is missing or wrong, or the private tests are packed in another way
            than the published one.
    """
    starter_code = record.text("starter_code", "")
    public = _tests(record, "public_test_cases", "public")
    hidden = _tests(_unpacked(record), "private_test_cases", "hidden")
    if not public and not hidden:
        raise record.error("public_test_cases", "at least one test", fix="leave the record out")
    if len({type(test) for test in (*public, *hidden)}) > 1:
        raise record.error(
            "private_test_cases",
            "tests of the same kind as the public ones",
            fix="a task has tests on standard input or of a function, not both",
        )
    function = _function(record)
    meta = texts(record, "platform", "difficulty", "contest_id")
    if record.has("question_title"):
        meta["name"] = record.text("question_title")
    if record.has("contest_date"):
        meta["date"] = _date(record)
    return contest_task(
        record,
        task_id=record.filled("question_id"),
        statement=with_starter_code(record.filled("question_content"), starter_code),
        public=public,
        hidden=hidden,
        function=entry_point(function, starter_code) if function else None,
        rule=RULE,
        meta=meta,
    )


def _tests(record: Record, field: str, group: str) -> list[Test]:
    if not record.has(field) or record.data[field] == "":
        return []
    return [
        make_test(entry, kind_of(entry, "testtype"), f"{group}/{number}")
        for number, entry in enumerate(
            record.opened(field).children(field, required=False), start=1
        )
    ]


def _unpacked(record: Record) -> Record:
    """Return the record with its private tests as plain JSON, which many copies have packed."""
    field = "private_test_cases"
    value = record.data.get(field)
    if not isinstance(value, str) or not value.strip() or value.lstrip()[0] in "[{":
        return record
    try:
        text = unpack(value)
    except ValueError as error:
        raise record.error(
            field,
            "a JSON list of tests, plain or packed as published (base64, zlib, a pickled string)",
            fix=f"it holds {error}",
        ) from error
    return replace(record, data={**record.data, field: text})


def _function(record: Record) -> str:
    if not record.has("metadata") or record.data["metadata"] == "":
        return ""
    return record.opened("metadata").child("metadata").text("func_name", "")


def _date(record: Record) -> str:
    """Return the day of the contest, as in 2024-08-31: windows of days are how results are cut."""
    text = record.filled("contest_date")
    try:
        return datetime.fromisoformat(text).date().isoformat()
    except ValueError as error:
        raise record.error(
            "contest_date", "a date like 2024-08-31T00:00:00", fix="correct it"
        ) from error
