"""How many runs of a program to send to a worker at once.

A batch saves traffic and wake-ups. But runs that come after the one that ends the grading are
wasted, so where that may happen batches begin small and hold no more than a moment's work.
"""

from __future__ import annotations

from collections.abc import Sequence

from .worker import Execution

_MOST_RUNS = 64
_MOST_BYTES = 1 << 20
_MOMENT_S = 0.25
"""About what it costs to replace a worker, which would be the other way to end a batch early."""


class Plan:
    """Cuts the inputs of one program into batches.

    Args:
        eager: whether all of them will be needed.
    """

    def __init__(self, *, eager: bool) -> None:
        self._eager = eager
        self._runs = _MOST_RUNS if eager else 1
        self._longest_s = 0.0

    def next_batch(self, stdins: Sequence[bytes], start: int) -> Sequence[bytes]:
        """Return the inputs to send next, at least one, from `start` on."""
        runs = self._runs
        if not self._eager:
            runs = max(1, min(runs, int(_MOMENT_S / max(self._longest_s, 1e-6))))
            self._runs = min(2 * self._runs, _MOST_RUNS)
        size = 0
        batch: list[bytes] = []
        for stdin in stdins[start : start + runs]:
            size += len(stdin)
            if batch and size > _MOST_BYTES:
                break
            batch.append(stdin)
        return batch

    def learn(self, execution: Execution) -> None:
        """Take note of how long a run took."""
        self._longest_s = max(self._longest_s, execution.wall_s)
