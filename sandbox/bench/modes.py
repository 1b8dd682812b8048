"""The five ways to judge a program that are measured against each other.

Each gets the same program text, inputs and expected outputs, gives every test a process of its own
under limits, and compares here. The two that use the `docker` command give their containers the
same restrictions as our backend does.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..base import SandboxError
from ..types import Limits, Program, StdioCase
from ..worker import Backend

HOST, DOCKER_RUN, DOCKER_EXEC = "host", "docker-run", "docker-exec"
DOCKER, BUBBLEWRAP = "docker", "bubblewrap"
MODES = {
    HOST: "host subprocess",
    DOCKER_RUN: "docker run",
    DOCKER_EXEC: "docker exec",
    DOCKER: "ours (docker)",
    BUBBLEWRAP: "ours (bubblewrap)",
}
"""What can be measured, by name as in the table, in its order."""
WITH_ENGINE = (DOCKER_RUN, DOCKER_EXEC, DOCKER)

_LIMITS = Limits()
_WARM_UP = 10
_TEST_S = 60.0
_COMMAND_S = 120.0
# Runs inside a container: a subprocess for each test, as graders in containers do.
_RUNNER = """\
import json, resource, subprocess, sys
order = json.load(sys.stdin)
outputs = []
for text in order["inputs"]:
    test = subprocess.Popen([sys.executable, "-I", "-S", "-c", order["source"]],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for name, value in order["limits"].items():
        resource.prlimit(test.pid, getattr(resource, name), (value, value))
    outputs.append(test.communicate(text)[0])
json.dump(outputs, sys.stdout)
"""
_FOREVER = "import signal; signal.sigwait([signal.SIGTERM])"
_HARDENING = (
    *("--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
    *("--tmpfs=/tmp:rw,size=32m,nr_inodes=4096,noexec,nosuid,nodev,mode=1777", "--user=65534"),
    *("--pids-limit=64", "--memory=1088m", "--memory-swap=1088m", "--cpus=1", "--ipc=none"),
    *("--log-driver=none", "--workdir=/tmp"),
)


@dataclass(frozen=True, slots=True)
class Work:
    """A program and its tests."""

    source: str
    tests: tuple[tuple[str, str], ...]
    """(standard input, expected standard output)."""


class Mode(Protocol):
    """A way to judge programs."""

    def run(self, client: int, work: Work) -> None:
        """Judge a program on all its tests, for the `client`th of the clients.

        Raises:
            SandboxError: an output is not the expected one.
        """
        ...


def make_work(number: int, tests: int) -> Work:
    """Return a small program that no one has seen before and its tests."""
    source = f"# {number}\nprint(sum(int(word) for word in input().split()))\n"
    numbers = [(number + test, 2 * test, 7) for test in range(tests)]
    return Work(
        source,
        tuple((" ".join(map(str, words)) + "\n", f"{sum(words)}\n") for words in numbers),
    )


@contextlib.contextmanager
def opened(name: str, *, clients: int) -> Iterator[Mode]:
    """Make a way to judge ready for `clients` at once; clear up when the block ends.

    Raises:
        SandboxError: it cannot work here; the message says why.
    """
    makers: dict[str, Callable[[int], contextlib.AbstractContextManager[Mode]]] = {
        HOST: _host,
        DOCKER_RUN: _docker_run,
        DOCKER_EXEC: _docker_exec,
        DOCKER: lambda clients: _ours(_docker_backend(), clients),
        BUBBLEWRAP: lambda clients: _ours(_bubblewrap_backend(), clients),
    }
    with makers[name](clients) as mode:
        # What is made on first use is made here: the engine's caches and, as all clients come at
        # once, a worker for each of them.
        with ThreadPoolExecutor(clients, "bench-warm-up") as threads:
            runs = [threads.submit(mode.run, i, make_work(i, _WARM_UP)) for i in range(clients)]
        for run in runs:
            run.result()
        yield mode


class _Host:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._python = os.path.realpath(sys.executable)

    def run(self, client: int, work: Work) -> None:
        path = Path(self._folder, f"{client}.py")
        path.write_text(work.source, "utf-8")
        outputs = []
        for text, _ in work.tests:
            process = subprocess.Popen(
                [self._python, "-I", "-S", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self._folder,
            )
            # From outside: a function between fork and exec would make the fork dear.
            for kind, value in _rlimits().items():
                resource.prlimit(process.pid, getattr(resource, kind), (value, value))
            outputs.append(process.communicate(text, timeout=_TEST_S)[0])
        _compare(HOST, outputs, work)


class _DockerRun:
    def __init__(self, image: str) -> None:
        self._image = image

    def run(self, client: int, work: Work) -> None:
        command = ["run", "--rm", "--interactive", *_HARDENING, *_labels(), self._image]
        output = docker([*command, "python3", "-I", "-S", "-c", _RUNNER], _order(work))
        _compare(DOCKER_RUN, json.loads(output), work)


class _DockerExec:
    def __init__(self, containers: Sequence[str]) -> None:
        self._containers = containers

    def run(self, client: int, work: Work) -> None:
        command = ["exec", "--interactive", self._containers[client]]
        output = docker([*command, "python3", "-I", "-S", "-c", _RUNNER], _order(work))
        _compare(DOCKER_EXEC, json.loads(output), work)


class _Ours:
    def __init__(self, backend: Backend, clients: int) -> None:
        from ..grader import Grader
        from ..pool import WorkerPool

        # No worker is replaced meanwhile: its CPU time would leave the tree (see `uptime`).
        self.grader = Grader(WorkerPool(backend, size=clients, recycle_after=1 << 30))

    def run(self, client: int, work: Work) -> None:
        cases = [
            StdioCase(name=str(number), stdin=text, expected=expected)
            for number, (text, expected) in enumerate(work.tests)
        ]
        report = self.grader.grade(Program(work.source), cases, _LIMITS)
        if not report.accepted:
            failed = next(case for case in report.cases if case.status != "accepted")
            raise SandboxError(f"ours ({report.backend}): {failed.status}: {failed.message}")


@contextlib.contextmanager
def _host(clients: int) -> Iterator[Mode]:
    with tempfile.TemporaryDirectory(prefix="mars-envs-bench-") as folder:
        yield _Host(folder)


@contextlib.contextmanager
def _docker_run(clients: int) -> Iterator[Mode]:
    yield _DockerRun(_docker_backend().image())


@contextlib.contextmanager
def _docker_exec(clients: int) -> Iterator[Mode]:
    image = _docker_backend().image()
    names = [f"sbx-bench-{uuid.uuid4().hex[:8]}-{client}" for client in range(clients)]
    try:
        for name in names:
            options = ["run", "--detach", "--name", name, *_HARDENING, *_labels(), image]
            docker([*options, "python3", "-I", "-S", "-c", _FOREVER])
        yield _DockerExec(names)
    finally:
        with contextlib.suppress(SandboxError):
            docker(["rm", "--force", *names])


@contextlib.contextmanager
def _ours(backend: Backend, clients: int) -> Iterator[Mode]:
    ours = _Ours(backend, clients)
    with ours.grader:
        yield ours


def _docker_backend() -> _DockerBackend:
    from ..container import DockerBackend
    from ..factory import ping_engine

    ping_engine()
    return DockerBackend()


def _bubblewrap_backend() -> Backend:
    from ..bubblewrap import BubblewrapBackend

    return BubblewrapBackend()


class _DockerBackend(Backend, Protocol):
    def image(self) -> str: ...


def docker(arguments: Sequence[str], stdin: str = "") -> str:
    """Run the `docker` command and return what it printed.

    Raises:
        SandboxError: it is missing, failed, or did not end in time.
    """
    from ..engine import engine_environment

    binary = shutil.which("docker")
    if binary is None:
        raise SandboxError("no `docker` command on PATH: install Docker's command line client")
    try:
        answer = subprocess.run(
            [binary, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            env=engine_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"`docker {arguments[0]}` failed: {error}") from error
    if answer.returncode:
        raise SandboxError(
            f"`docker {arguments[0]}` ended with status {answer.returncode}: "
            f"{answer.stderr.strip()[-300:]}"
        )
    return answer.stdout


def _order(work: Work) -> str:
    inputs = [text for text, _ in work.tests]
    return json.dumps({"source": work.source, "inputs": inputs, "limits": _rlimits()})


def _labels() -> tuple[str, str]:
    """Return the options that let `mars-envs sandbox reap` find what a killed run has left."""
    from ..container import OWNER_LABEL
    from ..owner import this_owner

    return ("--label", f"{OWNER_LABEL}={this_owner()}")


def _rlimits() -> dict[str, int]:
    memory, seconds = _LIMITS.memory_mb << 20, int(_LIMITS.cpu_s) + 1
    return {"RLIMIT_CPU": seconds, "RLIMIT_AS": memory, "RLIMIT_FSIZE": _LIMITS.tmp_mb << 20}


def _compare(name: str, outputs: Sequence[str], work: Work) -> None:
    expected = [output for _, output in work.tests]
    if list(outputs) != expected:
        raise SandboxError(f"{MODES[name]}: expected {expected!r:.200}, got {outputs!r:.200}")
