"""A worker neither grows nor slows down while it serves."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sandbox.docker_client import connect
from sandbox.pool import WorkerPool
from sandbox.types import Limits
from sandbox.worker import Backend, Worker

from .conftest import make_backend
from .leftovers import descendants

LIMITS = Limits(cpu_s=5.0)
TESTS_PER_PROGRAM = 10
SOURCE = "print(sum(map(int, input().split())) + {number})"
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def resident_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KB


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def first_process(worker: Worker) -> int:
    """The process on this machine that holds all others of a worker."""
    pid = getattr(worker._transport, "pid", None)  # type: ignore[attr-defined]
    if pid is not None:
        return int(pid)
    client = connect()
    try:
        return int(client.api.inspect_container(worker.name)["State"]["Pid"])
    finally:
        client.close()


class Watched:
    """A backend that keeps the workers it has made in view."""

    def __init__(self, backend: Backend) -> None:
        self.workers: list[Worker] = []
        self._backend = backend
        self.name = backend.name
        self.capabilities = backend.capabilities
        self.fingerprint = backend.fingerprint

    def start_worker(self) -> Worker:
        self.workers.append(self._backend.start_worker())
        return self.workers[-1]

    def residents(self) -> list[int]:
        """Processes that stay for as long as the worker does: all but a program's own."""
        first = first_process(self.workers[0])
        return sorted([first, *descendants(first)])[:3]

    def size(self) -> tuple[int, int]:
        """Resident memory in KiB and open files of those processes together, at rest."""
        pids = self.residents()
        files = []
        for _ in range(20):  # the pipes of the last test may just be being closed
            files.append(sum(map(open_files, pids)))
            time.sleep(0.05)
        return sum(map(resident_kb, pids)), min(files)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees into the guests' processes")
@pytest.mark.parametrize("name", ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_two_thousand_tests_in_one_worker_leave_it_as_it_was(
    request: pytest.FixtureRequest, name: str
) -> None:
    if name == "docker":
        request.getfixturevalue("docker_engine")
    backend = Watched(make_backend(name))
    stdins = [b"%d 2\n" % number for number in range(TESTS_PER_PROGRAM)]
    with WorkerPool(backend, size=1, recycle_after=10**9) as pool:

        def serve(numbers: range) -> None:
            for number in numbers:
                source = SOURCE.format(number=number).encode()
                answers = [run.stdout for run in pool.run_many(source, stdins, LIMITS)]
                assert answers == [b"%d\n" % (i + 2 + number) for i in range(TESTS_PER_PROGRAM)]

        serve(range(20))
        before_kb, before_files = backend.size()
        host_kb = resident_kb(os.getpid())
        serve(range(20, 200))
        after_kb, after_files = backend.size()
        assert len(backend.workers) == 1
        assert after_files == before_files
        assert after_kb - before_kb < 512
        assert resident_kb(os.getpid()) - host_kb < 2048
