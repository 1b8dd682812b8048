"""The place that programs run in: its template, its user ids, and whether it is clean."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from typing import NoReturn

from . import sockets, wire, zygote

FIRST_ID, LAST_ID = 20_000, 64_998
_SWEEP_S = 10.0
_OWN_PROCESSES = 2  # supervisor and zygote
_OOM_COUNTERS = (
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/fs/cgroup/memory.events",
)
_NO_LIMITS = wire.Order(0, 0.0, 0.0, 0, 0, 0, 0, 0)


class Place:
    """Starts templates through the zygote and looks after what programs leave behind.

    A program has a template, and a user id for its tests, until the next program comes or a test
    leaves anything behind.
    """

    def __init__(self, control: sockets.socket, zygote_pid: int) -> None:
        self.clean = True
        """Whether nothing of any program is left that could not be removed."""
        self.orphans_cpu_s = 0.0
        """CPU time of processes that ended without their parents, of this test."""
        self.limits = _NO_LIMITS
        self._control = control
        self._zygote_pid = zygote_pid
        self._program = -1
        self._swept = False
        self._template: sockets.socket | None = None
        self._numbers_are_many = _most_processes() >= 1 << 20
        self._loadavg = os.open("/proc/loadavg", os.O_RDONLY)
        self._oom_file = next(
            (os.open(path, os.O_RDONLY) for path in _OOM_COUNTERS if os.path.exists(path)), None
        )
        self._oom_kills = self._count_oom_kills()
        # Process limits count a user id machine-wide, so places start at different ids.
        spread = int.from_bytes(os.urandom(4), "big") % (LAST_ID - FIRST_ID)
        self._id = FIRST_ID + spread // 2 * 2
        self._hear(1)  # the zygote is warm
        self._last_pid = self._read_last_pid()

    def load(self, limits: wire.Order, source: bytes) -> None:
        """Take another program, for the runs after this."""
        self._retire()
        if not self.clean:
            os._exit(wire.KILLED_EXIT)  # it has to run elsewhere, and it is not its doing
        if self._program >= 0:
            os.close(self._program)
        self._program = memory_file("program", source)
        self.limits = limits

    def template(self) -> sockets.socket:
        """Return the socket of the program's template, for one order; start it if need be."""
        self._last_pid += 1  # what `check` expects
        if self._template is not None:
            return self._template
        self._last_pid += 1
        self._id = self._id + 2 if self._id < LAST_ID else FIRST_ID
        self._template, theirs = sockets.message_pair()
        limits = self.limits
        order = zygote.ORDER.pack(
            zygote.START,
            self._id + 1,
            self._id,
            limits.kernel_cpu_s,
            limits.memory,
            limits.file_size,
            limits.processes,
        )
        self._tell(order, (theirs.fileno(), self._program))
        theirs.close()
        return self._template

    def alone(self) -> bool:
        """Whether no process but the test's first has been started since the order for it.

        False where process numbers are so few that a test could use them all and start again.
        """
        return self._numbers_are_many and self._read_last_pid() == self._last_pid

    def oom(self) -> bool:
        """Whether the memory controller has killed since the last call, as far as it says so."""
        before, self._oom_kills = self._oom_kills, self._count_oom_kills()
        return before != self._oom_kills

    def collect_template(self) -> tuple[int, float]:
        """End the template; return its wait status and CPU seconds."""
        assert self._template is not None
        self._template.close()
        self._template = None
        self._order(zygote.COLLECT)
        status, cpu_s = zygote.COLLECTED.unpack(self._hear(zygote.COLLECTED.size))
        return status, cpu_s

    def _retire(self) -> None:
        if self._template is not None:
            self.collect_template()
        if not self._only_ours() or os.listdir("/tmp"):
            self.sweep()
        self._swept = False
        self._last_pid = self._read_last_pid()

    def check(self) -> None:
        """Look for what a test left: cheaply, and thoroughly only where that is needed."""
        self.reap()
        if not self.clean:
            return
        # A test that has started no process has left none.
        alone = self.alone()
        if not self._swept and (alone or self._only_ours()) and not os.listdir("/tmp"):
            self._last_pid = self._last_pid if alone else self._read_last_pid()
            return
        self.sweep()
        if self.clean:
            self._retire()

    def sweep(self) -> None:
        """Kill whatever the tests' user still runs and remove its files.

        Where that takes too long, this place is not clean and the zygote not to be spoken to again.
        """
        self._swept = True
        self._order(zygote.SWEEP)
        deadline_s = time.monotonic() + _SWEEP_S
        if not select.select([self._control], [], [], _SWEEP_S)[0]:
            self.clean = False  # the host will throw this place away
            return
        self._hear(1)
        while time.monotonic() < deadline_s:
            self.reap()
            if self._only_ours():
                self.clean = self.clean and not os.listdir("/tmp")
                return
            time.sleep(0.002)
        self.clean = False

    def reap(self) -> None:
        """Collect orphans, and their CPU time."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(1)
            if pid == 0:
                return
            if pid == self._zygote_pid:
                self._give_up(status)
            self.orphans_cpu_s += usage.ru_utime + usage.ru_stime

    def _count_oom_kills(self) -> int | None:
        """Return how often the memory controller has killed here, or None if it does not say."""
        if self._oom_file is None:
            return None
        for line in os.pread(self._oom_file, 4096, 0).splitlines():
            name, _, value = line.partition(b" ")
            if name == b"oom_kill":
                return int(value)
        return None

    def _give_up(self, status: int) -> NoReturn:
        """End this place, whose zygote has ended."""
        # No program can signal it; the memory controller can, on account of a program.
        innocent = status == signal.SIGKILL and not self.oom()
        os._exit(wire.KILLED_EXIT if innocent else 1)

    def _order(self, operation: int) -> None:
        self._tell(zygote.ORDER.pack(operation, 0, self._id, 0, 0, 0, 0))

    def _tell(self, order: bytes, descriptors: Sequence[int] = ()) -> None:
        try:
            sockets.send(self._control, order, descriptors)
        except OSError:
            self._give_up(os.waitpid(self._zygote_pid, 0)[1])

    def _hear(self, size: int) -> bytes:
        message = self._control.recv(size)
        if not message:
            self._give_up(os.waitpid(self._zygote_pid, 0)[1])
        return message

    def _only_ours(self) -> bool:
        return len(self._processes()) <= _OWN_PROCESSES + (self._template is not None)

    def _processes(self) -> list[str]:
        return [name for name in os.listdir("/proc") if name.isdigit()]

    def _read_last_pid(self) -> int:
        return int(os.pread(self._loadavg, 128, 0).split()[4])


def _most_processes() -> int:
    """Return how many process numbers there are before they start again; 0: nobody says."""
    try:
        with open("/proc/sys/kernel/pid_max") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def memory_file(name: str, data: bytes) -> int:
    """Return a descriptor of an anonymous file, positioned at its start."""
    descriptor = os.memfd_create(name)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
