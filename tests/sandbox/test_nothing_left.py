"""Nothing is left behind: no container, process, control group, file, descriptor or memory.

However its owner ends, and however long a pool is used.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox import cgroup
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.container import DockerBackend
from sandbox.pool import WorkerPool
from sandbox.types import Limits
from sandbox.worker import Backend

from .leftovers import containers_of, descendants, groups_of

BACKENDS = ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]
LIMITS = Limits(wall_s=60.0)

OWNER = """
import os, signal, sys, threading, time
from sandbox.owner import this_owner
from sandbox import open_sandbox, Limits, Program, StdioCase

def main():
    sandbox = open_sandbox(sys.argv[1], workers=2)
    long = Program("print(1, flush=True)\\nimport time\\ntime.sleep(50)")
    case = [StdioCase(name="a", stdin="", expected="")]
    def grade():
        try:
            sandbox.grade(long, case, Limits(wall_s=60.0))
        except Exception:
            pass
    sandbox.grade(Program(""), case)
    thread = threading.Thread(target=grade, daemon=True)
    thread.start()
    time.sleep(1)
    untouched = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    untouched &= signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(this_owner(), untouched, flush=True)
    {way}
    time.sleep(50)

main()
"""
WAYS = {
    "returns": ("return", 0),
    "raises": ("raise KeyError('in user code')", 1),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Callable[[str], Backend]:
    def make(name: str) -> Backend:
        if name == "docker":
            request.getfixturevalue("docker_engine")
            return DockerBackend()
        return BubblewrapBackend()

    return make


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BACKENDS)
def test_an_owner_that_ends_in_the_middle_of_a_run_leaves_nothing(
    backend: Callable[[str], Backend], name: str, way: str, tmp_path: Path, repo_dir: Path
) -> None:
    backend(name)
    statement, status = WAYS[way]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.replace("{way}", statement), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(repo_dir)},
    ) as owner:
        assert owner.stdout is not None
        said, untouched = owner.stdout.readline().split()
        below = [pid for pid in descendants(owner.pid) if Path(f"/proc/{pid}").exists()]
        assert owner.wait(60) == status
    assert untouched == "True"  # signals belong to the trainer
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert wait_for(lambda: not groups_of(said))
    if name == "docker":
        assert wait_for(lambda: not containers_of(said))
    assert list(tmp_path.iterdir()) == []


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * (
        os.sysconf("SC_PAGE_SIZE") // 1024
    )


@pytest.mark.parametrize("name", BACKENDS)
def test_a_pool_that_is_closed_leaves_no_descriptor_thread_or_process(
    backend: Callable[[str], Backend], name: str
) -> None:
    maker = backend(name)

    def use() -> None:
        with WorkerPool(maker, size=2) as pool, pool.session(b"input()", LIMITS):
            pool.run(b"print(1)", b"", LIMITS)

    use()  # what is made once and kept: the image, the thread that starts processes
    before = descriptors(), threading.active_count(), descendants(os.getpid())
    for _ in range(3):
        use()
    gc.collect()
    assert (descriptors(), threading.active_count(), descendants(os.getpid())) == before


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.slow
def test_three_hundred_programs_cost_no_descriptor_no_thread_and_no_memory(
    backend: Callable[[str], Backend], name: str
) -> None:
    with WorkerPool(backend(name), size=1, recycle_after=50) as pool:
        for number in range(60):
            pool.run(b"print(%d)" % number, b"", LIMITS)
        before = descriptors(), threading.active_count(), len(descendants(os.getpid()))
        resident = resident_kb()
        for number in range(300):
            assert pool.run(b"print(%d)" % number, b"", LIMITS).stdout == b"%d\n" % number
        assert (descriptors(), threading.active_count(), len(descendants(os.getpid()))) == before
        assert resident_kb() - resident < 4096


@pytest.mark.parametrize("name", BACKENDS)
def test_an_exception_in_the_users_code_leaves_nothing(
    backend: Callable[[str], Backend], name: str
) -> None:
    maker = backend(name)
    with WorkerPool(maker, size=1) as pool:
        pool.run(b"", b"", LIMITS)
    before = descriptors(), descendants(os.getpid())

    def stop(execution: object) -> bool:
        raise KeyError("in user code")

    with WorkerPool(maker, size=2) as pool:
        with pytest.raises(KeyError):
            pool.run_many(b"", [b""] * 3, LIMITS, stop=stop)
        with pytest.raises(KeyError), pool.session(b"input()", LIMITS):
            raise KeyError("in user code")
        assert pool.run(b"print(2)", b"", LIMITS).stdout == b"2\n"
    gc.collect()
    assert (descriptors(), descendants(os.getpid())) == before


def test_all_threads_of_a_process_have_one_janitor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self, starts: object) -> None:
            time.sleep(0.05)

    monkeypatch.setattr(cgroup, "Janitor", Slow)
    monkeypatch.setattr(cgroup, "_janitors", {})
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(cgroup._janitor, [os.getpid()] * 4))) == 1
