"""One program in a place of its own, for hosts where no second user id can be had.

PID 1 forks the program and collects the dead, so that the CPU time of all of them reaches whoever
waits for the sandbox. Nothing in here is trusted once the program runs: the host takes its facts
from `wait4`, its own clock and byte counts, and from what the setup pipe said before the
program's first line.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from . import child, limits, seccomp

_SETUP_FD = 4
_SPARE_FD = 100


def main() -> Callable[[], NoReturn]:
    """Confine this process as its arguments say; return the function that runs the program.

    They are the descriptors of program, setup pipe and channel (-1: none), then CPU seconds and
    what `limits.set_sizes` takes.

    The setup pipe gets the microseconds of CPU time that starting up has cost, `S` once every
    restriction is in force, then `C` if the program does not compile, or `R` just before its first
    line. It is closed before that line, so a program can fake none of these.
    """
    program, setup, channel, *numbers = map(int, sys.argv[1:])
    source = os.pread(program, os.fstat(program).st_size, 0)
    # First out of the way of the numbers that they are to get.
    setup = fcntl.fcntl(setup, fcntl.F_DUPFD, _SPARE_FD)
    if channel >= 0:
        channel = fcntl.fcntl(channel, fcntl.F_DUPFD, _SPARE_FD)
        os.dup2(channel, child.CHANNEL_FD)
    else:
        os.closerange(child.CHANNEL_FD, _SETUP_FD)
    os.dup2(setup, _SETUP_FD, inheritable=False)
    os.closerange(_SETUP_FD + 1, 4096)
    sys.set_int_max_str_digits(0)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # PID 1 is immune to what it does not handle
    seccomp.hide()
    seccomp.install()
    limits.set_constant()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    start_up_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
    pid = os.fork()
    if pid:
        _wait_for(pid)
    os.setsid()
    cpu, *sizes = numbers
    limits.set_cpu(cpu)
    limits.set_sizes(*sizes)
    os.write(_SETUP_FD, b"%dS" % start_up_us)
    child.open_streams()
    prepared = child.Prepared(source)
    prepared.make_main()
    os.write(_SETUP_FD, b"R" if prepared.code is not None else b"C")
    os.close(_SETUP_FD)
    return prepared.run


def _wait_for(pid: int) -> NoReturn:
    """Be PID 1: collect whatever dies, and end as the program ended.

    Holds no descriptor, so that the program's pipes end when the program's processes do.
    """
    os.closerange(0, 4096)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
