"""A pool of workers: who may use which, and when one is replaced.

A worker serves one program at a time. Workers start when they are first needed and are replaced
after `recycle_after` programs, after any dirt, and after a fault (see `blame` for whose fault it
was). Programs wait for a worker in the order in which they came (see `line`); waiting counts
against no limit of theirs.

A run that may have been a victim of its neighbours is repeated once with the pool to itself; so is
one that used up its CPU time on a busy machine, if it does end within some more of it; one that was
killed, no one knows by whom, is repeated once.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from . import blame, cancel, checks, load
from .base import Capabilities, WorkerDied
from .batches import Plan
from .leases import Lease, Slot, TrackedSession
from .line import WaitingLine
from .types import Limits, Status
from .worker import Backend, Execution, Session, WorkerFault

_log = logging.getLogger(__name__)

_CLOSE_S = 30.0
"""How long closing waits for threads to let go of their workers, which it has ended."""

_Stop = Callable[[Execution], bool]


class WorkerPool:
    """Leases workers of one backend. Safe to use from many threads, and after a fork.

    Args:
        backend: makes the workers.
        size: most workers at once; None takes the number of cores.
        recycle_after: programs that a worker serves before it is replaced.
        max_waiting: most programs that may wait for a worker, more get `QueueFull`; None lets
            everyone wait.
        wait_s: most seconds that a program waits for a worker before it gets `QueueFull`; None
            waits as long as it takes.
        overloaded: says whether programs have to wait for CPU time where the workers are.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        size: int | None = None,
        recycle_after: int = 200,
        max_waiting: int | None = None,
        wait_s: float | None = None,
        overloaded: Callable[[], bool] = load.overloaded,
    ) -> None:
        size = size if size is not None else load.cores()
        checks.whole("size", size, least=1)
        check_turns(recycle_after, max_waiting, wait_s)
        self.backend = backend
        self.size = size
        self.max_waiting = max_waiting
        self.wait_s = wait_s
        self._recycle_after = recycle_after
        self._overloaded = overloaded
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._line = WaitingLine(self.size, max_waiting=self.max_waiting, wait_s=self.wait_s)
        self._lock = threading.Lock()
        self._idle: list[Slot] = []
        self._leases: set[Lease] = set()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What the backend guarantees here."""
        return self.backend.capabilities

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program once.

        Raises:
            WorkerDied: workers broke, and it could not be settled that the program did it.
            QueueFull: no worker was free in time, where a limit is set.
            SandboxError: no worker could be started, or the pool has been closed.
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
            QueueFull: no worker was free in time, where a limit is set.
            SandboxError: no worker could be started, or the pool has been closed.
        """
        executions: list[Execution] = []
        plan = Plan(eager=stop is None)
        with self._lease() as lease:
            while len(executions) < len(stdins):
                batch = plan.next_batch(stdins, len(executions))
                for execution in self._run_batch(lease, source, batch, limits):
                    plan.learn(execution)
                    executions.append(execution)
                    if stop is not None and stop(execution):
                        return executions
        return executions

    @contextlib.contextmanager
    def session(self, source: bytes, limits: Limits, *, alone: bool = False) -> Iterator[Session]:
        """Start a program with a channel, in a worker of its own until the block ends.

        A session that the block has not finished is finished when it ends. A thread that needs two
        at once takes them from two pools: waiting for a second worker while holding one can block
        for ever.

        Args:
            source: the program.
            limits: hold for the whole session.
            alone: nothing else runs in this pool meanwhile, as far as that can be waited for: to
                repeat a session whose result `is_suspicious`.

        Raises:
            WorkerDied: the worker broke, in here or in the block.
            QueueFull: no worker was free in time, where a limit is set.
            SandboxError: no worker could be started, or the pool has been closed.
        """
        with self._lease(alone=alone) as lease:
            try:
                session = TrackedSession(lease, source, limits)
                try:
                    yield session
                finally:
                    session.finish_if_open()
            except WorkerFault as error:
                lease.discard()
                lease.check()
                raise WorkerDied(f"a worker broke during a session: {error}") from error

    def is_suspicious(self, execution: Execution, limits: Limits) -> bool:
        """Whether a result may be the machine's doing and must be confirmed by a run alone.

        `run` and `run_many` see to that themselves.
        """
        return blame.may_be_a_victim(execution, limits, overloaded=self._is_busy)

    def longer_limits(self, execution: Execution, limits: Limits) -> Limits | None:
        """Return limits to try a run with that may have been slowed down; None: it was not.

        Only one that ends within them is worth a run alone.
        """
        if blame.may_be_slowed(execution, limits, overloaded=self._is_busy):
            return blame.with_slack(limits)
        return None

    def close(self) -> None:
        """Stop every worker and return when they are gone. Safe to call twice, from any thread.

        What runs is ended, and raises `SandboxError` where it was waited for; so does what waits.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            leases = tuple(self._leases)
        self._line.close()
        for lease in leases:
            lease.abort()
        for slot in idle:
            slot.worker.close()
        if not self._line.wait_until_empty(_CLOSE_S):
            _log.warning("workers still end in the background, %g s after closing", _CLOSE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run_batch(
        self, lease: Lease, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Yield settled results for the first inputs of a batch, for at least one of them."""
        runs: list[Execution] = []
        fault: WorkerFault | None = None
        try:
            for run in lease.run_batch(source, stdins, limits):
                runs.append(run)  # one by one: those before a fault count
        except WorkerFault as error:
            fault = error
        # Only now: a run that is repeated may need the worker.
        for stdin, execution in zip(stdins, runs, strict=False):
            yield self._settled(lease, source, stdin, limits, execution)
        if fault is not None:
            stdin = stdins[len(runs)]
            execution = blame.run(lease, source, stdin, limits, first=fault)
            yield self._settled(lease, source, stdin, limits, execution)

    def _settled(
        self, lease: Lease, source: bytes, stdin: bytes, limits: Limits, execution: Execution
    ) -> Execution:
        """Return a result that counts: this one, or that of a repetition."""
        if self.is_suspicious(execution, limits):
            return self._alone(lease, source, stdin, limits)
        longer = self.longer_limits(execution, limits)
        if longer is not None:
            # Most that exceed a limit do so by far, and are not worth stopping the others for.
            again = blame.run(lease, source, stdin, longer)
            if again.status is not Status.TIME_LIMIT_EXCEEDED:
                return self._alone(lease, source, stdin, limits)
            return replace(execution, retried=True)
        if blame.is_unexplained(execution):
            _log.info("repeating a run: it was killed, no one knows by whom")
            return replace(blame.run(lease, source, stdin, limits), retried=True)
        return execution

    def _alone(self, lease: Lease, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Repeat a run with the pool to itself."""
        _log.info("repeating a run alone: its result may be its neighbours' doing")
        with self._suspended(lease), self._lease(alone=True) as quiet:
            execution = blame.run(quiet, source, stdin, limits)
        return replace(execution, retried=True)

    def _is_busy(self) -> bool:
        return self._line.inside > load.cores() or self._overloaded()

    @contextlib.contextmanager
    def _lease(self, *, alone: bool = False) -> Iterator[Lease]:
        self._line.enter(alone=alone)
        lease = Lease(self._take, self._put, self.backend.start_worker)
        try:
            with self._lock:
                self._leases.add(lease)
                if self._closed:
                    lease.abort()
            with cancel.on_cancel(lease.abort):
                yield lease
        finally:
            lease.give_back()
            with self._lock:
                self._leases.discard(lease)
            if not lease.lapsed:
                self._line.leave(alone=alone)

    @contextlib.contextmanager
    def _suspended(self, lease: Lease) -> Iterator[None]:
        """Give a worker and the right to one back for the length of the block."""
        lease.give_back()
        self._line.leave()
        lease.lapsed = True
        yield
        self._line.enter(returning=True)
        lease.lapsed = False

    def _take(self) -> Slot | None:
        """Return an idle worker that still lives, if there is one."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                slot = self._idle.pop()
            if slot.worker.usable:
                return slot
            slot.worker.close()

    def _put(self, slot: Slot) -> None:
        slot.served += 1
        if slot.served < self._recycle_after and slot.worker.usable:
            with self._lock:
                if not self._closed:
                    self._idle.append(slot)
                    return
        slot.worker.close()


def check_turns(recycle_after: object, max_waiting: object, wait_s: object) -> None:
    """Check the settings of how programs take turns (see `WorkerPool`).

    Raises:
        ValueError: one is no number that will do.
    """
    checks.whole("recycle_after", recycle_after, least=1)
    if max_waiting is not None:
        checks.whole("max_waiting", max_waiting, least=1, why="or None for everyone")
    if wait_s is not None:
        checks.positive("wait_s", wait_s, most=threading.TIMEOUT_MAX, unit="seconds, or None,")


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
