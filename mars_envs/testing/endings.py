"""What infos say of the end of an episode must fit the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def check_flags(
    agent: str,
    info: Mapping[str, Any],
    flags: tuple[bool, bool],
    *,
    terminating: Sequence[str],
    truncating: Sequence[str],
    rule: str,
) -> None:
    """Check the flags of an agent against the reason that its info gives.

    Args:
        agent: whose they are.
        info: what it is told.
        flags: terminated, truncated.
        terminating: the reasons that terminate.
        truncating: those that truncate.
        rule: what terminates and what truncates, in words.

    Raises:
        AssertionError: they do not fit.
    """
    reason = info["stop_reason"]
    known = (*terminating, *truncating)
    assert reason in ("", *known), (
        f"info['stop_reason'] is {reason!r}; expected one of {', '.join(known)}, "
        "or '' while the episode runs"
    )
    expected = (reason in terminating, reason in truncating)
    assert flags == expected, (
        f"{agent} is terminated={flags[0]}, truncated={flags[1]} with stop_reason {reason!r}, "
        f"which means terminated={expected[0]}, truncated={expected[1]}: {rule}"
    )
    assert not (reason and info["active"]), (
        f"info['active'] of {agent} is true though the episode is over ({reason})"
    )
