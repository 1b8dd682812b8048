"""Settings behind a name on the command line: `pi_mem:max_turns=1,order=reference`."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..errors import InvalidSetting

_WORDS = {"true": True, "false": False, "none": None}


def split_changes(text: str, *, option: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings behind its colon.

    Raises:
        InvalidSetting: something is not written as NAME:SETTING=VALUE,...

    Example:
        >>> split_changes("7b:slots=8,cache_tokens=none", option="--machines")
        ('7b', {'slots': 8, 'cache_tokens': None})
    """
    name, _, behind = text.partition(":")
    return name.strip(), read_changes(behind, option=option)


def read_changes(text: str, *, option: str) -> dict[str, Any]:
    """Return settings that are written as SETTING=VALUE,...; empty: none.

    Whole numbers, other numbers, `true`, `false` and `none` are taken for what they are.

    Raises:
        InvalidSetting: one is not written so, or is given twice.
    """
    found: dict[str, Any] = {}
    for part in (part for part in text.split(",") if part.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise InvalidSetting(f"{option}: expected SETTING=VALUE, got {part.strip()!r}")
        if name in found:
            raise InvalidSetting(f"{option}: {name} is given twice")
        found[name] = _value(value)
    return found


def apply(record: Any, changes: dict[str, Any], *, option: str) -> Any:
    """Return a dataclass with some fields changed.

    Raises:
        InvalidSetting: it has no such field, or the value cannot be.
    """
    known = [field.name for field in dataclasses.fields(record)]
    if unknown := sorted(set(changes) - set(known)):
        raise InvalidSetting(f"{option}: no settings {unknown}; there are {', '.join(known)}")
    try:
        return dataclasses.replace(record, **changes)
    except (InvalidSetting, TypeError) as error:
        raise InvalidSetting(f"{option}: {error}") from error


def _value(word: str) -> Any:
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
