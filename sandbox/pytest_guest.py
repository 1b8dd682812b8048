"""What test bodies use of pytest, for a guest that has the standard library only.

`raises`, `approx`, `fail` and `mark.parametrize`, with the semantics of pytest 8 for what they
accept; `bodies` refuses bodies that use anything else of pytest.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAMES = ("approx", "fail", "mark", "raises")


class ExceptionInfo:
    """What `raises` tells about the exception."""

    value: Any = None

    @property
    def type(self) -> Any:
        """The class of the exception."""
        return type(self.value)

    def match(self, pattern: str) -> bool:
        """Check that the text of the exception contains a pattern."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {self.value!r}"
        return True


class _Raises:
    def __init__(self, expected: Any, match: str | None) -> None:
        self._expected = expected
        self._match = match
        self._info = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self._info

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is None:
            fail(f"DID NOT RAISE {self._expected!r}")
        if not issubclass(kind, self._expected):
            return False
        self._info.value = error
        if self._match is not None:
            self._info.match(self._match)
        return True


def raises(expected: Any, *call: Any, match: str | None = None, **kwargs: Any) -> Any:
    """Expect an exception, in a `with` block or of a call."""
    context = _Raises(expected, match)
    if not call:
        return context
    with context as info:
        call[0](*call[1:], **kwargs)
    return info


def fail(reason: str = "", pytrace: bool = True) -> None:
    """Let the test fail."""
    raise AssertionError(reason)


class Approx:
    """Equal to plain numbers within a tolerance, and to collections of them item by item."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None, abs_: float | None, nan_ok: bool) -> None:
        self._expected = expected
        self._options = rel, abs_, nan_ok

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def __eq__(self, other: object) -> bool:
        expected = self._expected
        if isinstance(expected, Mapping):
            return (
                isinstance(other, Mapping)
                and other.keys() == expected.keys()
                and all(Approx(expected[key], *self._options) == other[key] for key in expected)
            )
        if isinstance(expected, Sequence) and not isinstance(expected, (str, bytes)):
            return (
                isinstance(other, Sequence)
                and len(other) == len(expected)
                and all(
                    Approx(a, *self._options) == b for a, b in zip(expected, other, strict=True)
                )
            )
        if type(expected) not in (int, float) or type(other) not in (int, float):
            return bool(expected == other)
        return self._close(float(expected), float(other))  # type: ignore[arg-type]

    def _close(self, expected: float, actual: float) -> bool:
        rel, abs_, nan_ok = self._options
        if math.isnan(expected):
            return nan_ok and math.isnan(actual)
        if expected == actual or math.isinf(expected):
            return expected == actual
        absolute = 1e-12 if abs_ is None else abs_
        relative = 1e-6 if rel is None else rel
        if rel is None and abs_ is not None:
            relative = 0.0
        return abs(expected - actual) <= max(relative * abs(expected), absolute)


def approx(
    expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False
) -> Approx:
    """Return what equals numbers within 1e-6 of the expected one, or 1e-12 absolutely."""
    return Approx(expected, rel, abs, nan_ok)


def parametrize(names: Any, values: Any, **options: Any) -> Callable[[Any], Any]:
    """Run a test once for each set of arguments."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Any) -> Any:
        rows = [dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in values]
        sets = getattr(test, "parameters", [{}])
        test.parameters = [a | b for a, b in itertools.product(sets, rows)]
        return test

    return decorate


def install() -> None:
    """Let the test import this as pytest."""
    module = types.ModuleType("pytest")
    mark = types.SimpleNamespace(parametrize=parametrize)
    module.__dict__.update(approx=approx, fail=fail, mark=mark, raises=raises)
    sys.modules["pytest"] = module
