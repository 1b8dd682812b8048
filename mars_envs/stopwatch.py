"""Seconds of an episode or a search, through copies and pickles."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Stopwatch:
    """Seconds since `start`, on a clock that can be replaced; they survive copies and pickles.

    A copy runs on. What was pickled goes on, with its next `start`, from the seconds that had
    passed: the clock of another process, or of another day, says something else.

    Args:
        clock: returns seconds from any fixed moment.
        elapsed: seconds that had passed before, in an earlier process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, elapsed: float = 0.0) -> None:
        self._clock = clock
        self._before = elapsed
        self._started: float | None = None

    @property
    def elapsed(self) -> float:
        """The seconds so far; 0 until started."""
        running = 0.0 if self._started is None else self._clock() - self._started
        return self._before + running

    def start(self) -> None:
        """Let the time run, if it does not yet."""
        if self._started is None:
            self._started = self._clock()

    def later(self, elapsed: float) -> Stopwatch:
        """Return one on the same clock, not started, on which so many seconds have passed."""
        return Stopwatch(self._clock, elapsed)

    def __deepcopy__(self, memo: dict[int, Any]) -> Stopwatch:
        twin = Stopwatch(self._clock, self._before)
        twin._started = self._started
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # Running or not, the copy starts with its next `start`.
        return {"_clock": self._clock, "_before": self.elapsed, "_started": None}
