"""The line in front of a pool: who may use one of its places, first come, first served."""

from __future__ import annotations

import threading
import time
from collections import deque

from . import cancel
from .base import QueueFull, SandboxError

_ALONE_WAIT_S = 30.0
"""How long one waits to be alone before it puts up with company.

Whoever holds a place may be waiting for this very run.
"""


class WaitingLine:
    """Admits at most `size` at once, in the order in which they came.

    Args:
        size: places.
        max_waiting: most that may wait; None sets no limit.
        wait_s: most seconds to wait; None waits as long as it takes.
    """

    def __init__(self, size: int, *, max_waiting: int | None, wait_s: float | None) -> None:
        self.size = size
        self._max_waiting = max_waiting
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._empty = threading.Condition(self._lock)
        self._waiting: deque[_Waiter] = deque()
        self._holders: list[int] = []
        self._alone = False
        self._closed = False

    @property
    def inside(self) -> int:
        """Places in use."""
        return len(self._holders)

    def enter(self, *, alone: bool = False, returning: bool = False) -> None:
        """Wait for a place.

        Args:
            alone: wait until no one else is inside, and keep others out. After half a minute a
                place among others will do, and only newcomers are kept out.
            returning: the caller had a place and gave it up for a moment: it goes to the front
                and is not subject to the limits of the line.

        Raises:
            QueueFull: the line is too long, or no place came free in time.
            SandboxError: the pool has been closed, or the work has been cancelled.
        """
        waiter = _Waiter(alone=alone)
        bounded = not (alone or returning)
        with self._lock:
            self._check_open()
            if bounded:
                self._waiting.append(waiter)
            else:
                self._waiting.appendleft(waiter)
            self._admit()
            if waiter.admitted:
                return
            if bounded and self._max_waiting is not None and self._length() > self._max_waiting:
                self._waiting.remove(waiter)
                raise QueueFull(
                    f"{self._max_waiting} programs already wait for one of {self.size} workers; "
                    "send fewer at once, or raise max_waiting or workers"
                )
        try:
            with cancel.on_cancel(waiter.event.set):
                self._wait(waiter, self._wait_s if bounded else None)
        except BaseException:
            self._withdraw(waiter)
            raise

    def leave(self, *, alone: bool = False) -> None:
        """Give the place back."""
        with self._lock:
            self._remove_holder()
            self._alone = self._alone and not alone
            self._admit()
            self._empty.notify_all()

    def close(self) -> None:
        """Send everyone away who waits, and admit no one any more."""
        with self._lock:
            self._closed = True
            for waiter in self._waiting:
                waiter.event.set()

    def wait_until_empty(self, timeout_s: float) -> bool:
        """Wait until every place has been given back but those of this thread; say whether so."""
        me = threading.get_ident()
        with self._lock:
            return self._empty.wait_for(
                lambda: all(holder == me for holder in self._holders), timeout_s
            )

    def _wait(self, waiter: _Waiter, wait_s: float | None) -> None:
        start_s = time.monotonic()
        patience_s = _ALONE_WAIT_S if waiter.alone else wait_s
        in_time = waiter.event.wait(patience_s)
        if not in_time and waiter.alone:
            with self._lock:
                waiter.puts_up_with_company = True
                self._admit()
            in_time = waiter.event.wait()
        cancel.check()
        with self._lock:
            if waiter.admitted:
                return
            self._check_open()
            raise QueueFull(
                f"none of {self.size} workers came free within {wait_s:g} s "
                f"({time.monotonic() - start_s:.1f} s); send fewer programs at once, or raise "
                "wait_s or workers"
            )

    def _admit(self) -> None:
        """Let in whoever is next, as far as there is room."""
        while self._waiting and not self._closed and not self._alone:
            waiter = self._waiting[0]
            room = self.size if waiter.puts_up_with_company or not waiter.alone else 1
            if len(self._holders) >= room:
                return
            self._waiting.popleft()
            self._holders.append(waiter.thread)
            self._alone = waiter.alone
            waiter.admitted = True
            waiter.event.set()

    def _withdraw(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.admitted:
                self._holders.remove(waiter.thread)
                self._alone = self._alone and not waiter.alone
                self._empty.notify_all()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            self._admit()

    def _remove_holder(self) -> None:
        # A place may be given back by another thread than the one that took it.
        me = threading.get_ident()
        self._holders.remove(me if me in self._holders else self._holders[0])

    def _length(self) -> int:
        return sum(not waiter.alone for waiter in self._waiting)

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox has been closed")


class _Waiter:
    """One in the line."""

    def __init__(self, *, alone: bool) -> None:
        self.alone = alone
        self.puts_up_with_company = False
        self.admitted = False
        self.thread = threading.get_ident()
        self.event = threading.Event()
