"""Checks of what callers give: each says what was expected, what came and how to mend it."""

from __future__ import annotations

import math
from typing import Any


def kind(what: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Check a type.

    Args:
        what: the name of the setting, e.g. `StdioCase.stdin`.
        value: what was given.
        types: what will do; a bool is no number.
        expected: the same for people, and perhaps how to get there.

    Raises:
        TypeError: it is of another type.
    """
    wanted = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise TypeError(f"{what} is {expected}, got {value!a:.60} (of type {type(value).__name__})")


def text(what: str, value: object) -> None:
    """Check that something is a str.

    Raises:
        TypeError: it is none.
    """
    hint = "; decode it first" if isinstance(value, bytes) else ""
    kind(what, value, str, f"text (str{hint})")


def whole(what: str, value: object, *, least: int, most: int | None = None, why: str = "") -> None:
    """Check that something is a whole number in a range.

    Raises:
        ValueError: it is none; the message names the range, and `why` it has that end.
    """
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value
    if not good or (most is not None and value > most):  # type: ignore[operator]
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        reason = f" ({why})" if why else ""
        raise ValueError(f"{what} must be a whole number {bounds}{reason}, got {value!a:.60}")


def positive(what: str, value: object, *, most: float = math.inf, unit: str = "") -> None:
    """Check that something is a finite number above 0.

    Raises:
        ValueError: it is none.
    """
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most
    if not good or value == math.inf:
        of_unit = f" of {unit}" if unit else ""
        top = f", {most:g} at most" if most < math.inf else ""
        raise ValueError(f"{what} must be a positive number{of_unit}{top}, got {value!a:.60}")


def sequence(what: str, value: object, of: str) -> tuple[Any, ...]:
    """Return a list or tuple as a tuple.

    Raises:
        TypeError: it is neither; a str is a likely slip, so the message shows the tuple.
    """
    hint = f"; write ({value!r},)" if isinstance(value, str) and len(value) < 40 else ""
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"{what} is a tuple of {of}, got {value!a:.60} (of type {type(value).__name__}){hint}"
        )
    return tuple(value)
