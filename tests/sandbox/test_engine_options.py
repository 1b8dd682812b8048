"""Engines set up in other ways: gVisor as the runtime, user ids mapped away from the machine's."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.base import SandboxUnavailable
from sandbox.container import DockerBackend
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status

from .engines import own_engine, shared_image

pytestmark = pytest.mark.docker

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, output_bytes=1 << 16)
DAEMON = b"import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint(7)"


@pytest.fixture
def folder(docker_engine: str) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sbx-", dir="/var/tmp"))  # overlays need a real disk
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def subordinate_ids() -> Iterator[None]:
    """The ranges that `--userns-remap=default` looks for, where the machine has none."""
    files = {path: path.read_text() for path in (Path("/etc/subuid"), Path("/etc/subgid"))}
    for path, text in files.items():
        if "dockremap:" not in text:
            path.write_text(f"{text}dockremap:231072:65536\n")
    yield
    for path, text in files.items():
        path.write_text(text)


def behaves(pool: WorkerPool) -> None:
    """Everyday programs and a few attacks get the verdicts that they get anywhere."""

    def status(source: bytes) -> Status | None:
        return pool.run(source, b"", LIMITS).status

    assert pool.run(b"print(sum(map(int, input().split())))", b"20 22\n", LIMITS).stdout == b"42\n"
    assert status(b"while True: pass") is Status.TIME_LIMIT_EXCEEDED
    assert status(b"x = bytearray(1 << 30)") is Status.MEMORY_LIMIT_EXCEEDED
    assert status(b"print('x' * (1 << 20))") is Status.OUTPUT_LIMIT_EXCEEDED
    assert status(b"def") is Status.COMPILE_ERROR
    assert status(b"import os\nos.kill(1, 9)") is Status.RUNTIME_ERROR
    assert status(b"import os\nos.setuid(0)") is Status.RUNTIME_ERROR
    assert status(b"import socket\nsocket.create_connection(('1.1.1.1', 53))") is (
        Status.RUNTIME_ERROR
    )
    assert pool.run(DAEMON, b"", LIMITS).stdout == b"7\n"
    assert status(b"open('/tmp/left', 'w').write('x')") is None
    assert pool.run(b"import os\nprint(os.listdir('/tmp'))", b"", LIMITS).stdout == b"[]\n"


def test_an_engine_that_does_not_map_user_ids_is_refused_where_that_is_asked_for(
    docker_engine: str,
) -> None:
    with pytest.raises(SandboxUnavailable, match="--userns-remap"):
        DockerBackend(userns="remap").start_worker()


@pytest.mark.slow
def test_gvisor_serves_as_the_runtime(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("runsc") is None:
        pytest.skip("gVisor is not installed (on Debian: apt-get install runsc)")
    # Of this version only these flags work where no network and no cgroup v2 can be had.
    wrapper = tmp_path / "runsc"
    flags = "--network=none --platform=ptrace --ignore-cgroups"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("runsc")} {flags} "$@"\n')
    wrapper.chmod(0o755)
    with own_engine(folder, f"--add-runtime=runsc={wrapper}", image_from=shared_image()) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        with WorkerPool(DockerBackend(runtime="runsc"), size=1) as pool:
            kernel = pool.run(b"print(open('/proc/version').read())", b"", LIMITS)
            assert b"gVisor" in kernel.stdout or b"Linux version 4.4.0" in kernel.stdout
            behaves(pool)


@pytest.mark.slow
@pytest.mark.usefixtures("subordinate_ids")
def test_user_ids_can_be_mapped_away_from_the_machines(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_engine(folder, "--userns-remap=default", image_from=shared_image()) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        with WorkerPool(DockerBackend(userns="remap"), size=1) as pool:
            shown = pool.run(b"print(open('/proc/self/uid_map').read())", b"", LIMITS).stdout
            inside, outside, _ = map(int, shown.split())
            assert inside == 0
            assert outside > 0  # root in there is no one out here
            behaves(pool)
        with WorkerPool(DockerBackend(userns="host"), size=1) as pool:
            shown = pool.run(b"print(open('/proc/self/uid_map').read())", b"", LIMITS).stdout
            assert list(map(int, shown.split()))[:2] == [0, 0]
