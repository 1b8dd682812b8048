"""A pool of workers: who may use which, when one is replaced, and whose fault a broken one is.

A worker serves one program at a time. Workers start when they are first needed and are replaced
after `recycle_after` programs, after any dirt, and after a fault. A fault is retried once in a
fresh worker; if that breaks too while a known program runs well elsewhere, the program did it and
has a runtime error, else `WorkerDied` is raised, which no one may score. Waiting for a worker
counts against no limit.

A run that ended by the wall clock, or for memory, with little CPU time used while the machine was
overloaded may have been a victim of its neighbours: it is repeated once with the pool to itself.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from .base import Capabilities, SandboxError, WorkerDied
from .types import Limits, Status
from .worker import Backend, Execution, Session, Worker, WorkerFault

_log = logging.getLogger(__name__)

_CANARY = b"print(sum(map(int, input().split())))"
_CANARY_INPUT = b"20 22\n"
_CANARY_OUTPUT = b"42\n"
_CANARY_LIMITS = Limits(cpu_s=5.0, memory_mb=128)
_OVERLOAD = 1.5
"""Runnable processes per core above which a run may be the victim of its neighbours."""
_ALONE_WAIT_S = 30.0

_Stop = Callable[[Execution], bool]


class WorkerPool:
    """Leases workers of one backend. Safe to use from many threads, and after a fork.

    Args:
        backend: makes the workers.
        size: most workers at once; None takes the number of cores.
        recycle_after: programs that a worker serves before it is replaced.
    """

    def __init__(
        self, backend: Backend, *, size: int | None = None, recycle_after: int = 200
    ) -> None:
        size = size if size is not None else _cores()
        if size < 1 or recycle_after < 1:
            raise ValueError(
                f"size and recycle_after must be at least 1, got {size} and {recycle_after}"
            )
        self.backend = backend
        self.size = size
        self._recycle_after = recycle_after
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[_Slot] = []
        self._leased = 0
        self._alone = False
        self._wanting_alone = 0
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What the backend guarantees here."""
        return self.backend.capabilities

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program once.

        Raises:
            WorkerDied: workers broke, and it could not be settled that the program did it.
            SandboxError: no worker could be started.
        """
        return self.run_many(source, [stdin], limits)[0]

    def run_many(
        self,
        source: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        stop: _Stop | None = None,
    ) -> list[Execution]:
        """Run a program on one input after another, in one worker as long as that lasts.

        Args:
            source: the program.
            stdins: its inputs.
            limits: hold for each run.
            stop: told each result; True leaves out the inputs after it.

        Returns:
            One execution for each input up to where it stopped.

        Raises:
            WorkerDied: workers broke, and it could not be settled that the program did it.
            SandboxError: no worker could be started.
        """
        executions: list[Execution] = []
        with self._lease() as lease:
            for stdin in stdins:
                execution = self._run_settled(lease, source, stdin, limits)
                executions.append(execution)
                if stop is not None and stop(execution):
                    break
        return executions

    @contextlib.contextmanager
    def session(self, source: bytes, limits: Limits) -> Iterator[Session]:
        """Start a program with a channel, in a worker of its own until the block ends.

        A session that the block has not finished is finished when it ends. A thread that needs two
        at once takes them from two pools: waiting for a second worker while holding one can block
        for ever.

        Raises:
            WorkerDied: the worker broke, in here or in the block.
            SandboxError: no worker could be started.
        """
        with self._lease() as lease:
            try:
                session = _TrackedSession(lease.worker().open(source, limits))
                try:
                    yield session
                finally:
                    session.finish_if_open()
            except WorkerFault as error:
                lease.discard()
                raise WorkerDied(f"a worker broke during a session: {error}") from error

    def close(self) -> None:
        """Stop every worker; those in use stop when they are given back. Safe to call twice."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for slot in idle:
            slot.worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run_settled(self, lease: _Lease, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        execution = self._run_blaming(lease, source, stdin, limits)
        if _may_be_a_victim(execution, limits):
            _log.info("repeating a run alone: %s on an overloaded machine", execution.status)
            with lease.suspended(), self._lease(alone=True) as quiet:
                again = self._run_blaming(quiet, source, stdin, limits)
            return replace(again, retried=True)
        return execution

    def _run_blaming(self, lease: _Lease, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run; where workers break, find out whether the program breaks them."""
        faults: list[WorkerFault] = []
        for _ in range(2):
            try:
                execution = lease.worker().run(source, stdin, limits)
                return replace(execution, retried=True) if faults else execution
            except WorkerFault as fault:
                _log.warning("%s", fault)
                lease.discard()
                faults.append(fault)
        try:
            canary = lease.worker().run(_CANARY, _CANARY_INPUT, _CANARY_LIMITS)
        except WorkerFault as fault:
            lease.discard()
            raise WorkerDied(f"no worker lives: {faults[-1]}; then {fault}") from fault
        if canary.status is not None or canary.stdout != _CANARY_OUTPUT:
            lease.discard()
            raise WorkerDied(f"workers break: {faults[-1]}; and a known program gave {canary}")
        return Execution(
            status=Status.RUNTIME_ERROR,
            stderr=f"it broke its sandbox twice: {faults[-1]}".encode(),
            retried=True,
        )

    @contextlib.contextmanager
    def _lease(self, *, alone: bool = False) -> Iterator[_Lease]:
        self._acquire(alone=alone)
        lease = _Lease(self)
        try:
            yield lease
        finally:
            lease.give_back()
            if not lease.lapsed:
                self._release(alone=alone)

    def _acquire(self, *, alone: bool) -> None:
        deadline_s = time.monotonic() + _ALONE_WAIT_S
        with self._changed:
            self._wanting_alone += alone
            try:
                while not self._closed and not self._may_enter(alone=alone):
                    if not alone:
                        self._changed.wait()
                    elif time.monotonic() < deadline_s:
                        self._changed.wait(deadline_s - time.monotonic())
                    elif self._leased < self.size and not self._alone:
                        break  # whoever holds a session may be waiting for this very run
                    else:
                        self._changed.wait()
            finally:
                self._wanting_alone -= alone
            if self._closed:
                raise SandboxError("the sandbox has been closed")
            self._leased += 1
            self._alone = self._alone or alone

    def _may_enter(self, *, alone: bool) -> bool:
        if self._alone:
            return False
        if alone:
            return self._leased == 0
        return self._leased < self.size and not self._wanting_alone

    def _release(self, *, alone: bool) -> None:
        with self._changed:
            self._leased -= 1
            self._alone = self._alone and not alone
            self._changed.notify_all()

    def _take(self) -> _Slot:
        """Return an idle worker or start one."""
        with self._changed:
            if self._idle:
                return self._idle.pop()
        return _Slot(self.backend.start_worker())

    def _put(self, slot: _Slot) -> None:
        slot.served += 1
        if slot.served < self._recycle_after and slot.worker.usable:
            with self._changed:
                if not self._closed:
                    self._idle.append(slot)
                    return
        slot.worker.close()


class _Slot:
    """A worker and how many programs it has served."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.served = 0


class _Lease:
    """The right to use one worker, which is taken when it is first asked for."""

    def __init__(self, pool: WorkerPool) -> None:
        self.lapsed = False
        """Whether the right was given up and not had back, because the pool was closed."""
        self._pool = pool
        self._slot: _Slot | None = None

    def worker(self) -> Worker:
        """Return a clean worker, a new one if the last has become unusable."""
        if self._slot is not None and not self._slot.worker.usable:
            self.discard()
        if self._slot is None:
            self._slot = self._pool._take()
        return self._slot.worker

    def discard(self) -> None:
        """Close the worker in hand."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.worker.close()

    def give_back(self) -> None:
        """Return the worker in hand to the pool."""
        slot, self._slot = self._slot, None
        if slot is not None:
            self._pool._put(slot)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Give the worker and the right to one back for the length of the block."""
        self.give_back()
        self._pool._release(alone=False)
        self.lapsed = True
        yield
        self._pool._acquire(alone=False)
        self.lapsed = False


class _TrackedSession:
    """A session that knows whether it has been finished."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._finished = False
        self.send = session.send
        self.receive = session.receive

    def finish(self) -> Execution:
        self._finished = True
        return self._session.finish()

    def finish_if_open(self) -> None:
        if not self._finished:
            self.finish()


def _may_be_a_victim(execution: Execution, limits: Limits) -> bool:
    suspicious = (
        execution.status is Status.TIME_LIMIT_EXCEEDED
        or (execution.status is Status.MEMORY_LIMIT_EXCEEDED and execution.signal is not None)
    ) and execution.cpu_s < 0.5 * limits.cpu_s
    return suspicious and os.getloadavg()[0] > _OVERLOAD * _cores()


def _cores() -> int:
    """The cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in tuple(_pools):
        pool.close()


def _forget_all() -> None:
    """A forked process owns no workers: its copy of a pool starts afresh."""
    for pool in tuple(_pools):
        idle = pool._idle
        pool._reset()
        for slot in idle:
            # Lets go of descriptors; transports know that they are copies.
            slot.worker.close()


os.register_at_fork(after_in_child=_forget_all)
