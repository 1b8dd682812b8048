"""Trusted programs only: a plain subprocess with resource limits and nothing that isolates it.

The program runs as the calling user, sees its files and its network, and can end its processes.
The backend exists for the unit tests of what lies above it, and for code that its user wrote; it
is chosen by name only, never by `backend="auto"`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO

from .base import Capabilities, Guarantee
from .types import Limits, Status
from .verdict import Facts, execution
from .worker import CHANNEL_FD, Execution

_DRAIN_S = 0.05
"""How long descendants that outlive the program may keep its output open."""

_BOOTSTRAP = """
import math, os, resource, sys, types
program, setup, channel, cpu_s, memory, files = (float(word) for word in sys.argv[1:])
program, setup, channel = int(program), int(setup), int(channel)
os.write(setup, b"S")
resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu_s), math.ceil(cpu_s) + 1))
resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(files), int(files)))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
with open(program, "rb") as file:
    source = file.read()
try:
    code = compile(source, "solution.py", "exec", dont_inherit=True)
except BaseException as error:
    os.write(setup, b"C")
    import traceback
    sys.stderr.write("".join(traceback.format_exception_only(error)))
    sys.stderr.flush()
    os._exit(1)
os.write(setup, b"R")
os.close(setup)
if channel >= 0 and channel != CHANNEL_FD:
    os.dup2(channel, CHANNEL_FD)
    os.close(channel)
import _sitebuiltins, builtins
builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D")
builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D")
sys.argv = ["solution.py"]
sys.path[:] = [path for path in sys.path if path]
main = sys.modules["__main__"] = types.ModuleType("__main__")
def excepthook(kind, error, trace):
    sys.__excepthook__(kind, error.with_traceback(trace.tb_next), None)
sys.excepthook = excepthook
exec(code, main.__dict__)
""".replace("CHANNEL_FD", str(CHANNEL_FD))

_COMMAND = (sys.executable, "-P", "-s", "-S", "-B", "-c", _BOOTSTRAP)


class LocalBackend:
    """Starts workers that run trusted programs as plain subprocesses."""

    name = "local"

    @property
    def capabilities(self) -> Capabilities:
        """No isolation; resource limits only."""
        return Capabilities(
            backend=self.name,
            isolated=False,
            guarantees=frozenset({Guarantee.TEST_LIMITS}),
        )

    @property
    def fingerprint(self) -> str:
        """A hash of the interpreter's version and the start-up code."""
        text = f"local\0{sys.version}\0{_BOOTSTRAP}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def start_worker(self) -> LocalWorker:
        """Return a worker; it holds nothing until it runs a program."""
        return LocalWorker()


class LocalWorker:
    """Runs one trusted program at a time, each in an empty directory of its own."""

    name = "local"

    def __init__(self) -> None:
        self._closed = False
        self._process: _Process | None = None

    @property
    def usable(self) -> bool:
        """Whether it has not been closed."""
        return not self._closed

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program to its end (see `Worker.run`)."""
        process = self._process = _Process(source, stdin, limits, channel=False)
        while not process.ended:
            process.pump(process.remaining_s)
        return process.finish()

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Run a program on one input after another (see `Worker.run_batch`)."""
        return (self.run(source, stdin, limits) for stdin in stdins)

    def open(self, source: bytes, limits: Limits) -> LocalSession:
        """Start a program with a channel (see `Worker.open`)."""
        self._process = _Process(source, b"", limits, channel=True)
        return LocalSession(self._process)

    def abort(self) -> None:
        """End the program that runs, from any thread."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Refuse further programs."""
        self._closed = True


class LocalSession:
    """A running program that talks over its channel (see `Session`)."""

    def __init__(self, process: _Process) -> None:
        self._process = process

    def send(self, data: bytes) -> None:
        """Send bytes; ignored once the program has ended."""
        self._process.send(data)

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next bytes, or None once the program has ended or closed its channel."""
        deadline = time.monotonic() + timeout_s
        process = self._process
        while not process.inbox:
            left = deadline - time.monotonic()
            if process.silent or process.ended:
                return None
            if left <= 0:
                raise TimeoutError(f"the program sent nothing within {timeout_s} s")
            process.pump(min(left, process.remaining_s))
        data = bytes(process.inbox)
        process.inbox.clear()
        return data

    def finish(self) -> Execution:
        """Kill the program if it still runs and return the facts."""
        return self._process.finish()


class _Process:
    """One subprocess, its streams and clocks."""

    def __init__(self, source: bytes, stdin: bytes, limits: Limits, *, channel: bool) -> None:
        self.limits = limits
        self.inbox = bytearray()
        self.silent = not channel
        self.ended = False
        self._end = threading.Lock()
        self._output = bytearray()
        self._errors = bytearray()
        self._status: Status | None = None
        self._result: tuple[int, resource.struct_rusage] | None = None
        self._stack = contextlib.ExitStack()
        try:
            self._start(source, stdin, channel)
        except BaseException:
            self._stack.close()
            raise

    def _start(self, source: bytes, stdin: bytes, channel: bool) -> None:
        stack, limits = self._stack, self.limits
        home = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="mars-envs-", ignore_cleanup_errors=True)
        )
        program = stack.enter_context(_file(source))
        setup, setup_child = os.pipe()
        self._setup = stack.enter_context(os.fdopen(setup, "rb", buffering=0))
        inherited = [program.fileno(), setup_child]
        self._socket: socket.socket | None = None
        if channel:
            self._socket, peer = socket.socketpair()
            stack.enter_context(self._socket)
            stack.enter_context(peer)
            inherited.append(peer.fileno())
        words = (
            *(program.fileno(), setup_child, inherited[2] if channel else -1),
            *(limits.cpu_s, limits.memory_mb << 20, limits.tmp_mb << 20),
        )
        self._began = time.monotonic()
        with _file(stdin) as stdin_file:
            self._popen = subprocess.Popen(
                [*_COMMAND, *map(str, words)],
                stdin=stdin_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=home,
                env={"PATH": os.defpath, "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
                pass_fds=inherited,
                start_new_session=True,
            )
        os.close(setup_child)
        if channel:
            peer.close()
        stdout, stderr = self._popen.stdout, self._popen.stderr
        assert stdout is not None
        assert stderr is not None
        stack.enter_context(stdout)
        stack.enter_context(stderr)
        pidfd = os.pidfd_open(self._popen.pid)
        stack.callback(os.close, pidfd)
        self._selector = stack.enter_context(selectors.DefaultSelector())
        self._selector.register(stdout, selectors.EVENT_READ, "stdout")
        self._selector.register(stderr, selectors.EVENT_READ, "stderr")
        self._selector.register(pidfd, selectors.EVENT_READ, "exit")
        if self._socket is not None:
            self._selector.register(self._socket, selectors.EVENT_READ, "channel")

    @property
    def remaining_s(self) -> float:
        """Seconds of wall-clock time left, at least 0."""
        return max(0.0, self._began + self.limits.wall_limit_s - time.monotonic())

    def send(self, data: bytes) -> None:
        """Send to the channel while draining everything else, so that neither side can block."""
        if self._socket is None or self.ended:
            return
        self._socket.setblocking(False)
        try:
            while data and not self.ended:
                try:
                    data = data[self._socket.send(data) :]
                except BlockingIOError:
                    self.pump(min(0.01, self.remaining_s))
        except OSError:
            return  # the program closed its end
        finally:
            self._socket.setblocking(True)

    def pump(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for anything, take it in, and enforce the limits."""
        for key, _ in self._selector.select(timeout_s):
            if key.data == "exit":
                self._reap()
            else:
                self._take(key)
        if not self.ended and self.remaining_s <= 0:
            self._stop(Status.TIME_LIMIT_EXCEEDED)

    def _take(self, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, 1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            self._selector.unregister(key.fileobj)
            self.silent = self.silent or key.data == "channel"
        elif key.data == "channel":
            self.inbox += data
        elif key.data == "stdout":
            self._output += data
            if len(self._output) > self.limits.output_bytes:
                del self._output[self.limits.output_bytes :]
                self._stop(Status.OUTPUT_LIMIT_EXCEEDED)
        else:
            self._errors = (self._errors + data)[-self.limits.stderr_bytes :]

    def _stop(self, status: Status | None) -> None:
        self._status = self._status or status
        self._reap()

    def _reap(self) -> None:
        """Kill what runs of the process group, then collect the leader's facts."""
        if self.ended:
            return
        self.kill()
        with self._end:
            _, status, usage = os.wait4(self._popen.pid, 0)
            self.ended = True
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        self._wall_s = time.monotonic() - self._began
        self._result = (status, usage)

    def kill(self) -> None:
        """Kill what runs of the process group, from any thread."""
        with self._end:
            if not self.ended:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._popen.pid, signal.SIGKILL)

    def finish(self) -> Execution:
        """End it, drain its pipes, and return the facts."""
        with self._stack:
            finished = not self.ended
            self._stop(None)
            deadline = time.monotonic() + _DRAIN_S
            while (left := deadline - time.monotonic()) > 0 and any(
                key.data in ("stdout", "stderr") for key in self._selector.get_map().values()
            ):
                self.pump(left)
            stage = (self._setup.read() or b"-")[-1:].decode("ascii")
            assert self._result is not None
            wait_status, usage = self._result
        return execution(
            Facts(
                stage=stage,
                wait_status=wait_status,
                cpu_s=usage.ru_utime + usage.ru_stime,
                wall_s=self._wall_s,
                max_rss_kb=usage.ru_maxrss,
                overflow=self._status is Status.OUTPUT_LIMIT_EXCEEDED,
                timed_out=self._status is Status.TIME_LIMIT_EXCEEDED,
                finished=finished,
            ),
            self.limits,
            bytes(self._output),
            bytes(self._errors),
        )


def _file(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    file.write(data)
    file.seek(0)
    return file
