"""Checks of what a search is told: a wrong type must not come to light twenty calls later.

NaN never ends a search, a generator is used up by the first look at it, and a text is a sequence of
names of one letter each.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..judging.base import Feedback, Verdict
from .tree import verdict_of_score


def whole_number(name: str, value: Any, *, least: int) -> int:
    """Return a whole number of any type that counts as one (NumPy's, say) as an int.

    Raises:
        ValueError: it is none, or below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be at least {least} and a whole number, got {value!r}")
    return number


def as_number(value: Any) -> float:
    """Return a number as a float; NaN, which lies within no limits, for all else. "1" is a text."""
    if type(value) is float:
        return value
    if isinstance(value, str | bytes | bytearray):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def agent_names(agents: Iterable[str]) -> tuple[str, ...]:
    """Return names of agents, whatever holds them.

    Raises:
        ValueError: a single text, or something that is no name.
    """
    if isinstance(agents, str):
        raise ValueError(f"agents is a list of names, got the string {agents!r}: [{agents!r}]?")
    try:
        names = tuple(agents)
    except TypeError:
        raise ValueError(f"agents is a list of names, got {agents!r}") from None
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"agents are named by texts (str), got {name!r}")
    return names


def text(name: str, value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text (str), got {type(value).__name__}")
    return value


def outcome_of(outcome: Verdict | float) -> Verdict:
    """Return the verdict that an outcome is, or stands for.

    Raises:
        ValueError: it is neither a sound verdict nor a number in [0, 1].
    """
    if isinstance(outcome, Verdict):
        _check_verdict(outcome)
        return outcome
    score = as_number(outcome)
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a score must be a number in [0, 1], or a Verdict, got {outcome!r}")
    return verdict_of_score(score)


def _check_verdict(verdict: Verdict) -> None:
    passed: Any = verdict.public_passed
    total: Any = verdict.public_total
    if not (isinstance(passed, int) and isinstance(total, int) and 0 <= passed <= total):
        raise ValueError(
            f"a verdict says how many public tests passed, of how many, got {passed!r} of {total!r}"
        )
    if not isinstance(verdict.feedback, Feedback):
        raise ValueError(f"a verdict's feedback is a Feedback, got {verdict.feedback!r}")
    if not isinstance(verdict.status, str):
        raise ValueError(f"a verdict's status is a text (str), got {verdict.status!r}")
    if not isinstance(verdict.solved, (bool, np.bool_)):
        raise ValueError(f"a verdict's solved is True or False, got {verdict.solved!r}")
