"""What may be said of a source of tasks, as keywords or in its name behind a `?`.

`problems.jsonl?public_count=2&limit=100` says in one string what keywords say in several, for
command lines and for environments that are made by name.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import unquote

from ..errors import InvalidTask
from .formats import Format, check_format

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Options of `load_tasks`; see there.

    Raises:
        ValueError: one of them has a value that it cannot have.
    """

    public_tests: str | None = None
    format: Format = "auto"
    on_error: Literal["raise", "skip"] = "raise"
    limit: int | None = None
    public_count: int | None = None
    split_seed: int | None = None
    start_date: str | None = None
    end_date: str | None = None
    difficulty: str | None = None
    language: str = "en"
    split: str | None = None
    name: str | None = None
    revision: str | None = None

    def __post_init__(self) -> None:
        check_format(self.format)
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'on_error must be "raise" or "skip", got {self.on_error!r:.80}')
        for field in ("limit", "public_count"):
            value = getattr(self, field)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{field} must be a whole number of at least 1, got {value!r:.80}")
        if self.split_seed is not None and self.public_count is None:
            raise ValueError("split_seed draws the public tests; say how many with public_count")
        for field in ("start_date", "end_date"):
            day(field, getattr(self, field))


def day(field: str, text: str | None) -> date | None:
    """Return a day.

    Raises:
        ValueError: it is not written as one.
    """
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{field} must be a day like 2025-01-31, got {text!r:.80}") from error


Options = TypeVar("Options", bound="DataclassInstance")


def with_query(options: Options, query: str) -> Options:
    """Return options with those of a query, `key=value&key=value`, which go before.

    Args:
        options: a dataclass whose fields are the keys; fields that may be whole numbers, or are
            true or false, take words for these.
        query: what stands behind a `?`.

    Raises:
        InvalidTask: a key is unknown, or a value is not one that it can have.
    """
    kinds = typing.get_type_hints(type(options))
    given: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if key not in kinds or not equals:
            known = ", ".join(field.name for field in fields(options))
            raise InvalidTask(
                f"unknown option {part!r:.80} behind the `?` of a source of tasks; expected "
                f"key=value, several with & between them, with the keys {known}"
            )
        given[key] = unquote(value)
        optional = int in typing.get_args(kinds[key]) and isinstance(kinds[key], types.UnionType)
        if optional or kinds[key] is int:
            try:
                given[key] = int(value)
            except ValueError as error:
                raise InvalidTask(
                    f"the option {part!r:.80} of a source of tasks needs a whole number"
                ) from error
        elif kinds[key] is bool:
            if value.lower() not in _FLAGS:
                raise InvalidTask(
                    f"the option {part!r:.80} of a source of tasks needs true or false"
                )
            given[key] = _FLAGS[value.lower()]
    try:
        return replace(options, **given)
    except ValueError as error:
        raise InvalidTask(f"a source of tasks with `?{query}`: {error}") from error
