"""Remembering what runs did, by content.

The unit is one execution: the same program on the same input under the same limits is run once,
whatever it is compared with. Two threads that ask for the same run at the same time share it: the
first runs it, the second waits (and runs it itself if the first fails). Values are kept in memory,
the least recently used go first.

What depends on the machine's load must not be kept (a run that hit a time limit): the cache is told
what may be.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")

_ENTRY_BYTES = 1024
"""What one entry costs besides its texts, roughly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """Counts since the cache was made."""

    hits: int = 0
    """Runs that were answered without running."""
    misses: int = 0
    """Runs that had to be made."""
    entries: int = 0
    size_bytes: int = 0
    """What is kept, roughly."""

    def __add__(self, other: CacheStats) -> CacheStats:
        return CacheStats(
            hits=self.hits + other.hits,
            misses=self.misses + other.misses,
            entries=self.entries + other.entries,
            size_bytes=self.size_bytes + other.size_bytes,
        )


def key(*parts: str | bytes) -> bytes:
    """Return a digest of `parts` that depends on where one ends and the next begins."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


class FlightCache(Generic[V]):
    """A bounded, thread-safe map from keys to values, and the runs that are under way.

    Args:
        size: bytes that a value takes, roughly.
        keep: whether a value may be kept; if not, only those who already wait for it get it.
        max_bytes: most to keep.
    """

    def __init__(
        self, *, size: Callable[[V], int], keep: Callable[[V], bool], max_bytes: int = 128 << 20
    ) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, got {max_bytes}")
        self._size = size
        self._keep = keep
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[bytes, tuple[V, int]] = OrderedDict()
        self._flights: dict[bytes, _Flight[V]] = {}
        self._kept_bytes = 0
        self._hits = 0
        self._misses = 0

    def resolve(
        self,
        keys: Sequence[bytes],
        run: Callable[[list[int], Callable[[V], bool]], object],
        *,
        last: Callable[[int, V], bool] = lambda position, value: False,
    ) -> list[tuple[V, bool]]:
        """Return the values of `keys`, running what is not known.

        Args:
            keys: one for each value; the same key may occur twice.
            run: given positions in `keys` and a function to call with each position's value, in
                that order; where the function returns True it may leave out the rest.
            last: whether nothing after this position and value is needed.

        Returns:
            (value, whether it was known without a run) for each key, up to the last one needed.

        Raises:
            Exception: whatever `run` raises.
        """
        found: dict[bytes, V] = {}
        awaited: dict[bytes, _Flight[V]] = {}
        mine: dict[bytes, int] = {}
        for position, key in enumerate(keys):
            if key not in found and key not in awaited and key not in mine:
                self._begin(key, position, found, awaited, mine)
            if key in found and last(position, found[key]):
                break
        ran = self._run_mine(mine, run, last)
        values: list[tuple[V, bool]] = []
        for position, key in enumerate(keys):
            if key in ran:
                # A second use of a value that this call has run is one run less.
                values.append((ran[key], mine[key] != position))
            elif key in found:
                values.append((found[key], True))
            else:
                # By now all runs of this call have ended, so waiting cannot go round in circles.
                values.append(self._wait(key, position, awaited[key], run))
            if last(position, values[-1][0]):
                break
        with self._lock:
            self._hits += sum(known for _, known in values)
        return values

    @property
    def stats(self) -> CacheStats:
        """Counts so far."""
        with self._lock:
            return CacheStats(
                hits=self._hits,
                misses=self._misses,
                entries=len(self._values),
                size_bytes=self._kept_bytes,
            )

    def _begin(
        self,
        key: bytes,
        position: int,
        found: dict[bytes, V],
        awaited: dict[bytes, _Flight[V]],
        mine: dict[bytes, int],
    ) -> None:
        """Look a key up; if no one is at it, it becomes ours to run."""
        with self._lock:
            known = self._values.get(key)
            if known is not None:
                self._values.move_to_end(key)
                found[key] = known[0]
            elif key in self._flights:
                awaited[key] = self._flights[key]
            else:
                self._flights[key] = _Flight()
                mine[key] = position

    def _run_mine(
        self,
        mine: dict[bytes, int],
        run: Callable[[list[int], Callable[[V], bool]], object],
        last: Callable[[int, V], bool],
    ) -> dict[bytes, V]:
        """Run what fell to this call; hand each value on as soon as it is there."""
        ran: dict[bytes, V] = {}
        todo = iter(mine.items())

        def took(value: V) -> bool:
            key, position = next(todo)
            ran[key] = value
            self._land(key, value)
            return last(position, value)

        try:
            if mine:
                run(list(mine.values()), took)
        finally:
            for key in mine:
                if key not in ran:
                    self._land(key, None)
        return ran

    def _wait(
        self,
        key: bytes,
        position: int,
        flight: _Flight[V],
        run: Callable[[list[int], Callable[[V], bool]], object],
    ) -> tuple[V, bool]:
        flight.done.wait()
        if flight.value is not None:
            return flight.value, True
        found: dict[bytes, V] = {}
        awaited: dict[bytes, _Flight[V]] = {}
        mine: dict[bytes, int] = {}
        self._begin(key, position, found, awaited, mine)
        if key in awaited:
            return self._wait(key, position, awaited[key], run)
        if key in found:
            return found[key], True
        return self._run_mine(mine, run, lambda position, value: False)[key], False

    def _land(self, key: bytes, value: V | None) -> None:
        """End a flight: with its value, or with None if its owner gave up."""
        with self._lock:
            flight = self._flights.pop(key)
            if value is not None:
                self._misses += 1
                if self._keep(value):
                    self._store(key, value)
        flight.value = value
        flight.done.set()

    def _store(self, key: bytes, value: V) -> None:
        size = self._size(value) + _ENTRY_BYTES
        self._values[key] = (value, size)
        self._kept_bytes += size
        while self._kept_bytes > self._max_bytes:
            _, (_, freed) = self._values.popitem(last=False)
            self._kept_bytes -= freed


class _Flight(Generic[V]):
    """A run that someone is making. Without a value once it is done: its owner gave up."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: V | None = None
