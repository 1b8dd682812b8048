"""The kernel's limits on a program's process."""

from __future__ import annotations

import resource

OPEN_FILES = 64
_STACK = 64 << 20


def set_constant() -> None:
    """Set the limits that no order changes; children inherit them."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_STACK, _STACK)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)


def set_for_run(cpu: int, memory: int, file_size: int, processes: int) -> None:
    """Set the limits of one run: CPU seconds, bytes, bytes, count (0: leave as it is)."""
    # One second between the soft and the hard limit, for programs that catch SIGXCPU.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file_size)
    if processes:
        _limit(resource.RLIMIT_NPROC, processes)


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))
