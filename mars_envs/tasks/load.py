"""`load_tasks`: one way in for every source of programming tasks.

A source is a built-in name, a file, a folder, a data set on a Hugging Face hub, a `module:function`
that makes tasks, or tasks. Formats are told apart by the fields of each record (see `formats`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from ..errors import InvalidTask
from . import humaneval
from .code import CodeTask
from .files import read_records
from .formats import Format, build_task
from .hub import PREFIX, parse_name, read_hub
from .intake import call_source, checked_tasks, names_function, settle_problems
from .options import LoadOptions, day, with_query
from .records import Record
from .split import in_window, split_tests

_log = logging.getLogger(__name__)


def load_tasks(
    source: str | os.PathLike[str] | Sequence[CodeTask],
    *,
    public_tests: str | os.PathLike[str] | None = None,
    format: Format = "auto",  # the word users know
    on_error: Literal["raise", "skip"] = "raise",
    limit: int | None = None,
    public_count: int | None = None,
    split_seed: int | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    difficulty: str | None = None,
    language: str = "en",
    split: str | None = None,
    name: str | None = None,
    revision: str | None = None,
) -> Sequence[CodeTask]:
    """Load programming tasks.

    Args:
        source: a built-in family (`"tiny_code"`, `"tiny_code:held_out"`); the path of a file
            (`.jsonl`, `.json`, both also with `.gz`, `.parquet`), of a Kattis-style package (a
            folder or a `.zip`), or of a folder with any of these; a data set on a hub,
            `"hf:ORG/NAME[/FILE][:CONFIG][@REVISION][#SPLIT]"`; `"module:function"` (called without
            arguments); or tasks, which are checked. The options below may stand behind a name:
            `"problems.jsonl?limit=10&public_count=2"`.
        public_tests: for HumanEval records, a file in HumanEvalPack's layout with public tests.
        format: how to read records; `"auto"` tells each record's format by its fields.
        on_error: `"raise"` lists every bad record; `"skip"` leaves them out and logs how many.
        limit: how many tasks, from the front; reading stops there.
        public_count: how many tests become public where a data set has one set only; the others
            are hidden. None: search and reward share them, unseen, and the task is an `oracle` one.
        split_seed: draws these tests; None: the first ones.
        start_date: the first day, as in 2025-01-31, of the contests that tasks come from.
        end_date: the last day.
        difficulty: of the tasks, in the words of the data set.
        language: of the statements of packages that have several.
        split: of a data set on a hub.
        name: of its config.
        revision: of it: a branch, a tag or a commit.

    Returns:
        At least one task, in the order of the source, no id twice.

    Raises:
        InvalidTask: the source cannot be used; the message says where and how to mend it.
        ValueError: an option has a value that it cannot have.
    """
    options = LoadOptions(
        public_tests=None if public_tests is None else os.fspath(public_tests),
        format=format,
        on_error=on_error,
        limit=limit,
        public_count=public_count,
        split_seed=split_seed,
        start_date=start_date,
        end_date=end_date,
        difficulty=difficulty,
        language=language,
        split=split,
        name=name,
        revision=revision,
    )
    if not isinstance(source, str | os.PathLike):
        return _checked(source, "the tasks passed in", options)
    text = os.fspath(source)
    if not text.strip():
        raise InvalidTask(
            f"expected the name of a source of tasks, got {text!r}; name a file or a folder (`.` "
            "is the current one), or a built-in family, tiny_code"
        )
    if "?" in text and not os.path.exists(text):
        text, _, query = text.partition("?")
        options = with_query(options, query)
    if text == "tiny_code" or text.startswith("tiny_code:"):
        return _built_in(text)[: options.limit]
    if names_function(text):
        expected = (
            "; expected a built-in name (tiny_code, tiny_code:held_out), the path of a file or "
            f"folder, a data set of a hub ({PREFIX}ORG/NAME), or `module:function`"
        )
        return _checked(call_source(text, what="tasks", expected=expected), text, options)
    tasks, problems = read_tasks(text, options)
    settle_problems(text, problems, len(tasks), on_error=options.on_error, log=_log)
    if not tasks:
        raise InvalidTask(
            f"{text}: no task is from the days and of the difficulty asked for (start_date, "
            "end_date, difficulty); widen them"
        )
    return tuple(tasks)


def read_task_file(
    path: Path, *, public_tests: str | os.PathLike[str] | None = None, format: Format = "auto"
) -> tuple[list[CodeTask], list[InvalidTask]]:
    """Read tasks from a file or folder, and what is wrong with the records that cannot be used.

    Raises:
        InvalidTask: it cannot be read or is empty.
    """
    bodies = None if public_tests is None else os.fspath(public_tests)
    return read_tasks(os.fspath(path), LoadOptions(public_tests=bodies, format=format))


def read_tasks(source: str, options: LoadOptions) -> tuple[list[CodeTask], list[InvalidTask]]:
    """Read tasks from files or a hub, and what is wrong with the records that cannot be used.

    Args:
        source: a path, or the name of a data set.
        options: what to read of it.

    Raises:
        InvalidTask: it cannot be read or is empty.
    """
    bodies = (
        None
        if options.public_tests is None
        else humaneval.read_public_tests(Path(options.public_tests))
    )
    tasks: list[CodeTask] = []
    problems: list[InvalidTask] = []
    first_place: dict[str, str] = {}
    empty = True
    for record in _records(source, options):
        empty = False
        if isinstance(record, InvalidTask):
            problems.append(record)
            continue
        try:
            task = build_task(record, options.format, public_tests=bodies)
            if task.task_id in first_place:
                raise InvalidTask(
                    f"{record.place}: the task id {task.task_id!r} came before, in "
                    f"{first_place[task.task_id]}; give each task an id of its own"
                )
        except InvalidTask as problem:
            problems.append(problem)
            continue
        place = record.place
        first_place[task.task_id] = place.removeprefix(f"{source}, ")
        if _wanted(task, options):
            tasks.append(_split(task, options))
            if len(tasks) == options.limit:
                break
    if empty:
        raise InvalidTask(f"{source}: expected one JSON object per line, got an empty file")
    return tasks, problems


def _records(source: str, options: LoadOptions) -> Iterator[Record | InvalidTask]:
    if source.startswith(PREFIX):
        name = parse_name(source, name=options.name, revision=options.revision, split=options.split)
        return read_hub(name, language=options.language)
    for field in ("name", "revision", "split"):
        if getattr(options, field) is not None:
            raise InvalidTask(
                f"{source}: `{field}` is for data sets of a hub; leave it out, or name one as "
                f"{PREFIX}ORG/NAME"
            )
    return read_records(Path(source), language=options.language)


def _wanted(task: CodeTask, options: LoadOptions) -> bool:
    return in_window(
        task,
        start=day("start_date", options.start_date),
        end=day("end_date", options.end_date),
        difficulty=options.difficulty or "",
    )


def _split(task: CodeTask, options: LoadOptions) -> CodeTask:
    if options.public_count is None:
        return task
    return split_tests(task, options.public_count, seed=options.split_seed)


def _built_in(name: str) -> Sequence[CodeTask]:
    from .tiny_code import tiny_tasks

    _, _, split = name.partition(":")
    if split not in ("", "train", "held_out"):
        raise InvalidTask(
            f"tiny_code has no split {split!r}; expected tiny_code:train or tiny_code:held_out"
        )
    # Handed on as they are: they are made on demand, and right by construction.
    return tiny_tasks(split="held_out" if split == "held_out" else "train")


def _checked(tasks: Iterable[CodeTask], what: str, options: LoadOptions) -> Sequence[CodeTask]:
    """Return the wanted ones of tasks, made sure that they are tasks, each id once."""
    hint = "build it with mars_envs.tasks.CodeTask(...) or read a file with load_tasks(path)"
    result = checked_tasks(tasks, what, kind=CodeTask, what="task", hint=hint)
    wanted = [_split(task, options) for task in result if _wanted(task, options)]
    if not wanted:
        raise InvalidTask(f"{what}: no task is from the days and of the difficulty asked for")
    return tuple(wanted[: options.limit])
