"""Leases, recycling, blame and life cycle of the pool, mostly on scripted workers."""

from __future__ import annotations

import itertools
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from sandbox.base import Capabilities, QueueFull, SandboxError, WorkerDied
from sandbox.batches import Plan
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.cancel import Cancellation
from sandbox.pipes import PipeTransport
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status
from sandbox.worker import Execution, Session, WorkerFault

LIMITS = Limits(cpu_s=1.0)
OK = Execution(status=None, exit_code=0, stdout=b"42\n")
SLEEPER = Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=0.1)
Script = Callable[[bytes], Execution]


class ScriptedWorker:
    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.usable = True
        self.closed = False
        self.programs: list[bytes] = []
        self.limits: list[Limits] = []
        self.aborted = threading.Event()
        self._script = script

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        self.programs.append(source)
        self.limits.append(limits)
        return self._script(source)

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        for stdin in stdins:
            yield self.run(source, stdin, limits)
            if not self.usable:
                return

    def open(self, source: bytes, limits: Limits) -> Session:
        raise WorkerFault("no sessions here")

    def abort(self) -> None:
        self.aborted.set()

    def close(self) -> None:
        self.closed = True


class ScriptedBackend:
    name = "scripted"
    capabilities = Capabilities(backend="scripted", isolated=False)
    fingerprint = "0"

    def __init__(self, script: Script = lambda source: OK) -> None:
        self.workers: list[ScriptedWorker] = []
        self._script = script

    def start_worker(self) -> ScriptedWorker:
        worker = ScriptedWorker(f"w{len(self.workers)}", self._script)
        self.workers.append(worker)
        return worker


def breaks_on(*bad: bytes) -> Script:
    def script(source: bytes) -> Execution:
        if source in bad:
            raise WorkerFault("broken")
        return OK

    return script


def test_workers_start_when_they_are_needed_and_are_used_again() -> None:
    backend = ScriptedBackend()
    with WorkerPool(backend, size=3) as pool:
        assert backend.workers == []
        for _ in range(5):
            assert pool.run(b"p", b"", LIMITS) == OK
        assert len(backend.workers) == 1
    assert backend.workers[0].closed


def test_a_worker_is_replaced_after_its_share_of_programs() -> None:
    backend = ScriptedBackend()
    with WorkerPool(backend, size=1, recycle_after=2) as pool:
        for _ in range(5):
            pool.run_many(b"p", [b"", b""], LIMITS)
        assert [len(worker.programs) for worker in backend.workers] == [4, 4, 2]
        assert [worker.closed for worker in backend.workers] == [True, True, False]


def test_a_dirty_worker_is_replaced_within_a_program() -> None:
    backend = ScriptedBackend()

    def soil(source: bytes) -> Execution:
        backend.workers[-1].usable = False
        return OK

    backend._script = soil
    with WorkerPool(backend, size=1) as pool:
        assert len(pool.run_many(b"p", [b""] * 3, LIMITS)) == 3
    assert [worker.programs for worker in backend.workers] == [[b"p"]] * 3
    assert all(worker.closed for worker in backend.workers)


def test_a_program_stops_where_it_is_told_to() -> None:
    with WorkerPool(ScriptedBackend(), size=1) as pool:
        seen: list[Execution] = []

        def stop(execution: Execution) -> bool:
            seen.append(execution)
            return len(seen) == 2

        assert pool.run_many(b"p", [b""] * 5, LIMITS, stop=stop) == [OK, OK] == seen


def breaks_at(number: int, times: int) -> Script:
    """The run of that number (from 0) breaks its worker, and so do its first repetitions."""
    runs = itertools.count()

    def script(source: bytes) -> Execution:
        if source != b"p":
            return OK
        run = next(runs)
        if number <= run < number + times:
            raise WorkerFault("broken")
        return replace(OK, stdout=b"%d" % (run if run < number else run - times))

    return script


@pytest.mark.parametrize("times", [1, 2])
def test_a_fault_within_a_batch_costs_that_run_alone_a_retry(times: int) -> None:
    backend = ScriptedBackend(breaks_at(3, times))
    with WorkerPool(backend, size=1) as pool:
        results = pool.run_many(b"p", [b""] * 6, LIMITS)
    assert [run.retried for run in results] == [False, False, False, True, False, False]
    others = [run.stdout for run in results[:3] + results[4:]]
    assert others == [b"0", b"1", b"2", *((b"4", b"5") if times == 1 else (b"3", b"4"))]
    assert results[3].status is (None if times == 1 else Status.RUNTIME_ERROR)


def test_a_suspicious_run_within_a_batch_is_repeated_and_keeps_its_place() -> None:
    runs = iter([OK, SLEEPER, replace(OK, stdout=b"third"), replace(OK, stdout=b"again")])
    with WorkerPool(
        ScriptedBackend(lambda source: next(runs)), size=1, overloaded=lambda: True
    ) as pool:
        results = pool.run_many(b"p", [b""] * 3, LIMITS)
    assert [run.stdout for run in results] == [b"42\n", b"again", b"third"]
    assert [run.retried for run in results] == [False, True, False]


def lengths(plan: Plan, stdins: list[bytes], wall_s: float) -> list[int]:
    found: list[int] = []
    while sum(found) < len(stdins):
        batch = plan.next_batch(stdins, sum(found))
        found.append(len(batch))
        for _ in batch:
            plan.learn(replace(OK, wall_s=wall_s))
    return found


def test_where_all_runs_are_needed_they_are_sent_by_sixty_four() -> None:
    assert lengths(Plan(eager=True), [b""] * 150, 1.0) == [64, 64, 22]


def test_where_a_run_may_be_the_last_batches_begin_small() -> None:
    assert lengths(Plan(eager=False), [b""] * 30, 0.001) == [1, 2, 4, 8, 15]
    assert lengths(Plan(eager=False), [b""] * 8, 0.1) == [1, 2, 2, 2, 1]
    assert lengths(Plan(eager=False), [b""] * 3, 2.0) == [1, 1, 1]


def test_a_batch_carries_no_more_than_a_mebibyte_unless_one_input_is_larger() -> None:
    sizes = [600_000, 300_000, 300_000, 3_000_000, 10]
    assert lengths(Plan(eager=True), [bytes(size) for size in sizes], 0.0) == [2, 1, 1, 1]


def test_a_fault_is_retried_in_a_fresh_worker_and_marked() -> None:
    faults = iter([True, False])

    def once(source: bytes) -> Execution:
        if next(faults):
            raise WorkerFault("lost")
        return OK

    backend = ScriptedBackend(once)
    with WorkerPool(backend, size=1) as pool:
        result = pool.run(b"p", b"", LIMITS)
    assert (result.status, result.stdout, result.retried) == (None, b"42\n", True)
    assert len(backend.workers) == 2


def test_a_program_that_breaks_two_workers_while_another_runs_is_to_blame() -> None:
    with WorkerPool(ScriptedBackend(breaks_on(b"evil")), size=1) as pool:
        result = pool.run(b"evil", b"", LIMITS)
        assert (result.status, result.retried) == (Status.RUNTIME_ERROR, True)
        assert b"broke its sandbox twice" in result.stderr
        assert pool.run(b"good", b"", LIMITS) == OK


@pytest.mark.parametrize("canary", ["breaks", "lies"])
def test_where_nothing_runs_no_program_is_to_blame(canary: str) -> None:
    def script(source: bytes) -> Execution:
        if canary == "lies" and source != b"p":
            return Execution(status=Status.RUNTIME_ERROR)
        raise WorkerFault("broken")

    backend = ScriptedBackend(script)
    with WorkerPool(backend, size=1) as pool, pytest.raises(WorkerDied):
        pool.run(b"p", b"", LIMITS)
    assert all(worker.closed for worker in backend.workers)


def lost(times: int, *, then: WorkerFault | None = None) -> Script:
    """The first `times` runs of a program are lost from outside; `then` comes of the next."""
    faults = iter([WorkerFault("killed", external=True)] * times + ([then] if then else []))

    def script(source: bytes) -> Execution:
        fault = next(faults, None) if source == b"p" else None
        if fault is not None:
            raise fault
        return OK

    return script


def test_a_program_whose_workers_are_killed_from_outside_twice_still_gets_its_verdict() -> None:
    backend = ScriptedBackend(lost(2))
    with WorkerPool(backend, size=1) as pool:
        result = pool.run(b"p", b"", LIMITS)
    assert (result.status, result.stdout, result.retried) == (None, b"42\n", True)
    assert len(backend.workers) == 3


@pytest.mark.parametrize(
    "script", [lost(3), lost(2, then=WorkerFault("it broke"))], ids=["three kills", "two of three"]
)
def test_losses_from_outside_are_never_held_against_a_program(script: Script) -> None:
    with WorkerPool(ScriptedBackend(script), size=1) as pool:
        with pytest.raises(WorkerDied, match="3 workers were lost"):
            pool.run(b"p", b"", LIMITS)
        assert pool.run(b"good", b"", LIMITS) == OK


def test_idle_workers_that_have_died_are_not_given_to_a_retry() -> None:
    backend = ScriptedBackend()
    with WorkerPool(backend, size=3) as pool:
        with pool._lease() as one, pool._lease() as two:
            one.run(b"x", b"", LIMITS)
            two.run(b"x", b"", LIMITS)
        backend._script = lost(1)
        for worker in backend.workers:
            worker.usable = False
        assert pool.run(b"good", b"", LIMITS) == OK
    assert len(backend.workers) == 3


def test_a_fault_in_a_session_is_raised_and_the_worker_discarded() -> None:
    backend = ScriptedBackend()
    with WorkerPool(backend, size=1) as pool:
        with pytest.raises(WorkerDied, match="no sessions here"), pool.session(b"p", LIMITS):
            pass
        assert backend.workers[0].closed
        assert pool.run(b"p", b"", LIMITS) == OK


def test_no_more_programs_run_at_once_than_there_are_workers() -> None:
    lock = threading.Lock()
    running, most = 0, 0

    def script(source: bytes) -> Execution:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return OK

    backend = ScriptedBackend(script)
    with WorkerPool(backend, size=2) as pool:
        threads = [threading.Thread(target=pool.run, args=(b"p", b"", LIMITS)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 2
    assert len(backend.workers) <= 2


@pytest.mark.parametrize(
    ("first", "overloaded", "runs"),
    [
        (SLEEPER, True, 2),
        (SLEEPER, False, 1),
        (Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=0.9), True, 2),
        (Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=1.1), False, 1),
        # The kernel kills for memory where the whole machine runs out of it, too.
        (Execution(status=Status.MEMORY_LIMIT_EXCEEDED, cpu_s=0.9, signal=9), False, 2),
        (Execution(status=Status.MEMORY_LIMIT_EXCEEDED, cpu_s=0.1, exit_code=1), True, 1),
        # Killed, and no limit says why.
        (Execution(status=Status.RUNTIME_ERROR, signal=9), False, 2),
        (Execution(status=Status.RUNTIME_ERROR, signal=11), True, 1),
        (Execution(status=Status.RUNTIME_ERROR, exit_code=1), True, 1),
    ],
)
def test_a_possible_victim_of_its_neighbours_is_repeated_alone(
    first: Execution, overloaded: bool, runs: int
) -> None:
    results = iter([first, OK])
    backend = ScriptedBackend(lambda source: next(results))
    with WorkerPool(backend, size=2, overloaded=lambda: overloaded) as pool:
        result = pool.run(b"p", b"", LIMITS)
    assert sum(len(worker.programs) for worker in backend.workers) == runs
    assert (result.status, result.retried) == ((None, True) if runs == 2 else (first.status, False))


SPENT = Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=1.01)


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ([SPENT, SPENT], Status.TIME_LIMIT_EXCEEDED),  # far beyond: no one is held up for it
        ([SPENT, OK, OK], None),  # slowed down by its neighbours
        ([SPENT, OK, SPENT], Status.TIME_LIMIT_EXCEEDED),  # too slow, with or without them
    ],
)
def test_cpu_time_used_up_on_a_busy_machine_is_judged_when_it_is_quiet(
    runs: list[Execution], status: Status | None
) -> None:
    results = iter(runs)
    backend = ScriptedBackend(lambda source: next(results))
    with WorkerPool(backend, size=1, overloaded=lambda: True) as pool:
        result = pool.run(b"p", b"", LIMITS)
    assert (result.status, result.retried) == (status, True)
    assert next(results, None) is None
    assert [limits.cpu_s for limits in backend.workers[0].limits] == [1.0, 1.6, 1.0][: len(runs)]


def test_a_repeated_run_has_the_pool_to_itself() -> None:
    busy, counts, calls = 0, [], 0
    lock = threading.Lock()

    def script(source: bytes) -> Execution:
        nonlocal busy, calls
        with lock:
            busy += 1
            calls += source == b"victim"
            second = source == b"victim" and calls == 2
        time.sleep(0.02)
        with lock:
            if second:
                counts.append(busy)
            busy -= 1
        return SLEEPER if source == b"victim" and not second else OK

    with WorkerPool(ScriptedBackend(script), size=3, overloaded=lambda: True) as pool:
        others = [
            threading.Thread(target=pool.run_many, args=(b"p", [b""] * 10, LIMITS))
            for _ in range(4)
        ]
        for thread in others:
            thread.start()
        assert pool.run(b"victim", b"", LIMITS).status is None
        for thread in others:
            thread.join()
    assert counts == [1]


def test_a_closed_pool_says_so() -> None:
    backend = ScriptedBackend()
    pool = WorkerPool(backend, size=1)
    pool.run(b"p", b"", LIMITS)
    pool.close()
    pool.close()
    with pytest.raises(SandboxError, match="has been closed"):
        pool.run(b"p", b"", LIMITS)


class Crowd:
    """Threads that each run a program, and what came of it."""

    def __init__(self, pool: WorkerPool, *programs: bytes) -> None:
        self.results: dict[bytes, Execution | Exception] = {}
        self._threads = [
            threading.Thread(target=self._run, args=(pool, program)) for program in programs
        ]
        for thread in self._threads:
            thread.start()
            time.sleep(0.05)  # so that they come in this order

    def _run(self, pool: WorkerPool, program: bytes) -> None:
        try:
            self.results[program] = pool.run(program, b"", LIMITS)
        except Exception as error:
            self.results[program] = error

    def wait(self) -> dict[bytes, Execution | Exception]:
        for thread in self._threads:
            thread.join(20)
        return self.results


def until_aborted(backend: ScriptedBackend) -> Script:
    def script(source: bytes) -> Execution:
        assert backend.workers[0].aborted.wait(20)
        return OK

    return script


def test_closing_ends_what_runs_and_sends_away_who_waits() -> None:
    backend = ScriptedBackend()
    backend._script = until_aborted(backend)
    pool = WorkerPool(backend, size=1)
    crowd = Crowd(pool, b"runs", b"waits")
    pool.close()
    # The workers are gone when `close` returns, whoever used them.
    assert [worker.closed for worker in backend.workers] == [True]
    results = crowd.wait()
    assert isinstance(results[b"runs"], SandboxError)  # its result does not count
    assert isinstance(results[b"waits"], SandboxError)


def test_a_pool_can_be_closed_by_a_thread_that_holds_a_worker() -> None:
    backend = ScriptedBackend()
    pool = WorkerPool(backend, size=1)

    def close(execution: Execution) -> bool:
        pool.close()
        return False

    with pytest.raises(SandboxError, match="closed"):
        pool.run_many(b"p", [b"", b""], LIMITS, stop=close)
    assert all(worker.closed for worker in backend.workers)


def gated() -> tuple[ScriptedBackend, threading.Event, list[bytes]]:
    """A backend whose runs wait for an event, and the order in which they began."""
    gate, order = threading.Event(), []

    def script(source: bytes) -> Execution:
        order.append(source)
        assert gate.wait(20)
        return OK

    return ScriptedBackend(script), gate, order


def test_first_come_first_served() -> None:
    backend, gate, order = gated()
    programs = [str(number).encode() for number in range(5)]
    with WorkerPool(backend, size=1) as pool:
        crowd = Crowd(pool, *programs)
        gate.set()
        crowd.wait()
    assert order == programs


def test_a_line_that_is_too_long_is_told() -> None:
    backend, gate, _ = gated()
    with WorkerPool(backend, size=1, max_waiting=1) as pool:
        crowd = Crowd(pool, b"runs", b"waits")
        with pytest.raises(QueueFull, match="max_waiting"):
            pool.run(b"one too many", b"", LIMITS)
        gate.set()
        assert crowd.wait() == {b"runs": OK, b"waits": OK}


def test_one_who_has_waited_too_long_is_told_and_leaves_the_line() -> None:
    backend, gate, order = gated()
    with WorkerPool(backend, size=1, wait_s=0.05) as pool:
        crowd = Crowd(pool, b"runs")
        with pytest.raises(QueueFull, match=r"within 0\.05 s"):
            pool.run(b"impatient", b"", LIMITS)
        gate.set()
        crowd.wait()
        assert pool.run(b"later", b"", LIMITS) == OK
    assert order == [b"runs", b"later"]


def test_cancelled_work_gives_up_its_worker_and_its_place_in_the_line() -> None:
    backend, gate, order = gated()
    with WorkerPool(backend, size=1) as pool:
        crowd = Crowd(pool, b"runs")
        cancellation = Cancellation()
        errors: list[SandboxError] = []

        def wait_in_line() -> None:
            with cancellation.scope():
                try:
                    pool.run(b"cancelled", b"", LIMITS)
                except SandboxError as error:
                    errors.append(error)

        thread = threading.Thread(target=wait_in_line)
        thread.start()
        time.sleep(0.05)
        cancellation.cancel()
        thread.join(20)
        assert len(errors) == 1
        gate.set()
        crowd.wait()
    assert order == [b"runs"]


def test_cancelling_ends_a_run() -> None:
    backend = ScriptedBackend()
    backend._script = until_aborted(backend)
    cancellation = Cancellation()
    with WorkerPool(backend, size=1) as pool:
        timer = threading.Timer(0.1, cancellation.cancel)
        timer.start()
        with cancellation.scope(), pytest.raises(SandboxError, match="cancelled"):
            pool.run(b"p", b"", LIMITS)
        timer.join()
        backend._script = lambda source: OK
        assert pool.run(b"next", b"", LIMITS) == OK
    assert backend.workers[0].closed


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"recycle_after": 0}, {"max_waiting": -1}, {"wait_s": -1}]
)
def test_sizes_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        WorkerPool(ScriptedBackend(), **options)


def test_a_forked_process_starts_afresh_and_leaves_its_parents_workers_alone() -> None:
    with WorkerPool(BubblewrapBackend(), size=1) as pool:
        assert pool.run(b"print(1)", b"", LIMITS).stdout == b"1\n"
        pid = os.fork()
        if pid == 0:
            try:
                good = pool.run(b"print(2)", b"", LIMITS).stdout == b"2\n"
                pool.close()
            finally:
                os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert pool.run(b"print(3)", b"", LIMITS).stdout == b"3\n"
        assert not pool.run(b"print(3)", b"", LIMITS).retried


@pytest.mark.skipif(os.geteuid() != 0, reason="without root no worker outlives a run")
def test_a_worker_killed_between_runs_is_replaced() -> None:
    class Spying(BubblewrapBackend):
        transports: tuple[PipeTransport, ...] = ()

        def start_worker(self):  # type: ignore[no-untyped-def]
            worker = super().start_worker()
            self.transports += (worker._transport,)
            return worker

    backend = Spying()
    with WorkerPool(backend, size=1) as pool:
        pool.run(b"print(1)", b"", LIMITS)
        first = backend.transports[0]
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        gone = select.poll()
        gone.register(first._in, select.POLLIN)
        assert gone.poll(30_000)  # what is inside dies a moment after bubblewrap itself
        result = pool.run(b"print(2)", b"", LIMITS)
        # It was found dead before anything was asked of it.
        assert (result.status, result.stdout, result.retried) == (None, b"2\n", False)
    assert len(backend.transports) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="without root no worker outlives a run")
def test_a_worker_outlives_the_thread_that_started_it() -> None:
    with WorkerPool(BubblewrapBackend(), size=1) as pool:
        thread = threading.Thread(target=pool.run, args=(b"print(1)", b"", LIMITS))
        thread.start()
        thread.join()
        time.sleep(0.1)
        result = pool.run(b"print(2)", b"", LIMITS)
    assert (result.stdout, result.retried) == (b"2\n", False)
