"""Cancelling work that runs in a thread.

The one who starts the work makes a `Cancellation` and runs the work in its `scope`; whatever the
work then waits for says with `on_cancel` how it is to be ended.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from .base import SandboxError

_current: ContextVar[Cancellation | None] = ContextVar("sandbox_cancellation", default=None)


class Cancelled(SandboxError):
    """The caller has given the work up. Its caller is gone, so no one sees this."""


class Cancellation:
    """Whether a piece of work has been given up, and what ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._actions: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Give the work up, from any thread. Safe to call twice."""
        with self._lock:
            self._cancelled = True
            actions = tuple(self._actions)
        for action in actions:
            action()

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Make this the cancellation of what the calling thread does in the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def _add(self, action: Callable[[], None]) -> None:
        with self._lock:
            if self._cancelled:
                raise Cancelled("the grading has been cancelled")
            self._actions.append(action)

    def _remove(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._actions.remove(action)


@contextlib.contextmanager
def on_cancel(action: Callable[[], None]) -> Iterator[None]:
    """Have `action` called if the work is given up during the block.

    Args:
        action: called in another thread; neither blocks nor raises.

    Raises:
        Cancelled: it was given up before.
    """
    current = _current.get()
    if current is None:
        yield
        return
    current._add(action)
    try:
        yield
    finally:
        current._remove(action)


def check() -> None:
    """Go on if the work has not been given up.

    Raises:
        Cancelled: it has.
    """
    current = _current.get()
    if current is not None and current._cancelled:
        raise Cancelled("the grading has been cancelled")
