"""PID 1 of an isolated place: speaks with the host, starts programs through the zygote.

Three levels of trust: the supervisor owns the channel to the host, the zygote forks children, a
child runs the program as a user id of its own. The supervisor treats every byte that comes from a
child as opaque; what it reports are facts of the kernel: exit status, CPU time, sizes, its own
clock and the memory controller's counter. The end of the host's stream ends the supervisor and
with it the place.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from . import seccomp, wire, zygote

FIRST_UID, LAST_UID = 20_000, 64_999
_CHUNK = 1 << 16
_LINGER_S = 0.05  # for output of descendants after the main process has ended
_GRACE_S = 0.2  # for a program to end by itself once its channel is closed
_SWEEP_S = 2.0
_PATIENCE_S = 1.0  # for what was killed to be gone
_RETRY_S = 0.01
_BACKLOG = 64 << 20  # most bytes waiting for a program that does not read its channel
_OOM_COUNTERS = (
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/fs/cgroup/memory.events",
)


def main() -> Callable[[], NoReturn]:
    """Serve the host until it hangs up. Returns only in a child: the function that runs it."""
    seccomp.hide()
    host_in, host_out = (os.dup(fd) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    seccomp.install()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        # Detached: no collected object may close a number that has found another use.
        ours.detach()
        os.dup2(theirs.detach(), zygote.CONTROL_FD)
        os.closerange(zygote.CONTROL_FD + 1, 4096)
        return zygote.serve(socket.socket(fileno=zygote.CONTROL_FD))
    theirs.close()
    supervisor = Supervisor(host_in, host_out, ours, pid)
    supervisor.serve()
    os._exit(0)


class Supervisor:
    """The loop of PID 1."""

    def __init__(
        self, host_in: int, host_out: int, control: socket.socket, zygote_pid: int
    ) -> None:
        self.control = control
        self.host_in = host_in
        self.clean = True
        self.host_out = host_out
        self.outbox = bytearray()
        os.set_blocking(host_out, False)
        self._zygote_pid = zygote_pid
        self._requests = wire.Decoder(wire.MAX_REQUEST)
        self._loadavg = os.open("/proc/loadavg", os.O_RDONLY)
        self._oom_file = next(
            (os.open(path, os.O_RDONLY) for path in _OOM_COUNTERS if os.path.exists(path)), None
        )
        # Process limits count a user id machine-wide, so places start at different ids.
        spread = int.from_bytes(os.urandom(4), "big") % (LAST_UID - FIRST_UID)
        self._uid = FIRST_UID + spread
        self.orphans_cpu_s = 0.0

    def serve(self) -> None:
        """Answer requests until the host hangs up."""
        self.control.recv(1)  # the zygote is warm
        self._last_pid = self._read_last_pid()
        gc.freeze()
        self.send(wire.pack(wire.HELLO, json.dumps({"python": sys.version}).encode()))
        while True:
            kind, payload = self.next_request()
            if kind in (wire.RUN, wire.OPEN):
                meta, (source, stdin) = wire.unpack_parts(payload)
                self._execute(meta, source, stdin, with_channel=kind == wire.OPEN)
            # Data and the end of a session that has ended by itself come too late.

    def send(self, frame: bytes) -> None:
        """Write all of `frame` to the host."""
        self.say(frame)
        while self.outbox:
            select.select([], [self.host_out], [])
            self.say(b"")

    def say(self, frame: bytes) -> None:
        """Write as much of `frame` to the host as it takes now; the rest stays in `outbox`."""
        self.outbox += frame
        try:
            while self.outbox:
                del self.outbox[: os.write(self.host_out, self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)

    def next_request(self, *, wait: bool = True) -> tuple[int, bytes]:
        """Return the next frame of the host; kind 0 if none is complete and `wait` is False."""
        while True:
            frame = self._requests.next()
            if frame is not None:
                return frame
            if not wait:
                return 0, b""
            self.read_host()

    def read_host(self) -> None:
        """Take in what the host has sent; at the end of its stream, end."""
        data = os.read(self.host_in, 1 << 20)
        if not data:
            os._exit(0)
        self._requests.feed(data)

    def _execute(
        self, meta: dict[str, Any], source: bytes, stdin: bytes, *, with_channel: bool
    ) -> None:
        self._uid = self._uid + 1 if self._uid < LAST_UID else FIRST_UID
        oom_before = self._read_oom()
        self.orphans_cpu_s = 0.0
        run = Run(self, meta, self._uid, source, stdin, with_channel=with_channel)
        facts = run.watch()
        oom_after = self._read_oom()
        self._check_clean()
        facts["cpu_s"] += self.orphans_cpu_s
        facts["oom"] = None if oom_after is None else oom_after != oom_before
        facts["clean"] = self.clean
        self.send(wire.pack_parts(wire.RESULT, facts, bytes(run.stdout), bytes(run.stderr)))

    def sweep(self) -> None:
        """Kill whatever the current user id still runs and remove its files."""
        self.control.send(zygote.ORDER.pack(zygote.SWEEP, self._uid, 0, 0, 0, 0))
        deadline = time.monotonic() + _SWEEP_S
        if not select.select([self.control], [], [], _SWEEP_S)[0]:
            self.clean = False  # the host will throw this place away
            return
        self.control.recv(1)
        while time.monotonic() < deadline:
            self.reap()
            if len(self._processes()) <= 2:
                return
            time.sleep(0.002)
        self.clean = False

    def reap(self) -> None:
        """Collect orphans, and their CPU time."""
        while True:
            try:
                pid, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(1)
            if pid == 0:
                return
            if pid == self._zygote_pid:
                os._exit(1)
            self.orphans_cpu_s += usage.ru_utime + usage.ru_stime

    def _check_clean(self) -> None:
        """Look for what the program left: cheaply, and thoroughly only where that is needed."""
        self.reap()
        if not self.clean:
            return
        last_pid = self._read_last_pid()
        alone = last_pid == self._last_pid + 1
        self._last_pid = last_pid
        if (alone or len(self._processes()) <= 2) and not os.listdir("/tmp"):
            return
        self.sweep()
        self._last_pid = self._read_last_pid()
        self.clean = self.clean and len(self._processes()) <= 2 and not os.listdir("/tmp")

    def _processes(self) -> list[str]:
        return [name for name in os.listdir("/proc") if name.isdigit()]

    def _read_last_pid(self) -> int:
        return int(os.pread(self._loadavg, 128, 0).split()[4])

    def _read_oom(self) -> int | None:
        """Return how often the memory controller has killed here, or None if it does not say."""
        if self._oom_file is None:
            return None
        for line in os.pread(self._oom_file, 4096, 0).splitlines():
            name, _, value = line.partition(b" ")
            if name == b"oom_kill":
                return int(value)
        return None


class Run:
    """One program from its start to the facts about it."""

    def __init__(
        self,
        supervisor: Supervisor,
        meta: dict[str, Any],
        uid: int,
        source: bytes,
        stdin: bytes,
        *,
        with_channel: bool,
    ) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._supervisor = supervisor
        self._meta = meta
        self._setup = b""
        self._result: tuple[int, float, int] | None = None  # wait status, CPU seconds, KiB
        self._overflow = self._timed_out = self._finished = False
        self._backlog = bytearray()
        self._channel: socket.socket | None = None
        self._poll = select.poll()
        self._start_s = time.monotonic()
        self._deadline_s = self._start_s + meta["wall_s"]
        # A single thread cannot have used its time up any sooner.
        self._cpu_check_s = self._start_s + meta["cpu_s"]
        self._swept = False

        out, out_w = os.pipe()
        err, err_w = os.pipe()
        self._setup_pipe, setup_w = os.pipe()
        os.set_blocking(self._setup_pipe, False)
        os.fchmod(out_w, 0o622)  # so that /dev/stdout and /dev/stderr can be opened
        os.fchmod(err_w, 0o622)
        theirs = [_memory_file("program", source), _memory_file("stdin", stdin)]
        theirs += [out_w, err_w, setup_w]
        if with_channel:
            self._channel, other = socket.socketpair()
            self._channel.setblocking(False)
            theirs.append(other.detach())
        order = zygote.ORDER.pack(
            zygote.RUN, uid, meta["cpu"], meta["memory"], meta["file_size"], meta["processes"]
        )
        socket.send_fds(supervisor.control, [order], theirs)
        for descriptor in theirs:
            os.close(descriptor)

        self._sources: dict[int, Callable[[], object]] = {
            out: lambda: self._drain_stdout(out),
            err: lambda: self._drain_stderr(err),
            supervisor.control.fileno(): self._read_control,
            supervisor.host_in: self._read_host,
        }
        self._pipes = {out, err}
        for descriptor in self._sources:
            self._poll.register(descriptor, select.POLLIN)
        if self._channel is not None:
            self._sources[self._channel.fileno()] = self._read_channel
            self._poll.register(self._channel.fileno(), select.POLLIN)
            self._sources[supervisor.host_out] = self._flush_outbox
            self._poll.register(supervisor.host_out, 0)

    def watch(self) -> dict[str, Any]:
        """Wait for the end of the program, draining its output; return the facts."""
        end_s = 0.0
        self._obey_host()
        while self._result is None or self._pipes:
            if time.monotonic() >= self._deadline_s:
                self._on_deadline()
            if self._result is None and time.monotonic() >= self._cpu_check_s:
                self._check_cpu()
            timeout_s = max(0.0, min(self._deadline_s, self._cpu_check_s) - time.monotonic())
            for descriptor, _ in self._poll.poll(timeout_s * 1000 + 1):
                if descriptor in self._sources:
                    self._sources[descriptor]()
            if self._result is not None and not end_s:
                end_s = time.monotonic()
                self._cpu_check_s = math.inf
                self._deadline_s = end_s + _LINGER_S
        self._close()
        status, cpu_s, max_rss_kb = self._result
        return {
            "stage": self._setup.lstrip(b"0123456789").decode("ascii", "replace"),
            "status": status,
            "cpu_s": cpu_s,
            "wall_s": end_s - self._start_s,
            "max_rss_kb": max_rss_kb,
            "overflow": self._overflow,
            "timed_out": self._timed_out,
            "finished": self._finished,
        }

    def _on_deadline(self) -> None:
        self._deadline_s = time.monotonic() + _PATIENCE_S
        if self._result is None:
            self._timed_out = not (self._finished or self._overflow)
            self._kill()
        elif not self._swept:
            # Descendants hold the pipes open.
            self._swept = True
            self._supervisor.sweep()
        else:
            for descriptor in tuple(self._pipes):
                self._drop(descriptor)

    def _check_cpu(self) -> None:
        """Kill the main process if its CPU time is used up, else see when that may be."""
        self._read_setup()
        pid = self._setup.partition(b"S")[0]
        left_s = _RETRY_S
        if pid:
            # The clock of another process, as clock_getcpuclockid(3) makes it.
            with contextlib.suppress(OSError):
                left_s = self._meta["cpu_s"] - time.clock_gettime(~int(pid) << 3 | 2)
            if left_s < 0:
                self._kill()
        self._cpu_check_s = time.monotonic() + max(left_s, _RETRY_S)

    def _kill(self) -> None:
        """Kill the main process; if it has not given its number yet, try again soon."""
        self._read_setup()
        pid = self._setup.partition(b"S")[0]
        if self._result is not None:
            return
        if pid:
            os.kill(int(pid), signal.SIGKILL)
        else:
            self._deadline_s = min(self._deadline_s, time.monotonic() + _RETRY_S)

    def _drop(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._sources[descriptor]
        self._pipes.discard(descriptor)
        os.close(descriptor)

    def _close(self) -> None:
        self._read_setup()
        os.close(self._setup_pipe)
        if self._channel is not None:
            while self._channel.fileno() in self._sources and self._read_channel():
                self._supervisor.send(b"")
            self._channel.close()

    def _drain_stdout(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._drop(descriptor)
        elif not self._overflow:
            self.stdout += data
            if len(self.stdout) > self._meta["output_bytes"]:
                del self.stdout[self._meta["output_bytes"] :]
                self._overflow = True
                self._kill()

    def _drain_stderr(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._drop(descriptor)
        self.stderr += data
        del self.stderr[: -self._meta["stderr_bytes"] or len(self.stderr)]

    def _read_setup(self) -> None:
        """See how far the child has come.

        No one waits for this pipe: three wake-ups less for each run.
        """
        with contextlib.suppress(BlockingIOError):
            self._setup += os.read(self._setup_pipe, 64)

    def _read_control(self) -> None:
        message = self._supervisor.control.recv(64)
        if not message:
            os._exit(1)  # the zygote is gone
        self._result = zygote.ENDED.unpack(message)

    def _read_host(self) -> None:
        self._supervisor.read_host()
        self._obey_host()

    def _obey_host(self) -> None:
        while True:
            kind, payload = self._supervisor.next_request(wait=False)
            if kind == 0:
                return
            if kind == wire.FINISH:
                self._finish()
            elif kind == wire.DATA and self._channel is not None:
                self._backlog += payload
                self._write_channel()

    def _finish(self) -> None:
        self._finished = True
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
        self._deadline_s = min(self._deadline_s, time.monotonic() + _GRACE_S)

    def _write_channel(self) -> None:
        channel = self._channel
        assert channel is not None
        try:
            while self._backlog:
                del self._backlog[: channel.send(self._backlog)]
        except BlockingIOError:
            if len(self._backlog) > _BACKLOG:
                self._kill()
                self._backlog.clear()
        except OSError:
            self._backlog.clear()
        self._choose_events()

    def _read_channel(self) -> bool:
        """Pass on what the program says; return whether there was anything."""
        channel = self._channel
        assert channel is not None
        if self._backlog:
            self._write_channel()
        try:
            data = channel.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._supervisor.say(wire.pack(wire.DATA, data))
            self._choose_events()
        else:
            self._poll.unregister(channel.fileno())
            del self._sources[channel.fileno()]
            self._supervisor.say(wire.pack(wire.CLOSED))
        return True

    def _flush_outbox(self) -> None:
        self._supervisor.say(b"")
        self._choose_events()

    def _choose_events(self) -> None:
        """Wait for what can go on: the program is not heard while the host lags behind."""
        lagging = bool(self._supervisor.outbox)
        self._poll.modify(self._supervisor.host_out, select.POLLOUT if lagging else 0)
        channel = self._channel
        if channel is not None and channel.fileno() in self._sources:
            events = (0 if lagging else select.POLLIN) | (select.POLLOUT if self._backlog else 0)
            self._poll.modify(channel.fileno(), events)


def _memory_file(name: str, data: bytes) -> int:
    descriptor = os.memfd_create(name)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
