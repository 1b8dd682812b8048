"""The kernel's limits on a program's processes."""

from __future__ import annotations

import resource

OPEN_FILES = 64
_STACK = 64 << 20


def set_constant() -> None:
    """Set the limits that no order changes; children inherit them."""
    _limit(resource.RLIMIT_CORE, 0)
    # Programs that recurse deeply ask for more; the address space limits that as well.
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)


def set_sizes(memory: int, file_size: int, processes: int) -> None:
    """Limit address space and files in bytes, and processes (0: leave that as it is)."""
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file_size)
    if processes:
        _limit(resource.RLIMIT_NPROC, processes)


def set_cpu(seconds: int) -> None:
    """Limit the CPU time of this process for good."""
    # One second between the soft and the hard limit, for programs that catch SIGXCPU.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def set_cpu_for_now(seconds: int | None) -> None:
    """Limit the CPU time of this process until the next call; None: not at all."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (hard if seconds is None else seconds, hard))


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))
