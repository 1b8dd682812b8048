"""Whether this machine is so busy that a run may have suffered from its neighbours."""

from __future__ import annotations

import os
from pathlib import Path

_LOAD = 1.5
"""Runnable processes per core, averaged over a minute."""
_PRESSURE = 50.0
"""Per cent of the last ten seconds in which something waited for a core."""


def cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    return max(1, len(os.sched_getaffinity(0)))


def overloaded() -> bool:
    """Whether programs here have to wait for CPU time.

    The load average alone would miss the first seconds of a burst.
    """
    return os.getloadavg()[0] > _LOAD * cores() or _pressure() > _PRESSURE


def always() -> bool:
    """For machines whose load cannot be seen from here: assume the worst."""
    return True


def _pressure() -> float:
    try:
        words = Path("/proc/pressure/cpu").read_text("ascii").split()
    except OSError:
        return 0.0
    return float(words[1].removeprefix("avg10="))
