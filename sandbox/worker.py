"""The seam between grading and isolation: backends start workers, a worker runs programs.

A backend knows how to make an isolated place (a container, a bubblewrap sandbox); a worker is one
such place and runs one program at a time; a session is a running program that talks over a byte
channel on file descriptor 3. Nothing here compares outputs or retries: see `pool` and `grader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .base import Capabilities
from .types import Limits, Status

CHANNEL_FD = 3
"""File descriptor of a session's two-way byte channel (a socket) inside the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Facts about one run, taken from the kernel and never from what the program printed."""

    status: Status | None
    """None: it ended by itself with exit status 0 within its limits, so its output counts."""
    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    max_rss_kb: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    retried: bool = False
    """Whether an earlier attempt broke or was repeated: such a result is never cached."""


class WorkerFault(Exception):
    """The worker broke during a run: protocol fault, missed deadline, death. Internal to `pool`.

    Args:
        message: what happened, for people.
        external: whether it came from outside, or may have: the place was killed or stalled, the
            engine went away, the program was never started. It is no evidence against the program.
    """

    def __init__(self, message: str, *, external: bool = False) -> None:
        super().__init__(message)
        self.external = external


class Session(Protocol):
    """A running program that talks over its channel."""

    def send(self, data: bytes) -> None:
        """Send bytes to the program; ignored once it has ended.

        Raises:
            WorkerFault: the worker broke.
        """
        ...

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next bytes from the program, or None once it has ended or closed its channel.

        Raises:
            TimeoutError: nothing came within `timeout_s`.
            WorkerFault: the worker broke.
        """
        ...

    def finish(self) -> Execution:
        """Kill the program if it still runs and return the facts. Must be called exactly once.

        Its channel is closed first, with a moment to end by itself. One killed here within its
        limits has status None and signal 9.
        """
        ...


class Worker(Protocol):
    """One isolated place. Not thread-safe: the pool leases it to one program at a time."""

    name: str

    @property
    def usable(self) -> bool:
        """Whether it is clean and may run another program."""
        ...

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program to its end.

        Raises:
            WorkerFault: the worker broke; the program has no result.
        """
        ...

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Run a program on one input after another; cheaper than as many calls of `run`.

        Nothing is run ahead of a result but more of this batch. Ends before the last input after a
        run that leaves the worker unusable. Who stops listening before the end loses the worker.

        Raises:
            WorkerFault: the worker broke during the run whose result was to come next.
        """
        ...

    def open(self, source: bytes, limits: Limits) -> Session:
        """Start a program with a channel on `CHANNEL_FD`; its standard input is empty.

        Raises:
            WorkerFault: the worker broke.
        """
        ...

    def abort(self) -> None:
        """End what it runs at once, from any thread; whatever comes of the run does not count.

        The thread that uses the worker still has to close it. Never blocks, never raises.
        """
        ...

    def close(self) -> None:
        """Stop and remove it. Never raises, safe to call twice."""
        ...


class Backend(Protocol):
    """Makes workers."""

    name: str

    @property
    def capabilities(self) -> Capabilities:
        """What its workers guarantee on this machine."""
        ...

    @property
    def fingerprint(self) -> str:
        """A short hash of guest code, image and interpreter."""
        ...

    def start_worker(self) -> Worker:
        """Start one worker.

        Raises:
            SandboxUnavailable: the backend cannot work here.
            ImageError: the guest image could not be had.
        """
        ...
