"""A transport over the standard streams of a process on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence

from .cgroup import ControlGroup
from .guest import wire
from .spawn import spawn

_ENDING_S = 5.0
"""How long what has closed its streams may take to end."""


class PipeTransport:
    """The supervisor is a child process; its standard error goes to a bounded look at a file."""

    def __init__(self, command: Sequence[str], group: ControlGroup | None = None) -> None:
        self._group = group
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._oom_kills = self._count_oom_kills()
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        try:
            self._process: subprocess.Popen[bytes] | None = spawn(
                command, stdio=(theirs_in, theirs_out, self._stderr.fileno())
            )
        except BaseException:
            self._process = None
            self.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._out, False)

    @property
    def pid(self) -> int | None:
        """Process id of the outermost process, None once it is closed."""
        return self._process.pid if self._process else None

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send all of `data`."""
        deadline_s = time.monotonic() + timeout_s
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                _wait(self._out, select.POLLOUT, deadline_s)

    def receive(self, timeout_s: float) -> bytes:
        """Return the next bytes; none at the end of the stream."""
        _wait(self._in, select.POLLIN, time.monotonic() + timeout_s)
        return os.read(self._in, 1 << 18)

    def hung_up(self) -> bool:
        """Return whether anything came unasked."""
        return _ready(self._in, select.POLLIN, 0.0)

    def lost_from_outside(self) -> bool:
        """Return whether the process was killed, or saw this side hang up.

        PID 1 of a sandbox cannot be killed from inside, but for lack of memory.
        """
        if self._process is None:
            return True
        ended = _ending(self._process.pid)
        if ended is None:
            return True
        killed_by, code = ended
        if killed_by:
            return True  # bubblewrap's own process, which is no part of the sandbox
        if code == 128 + signal.SIGKILL:
            return self._count_oom_kills() == self._oom_kills
        return code in (0, wire.KILLED_EXIT)

    def diagnosis(self) -> str:
        """Return the last of what was said on standard error."""
        if self._stderr.closed:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        text = os.pread(self._stderr.fileno(), 2000, max(0, size - 2000))
        return text.decode("utf-8", "replace").strip()

    def abort(self) -> None:
        """Kill the process, from any thread."""
        with self._lock:
            if self._process is not None and os.getpid() == self._owner:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything in it."""
        if self._stderr.closed:
            return
        self._stderr.close()
        os.close(self._out)
        os.close(self._in)
        with self._lock:
            process, self._process = self._process, None
        if os.getpid() != self._owner:
            # A forked copy of the owner has no say over the owner's workers.
            if process is not None:
                process.returncode = 0
            return
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._group is not None:
            self._group.remove()

    def _count_oom_kills(self) -> int | None:
        return self._group.oom_kills() if self._group else None


def _wait(descriptor: int, event: int, deadline_s: float) -> None:
    if not _ready(descriptor, event, max(0.0, deadline_s - time.monotonic())):
        raise TimeoutError("timed out")


def _ready(descriptor: int, event: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(timeout_s * 1000))


def _ending(pid: int) -> tuple[int, int] | None:
    """Wait for the end of a child, without collecting it; return (signal, exit status).

    None: it does not end.
    """
    deadline_s = time.monotonic() + _ENDING_S
    while time.monotonic() < deadline_s:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            exited = ended.si_code == os.CLD_EXITED
            return (0, ended.si_status) if exited else (ended.si_status, 0)
        time.sleep(0.01)
    return None
