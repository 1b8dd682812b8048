"""A transport over the standard streams of a process on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from .cgroup import ControlGroup
from .spawn import spawn


class PipeTransport:
    """The supervisor is a child process; its standard error goes to a bounded look at a file."""

    def __init__(self, command: Sequence[str], group: ControlGroup | None = None) -> None:
        self._group = group
        self._owner = os.getpid()
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

    def diagnosis(self) -> str:
        """Return the last of what was said on standard error."""
        if self._stderr.closed:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        text = os.pread(self._stderr.fileno(), 2000, max(0, size - 2000))
        return text.decode("utf-8", "replace").strip()

    def oom_kills(self) -> int | None:
        """Return the control group's counter, if there is a control group."""
        return self._group.oom_kills() if self._group else None

    def close(self) -> None:
        """End the process and everything in it."""
        if self._stderr.closed:
            return
        self._stderr.close()
        os.close(self._out)
        os.close(self._in)
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


def _wait(descriptor: int, event: int, deadline_s: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    timeout_s = max(0.0, deadline_s - time.monotonic())
    if not poll.poll(timeout_s * 1000):
        raise TimeoutError("timed out")
