r"""Programs that somebody submitted for tasks, with the verdicts recorded with them, if any.

One record per line, told apart by their fields:

* `task_id` (or `task`) and `text` (or `source`, `code`, `completion`): one program;
* `task`, `samples[].completion`: many completions of one prompt;
* `task`, `implementations[]`: the successive programs of one refinement run, and its last one;
* `id`, `submissions[].source`: a Kattis problem with the judges' submissions;
* a record of a task with its own solution (`canonical_solution`, `solution`) and perhaps a broken
  one (`buggy_solution`, `buggy_program`), which must pass and must not.

Optional beside a program: `form`, `id` or `name`, `prompt` (which a completion continues),
`observed` or `expected` (the recorded verdict), `per_test_observed` (one for each test, or null).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from ..errors import InvalidTask
from .files import read_records
from .records import Record

Form = Literal["full_program", "completion", "completion_or_full", "reply"]

FORMS: dict[str, Form] = {form: form for form in get_args(Form)}

_TEXTS = ("text", "source", "code", "completion")
_RECORDED = ("observed", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One program for one task."""

    task_id: str
    name: str
    """Unlike that of every other submission of the file."""
    text: str
    form: Form = "full_program"
    """`completion` continues its prompt, and so does `completion_or_full` (it may hold the whole
    function once more); `full_program` stands alone; a `reply` is a chat answer with code in it."""
    prompt: str | None = None
    """What a completion continues; None: the prompt of its task."""
    recorded: str = ""
    """The verdict recorded for it, in the words of its file (see `judging.agreement`)."""
    recorded_tests: tuple[str | None, ...] = ()
    """The verdict recorded for each test of the task, in order; None where there is none."""


def read_submissions(path: Path) -> Iterator[Submission | InvalidTask]:
    """Yield the submissions of a file, in its order; a record that holds none comes as an error.

    Raises:
        InvalidTask: the file cannot be read.
    """
    names: set[str] = set()
    for record in read_records(path):
        if isinstance(record, InvalidTask):
            yield record
            continue
        try:
            found = list(_read(record))
        except InvalidTask as problem:
            yield problem
            continue
        for submission in found:
            name, number = submission.name, 1
            while name in names:
                number += 1
                name = f"{submission.name} ({number})"
            names.add(name)
            yield replace(submission, name=name)


def _read(record: Record) -> Iterator[Submission]:
    if record.has("submissions"):
        yield from _problem(record)
    elif record.has("samples"):
        yield from _samples(record)
    elif record.has("implementations"):
        yield from _chain(record)
    elif any(record.has(field) for field in _TEXTS):
        yield _single(record)
    elif record.has("canonical_solution") or record.has("solution"):
        yield from _solutions(record)
    else:
        raise record.error(
            "text",
            "a program in `text`, `source`, `code` or `completion` (or a record with `samples`, "
            "`implementations`, `submissions` or `canonical_solution`)",
            fix="add the program, and `form` where it is no whole program",
        )


def _single(record: Record) -> Submission:
    task_id = _task_id(record)
    field = next(field for field in _TEXTS if record.has(field))
    form = record.text("form", "completion" if field == "completion" else "full_program")
    if form not in FORMS:
        raise record.error("form", f"one of {', '.join(FORMS)}", fix="say what the text is")
    return Submission(
        task_id=task_id,
        name=_name(record) or f"{record.unit} {record.line}",
        text=_any_text(record, field),
        form=FORMS[form],
        prompt=record.text("prompt") if record.has("prompt") else None,
        recorded=_recorded(record),
        recorded_tests=_recorded_tests(record),
    )


def _problem(record: Record) -> Iterator[Submission]:
    task_id = _task_id(record)
    tests = record.children("tests", required=False)
    # A task has its samples first, whatever their place in the file.
    order = sorted(range(len(tests)), key=lambda index: not tests[index].flag("sample", False))
    for entry in record.children("submissions"):
        recorded = _recorded_tests(entry)
        if len(recorded) == len(order):
            recorded = tuple(recorded[index] for index in order)
        yield Submission(
            task_id=task_id,
            name=f"{task_id}/{_name(entry) or entry.path_in.rstrip('.')}",
            text=_any_text(entry, "source"),
            recorded=_recorded(entry),
            recorded_tests=recorded,
        )


def _samples(record: Record) -> Iterator[Submission]:
    task_id = _task_id(record)
    prompt = record.text("prompt_used") if record.has("prompt_used") else None
    for number, entry in enumerate(record.children("samples"), start=1):
        yield Submission(
            task_id=task_id,
            name=f"{task_id}, sample {number}",
            text=_any_text(entry, "completion"),
            form="completion",
            prompt=prompt,
            recorded=_recorded(entry),
        )


def _chain(record: Record) -> Iterator[Submission]:
    task_id = _task_id(record)
    programs = record.data["implementations"]
    verdicts = record.data.get("observed") or [""] * len(programs)
    if not _strings(programs) or not _strings(verdicts) or len(programs) != len(verdicts):
        raise record.error(
            "implementations",
            "a list of programs, and `observed` a list with a verdict for each of them",
            fix="make the two lists equally long",
        )
    run = f"{task_id}, line {record.line}"
    for number, (program, verdict) in enumerate(zip(programs, verdicts, strict=True), start=1):
        name = f"{run}, program {number}"
        yield Submission(task_id=task_id, name=name, text=program, recorded=verdict)
    if record.has("final_solution"):
        yield Submission(
            task_id=task_id,
            name=f"{run}, final",
            text=_any_text(record, "final_solution"),
            recorded=record.text("observed_final", ""),
        )


def _solutions(record: Record) -> Iterator[Submission]:
    """Yield a task's own solution, and the broken program that it repairs."""
    if record.has("docstring"):  # QuixBugs
        task_id = f"QuixBugs/{record.filled('name')}"
        programs = {"solution": record.filled("solution")}
        if record.has("buggy_program"):
            programs["buggy"] = record.filled("buggy_program")
        form: Form = "full_program"
    else:
        task_id = _task_id(record)
        head = record.text("declaration", "")
        programs = {"solution": head + record.filled("canonical_solution")}
        if record.has("buggy_solution"):
            programs["buggy"] = head + record.filled("buggy_solution")
        whole = bool(head) or record.has("assertion")
        form = "full_program" if whole else "completion"
    observed = record.data.get("observed")
    for name, text in programs.items():
        recorded = "pass" if name == "solution" else "fail"
        if isinstance(observed, dict):
            found = observed.get(name) or observed.get(f"{name}_hidden")
            recorded = found if isinstance(found, str) else recorded
        yield Submission(
            task_id=task_id, name=f"{task_id}/{name}", text=text, form=form, recorded=recorded
        )


def _task_id(record: Record) -> str:
    for field in ("task_id", "task", "problem", "id"):
        if record.has(field):
            return record.filled(field)
    raise record.error("task_id", "the id of a task", fix="say which task the program is for")


def _name(record: Record) -> str:
    return next((record.filled(field) for field in ("id", "name") if record.has(field)), "")


def _any_text(record: Record, field: str) -> str:
    """Return a program, which may hold anything, lone surrogates too."""
    value = record.data.get(field)
    if not isinstance(value, str):
        raise record.error(field, "a program as a string", fix="write its source there")
    return value


def _recorded(record: Record) -> str:
    for field in _RECORDED:
        if record.has(field):
            return record.text(field)
    passed = record.data.get("passed")
    if isinstance(passed, bool):
        return "pass" if passed else "fail"
    return ""


def _recorded_tests(record: Record) -> tuple[str | None, ...]:
    if not record.has("per_test_observed"):
        return ()
    value = record.data["per_test_observed"]
    if not isinstance(value, list) or not all(v is None or isinstance(v, str) for v in value):
        raise record.error(
            "per_test_observed", "a list of verdicts, null where there is none", fix="correct it"
        )
    return tuple(value)


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
