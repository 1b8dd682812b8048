"""Whose fault it is when workers break, and which results have to be seen twice.

A worker that breaks while it runs a program is evidence against the program, unless it was killed
or lost from outside. Two pieces of evidence, and a known program that runs well in another worker:
then the program did it and has a runtime error. In every other case nothing is known, and that is
`WorkerDied`, which no one may score.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from .base import WorkerDied
from .types import LEAST_WORKER_MB, Limits, Status
from .worker import Execution, WorkerFault

_log = logging.getLogger(__name__)

_CANARY = b"print(sum(map(int, input().split())))"
_CANARY_INPUT = b"20 22\n"
_CANARY_OUTPUT = b"42\n"
_CANARY_LIMITS = Limits(cpu_s=5.0, memory_mb=LEAST_WORKER_MB)
_SLACK = 1.6
_EVIDENCE = 2
_ATTEMPTS = 3
"""Most runs of one program, where some of them were lost from outside."""


class Workers(Protocol):
    """Where a program runs: one worker after another."""

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program in the worker in hand.

        Raises:
            WorkerFault: the worker broke, and has been closed.
        """
        ...

    def refresh(self) -> None:
        """Have the next program run in a worker that has run nothing."""
        ...

    def discard(self) -> None:
        """Close the worker in hand."""
        ...


def run(
    workers: Workers,
    source: bytes,
    stdin: bytes,
    limits: Limits,
    *,
    first: WorkerFault | None = None,
) -> Execution:
    """Run a program; where workers break, find out whether the program breaks them.

    Args:
        workers: where to run it.
        source: the program.
        stdin: its input.
        limits: hold for each run.
        first: what came of a run of it that has been made already.

    Raises:
        WorkerDied: it could not be settled that the program did it.
        SandboxError: no worker could be started.
    """
    faults: list[WorkerFault] = []
    fault = first
    while _evidence(faults) < _EVIDENCE:
        if fault is None:
            try:
                execution = workers.run(source, stdin, limits)
            except WorkerFault as error:
                fault = error
            else:
                return replace(execution, retried=True) if faults else execution
        _log.warning("%s", fault)
        faults.append(fault)
        if len(faults) == _ATTEMPTS and _evidence(faults) < _EVIDENCE:
            raise WorkerDied(
                f"{_ATTEMPTS} workers were lost, not all of them through the program: "
                + "; ".join(map(str, faults))
            ) from fault
        fault = None
        workers.refresh()
    try:
        canary = workers.run(_CANARY, _CANARY_INPUT, _CANARY_LIMITS)
    except WorkerFault as fault:
        raise WorkerDied(f"no worker lives: {faults[-1]}; then {fault}") from fault
    if canary.status is not None or canary.stdout != _CANARY_OUTPUT:
        workers.discard()
        raise WorkerDied(f"workers break: {faults[-1]}; and a known program gave {canary}")
    return Execution(
        status=Status.RUNTIME_ERROR,
        stderr=f"it broke its sandbox twice: {faults[-1]}".encode(),
        retried=True,
    )


def _evidence(faults: Sequence[WorkerFault]) -> int:
    return sum(not fault.external for fault in faults)


def may_be_a_victim(
    execution: Execution, limits: Limits, *, overloaded: Callable[[], bool]
) -> bool:
    """Whether a result may come of the machine's state and has to be confirmed by a run alone.

    That is so of a run that the wall clock ended on a busy machine, its CPU time not used up; and
    always of one that the kernel killed for memory, since a machine that runs out of memory kills
    programs before all others.
    """
    if execution.status is Status.MEMORY_LIMIT_EXCEEDED:
        return execution.signal is not None
    return (
        execution.status is Status.TIME_LIMIT_EXCEEDED
        and execution.cpu_s < limits.cpu_s
        and overloaded()
    )


def may_be_slowed(execution: Execution, limits: Limits, *, overloaded: Callable[[], bool]) -> bool:
    """Whether a run used its CPU time up on a busy machine, where everything takes more of it."""
    return (
        execution.status is Status.TIME_LIMIT_EXCEEDED
        and execution.cpu_s >= limits.cpu_s
        and overloaded()
    )


def with_slack(limits: Limits) -> Limits:
    """Return limits that a program within its limits keeps on any machine, however busy.

    Runs of the same program have been seen to take up to 1.5 times the CPU time under load.
    """
    return replace(limits, cpu_s=_SLACK * limits.cpu_s, wall_s=_SLACK * limits.wall_limit_s)


def is_unexplained(execution: Execution) -> bool:
    """Whether it was killed, and no limit says why: it may have killed itself, or someone else."""
    return execution.status is Status.RUNTIME_ERROR and execution.signal == signal.SIGKILL
