"""The results of a grading on disk: one JSON line per submission, written as they come.

A grading that was cut off goes on where it stopped: results that depend on nothing that has changed
(their `key` says so) are not made again. Those without a verdict are.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidSetting
from .grading import Graded, GradedTest


class ResultLog:
    """A file of results.

    Args:
        path: of a plain file, there already or not: it is read to its end, and replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def resume(self, wanted: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], Graded]:
        """Return the results that are there already; make the file writable, or fail now.

        Args:
            wanted: by (set, name) of a submission, the key that its result has to have.

        Raises:
            InvalidSetting: the file holds something else, which must not be written over.
            OSError: the file cannot be written.
        """
        found: dict[tuple[str, str], Graded] = {}
        with self.path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            lines = file.read().split("\n")
        # What stands behind the last line end was cut off in the middle.
        for number, line in enumerate(lines[:-1], start=1):
            result = _from_line(line)
            if result is None:
                raise InvalidSetting(
                    f"{self.path}, line {number}: expected a result of `sandbox grade`, got "
                    "something else; choose another file with --output"
                )
            place = (result.set, result.name)
            if wanted.get(place) != result.key:
                raise InvalidSetting(
                    f"{self.path}, line {number}: holds a result of another grading "
                    f"({result.name} with another program, tests, limits or backend, or not asked "
                    "for now); choose another file with --output, or delete this one"
                )
            if result.graded:
                found[place] = result
        self.rewrite(found.values())
        return found

    def append(self, result: Graded) -> None:
        """Add one result."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_to_line(result))

    def rewrite(self, results: Iterable[Graded]) -> None:
        """Replace the file by these results, whole or not at all."""
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_text("".join(map(_to_line, results)), encoding="utf-8")
        os.replace(partial, self.path)


def _to_line(result: Graded) -> str:
    data = dataclasses.asdict(result)
    if not result.graded:
        # A reader that looks for a status must not find one.
        data["not_graded"] = data.pop("status")
    data["agrees"] = result.agrees
    for test, graded in zip(data["tests"], result.tests, strict=True):
        test["agrees"] = graded.agrees
    return json.dumps(data) + "\n"


def _from_line(line: str) -> Graded | None:
    try:
        data: dict[str, Any] = json.loads(line)
        data.pop("agrees")
        data.setdefault("status", data.pop("not_graded", None))
        tests = []
        for test in data.pop("tests"):
            test.pop("agrees")
            tests.append(GradedTest(**test))
        return Graded(tests=tuple(tests), **data)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
