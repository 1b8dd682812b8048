"""Threads for coroutines: a bounded number of them, and no queue in front but the coroutines.

A coroutine waits for a thread of its own accord, so that one that is cancelled leaves nothing
behind, however many there are. May serve several event loops, and after a fork.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from .base import QueueFull, SandboxError
from .cancel import Cancellation

T = TypeVar("T")


class BoundedThreads:
    """Runs blocking work for coroutines.

    Args:
        most: threads.
        max_waiting: most coroutines that may wait for a thread, more get `QueueFull`; None lets
            all wait.
        wait_s: most seconds that one waits before it gets `QueueFull`; None: as long as it takes.
    """

    def __init__(
        self, most: int, *, max_waiting: int | None = None, wait_s: float | None = None
    ) -> None:
        self._most = most
        self._max_waiting = max_waiting
        self._wait_s = wait_s
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._free = self._most
        self._waiting: deque[Future[None]] = deque()
        self._closed = False
        self._executor = ThreadPoolExecutor(self._most, thread_name_prefix="sandbox-grader")

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread and return what it returns.

        If the coroutine is cancelled, so is the work (see `cancel`), and the thread is free once
        the work has ended.

        Raises:
            QueueFull: no thread was free in time, where a limit is set.
            SandboxError: closed.
        """
        if os.getpid() != self._pid:
            self._reset()  # a forked process has no such threads
        await self._take()
        cancellation = Cancellation()

        def in_scope() -> T:
            with cancellation.scope():
                return work()

        try:
            job = self._executor.submit(in_scope)
        except RuntimeError as error:
            self._give_back()
            raise SandboxError("the sandbox has been closed") from error
        job.add_done_callback(lambda _: self._give_back())
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            if job.cancelled():  # by `close`, before it had begun
                raise SandboxError("the sandbox has been closed") from None
            cancellation.cancel()
            raise

    def refuse(self) -> None:
        """Send everyone away who waits, and accept no more work."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if turn.set_running_or_notify_cancel():
                turn.set_exception(SandboxError("the sandbox has been closed"))

    def join(self) -> None:
        """Wait for the end of what runs; the threads are gone then."""
        if os.getpid() == self._pid:
            self._executor.shutdown(wait=True, cancel_futures=True)

    async def _take(self) -> None:
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox has been closed")
            if self._free:
                self._free -= 1
                return
            if self._max_waiting is not None and len(self._waiting) >= self._max_waiting:
                raise QueueFull(
                    f"{self._max_waiting} programs already wait to be graded; "
                    "send fewer at once, or raise max_waiting or workers"
                )
            turn: Future[None] = Future()
            self._waiting.append(turn)
        start_s = time.monotonic()
        try:
            async with asyncio.timeout(self._wait_s):
                await asyncio.wrap_future(turn)
        except BaseException as error:
            self._withdraw(turn)
            if isinstance(error, TimeoutError):
                raise QueueFull(
                    f"a program waited {time.monotonic() - start_s:.1f} s to be graded; "
                    "send fewer at once, or raise wait_s or workers"
                ) from error
            raise

    def _withdraw(self, turn: Future[None]) -> None:
        """Leave the line; if it was this one's turn just now, let the next one have it."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
        if not turn.cancel() and not turn.cancelled() and turn.exception() is None:
            self._give_back()

    def _give_back(self) -> None:
        """Let the next one in line have the thread."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                turn = self._waiting.popleft()
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)
                return
