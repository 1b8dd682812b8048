"""What every loader of tasks does with functions, with tasks handed in, and with records."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol, TypeVar

from ..errors import InvalidTask
from ..importing import import_object, is_importable
from .hub import PREFIX
from .records import Record

_SHOWN_PROBLEMS: Final = 10
_SHOWN_FORMATS: Final = 3


class Named(Protocol):
    """A task, as far as it matters here."""

    @property
    def task_id(self) -> str:
        """Its name; no other task of the same source has it."""
        ...


Task = TypeVar("Task", bound=Named)


def names_function(source: str) -> bool:
    """Whether a source is a `module:function`, and no file or data set of such a name."""
    return is_importable(source) and not source.startswith(PREFIX) and not os.path.exists(source)


def call_source(name: str, *, what: str, expected: str = "") -> Any:
    """Call the `module:function` that makes tasks, and return what it gives.

    Args:
        name: of it.
        what: it makes, for messages.
        expected: what else a source may be, for messages.

    Raises:
        InvalidTask: there is no such function.
    """
    try:
        make: Callable[[], Any] = import_object(name)
    except (ImportError, ValueError) as error:
        raise InvalidTask(f"cannot find the {what} {name!r} ({error}){expected}") from error
    if not callable(make):
        raise InvalidTask(
            f"{name!r} is a {type(make).__name__}; expected a function that returns tasks"
        )
    return make()


def checked_tasks(
    tasks: Iterable[Task], place: str, *, kind: type[Task], what: str, hint: str
) -> tuple[Task, ...]:
    """Return tasks, made sure that they are tasks, at least one, each id once.

    Args:
        tasks: what was given.
        place: where they are from, for messages.
        kind: what they must be.
        what: they are called, for messages.
        hint: how to make them, for messages.

    Raises:
        InvalidTask: they are not.
    """
    if not isinstance(tasks, Iterable):
        raise InvalidTask(
            f"{place}: expected a list of {kind.__name__}, or a name, got {tasks!r:.80}"
        )
    result = tuple(tasks)
    if not result:
        raise InvalidTask(f"{place}: expected at least one {what}, got none")
    seen: set[str] = set()
    for index, task in enumerate(result):
        if not isinstance(task, kind):
            raise InvalidTask(
                f"{place}, entry {index}: expected a {kind.__name__}, got a "
                f"{type(task).__name__}; {hint}"
            )
        if task.task_id in seen:
            raise InvalidTask(
                f"{place}, entry {index}: the task id {task.task_id!r} came before; give each task "
                "an id of its own"
            )
        seen.add(task.task_id)
    return result


def format_by_fields(
    record: Record, formats: Mapping[str, tuple[str, ...]], *, what: str, hint: str
) -> str:
    """Name the format of a record.

    Args:
        record: of any of the formats.
        formats: the fields by which each is recognised, in the order in which they are tried; a
            `|` stands between fields of which one is enough.
        what: is wrong where it is none of them, for messages.
        hint: where to read on, for messages.

    Raises:
        InvalidTask: it has the fields of none.
    """
    lacking: dict[str, list[str]] = {}
    for name, required in formats.items():
        lacking[name] = [
            field for field in required if not any(word in record.data for word in field.split("|"))
        ]
        if not lacking[name]:
            return name
    near = sorted(lacking, key=lambda name: len(lacking[name]) / len(formats[name]))
    told = "; ".join(f"{name} lacks {', '.join(lacking[name])}" for name in near[:_SHOWN_FORMATS])
    fields = ", ".join(list(record.data)[:12]) or "none"
    raise InvalidTask(
        f"{record.place}: {what}; got the fields {fields}; expected those of one of "
        f"{', '.join(formats)}, of which the nearest are ({told}); {hint}"
    )


def settle_problems(
    source: str,
    problems: list[InvalidTask],
    good: int,
    *,
    on_error: Literal["raise", "skip"],
    log: logging.Logger,
) -> None:
    """Raise what is wrong with records, or log it where they are to be skipped.

    Args:
        source: of the records.
        problems: one for each that cannot be used.
        good: how many others can be used; where there are none, there is nothing to go on with.
        on_error: what was asked for.
        log: where to say what is left out.

    Raises:
        InvalidTask: one complaint about all of them.
    """
    if not problems:
        return
    if on_error != "skip" or not good:
        raise summary_of(source, problems, good)
    log.warning(
        "%s: left out %d of %d records; the first: %s",
        source,
        len(problems),
        len(problems) + good,
        problems[0],
    )


def summary_of(source: str, problems: list[InvalidTask], good: int) -> InvalidTask:
    """Return one complaint about the records of a source of which `good` others can be used."""
    if len(problems) == 1 and not good:
        return problems[0]
    shown = "\n  ".join(str(problem) for problem in problems[:_SHOWN_PROBLEMS])
    more = len(problems) - _SHOWN_PROBLEMS
    tail = f"\n  … and {more} more" if more > 0 else ""
    hint = '\nPass on_error="skip" to use the others.' if good else ""
    return InvalidTask(
        f"{source}: {len(problems)} of {len(problems) + good} records cannot be used:\n  {shown}"
        f"{tail}{hint}"
    )
