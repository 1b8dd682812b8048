"""From facts to a verdict: what a run's exit status, clocks and counters mean.

A pure function. The only text of the program that is looked at is the last line of its standard
error, to tell running out of memory from other failures; either way the program has failed.
"""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass

from .types import Limits, Status
from .worker import Execution, WorkerFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about one run, from the kernel and from the host's side of its pipes."""

    stage: str
    """How far it came: `-` not confined, `S` confined, `C` does not compile, `R` its first line."""
    wait_status: int
    """As `os.wait4` returns it."""
    cpu_s: float
    wall_s: float
    max_rss_kb: int
    overflow: bool
    """Whether it wrote more output than it may."""
    timed_out: bool
    """Whether it was killed by the wall-clock guard."""
    finished: bool = False
    """Whether it was killed because the host had heard enough."""
    oom: bool = False
    """Whether the memory controller killed a process of the run."""


def kernel_cpu_limit(limits: Limits) -> int:
    """Return the whole CPU seconds after which the kernel ends a process, as a backstop.

    The kernel counts these by sampling, and on a busy machine has been seen to be a sixth early;
    the verdict is taken on the exact time.
    """
    return math.ceil(1.3 * limits.cpu_s + 0.2)


def execution(facts: Facts, limits: Limits, stdout: bytes, stderr: bytes) -> Execution:
    """Return the verdict on a run.

    Raises:
        WorkerFault: the place broke before the program was confined.
    """
    if facts.stage == "-" and not facts.finished:
        raise WorkerFault(
            f"the guest could not confine the program (wait status {facts.wait_status:#x}): "
            f"{stderr.decode('utf-8', 'replace').strip() or 'no message'}",
            external=True,
        )
    code = facts.wait_status
    number = code & 0x7F
    return Execution(
        status=_status(facts, limits, number, stderr),
        exit_code=None if number else code >> 8,
        signal=number or None,
        cpu_s=facts.cpu_s,
        wall_s=facts.wall_s,
        max_rss_kb=facts.max_rss_kb,
        stdout=stdout,
        stderr=stderr,
    )


def _status(facts: Facts, limits: Limits, number: int, stderr: bytes) -> Status | None:
    if facts.stage == "C" or (facts.stage != "R" and not facts.finished):
        return Status.COMPILE_ERROR
    if facts.overflow:
        return Status.OUTPUT_LIMIT_EXCEEDED
    killed = number == signal.SIGKILL
    if killed and facts.oom and not facts.timed_out:
        # Before the clocks: making room for it has cost the program much of its CPU time.
        return Status.MEMORY_LIMIT_EXCEEDED
    if facts.timed_out or facts.cpu_s > limits.cpu_s or number == signal.SIGXCPU:
        return Status.TIME_LIMIT_EXCEEDED
    if killed and facts.finished:
        return None
    if number:
        return Status.RUNTIME_ERROR
    if facts.wait_status:
        lacked_memory = facts.oom or _last_line(stderr).startswith(b"MemoryError")
        return Status.MEMORY_LIMIT_EXCEEDED if lacked_memory else Status.RUNTIME_ERROR
    return None


def _last_line(text: bytes) -> bytes:
    return text.rstrip().rpartition(b"\n")[2]
