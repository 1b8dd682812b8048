"""Awaiting grades: many at once, cancelled, closed; on real but unisolated workers."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator

import pytest

from sandbox.base import QueueFull, SandboxError
from sandbox.grader import Grader
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.threads import BoundedThreads
from sandbox.types import Limits, Program, Status, StdioCase

SLEEPER = Program("import time\ntime.sleep(30)")
ANY = [StdioCase(name="a", stdin="", expected="")]
PATIENT = Limits(wall_s=60.0)


@pytest.fixture
def grader() -> Iterator[Grader]:
    with Grader(WorkerPool(LocalBackend(), size=1)) as grader:
        yield grader


def grader_threads() -> int:
    return sum(thread.name.startswith("sandbox-grader") for thread in threading.enumerate())


async def test_hundreds_can_be_awaited_at_once_in_a_few_threads() -> None:
    threads = BoundedThreads(4)
    most = 0

    def work(number: int) -> int:
        nonlocal most
        most = max(most, grader_threads())
        time.sleep(0.001)
        return number

    jobs = [threads.run(lambda number=number: work(number)) for number in range(500)]
    assert await asyncio.gather(*jobs) == list(range(500))
    assert most <= 4
    threads.join()
    assert grader_threads() == 0


async def test_one_that_is_cancelled_while_it_waits_never_begins() -> None:
    threads = BoundedThreads(1)
    gate = threading.Event()
    begun: list[str] = []

    def work(name: str) -> None:
        begun.append(name)
        assert gate.wait(20)

    tasks = [asyncio.create_task(threads.run(lambda n=name: work(n))) for name in "abc"]
    await asyncio.sleep(0.05)
    tasks[1].cancel()
    await asyncio.sleep(0)
    gate.set()
    await asyncio.wait(tasks)
    assert tasks[1].cancelled()
    assert begun == ["a", "c"]
    threads.join()


async def test_a_turn_that_comes_at_the_moment_of_the_cancellation_is_passed_on() -> None:
    threads = BoundedThreads(1)
    gate = threading.Event()
    first = asyncio.create_task(threads.run(lambda: gate.wait(20)))
    second = asyncio.create_task(threads.run(lambda: None))
    third = asyncio.create_task(threads.run(lambda: "ran"))
    await asyncio.sleep(0.05)
    gate.set()
    time.sleep(0.2)  # the thread hands its turn to the second, which this loop has not seen yet
    second.cancel()
    assert await asyncio.wait_for(third, 20) == "ran"
    assert await first
    threads.join()


async def test_limits_of_the_line_hold_for_coroutines_too() -> None:
    threads = BoundedThreads(1, max_waiting=1, wait_s=0.1)
    gate = threading.Event()
    runs = asyncio.create_task(threads.run(lambda: gate.wait(20)))
    await asyncio.sleep(0.02)
    waits = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0.02)
    with pytest.raises(QueueFull, match="max_waiting"):
        await threads.run(lambda: None)
    with pytest.raises(QueueFull, match="wait_s"):
        await waits
    gate.set()
    assert await runs
    threads.join()


def test_several_event_loops_share_the_threads() -> None:
    threads = BoundedThreads(1)
    assert [asyncio.run(threads.run(lambda: 42)) for _ in range(3)] == [42] * 3
    threads.join()


def test_a_forked_process_has_threads_of_its_own() -> None:
    threads = BoundedThreads(1)
    asyncio.run(threads.run(lambda: None))
    pid = os.fork()
    if pid == 0:
        good = False
        try:
            good = asyncio.run(threads.run(lambda: 42)) == 42
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    threads.join()


async def test_a_cancelled_grade_gives_its_worker_up_at_once(grader: Grader) -> None:
    running = asyncio.create_task(grader.agrade(SLEEPER, ANY, PATIENT))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # The only worker is free although the sleeper had half a minute to go.
    report = await asyncio.wait_for(grader.agrade(Program(""), ANY, PATIENT), 20)
    assert report.status is Status.ACCEPTED


async def test_a_grade_that_shared_a_run_with_a_cancelled_one_runs_it_itself() -> None:
    from sandbox.grader import RunCache

    slow = Program("import time\ntime.sleep(1)\nprint(1)")
    case = [StdioCase(name="a", stdin="", expected="1\n")]
    with Grader(WorkerPool(LocalBackend(), size=2), cache=RunCache()) as grader:
        first = asyncio.create_task(grader.agrade(slow, case, PATIENT))
        await asyncio.sleep(0.3)
        second = asyncio.create_task(grader.agrade(slow, case, PATIENT))
        await asyncio.sleep(0.3)
        first.cancel()
        assert (await second).status is Status.ACCEPTED
        assert first.cancelled()


async def test_closing_ends_grades_that_run_and_grades_that_wait() -> None:
    grader = Grader(WorkerPool(LocalBackend(), size=1))
    grades = [asyncio.create_task(grader.agrade(SLEEPER, ANY, PATIENT)) for _ in range(50)]
    await asyncio.sleep(0.5)
    grader.close()
    results = await asyncio.wait_for(asyncio.gather(*grades, return_exceptions=True), 20)
    assert all(isinstance(result, SandboxError) for result in results)
    assert grader_threads() == 0
    with pytest.raises(RuntimeError, match="closed"):
        await grader.agrade(SLEEPER, ANY, PATIENT)


def test_a_run_that_is_interrupted_leaves_no_thread_behind() -> None:
    async def main() -> None:
        with Grader(WorkerPool(LocalBackend(), size=2)) as grader:
            grades = [grader.agrade(SLEEPER, ANY, PATIENT) for _ in range(20)]
            await asyncio.wait_for(asyncio.gather(*grades), 0.5)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert grader_threads() == 0
