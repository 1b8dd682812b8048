"""The clocks of another process."""

from __future__ import annotations

import os
import time

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of all threads of a process.

    Raises:
        OSError: there is no such process.
    """
    # As clock_getcpuclockid(3) makes it.
    return time.clock_gettime(~pid << 3 | 2)


def of_process(pid: int) -> tuple[float, float]:
    """Return for how many seconds a process has existed, and its threads waited for a processor.

    The second is 0 where the kernel does not count it, both are 0 once the process has ended.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            start = int(file.read().rpartition(")")[2].split()[19])
        existed_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start * _TICK_S
    except (OSError, ValueError, IndexError):
        return 0.0, 0.0
    waited_ns = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                waited_ns = max(waited_ns, int(file.read().split()[1]))
    except (OSError, ValueError, IndexError):
        pass
    return existed_s, waited_ns / 1e9
