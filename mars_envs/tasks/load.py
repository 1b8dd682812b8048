"""`load_tasks`: one way in for every source of programming tasks.

A source is a built-in name, a JSONL file, a `module:function` that makes tasks, or tasks. Formats
of files are told apart by the fields of their records.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ..errors import InvalidTask
from ..importing import import_object, is_importable
from . import humaneval, jsonl, kattis, mbpp, repair
from .code import CodeTask
from .records import Record, read_records

_log = logging.getLogger(__name__)

Format = Literal[
    "auto", "kattis", "humaneval", "humanevalpack", "mbpp_plus", "mbpp", "quixbugs", "code_task"
]

_REQUIRED: dict[str, tuple[str, ...]] = {
    "code_task": jsonl.REQUIRED,
    "humaneval": humaneval.REQUIRED,
    "humanevalpack": repair.REQUIRED_PACK,
    "kattis": kattis.REQUIRED,
    "mbpp": mbpp.REQUIRED_CHECK,
    "mbpp_plus": mbpp.REQUIRED_PLUS,
    "quixbugs": repair.REQUIRED_QUIXBUGS,
}

_BUILD: dict[str, Callable[[Record], CodeTask]] = {
    "code_task": jsonl.task_from_record,
    "humanevalpack": repair.task_from_pack_record,
    "kattis": kattis.task_from_record,
    "mbpp": mbpp.task_from_check_record,
    "mbpp_plus": mbpp.task_from_plus_record,
    "quixbugs": repair.task_from_quixbugs_record,
}

_SHOWN_PROBLEMS = 10


def load_tasks(
    source: str | os.PathLike[str] | Sequence[CodeTask],
    *,
    public_tests: str | os.PathLike[str] | None = None,
    format: Format = "auto",  # the word users know
    on_error: Literal["raise", "skip"] = "raise",
) -> Sequence[CodeTask]:
    """Load programming tasks.

    Args:
        source: a built-in family (`"tiny_code"`, `"tiny_code:held_out"`), the path of a `.jsonl`
            file, `"module:function"` (called without arguments), or tasks, which are checked.
        public_tests: for HumanEval records, a file in HumanEvalPack's layout with public tests.
        format: how to read a file; `"auto"` tells each record's format by its fields.
        on_error: `"raise"` lists every bad record; `"skip"` leaves them out and logs how many.

    Returns:
        At least one task, in the order of the source, no id twice.

    Raises:
        InvalidTask: the source cannot be used; the message says where and how to mend it.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')
    if format != "auto" and format not in _REQUIRED:
        raise ValueError(f"format must be auto, {', '.join(_REQUIRED)}, got {format!r}")
    if not isinstance(source, str | os.PathLike):
        return _checked(source, "the tasks passed in")
    text = os.fspath(source)
    if text == "tiny_code" or text.startswith("tiny_code:"):
        return _built_in(text)
    path = Path(text)
    if is_importable(text) and not path.exists():
        return _from_callable(text)
    return _from_file(path, public_tests=public_tests, format=format, skip=on_error == "skip")


def _built_in(name: str) -> Sequence[CodeTask]:
    from .tiny_code import tiny_tasks

    _, _, split = name.partition(":")
    if split not in ("", "train", "held_out"):
        raise InvalidTask(
            f"tiny_code has no split {split!r}; expected tiny_code:train or tiny_code:held_out"
        )
    # Handed on as they are: they are made on demand, and right by construction.
    return tiny_tasks(split="held_out" if split == "held_out" else "train")


def _from_callable(name: str) -> Sequence[CodeTask]:
    try:
        make = import_object(name)
    except (ImportError, ValueError) as error:
        raise InvalidTask(
            f"cannot find the tasks {name!r} ({error}); expected a built-in name (tiny_code, "
            "tiny_code:held_out), the path of a .jsonl file, or `module:function`"
        ) from error
    if not callable(make):
        raise InvalidTask(
            f"{name!r} is a {type(make).__name__}; expected a function that returns tasks"
        )
    return _checked(make(), name)


def _checked(tasks: Iterable[CodeTask], what: str) -> Sequence[CodeTask]:
    """Return tasks as a tuple, made sure that they are tasks, at least one, each id once."""
    result = tuple(tasks)
    if not result:
        raise InvalidTask(f"{what}: expected at least one task, got none")
    seen: set[str] = set()
    for index, task in enumerate(result):
        if not isinstance(task, CodeTask):
            raise InvalidTask(
                f"{what}, entry {index}: expected a CodeTask, got a {type(task).__name__}; build "
                "it with mars_envs.tasks.CodeTask(...) or read a file with load_tasks(path)"
            )
        if task.task_id in seen:
            raise InvalidTask(
                f"{what}, entry {index}: the task id {task.task_id!r} came before; give each task "
                "an id of its own"
            )
        seen.add(task.task_id)
    return result


def read_task_file(
    path: Path,
    *,
    public_tests: str | os.PathLike[str] | None = None,
    format: Format = "auto",  # the word users know
) -> tuple[list[CodeTask], list[InvalidTask]]:
    """Read a JSONL file of tasks, and what is wrong with the records that cannot be used.

    Raises:
        InvalidTask: the file cannot be read or is empty.
    """
    bodies = None if public_tests is None else humaneval.read_public_tests(Path(public_tests))
    tasks: list[CodeTask] = []
    problems: list[InvalidTask] = []
    first_line: dict[str, int] = {}
    for record in read_records(path):
        if isinstance(record, InvalidTask):
            problems.append(record)
            continue
        try:
            task = _task(record, format, bodies)
            if task.task_id in first_line:
                raise InvalidTask(
                    f"{path}, line {record.line}: the task id {task.task_id!r} came before, in "
                    f"line {first_line[task.task_id]}; give each task an id of its own"
                )
        except InvalidTask as problem:
            problems.append(problem)
            continue
        first_line[task.task_id] = record.line
        tasks.append(task)
    if not tasks and not problems:
        raise InvalidTask(f"{path}: expected one JSON object per line, got an empty file")
    return tasks, problems


def _from_file(
    path: Path, *, public_tests: str | os.PathLike[str] | None, format: Format, skip: bool
) -> Sequence[CodeTask]:
    tasks, problems = read_task_file(path, public_tests=public_tests, format=format)
    if problems and (not skip or not tasks):
        raise _summary(path, problems, len(tasks))
    if problems:
        _log.warning(
            "%s: left out %d of %d records; the first: %s",
            path,
            len(problems),
            len(problems) + len(tasks),
            problems[0],
        )
    return tuple(tasks)


def _task(record: Record, format: Format, bodies: Mapping[str, str] | None) -> CodeTask:
    name = _detect(record) if format == "auto" else format
    if name == "humaneval":
        return humaneval.task_from_record(record, public_tests=bodies)
    return _BUILD[name](record)


def _detect(record: Record) -> str:
    for name, required in _REQUIRED.items():
        if all(field in record.data for field in required):
            return name
    known = "; ".join(f"{name}: {', '.join(fields)}" for name, fields in _REQUIRED.items())
    fields = ", ".join(list(record.data)[:12]) or "none"
    raise InvalidTask(
        f"{record.file}, line {record.line}: unknown task format; expected the fields of one of "
        f"these ({known}), got the fields {fields}; convert it to CodeTask records "
        "(mars_envs.tasks.save_tasks) or pass format= to see what is missing"
    )


def _summary(path: Path, problems: list[InvalidTask], good: int) -> InvalidTask:
    if len(problems) == 1 and not good:
        return problems[0]
    shown = "\n  ".join(str(problem) for problem in problems[:_SHOWN_PROBLEMS])
    more = len(problems) - _SHOWN_PROBLEMS
    tail = f"\n  … and {more} more" if more > 0 else ""
    hint = '\nPass on_error="skip" to use the others.' if good else ""
    return InvalidTask(
        f"{path}: {len(problems)} of {len(problems) + good} records cannot be used:\n  {shown}"
        f"{tail}{hint}"
    )
