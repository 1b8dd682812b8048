"""One record of a data set, with typed access to its fields.

Complaints name file, line, field, what was expected and what came. Nothing here knows a format of
tasks, nor where records come from (see `files` and `hub`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InvalidTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a JSONL file, or an object inside one (`path_in` says where it sits)."""

    file: str
    line: int
    """From 1; 0 where the file as a whole is the record, as a problem package is."""
    data: Mapping[str, Any]
    path_in: str = ""
    origin: str = ""
    """A short name of the file, for the ids of records that have none of their own."""
    unit: str = "line"
    """What `line` counts: lines, entries of a list, rows of a table."""

    @property
    def place(self) -> str:
        """Where the record stands, for complaints."""
        return f"{self.file}, {self.unit} {self.line}" if self.line else self.file

    def inner(self, data: Mapping[str, Any], path_in: str) -> Record:
        """Return an object that sits in this record, at `path_in` (with the dot behind it)."""
        return replace(self, data=data, path_in=f"{self.path_in}{path_in}")

    def moved(self, file: str) -> Record:
        """Return the record as one of another file, for one that is a copy of that."""
        return replace(self, file=file)

    def error(self, field: str, expected: str, *, fix: str) -> InvalidTask:
        """Say what is wrong with a field; the caller raises it."""
        name = f"{self.path_in}{field}"
        got = describe(self.data[field]) if field in self.data else "nothing"
        return InvalidTask(f"{self.place}, field `{name}`: expected {expected}, got {got}; {fix}")

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self.data.get(field) is not None

    def text(self, field: str, default: str | None = None) -> str:
        """Return a string field that UTF-8 can encode: prompts and inputs are sent as such.

        Raises:
            InvalidTask: it is missing without a default, no string, or holds lone surrogates.
        """
        if not self.has(field) and default is not None:
            return default
        value = self.data.get(field)
        if not isinstance(value, str):
            raise self.error(field, "a string", fix="write the text itself, in quotes")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise self.error(
                field,
                "text that UTF-8 can encode",
                fix=r"remove its lone surrogates (\ud800-\udfff)",
            ) from None
        return value

    def filled(self, field: str) -> str:
        """Return a string field that holds more than white space.

        Raises:
            InvalidTask: it is missing, no string, or blank.
        """
        value = self.text(field)
        if not value.strip():
            raise self.error(field, "a text that is not blank", fix="fill it in")
        return value

    def number(self, field: str, default: float | None = None) -> float:
        """Return a positive, finite number.

        Raises:
            InvalidTask: it is missing without a default, or no such number.
        """
        if not self.has(field) and default is not None:
            return default
        value = self.data.get(field)
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not 0 < value <= sys.float_info.max:  # type: ignore[operator]
            raise self.error(field, "a number above 0", fix="write it as a plain JSON number")
        return float(value)  # type: ignore[arg-type]

    def amount(self, field: str) -> float:
        """Return a finite number that may be 0.

        Raises:
            InvalidTask: it is missing, or no such number.
        """
        value = self.data.get(field)
        return 0.0 if value == 0 and not isinstance(value, bool) else self.number(field)

    def flag(self, field: str, default: bool) -> bool:
        """Return a boolean.

        Raises:
            InvalidTask: it is there and no boolean.
        """
        if not self.has(field):
            return default
        value = self.data[field]
        if not isinstance(value, bool):
            raise self.error(field, "true or false", fix="write it without quotes")
        return value

    def child(self, field: str) -> Record:
        """Return an object field as a record of its own.

        Raises:
            InvalidTask: it is missing or no object.
        """
        value = self.data.get(field)
        if not isinstance(value, dict):
            raise self.error(field, "a JSON object", fix="write it in braces, with its fields")
        return self.inner(value, f"{field}.")

    def children(self, field: str, *, required: bool = True) -> list[Record]:
        """Return a list of objects as records.

        Raises:
            InvalidTask: it is no list of objects, or empty although `required`.
        """
        if not required and not self.has(field):
            return []
        value = self.data.get(field)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(field, "a list of JSON objects", fix="one object per entry")
        if required and not value:
            raise self.error(field, "at least one entry", fix="add one, or leave the record out")
        return [self.inner(item, f"{field}[{index}].") for index, item in enumerate(value)]

    def strings(self, field: str, *, required: bool = True) -> list[str]:
        """Return a list of strings.

        Raises:
            InvalidTask: it is no list of strings, or missing or empty although `required`.
        """
        if not required and not self.has(field):
            return []
        value = self.data.get(field)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(field, "a list of strings", fix="one string per entry")
        if required and not value:
            raise self.error(field, "at least one entry", fix="add one, or leave the record out")
        return list(value)

    def opened(self, field: str) -> Record:
        """Return the record with a field decoded where it is JSON in a string.

        Raises:
            InvalidTask: it is a string that is no JSON.
        """
        value = self.data.get(field)
        if not isinstance(value, str):
            return self
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise self.error(
                field, "JSON in a string", fix=f"it does not parse: {error}"
            ) from error
        return replace(self, data={**self.data, field: decoded})


def describe(value: object) -> str:
    """Name a JSON value in a few words, for complaints."""
    match value:
        case None:
            return "null"
        case int() if value.bit_length() > 1024:  # which Python may refuse to write out
            return f"a whole number of {value.bit_length()} bits"
        case bool() | int() | float():
            return json.dumps(value)
        case str():
            shown = value if len(value) <= 40 else value[:40] + "…"
            return f"the string {shown!a}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            keys = ", ".join(f"`{key}`" for key in list(value)[:8])
            return f"an object with {keys or 'no keys'}"
    return type(value).__name__
