"""Words of messages that depend on what they are about."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends in "s".

    Example:
        >>> counted(1, "chunk"), counted(2_000, "page")
        ('1 chunk', '2,000 pages')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def did_you_mean(names: Iterable[str], known: Iterable[str]) -> str:
    """Return a question to put behind a message about unknown names; empty if none is near.

    Example:
        >>> did_you_mean(["max_turn", "colour"], ["max_turns", "order"])
        ' (did you mean max_turns?)'
    """
    choices = list(known)
    near = [match for name in names for match in get_close_matches(name, choices, n=1)]
    return f" (did you mean {', '.join(near)}?)" if near else ""
