"""Bubblewrap without root: a sandbox of its own, user namespace included, for every single run.

An ordinary user can map one user id only. With one id, whatever waits for a program inside could
be stopped, traced or impersonated by it, so nothing waits inside: the host starts bubblewrap,
drains the pipes and takes the facts from `wait4`, its own clock and byte counts, and from the
setup pipe, which the program finds closed. When the sandbox's first process ends, the kernel ends
all others in it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from .base import SandboxUnavailable
from .guest import wire
from .spawn import spawn
from .types import Limits
from .verdict import Facts, execution, kernel_cpu_limit
from .worker import Execution, WorkerFault

_CHUNK = 1 << 16
_GRACE_S = 0.2  # for a program to end by itself once its channel is closed
_MOST_KILLS = 5  # a second apart
_BACKLOG = 64 << 20
_CANARY = b"print(6 * 7)"
_OWN_PROCESSES = 1
"""The guest's PID 1 counts against the user namespace's process limit."""


def limits_processes() -> bool:
    """Whether this kernel counts processes per user namespace (Linux 5.14 and later)."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return found is not None and (int(found[1]), int(found[2])) >= (5, 14)


class SoloWorker:
    """A `Worker` that starts a sandbox for each run and keeps nothing between runs.

    Args:
        name: for people.
        command: starts a guest at its `solo` entry; the run's order is appended.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = tuple(command)
        self._current: SoloRun | None = None

    @property
    def usable(self) -> bool:
        """True: every run has a fresh place."""
        return True

    def check(self) -> None:
        """Run a known program.

        Raises:
            SandboxUnavailable: it did not work; the message says what bubblewrap said.
        """
        try:
            result = self.run(_CANARY, b"", Limits(cpu_s=10.0, wall_s=60.0, memory_mb=256))
        except WorkerFault as fault:
            raise SandboxUnavailable(
                f"bubblewrap cannot work for an ordinary user here: {fault}. Most often user "
                "namespaces are denied (sysctl kernel.unprivileged_userns_clone, "
                "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns, or a "
                "container's own limits); `mars-envs sandbox doctor` says what else can be tried"
            ) from fault
        if result.stdout != b"42\n":
            raise SandboxUnavailable(
                f"a known program gave {result} in bubblewrap; `mars-envs sandbox doctor` says more"
            )

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program to its end."""
        run = self._start(source, stdin, limits, with_channel=False)
        try:
            while not run.ended:
                run.step(run.patience_s)
            return run.conclude()
        finally:
            run.close()

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Run a program on one input after another."""
        return (self.run(source, stdin, limits) for stdin in stdins)

    def open(self, source: bytes, limits: Limits) -> SoloSession:
        """Start a program with a channel on `CHANNEL_FD`."""
        return SoloSession(self._start(source, b"", limits, with_channel=True))

    def abort(self) -> None:
        """End the run that is under way, from any thread."""
        if self._current is not None:
            self._current.abort()

    def close(self) -> None:
        """End the run that is under way, if there is one."""
        if self._current is not None:
            self._current.close()

    def _start(self, source: bytes, stdin: bytes, limits: Limits, *, with_channel: bool) -> SoloRun:
        try:
            run = SoloRun(self._command, source, stdin, limits, with_channel=with_channel)
        except OSError as error:
            raise WorkerFault(f"bubblewrap cannot be started: {error}", external=True) from error
        self._current = run
        return run


class SoloSession:
    """A `Session` with a sandbox of its own."""

    def __init__(self, run: SoloRun) -> None:
        self._run = run

    def send(self, data: bytes) -> None:
        """Send bytes to the program; ignored once it has ended."""
        self._run.send(data)

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next bytes from the program, or None once it has ended."""
        deadline_s = time.monotonic() + timeout_s
        while not self._run.arrived:
            if self._run.ended or self._run.channel_closed:
                return None
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the program said nothing in time")
            self._run.step(min(left_s, self._run.patience_s))
        return self._run.arrived.popleft()

    def finish(self) -> Execution:
        """Kill the program if it still runs and return the facts."""
        self._run.finish()
        try:
            while not self._run.ended:
                self._run.arrived.clear()
                self._run.step(self._run.patience_s)
            return self._run.conclude()
        finally:
            self._run.close()


class SoloRun:
    """One sandbox from its start to the facts, driven by `step`."""

    def __init__(
        self,
        command: Sequence[str],
        source: bytes,
        stdin: bytes,
        limits: Limits,
        *,
        with_channel: bool,
    ) -> None:
        self.arrived: deque[bytes] = deque()
        self.channel_closed = False
        self._limits = limits
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._setup = bytearray()
        self._info = bytearray()
        self._backlog = bytearray()
        self._overflow = self._timed_out = self._finished = False
        self._kills = 0
        self._killed_bwrap = False
        self._end = threading.Lock()
        self._status: tuple[int, float] | None = None  # wait status, CPU seconds
        self._sources: dict[int, Callable[[], None]] = {}
        self._poll = select.poll()
        self._channel: socket.socket | None = None
        self._start_s = time.monotonic()
        self._end_s = 0.0
        self._deadline_s = self._start_s + limits.wall_limit_s
        self._process = self._launch(command, source, stdin, with_channel=with_channel)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._watch(self._pidfd, self._reap)

    def _launch(
        self, command: Sequence[str], source: bytes, stdin: bytes, *, with_channel: bool
    ) -> subprocess.Popen[bytes]:
        limits = self._limits
        theirs: list[int] = []
        try:
            program, stdin_fd = _memory_file(source), _memory_file(stdin)
            theirs += [program, stdin_fd]
            for take in (self._take_stdout, self._take_stderr, self._take_setup, self._take_info):
                ours, end = os.pipe()
                theirs.append(end)
                self._watch(ours, _bound(take, ours))
            out, err, setup, info = theirs[2:]
            channel = -1
            if with_channel:
                self._channel, other = socket.socketpair()
                self._channel.setblocking(False)
                channel = other.detach()
                theirs.append(channel)
                self._watch(self._channel.fileno(), self._take_channel)
            order = (program, setup, channel, *_numbers(limits))
            arguments = [command[0], "--info-fd", str(info), *command[1:], *map(str, order)]
            passed = [program, *theirs[4:]]
            return spawn(arguments, stdio=(stdin_fd, out, err), pass_fds=passed)
        except BaseException:
            for descriptor in tuple(self._sources):
                self._drop(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    @property
    def ended(self) -> bool:
        """Whether the sandbox is gone and all that it wrote has been read."""
        channel = self._channel.fileno() if self._channel is not None else -1
        return self._status is not None and not self._sources.keys() - {channel}

    @property
    def patience_s(self) -> float:
        """Seconds until `step` has to be called."""
        return max(0.0, self._deadline_s - time.monotonic())

    def step(self, timeout_s: float) -> None:
        """Wait for something to happen, for at most `timeout_s`, and deal with it.

        Raises:
            WorkerFault: the sandbox cannot be killed.
        """
        if self.patience_s == 0.0:
            self._timed_out = self._timed_out or not (self._finished or self._overflow)
            self._kill()
        for descriptor, _ in self._poll.poll(min(timeout_s, self.patience_s) * 1000 + 1):
            if descriptor in self._sources:
                self._sources[descriptor]()
        if self._status is not None and self._channel is not None and not self.channel_closed:
            self._take_channel()

    def send(self, data: bytes) -> None:
        """Send bytes over the channel, as far as they go; the rest goes during later steps."""
        self._backlog += data
        self._flush()
        while self._backlog and self._status is None and not self.channel_closed:
            self.step(self.patience_s)

    def finish(self) -> None:
        """Close the channel and give the program a moment to end."""
        self._finished = True
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
        self._deadline_s = min(self._deadline_s, time.monotonic() + _GRACE_S)

    def conclude(self) -> Execution:
        """Return the verdict on the ended run.

        Raises:
            WorkerFault: the program was not confined, or bubblewrap was killed from outside.
        """
        assert self._status is not None
        if self._process.returncode < 0 and not self._killed_bwrap:
            raise WorkerFault("bubblewrap was killed from outside", external=True)
        status, cpu_s = self._status
        start_up, stage = _split_setup(bytes(self._setup))
        facts = Facts(
            stage=stage,
            wait_status=status,
            cpu_s=max(0.0, cpu_s - start_up),
            wall_s=self._end_s - self._start_s,
            max_rss_kb=0,  # what the kernel says is the size of this process before it became bwrap
            overflow=self._overflow,
            timed_out=self._timed_out,
            finished=self._finished,
        )
        return execution(facts, self._limits, bytes(self._stdout), bytes(self._stderr))

    def abort(self) -> None:
        """Kill the sandbox, from any thread."""
        with self._end:
            if self._status is None:
                with contextlib.suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End what still runs and let go of everything. Never raises, safe to call twice."""
        self.abort()
        if self._status is None:
            with contextlib.suppress(ChildProcessError):
                self._collect()
        if self._channel is not None:
            if self._channel.fileno() in self._sources:
                self._unwatch(self._channel.fileno())
            self._channel.close()
        for descriptor in tuple(self._sources):
            self._drop(descriptor)

    def _kill(self) -> None:
        """Kill the sandbox's first process, so that bubblewrap still accounts for its time.

        If that is not known yet, or does not help, kill bubblewrap itself.
        """
        self._kills += 1
        if self._kills > _MOST_KILLS:
            raise WorkerFault("a killed sandbox does not end", external=True)
        self._deadline_s = time.monotonic() + 1.0
        found = re.search(rb'"child-pid": (\d+)', self._info)
        with contextlib.suppress(ProcessLookupError):
            if found and self._kills == 1:
                os.kill(int(found[1]), signal.SIGKILL)
            elif self._status is None:
                self._killed_bwrap = True
                os.killpg(self._process.pid, signal.SIGKILL)

    def _watch(self, descriptor: int, action: Callable[[], None]) -> None:
        self._sources[descriptor] = action
        self._poll.register(descriptor, select.POLLIN)

    def _unwatch(self, descriptor: int) -> None:
        del self._sources[descriptor]
        self._poll.unregister(descriptor)

    def _drop(self, descriptor: int) -> None:
        self._unwatch(descriptor)
        os.close(descriptor)

    def _reap(self) -> None:
        self._drop(self._pidfd)
        self._collect()

    def _collect(self) -> None:
        with self._end:
            self._record(os.wait4(self._process.pid, 0))

    def _record(self, result: tuple[int, int, object]) -> None:
        _, status, usage = result
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        # Bubblewrap tells death by a signal as the shell does.
        status = code - 128 if 128 < code < 192 else (code & 0xFF) << 8 if code >= 0 else -code
        cpu_s = getattr(usage, "ru_utime", 0.0) + getattr(usage, "ru_stime", 0.0)
        self._status = (status, cpu_s)
        self._end_s = time.monotonic()

    def _read(self, descriptor: int) -> bytes:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._drop(descriptor)
        return data

    def _take_stdout(self, descriptor: int) -> None:
        data = self._read(descriptor)
        if not self._overflow:
            self._stdout += data
            if len(self._stdout) > self._limits.output_bytes:
                del self._stdout[self._limits.output_bytes :]
                self._overflow = True
                self._kill()

    def _take_stderr(self, descriptor: int) -> None:
        self._stderr += self._read(descriptor)
        del self._stderr[: -self._limits.stderr_bytes or len(self._stderr)]

    def _take_setup(self, descriptor: int) -> None:
        self._setup += self._read(descriptor)

    def _take_info(self, descriptor: int) -> None:
        self._info += self._read(descriptor)

    def _take_channel(self) -> None:
        channel = self._channel
        assert channel is not None
        self._flush()
        try:
            data = channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.arrived.append(data)
        else:
            self.channel_closed = True
            self._backlog.clear()
            self._unwatch(channel.fileno())

    def _flush(self) -> None:
        channel = self._channel
        if channel is None or self.channel_closed:
            self._backlog.clear()
            return
        try:
            while self._backlog:
                del self._backlog[: channel.send(self._backlog)]
        except BlockingIOError:
            pass
        except OSError:
            self._backlog.clear()
        if channel.fileno() in self._sources:
            events = select.POLLIN | (select.POLLOUT if self._backlog else 0)
            self._poll.modify(channel.fileno(), events)


def _numbers(limits: Limits) -> tuple[int, int, int, int]:
    """Return CPU seconds, address space, file size and processes as the guest wants them."""
    processes = limits.processes + _OWN_PROCESSES if limits_processes() else 0
    return kernel_cpu_limit(limits), limits.memory_mb << 20, limits.tmp_mb << 20, processes


def _bound(take: Callable[[int], None], descriptor: int) -> Callable[[], None]:
    return lambda: take(descriptor)


def _split_setup(said: bytes) -> tuple[float, str]:
    """Cut what the setup pipe said into start-up CPU seconds and the last stage."""
    digits = re.match(rb"\d*", said)
    number = digits[0] if digits else b""
    stage = said[len(number) :][-1:].decode("ascii", "replace") or "-"
    return int(number or b"0") / 1e6, stage


def _memory_file(data: bytes) -> int:
    """Return a descriptor of an anonymous file, positioned at its start."""
    if len(data) > wire.MAX_REQUEST:
        raise ValueError(f"{len(data)} bytes; at most {wire.MAX_REQUEST} can be sent to a guest")
    descriptor = os.memfd_create("sandbox")
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
