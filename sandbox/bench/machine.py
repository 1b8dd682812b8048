"""The machine under a measurement: what it is, how busy it was, and what a process costs on it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_FORKS = 300
# The C library's fork, past the interpreter's own hooks, in a fresh and small process.
_FORK_LOOP = """\
import ctypes, json, os, resource, sys, time
libc = ctypes.PyDLL(None)
def cpu():
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)
def loop(count):
    for _ in range(count):
        if libc.fork() == 0:
            libc._exit(0)
        libc.wait(None)
loop(20)
count = int(sys.argv[1])
cpu_s, wall_s = cpu(), time.perf_counter()
loop(count)
print(json.dumps([(cpu() - cpu_s) / count, (time.perf_counter() - wall_s) / count]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts about the machine, without which figures mean little."""

    cores: int
    """That this process may use."""
    cpu: str
    kernel: str
    python: str
    engine: str
    """Version of the Docker engine; empty without one."""
    fork_cpu_ms: float
    """CPU of fork, exit and wait of a small process that does nothing: the floor of any test."""
    fork_wall_ms: float


def describe(*, engine: str = "") -> Machine:
    """Look at this machine."""
    cpu_ms, wall_ms = fork_floor_ms()
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_cpu_model(),
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        engine=engine,
        fork_cpu_ms=cpu_ms,
        fork_wall_ms=wall_ms,
    )


def fork_floor_ms(*, forks: int = _FORKS) -> tuple[float, float]:
    """Return what fork, exit and wait cost in a bare interpreter, in ms of CPU and of wall time."""
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _FORK_LOOP, str(forks)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    cpu_s, wall_s = json.loads(answer.stdout)
    return 1000 * cpu_s, 1000 * wall_s


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
