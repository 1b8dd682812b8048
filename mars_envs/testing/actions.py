"""What infos say of the text that an agent acted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..spaces import TEXT_LIMIT, replace_surrogates


def taken(text: str) -> str:
    """Return a text as an environment takes it: cut, with lone surrogates replaced."""
    return replace_surrogates(text[:TEXT_LIMIT])


def check_taken(agent: str, info: Mapping[str, Any], text: str) -> None:
    """Check that the info of an agent says what became of its text.

    Raises:
        AssertionError: it does not.
    """
    for key, happened in (
        ("action_truncated", len(text) > TEXT_LIMIT),
        ("action_repaired", taken(text) != text[:TEXT_LIMIT]),
    ):
        assert info[key] == happened, (
            f"info[{key!r}] of {agent} must be {happened} after the text {text!r:.80}"
        )
