"""Reading JSONL files of tasks. Complaints name file, line, field, what was expected, what came.

A `Record` is one line, with typed access to its fields. Nothing here knows a format of tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a JSONL file, or an object inside one (`path_in` says where it sits)."""

    file: str
    line: int
    data: Mapping[str, Any]
    path_in: str = ""

    def error(self, field: str, expected: str, *, fix: str) -> InvalidTask:
        """Say what is wrong with a field; the caller raises it."""
        name = f"{self.path_in}{field}"
        got = _describe(self.data[field]) if field in self.data else "nothing"
        return InvalidTask(
            f"{self.file}, line {self.line}, field `{name}`: expected {expected}, got {got}; {fix}"
        )

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
        if not good or not 0 < value < float("inf"):  # type: ignore[operator]
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
        return Record(file=self.file, line=self.line, data=value, path_in=f"{self.path_in}{field}.")

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
        return [
            Record(
                file=self.file,
                line=self.line,
                data=item,
                path_in=f"{self.path_in}{field}[{index}].",
            )
            for index, item in enumerate(value)
        ]


def read_records(path: Path) -> Iterator[Record | InvalidTask]:
    """Yield the records of a JSONL file; a line that is no JSON object comes as the error it is.

    Raises:
        InvalidTask: the file cannot be read, or holds a JSON array instead of lines.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidTask(
            f"cannot read the task file {path}: {error.strerror}; check the path (it is "
            "relative to the current folder)"
        ) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidTask(
            f"{path}, line {line}: expected UTF-8 text, got the byte 0x{raw[error.start]:02x}; "
            "save the file as UTF-8"
        ) from error
    # Only "\n" ends a line: str.splitlines would also split at U+2028, which JSON allows inside
    # a string.
    for number, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            yield InvalidTask(
                f"{path}, line {number}: expected one JSON object, got text that is no JSON "
                f"({error}); write each record on a single line"
            )
            continue
        if isinstance(data, dict):
            yield Record(file=str(path), line=number, data=data)
        else:
            yield InvalidTask(
                f"{path}, line {number}: expected one JSON object, got {_describe(data)}; write "
                "one object per line (JSONL), not a list of them"
            )


def _describe(value: object) -> str:
    """Name a JSON value in a few words."""
    match value:
        case None:
            return "null"
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
