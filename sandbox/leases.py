"""The right to use one worker of a pool, and what is done with the worker meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .base import SandboxError
from .types import Limits
from .worker import Execution, Session, Worker, WorkerFault


class Slot:
    """A worker and how many programs it has served."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.served = 0


class Lease:
    """The right to use one worker, which is taken when it is first needed.

    Belongs to one thread; only `abort` may be called by others.

    Args:
        take: returns an idle worker, or None.
        put: takes a worker back.
        start: makes a worker.
    """

    def __init__(
        self,
        take: Callable[[], Slot | None],
        put: Callable[[Slot], None],
        start: Callable[[], Worker],
    ) -> None:
        self.lapsed = False
        """Whether the right was given up and has not been had back."""
        self._take = take
        self._put = put
        self._start = start
        self._slot: Slot | None = None
        self._aborted = False

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program in the worker in hand, or in another if that can no longer be used.

        Raises:
            WorkerFault: the worker broke, and has been closed.
            SandboxError: no worker could be started, or the lease has been ended.
        """
        return next(self.run_batch(source, [stdin], limits))

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        """Run a program on one input after another, until the worker can no longer be used.

        Yields:
            One execution for each input; fewer if the worker became unusable, but at least one.

        Raises:
            WorkerFault: the worker broke, and has been closed.
            SandboxError: no worker could be started, or the lease has been ended.
        """
        worker = self._worker()
        try:
            for execution in worker.run_batch(source, stdins, limits):
                self.check()
                yield execution
        except WorkerFault:
            self.discard()
            self.check()
            raise

    def open(self, source: bytes, limits: Limits) -> Session:
        """Start a program with a channel.

        Raises:
            WorkerFault: the worker broke.
            SandboxError: no worker could be started, or the lease has been ended.
        """
        return self._worker().open(source, limits)

    def refresh(self) -> None:
        """Have the next program run in a worker that has run nothing."""
        self.discard()
        self._hold(Slot(self._start()))

    def discard(self) -> None:
        """Close the worker in hand."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.worker.close()

    def give_back(self) -> None:
        """Return the worker in hand to the pool."""
        if self._aborted:
            self.discard()
        slot, self._slot = self._slot, None
        if slot is not None:
            self._put(slot)

    def abort(self) -> None:
        """End what runs, and refuse to run anything else. From any thread; does not block."""
        self._aborted = True
        slot = self._slot
        if slot is not None:
            slot.worker.abort()

    def check(self) -> None:
        """Go on if the lease has not been ended.

        Raises:
            SandboxError: it has been: nothing that came of it counts.
        """
        if self._aborted:
            raise SandboxError("the sandbox has been closed, or the grading cancelled")

    def _worker(self) -> Worker:
        if self._slot is not None and not self._slot.worker.usable:
            self.discard()
        if self._slot is None:
            self.check()
            self._hold(self._take() or Slot(self._start()))
        assert self._slot is not None
        return self._slot.worker

    def _hold(self, slot: Slot) -> None:
        self._slot = slot
        if self._aborted:  # while the worker was started
            self.discard()
            self.check()


class TrackedSession:
    """A session that knows whether it has been finished, and whether its result counts."""

    def __init__(self, lease: Lease, source: bytes, limits: Limits) -> None:
        self._lease = lease
        self._session = lease.open(source, limits)
        self._finished = False
        self.send = self._session.send
        self.receive = self._session.receive

    def finish(self) -> Execution:
        """Kill the program if it still runs and return the facts."""
        self._finished = True
        execution = self._session.finish()
        self._lease.check()
        return execution

    def finish_if_open(self) -> None:
        """Finish it unless that has been done."""
        if not self._finished:
            self.finish()
