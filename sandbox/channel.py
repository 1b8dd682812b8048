"""A worker at the far end of a byte stream, whatever carries it.

`GuestWorker` speaks the frames of `guest.wire` with the supervisor over a `Transport`; backends
only provide transports. A frame that breaks the rules, the end of the stream or a missed deadline
break the worker for good.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from . import guest
from .base import SandboxUnavailable
from .guest import wire
from .types import Limits
from .verdict import Facts, execution, kernel_cpu_limit
from .worker import Execution, WorkerFault

_MARGIN_S = 15.0
"""How much later than its wall-clock limit the facts about a run may come."""
_FRAME_SLACK = 1 << 20


class Transport(Protocol):
    """A two-way byte stream to a supervisor, and the power to end it."""

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send all of `data`.

        Raises:
            OSError: the stream broke, or took longer than `timeout_s` (TimeoutError).
        """
        ...

    def receive(self, timeout_s: float) -> bytes:
        """Return the next bytes; none at the end of the stream.

        Raises:
            TimeoutError: nothing came in time.
            OSError: the stream broke.
        """
        ...

    def hung_up(self) -> bool:
        """Return whether anything came unasked, the end of the stream above all. Never blocks."""
        ...

    def lost_from_outside(self) -> bool:
        """Return whether something other than the far end itself ended it, now that it has ended.

        True also where that can't be found out: then nothing is known against the program.
        """
        ...

    def diagnosis(self) -> str:
        """Return what the far end said on its standard error, for people."""
        ...

    def abort(self) -> None:
        """End the stream or the far end, from any thread. Never blocks, never raises."""
        ...

    def close(self) -> None:
        """End the far end. Never raises, safe to call twice."""
        ...


class GuestWorker:
    """A `Worker` whose supervisor is at the other end of a transport."""

    def __init__(self, name: str, transport: Transport, *, memory_mb: int) -> None:
        self.name = name
        self._transport = transport
        self._memory_mb = memory_mb
        self._decoder = wire.Decoder(_FRAME_SLACK)
        self._usable = True
        self._loaded: tuple[bytes, Limits] | None = None
        self._broken: WorkerFault | None = None

    @property
    def usable(self) -> bool:
        """Whether it is clean, still there, and may run another program."""
        if self._usable and self._transport.hung_up():
            self._usable = False
        return self._usable

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for the supervisor's greeting.

        Raises:
            SandboxUnavailable: it did not come; the worker is closed.
        """
        try:
            self.send(guest.code())
            kind, _ = self.next_frame(timeout_s)
            if kind != wire.HELLO:
                raise WorkerFault(f"a frame of kind {kind} in place of a greeting")
        except (WorkerFault, TimeoutError) as error:
            reason = self._transport.diagnosis() or str(error) or "it did not answer in time"
            self.close()
            raise SandboxUnavailable(
                f"a sandbox worker did not start: {reason}; `mars-envs sandbox doctor` says more"
            ) from error

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program to its end."""
        return next(self.run_batch(source, [stdin], limits))

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Run a program on one input after another."""
        self._load(source, limits, also=max(map(len, stdins), default=0))
        # The guest takes in what comes while it runs, so this cannot lock up.
        self.send(b"".join(wire.pack(wire.RUN, stdin) for stdin in stdins))
        # A result may wait for the one after it.
        patience_s = min(2, len(stdins)) * _patience_s(limits)
        heard = 0
        try:
            while heard < len(stdins) and self._usable:
                try:
                    kind, payload = self.next_frame(patience_s)
                except TimeoutError as error:
                    raise self.broken("no result in time", external=True) from error
                if kind != wire.RESULT:
                    raise self.broken(f"a frame of kind {kind} in place of a result")
                heard += 1
                yield self.conclude(payload, limits)
        finally:
            if heard < len(stdins):
                self._usable = False

    def open(self, source: bytes, limits: Limits) -> GuestSession:
        """Start a program with a channel on `CHANNEL_FD`."""
        self._load(source, limits)
        self.send(wire.pack(wire.OPEN))
        return GuestSession(self, limits)

    def abort(self) -> None:
        """End what it runs at once, from any thread."""
        self._transport.abort()

    def close(self) -> None:
        """Stop and remove it."""
        self._usable = False
        self._broken = self._broken or WorkerFault(f"worker {self.name} has been closed")
        self._transport.close()

    def _load(self, source: bytes, limits: Limits, *, also: int = 0) -> None:
        """Send a program, and the limits of its runs, unless they are there already."""
        if limits.memory_mb > self._memory_mb:
            raise ValueError(
                f"limits.memory_mb={limits.memory_mb} is more than a worker has "
                f"({self._memory_mb} MiB); give the backend more: memory_mb=..."
            )
        if max(len(source), also) + _FRAME_SLACK > wire.MAX_REQUEST:
            raise ValueError(
                f"the program has {len(source)} bytes, its input {also}; of each at most "
                f"{wire.MAX_REQUEST - _FRAME_SLACK} can be sent to a guest"
            )
        if self._loaded != (source, limits):
            self._decoder.limit = limits.output_bytes + limits.stderr_bytes + _FRAME_SLACK
            self.send(wire.pack_load(order(limits), source))
            self._loaded = (source, limits)

    def send(self, frame: bytes) -> None:
        """Send a frame to the supervisor."""
        if self._broken is not None:
            raise self._broken
        try:
            self._transport.send(frame, _MARGIN_S)
        except OSError as error:
            external = self._transport.lost_from_outside()
            raise self.broken(f"it does not listen: {error}", external=external) from error

    def next_frame(self, timeout_s: float) -> tuple[int, bytes]:
        """Return the next frame from the supervisor as (kind, payload).

        Raises:
            TimeoutError: no whole frame came in time.
            WorkerFault: the stream ended or makes no sense.
        """
        if self._broken is not None:
            raise self._broken
        deadline_s = time.monotonic() + timeout_s
        try:
            while (frame := self._decoder.next()) is None:
                data = self._transport.receive(max(0.0, deadline_s - time.monotonic()))
                if not data:
                    external = self._transport.lost_from_outside()
                    raise self.broken("it hung up", external=external)
                self._decoder.feed(data)
        except TimeoutError:
            raise
        except OSError as error:
            external = self._transport.lost_from_outside()
            raise self.broken(str(error), external=external) from error
        except wire.FrameError as error:
            raise self.broken(str(error)) from error
        return frame

    def conclude(self, payload: bytes, limits: Limits) -> Execution:
        """Read a result frame."""
        try:
            said, stdout, stderr = wire.unpack_result(payload)
        except wire.FrameError as error:
            raise self.broken(str(error)) from error
        facts = Facts(
            stage=said.stage.decode(),
            wait_status=said.status,
            cpu_s=said.cpu_s,
            wall_s=said.wall_s,
            max_rss_kb=said.max_rss_kb,
            overflow=said.overflow,
            timed_out=said.timed_out,
            finished=said.finished,
            oom=said.oom,
        )
        if not said.clean or facts.oom:
            self._usable = False
        try:
            return execution(facts, limits, stdout, stderr)
        except WorkerFault:
            self._usable = False
            raise

    def broken(self, reason: str, *, external: bool = False) -> WorkerFault:
        """Give the worker up and return the exception to raise (see `WorkerFault.external`).

        A missed deadline counts as external: a place that was paused, or a machine that stands
        still, looks the same from here as a guest that hangs.
        """
        self._usable = False
        said = self._transport.diagnosis()
        text = f"worker {self.name}: {reason}" + (f" ({said})" if said else "")
        if external:
            text += ", not through the program as far as is known"
        fault = WorkerFault(text, external=external)
        self._broken = fault
        return fault


class GuestSession:
    """A `Session` over a worker's transport."""

    def __init__(self, worker: GuestWorker, limits: Limits) -> None:
        self._worker = worker
        self._limits = limits
        self._arrived: deque[bytes] = deque()
        self._closed = False
        self._result: bytes | None = None
        self._deadline_s = time.monotonic() + _patience_s(limits)

    def send(self, data: bytes) -> None:
        """Send bytes to the program; ignored once it has ended."""
        if self._result is None:
            self._worker.send(wire.pack(wire.DATA, data))

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next bytes from the program, or None once it has ended."""
        deadline_s = time.monotonic() + timeout_s
        while not self._arrived:
            if self._closed or self._result is not None:
                return None
            self._take(max(0.0, deadline_s - time.monotonic()))
        return self._arrived.popleft()

    def finish(self) -> Execution:
        """Kill the program if it still runs and return the facts."""
        if self._result is None:
            self._worker.send(wire.pack(wire.FINISH))
        while self._result is None:
            self._arrived.clear()
            try:
                self._take(max(0.0, self._deadline_s - time.monotonic()))
            except TimeoutError as error:
                raise self._worker.broken("no result in time", external=True) from error
        return self._worker.conclude(self._result, self._limits)

    def _take(self, timeout_s: float) -> None:
        kind, payload = self._worker.next_frame(timeout_s)
        if kind == wire.DATA:
            self._arrived.append(payload)
        elif kind == wire.CLOSED:
            self._closed = True
        elif kind == wire.RESULT:
            self._result = payload
        else:
            raise self._worker.broken(f"a frame of kind {kind} in a session")


def order(limits: Limits) -> wire.Order:
    """Return the limits in the guest's terms."""
    return wire.Order(
        kernel_cpu_s=kernel_cpu_limit(limits),
        cpu_s=limits.cpu_s,
        wall_s=limits.wall_limit_s,
        memory=limits.memory_mb << 20,
        file_size=limits.tmp_mb << 20,
        processes=limits.processes,
        output_bytes=limits.output_bytes,
        stderr_bytes=limits.stderr_bytes,
    )


def _patience_s(limits: Limits) -> float:
    """Return the seconds within which the facts about a run come if the guest is well."""
    return wire.MOST_WALLS * limits.wall_limit_s + _MARGIN_S
