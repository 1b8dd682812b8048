"""Kattis / ICPC problem records: programs on standard input and output, judged token by token.

Samples become public tests, secret tests hidden ones. Where a record has only one of the two, one
set serves search and reward: the task is marked `oracle` and its tests are not shown.

Problems of the type `scoring` give points for groups of tests, which lie in folders: every folder
with an `accept_score` is a group, whose points go to programs that pass all of its tests.
"""

from __future__ import annotations

from collections.abc import Sequence

from .code import CodeTask, ExpectedCase, OutputRule, ScoringGroup
from .records import Record

REQUIRED = ("id", "statement", "tests", "checker")
"""Fields by which the format is recognised."""

DEFAULT_TIME_LIMIT_S = 10.0
"""CPU seconds per test of a package that publishes no limit: Kattis would derive one from compiled
submissions, which are not run here."""

MEMORY_MB = 1024
"""The packages publish no limit of their own; this is Kattis' usual one."""

SHOWN_CHARACTERS = 1000
"""A sample that is longer than this is left out of the statement."""

_FLAGS = (
    "float_tolerance E, float_absolute_tolerance E, float_relative_tolerance E, case_sensitive, "
    "space_change_sensitive"
)


def task_from_record(record: Record) -> CodeTask:
    """Build a task from one problem.

    The time limit is the published one, else the suggested one: Kattis derives its limits from
    compiled submissions, so most packages publish none that fits Python.

    Raises:
        InvalidTask: a field is missing or wrong, there is no test, or the checker is not ours.
    """
    samples: list[ExpectedCase] = []
    secret: list[ExpectedCase] = []
    for child in record.children("tests"):
        case = ExpectedCase(
            name=child.filled("name"), input=child.text("input"), expected=child.text("answer")
        )
        (samples if child.flag("sample", False) else secret).append(case)
    oracle = not samples or not secret
    limit = "time_limit_s" if record.has("time_limit_s") else "time_limit_s_suggested"
    checker = record.child("checker")
    program = checker.filled("source") if checker.data.get("type") == "program" else ""
    return CodeTask(
        task_id=record.filled("id"),
        statement=_statement(record.filled("statement"), [] if oracle else samples),
        public=tuple(samples or secret),
        hidden=() if oracle else tuple(secret),
        rule=OutputRule() if program else _rule(checker),
        checker=program,
        groups=_groups(record, [case.name for case in (*samples, *secret)]),
        time_limit_s=record.number(limit),
        memory_mb=int(record.number("memory_mb", MEMORY_MB)),
        oracle=oracle,
        show_tests=not oracle,
        meta={
            key: record.text(key)
            for key in ("name", "contest", "origin", "licence")
            if record.has(key)
        },
    )


def _statement(text: str, samples: Sequence[ExpectedCase]) -> str:
    """Return the statement with its samples, which the packages keep in files of their own."""
    shown = [text.rstrip("\n")]
    for number, sample in enumerate(samples, start=1):
        if len(sample.input) + len(sample.expected) <= SHOWN_CHARACTERS:
            shown.append(f"Sample input {number}:\n{sample.input.rstrip()}")
            shown.append(f"Sample output {number}:\n{sample.expected.rstrip()}")
    return "\n\n".join(shown) + "\n"


def _groups(record: Record, names: Sequence[str]) -> tuple[ScoringGroup, ...]:
    if not record.has("scoring_groups"):
        return ()
    folders = record.child("scoring_groups")
    found = [
        (folder, folders.child(folder).amount("accept_score"))
        for folder in folders.data
        if folders.child(folder).has("accept_score")
    ]
    groups = [
        ScoringGroup(
            name=folder,
            points=points,
            tests=tuple(name for name in names if name.startswith(f"{folder}/")),
        )
        for folder, points in found
    ]
    # The packages' samples give 0 points; a chosen subset of tests may leave groups without any.
    return tuple(group for group in groups if group.points and group.tests)


def _rule(checker: Record) -> OutputRule:
    """Read the checker: the default validator of the problem package format, with its flags."""
    if checker.text("type") != "tokens":
        raise checker.error(
            "type",
            '"tokens", or "program" with a checker in Python as its `source`',
            fix="problems with another checker of their own cannot be used",
        )
    case_sensitive = checker.flag("case_sensitive", False)
    space_sensitive = checker.flag("space_sensitive", False)
    float_abs: float | None = None
    float_rel: float | None = None
    words = iter(checker.text("flags", "").split())
    for word in words:
        if word == "case_sensitive":
            case_sensitive = True
        elif word == "space_change_sensitive":
            space_sensitive = True
        elif word in ("float_tolerance", "float_absolute_tolerance", "float_relative_tolerance"):
            tolerance = _tolerance(checker, next(words, ""))
            if word != "float_relative_tolerance":
                float_abs = tolerance
            if word != "float_absolute_tolerance":
                float_rel = tolerance
        else:
            raise checker.error(
                "flags", f"validator flags out of: {_FLAGS}", fix=f"remove {word!r}"
            )
    return OutputRule(
        kind="tokens",
        case_sensitive=case_sensitive,
        space_change_sensitive=space_sensitive,
        float_abs=float_abs,
        float_rel=float_rel,
    )


def _tolerance(checker: Record, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise checker.error(
            "flags",
            "a number of at least 0 after a tolerance flag",
            fix="e.g. float_tolerance 1e-6",
        )
    return value
