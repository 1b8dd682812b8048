"""Leases, recycling, blame and life cycle of the pool, mostly on scripted workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from sandbox.base import Capabilities, SandboxError, WorkerDied
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status
from sandbox.worker import Execution, Session, WorkerFault

LIMITS = Limits(cpu_s=1.0)
OK = Execution(status=None, exit_code=0, stdout=b"42\n")
Script = Callable[[bytes], Execution]


class ScriptedWorker:
    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.usable = True
        self.closed = False
        self.programs: list[bytes] = []
        self._script = script

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        self.programs.append(source)
        return self._script(source)

    def open(self, source: bytes, limits: Limits) -> Session:
        raise WorkerFault("no sessions here")

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


SLEEPER = Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=0.1)


@pytest.mark.parametrize(
    ("first", "load", "runs"),
    [
        (SLEEPER, 1e6, 2),
        (SLEEPER, 0.0, 1),
        (Execution(status=Status.TIME_LIMIT_EXCEEDED, cpu_s=0.9), 1e6, 1),
        (Execution(status=Status.MEMORY_LIMIT_EXCEEDED, cpu_s=0.1, signal=9), 1e6, 2),
        (Execution(status=Status.MEMORY_LIMIT_EXCEEDED, cpu_s=0.1, exit_code=1), 1e6, 1),
    ],
)
def test_a_possible_victim_of_its_neighbours_is_repeated_alone(
    monkeypatch: pytest.MonkeyPatch, first: Execution, load: float, runs: int
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    results = iter([first, OK])
    backend = ScriptedBackend(lambda source: next(results))
    with WorkerPool(backend, size=2) as pool:
        result = pool.run(b"p", b"", LIMITS)
    assert sum(len(worker.programs) for worker in backend.workers) == runs
    assert (result.status, result.retried) == ((None, True) if runs == 2 else (first.status, False))


def test_a_repeated_run_has_the_pool_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 1e6, 1e6))
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

    with WorkerPool(ScriptedBackend(script), size=3) as pool:
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


def test_closing_wakes_those_who_wait() -> None:
    release = threading.Event()

    def script(source: bytes) -> Execution:
        release.wait(10)
        return OK

    pool = WorkerPool(ScriptedBackend(script), size=1)
    errors: list[Exception] = []

    def wait_in_line() -> None:
        try:
            pool.run(b"second", b"", LIMITS)
        except SandboxError as error:
            errors.append(error)

    first = threading.Thread(target=pool.run, args=(b"first", b"", LIMITS))
    first.start()
    second = threading.Thread(target=wait_in_line)
    second.start()
    time.sleep(0.05)
    pool.close()
    second.join(10)
    release.set()
    first.join(10)
    assert len(errors) == 1


@pytest.mark.parametrize("options", [{"size": 0}, {"recycle_after": 0}])
def test_sizes_below_one_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
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
        pids: tuple[int, ...] = ()

        def start_worker(self):  # type: ignore[no-untyped-def]
            worker = super().start_worker()
            self.pids += (worker._transport.pid,)
            return worker

    backend = Spying()
    with WorkerPool(backend, size=1) as pool:
        pool.run(b"print(1)", b"", LIMITS)
        os.kill(backend.pids[0], signal.SIGKILL)
        result = pool.run(b"print(2)", b"", LIMITS)
        assert (result.status, result.stdout, result.retried) == (None, b"2\n", True)
    assert len(backend.pids) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="without root no worker outlives a run")
def test_a_worker_outlives_the_thread_that_started_it() -> None:
    with WorkerPool(BubblewrapBackend(), size=1) as pool:
        thread = threading.Thread(target=pool.run, args=(b"print(1)", b"", LIMITS))
        thread.start()
        thread.join()
        time.sleep(0.1)
        result = pool.run(b"print(2)", b"", LIMITS)
    assert (result.stdout, result.retried) == (b"2\n", False)
