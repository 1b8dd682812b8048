"""Workers and engines that are killed, stopped and started again while programs run.

Whatever happens, an honest program gets its own verdict or none.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox import Program, StdioCase, channel, container, docker_client, open_sandbox
from sandbox.base import SandboxError, WorkerDied
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.container import DockerBackend
from sandbox.docker_client import connect
from sandbox.engine import SYSTEM_SOCKET, engine_host
from sandbox.pool import WorkerPool
from sandbox.types import Limits
from sandbox.worker import Backend, Execution, Worker

from .engines import OwnEngine, Proxy, own_engine, shared_image

LIMITS = Limits(cpu_s=5.0, wall_s=60.0)
Kill = Callable[[Worker], None]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="without root no worker outlives a run")


def honest(number: int, sleep_s: float = 0.3) -> bytes:
    return f"import time\ntime.sleep({sleep_s})\nprint({number} * 2)".encode()


def watched(backend: Backend) -> list[Worker]:
    """Return the list that every worker of the backend is going to be added to."""
    workers: list[Worker] = []
    start = backend.start_worker

    def start_and_tell() -> Worker:
        workers.append(start())
        return workers[-1]

    backend.start_worker = start_and_tell  # type: ignore[method-assign]
    return workers


def docker_kill(worker: Worker) -> None:
    subprocess.run(["docker", "kill", worker.name], capture_output=True)


def docker_remove(worker: Worker) -> None:
    subprocess.run(["docker", "rm", "-f", worker.name], capture_output=True)


def kill_container_from_the_host(worker: Worker) -> None:
    command = ["docker", "inspect", "-f", "{{.State.Pid}}", worker.name]
    pid = subprocess.run(command, capture_output=True, text=True).stdout
    if pid.strip().isdigit() and int(pid):
        os.kill(int(pid), signal.SIGKILL)


def bubblewrap_itself(worker: Worker) -> int | None:
    return worker._transport.pid  # type: ignore[attr-defined, no-any-return]


def first_process_inside(worker: Worker) -> int | None:
    outer = bubblewrap_itself(worker)
    children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    return int(children[0]) if children else None


def zygote(worker: Worker) -> int | None:
    supervisor = first_process_inside(worker)
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(children[0]) if children else None


def killing(find: Callable[[Worker], int | None]) -> Kill:
    def kill(worker: Worker) -> None:
        with suppress(ProcessLookupError, FileNotFoundError):
            if (pid := find(worker)) is not None:
                os.kill(pid, signal.SIGKILL)

    return kill


WAYS = [
    pytest.param(DockerBackend, docker_kill, id="docker kill", marks=pytest.mark.docker),
    pytest.param(DockerBackend, docker_remove, id="docker rm", marks=pytest.mark.docker),
    pytest.param(
        DockerBackend, kill_container_from_the_host, id="docker, kill -9", marks=pytest.mark.docker
    ),
    pytest.param(BubblewrapBackend, killing(bubblewrap_itself), id="bwrap", marks=needs_root),
    pytest.param(BubblewrapBackend, killing(first_process_inside), id="in bwrap", marks=needs_root),
]


def made(backend: Callable[[], Backend], request: pytest.FixtureRequest) -> Backend:
    if backend is DockerBackend:
        request.getfixturevalue("docker_engine")
    return backend()


class Crowd:
    """Threads that grade honest programs until they are told to stop."""

    def __init__(self, pool: WorkerPool, threads: int, sleep_s: float = 0.3) -> None:
        self.outcomes: list[tuple[int, Execution | SandboxError]] = []
        self._pool = pool
        self._sleep_s = sleep_s
        self._numbers = itertools.count()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while not self._end.is_set():
            number = next(self._numbers)
            try:
                result = self._pool.run(honest(number, self._sleep_s), b"", LIMITS)
                self.outcomes.append((number, result))
            except SandboxError as error:
                self.outcomes.append((number, error))
                self._end.wait(0.2)

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(120)

    def check(self) -> tuple[int, int]:
        """Return how many programs had their verdict and how many none; no other kind may be."""
        right = 0
        for number, outcome in self.outcomes:
            if isinstance(outcome, Execution):
                assert (outcome.status, outcome.stdout) == (None, b"%d\n" % (number * 2))
                right += 1
        return right, len(self.outcomes) - right


@pytest.mark.parametrize(("backend", "kill"), WAYS)
def test_a_program_whose_workers_are_all_killed_is_never_scored(
    request: pytest.FixtureRequest, backend: Callable[[], Backend], kill: Kill
) -> None:
    maker = made(backend, request)
    workers = watched(maker)
    end = threading.Event()

    def kill_all() -> None:
        done = 0
        while not end.wait(0.3):
            for worker in workers[done:]:
                kill(worker)
                done += 1

    with WorkerPool(maker, size=1) as pool:
        killer = threading.Thread(target=kill_all)
        killer.start()
        try:
            with pytest.raises(WorkerDied, match="3 workers were lost"):
                pool.run(honest(1, sleep_s=20), b"", LIMITS)
        finally:
            end.set()
            killer.join()
        assert pool.run(honest(2), b"", LIMITS).stdout == b"4\n"


@pytest.mark.parametrize(("backend", "kill"), [WAYS[0], WAYS[3], WAYS[4]])
def test_workers_killed_in_the_middle_of_a_crowd_cost_no_verdict(
    request: pytest.FixtureRequest, backend: Callable[[], Backend], kill: Kill
) -> None:
    maker = made(backend, request)
    workers = watched(maker)
    dice = random.Random(0)
    with WorkerPool(maker, size=4) as pool:
        crowd = Crowd(pool, threads=6)
        while len(crowd.outcomes) < 24:
            time.sleep(0.4)
            if workers:
                kill(dice.choice(workers[-4:]))
        crowd.stop()
        right, _ = crowd.check()
        assert right > 8
        assert len(workers) > 4  # some were hit
        assert pool.run(honest(2), b"", LIMITS).stdout == b"4\n"


@pytest.fixture
def engine(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    folder = Path(tempfile.mkdtemp(prefix="sbx-", dir="/var/tmp"))  # overlays need a real disk
    with own_engine(folder, image_from=shared_image()) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        yield engine


@pytest.mark.slow
@pytest.mark.docker
# The SDK leaves the socket of a request open that the engine did not live to answer.
@pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_an_engine_that_goes_away_costs_no_verdict_and_the_pool_outlives_it(
    engine: OwnEngine, how: signal.Signals
) -> None:
    with WorkerPool(DockerBackend(), size=2) as pool:
        pool.run(honest(1), b"", LIMITS)
        crowd = Crowd(pool, threads=4, sleep_s=0.5)
        time.sleep(2)
        engine.signal(how)
        time.sleep(1)
        meanwhile = len(crowd.outcomes)
        with pytest.raises(SandboxError):
            pool.run(honest(1), b"", LIMITS)
        time.sleep(1)
        engine.start()
        time.sleep(3)
        crowd.stop()
        right, none = crowd.check()
        assert none > 0
        assert right > 0
        assert any(isinstance(outcome, Execution) for _, outcome in crowd.outcomes[meanwhile:])
        assert pool.run(honest(2), b"", LIMITS).stdout == b"4\n"
    assert engine.containers() == 0


@pytest.mark.slow
@pytest.mark.docker
def test_an_engine_that_hangs_ends_in_an_error_and_not_in_a_hang(
    engine: OwnEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "_MARGIN_S", 2.0)
    monkeypatch.setattr(docker_client, "ANSWER_S", 2)
    limits = Limits(cpu_s=5.0, wall_s=3.0)
    with WorkerPool(DockerBackend(), size=1) as pool:
        assert pool.run(honest(1), b"", limits).stdout == b"2\n"
        timer = threading.Timer(0.3, engine.signal, (signal.SIGSTOP,))
        timer.start()
        with pytest.raises(SandboxError):
            pool.run(honest(1, sleep_s=1), b"", limits)
        with pytest.raises(SandboxError, match="no Docker engine answers"):
            pool.run(honest(1), b"", limits)
        engine.signal(signal.SIGCONT)
        assert pool.run(honest(2), b"", limits).stdout == b"4\n"
        assert engine.containers() == 1
    assert engine.containers() == 0


@pytest.fixture
def remote(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    host = engine_host() or f"unix://{SYSTEM_SOCKET}"
    if not host.startswith("unix://"):
        pytest.skip(f"the engine at {host} is remote already")
    proxy = Proxy(host.removeprefix("unix://"))
    monkeypatch.setenv("DOCKER_HOST", proxy.url)
    yield proxy
    proxy.close()


@pytest.mark.docker
def test_an_engine_across_the_network_serves_as_well(remote: Proxy) -> None:
    case = StdioCase(name="a", stdin="1 " * 300_000, expected="300000\n")
    with open_sandbox("docker", workers=1) as sandbox:
        program = Program("print(sum(map(int, input().split())))")
        assert sandbox.grade(program, [case]).status == "accepted"
        client = connect()
        facts = client.api.containers(filters={"label": container.OWNER_LABEL})
        client.close()
        ours = [entry for entry in facts if re.search(rf"-{os.getpid()}-\d+$", entry["Names"][0])]
        assert ours
        assert not any(entry["Mounts"] for entry in ours)  # nothing of this machine is shown there


@pytest.mark.docker
def test_a_line_that_breaks_costs_a_retry_and_no_verdict(remote: Proxy) -> None:
    with WorkerPool(DockerBackend(), size=1) as pool:
        pool.run(honest(1), b"", LIMITS)
        timer = threading.Timer(0.3, remote.cut)
        timer.start()
        result = pool.run(honest(2, sleep_s=1), b"", LIMITS)
        timer.join()
    assert (result.status, result.stdout, result.retried) == (None, b"4\n", True)
