"""The Docker backend: how its containers are made, and what happens when they go."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.attached import ContainerTransport
from sandbox.base import SandboxUnavailable
from sandbox.container import OWNER_LABEL, DockerBackend
from sandbox.docker_client import connect
from sandbox.owner import this_owner
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status

LIMITS = Limits(cpu_s=1.0)


@pytest.fixture
def client(docker_engine: str) -> Iterator[Any]:
    client = connect()
    yield client
    client.close()


def inspect(client: Any, name: str) -> dict[str, Any]:
    return client.api.inspect_container(name)  # type: ignore[no-any-return]


def exists(client: Any, name: str) -> bool:
    names = [n for entry in client.api.containers(all=True) for n in entry["Names"]]
    return f"/{name}" in names


def wait_until_gone(client: Any, name: str) -> None:
    deadline = time.monotonic() + 15
    while exists(client, name):
        assert time.monotonic() < deadline, f"{name} is still there"
        time.sleep(0.05)


@pytest.mark.docker
def test_containers_are_made_with_every_restriction(client: Any) -> None:
    worker = DockerBackend(memory_mb=512, tmp_mb=16, cpus=0.5).start_worker()
    try:
        facts = inspect(client, worker.name)
    finally:
        worker.close()
    host = facts["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["AutoRemove"] is True
    assert host["CapDrop"] == ["ALL"]
    assert {name.removeprefix("CAP_") for name in host["CapAdd"]} == {"SETUID", "SETGID", "KILL"}
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["PidsLimit"] == 64
    assert host["Memory"] == host["MemorySwap"] == 512 << 20
    assert host["NanoCpus"] == 500_000_000
    assert host["IpcMode"] == "none"
    assert host["LogConfig"]["Type"] == "none"
    assert not host["Binds"]
    assert not host["Privileged"]
    assert "noexec" in host["Tmpfs"]["/tmp"]
    assert "size=16m" in host["Tmpfs"]["/tmp"]
    assert facts["Config"]["Labels"][OWNER_LABEL] == this_owner()


@pytest.mark.docker
def test_closing_a_worker_removes_its_container(client: Any) -> None:
    worker = DockerBackend().start_worker()
    assert exists(client, worker.name)
    worker.close()
    worker.close()
    wait_until_gone(client, worker.name)


@pytest.mark.docker
def test_a_container_ends_by_itself_when_its_host_hangs_up(client: Any) -> None:
    worker = DockerBackend().start_worker()
    transport = worker._transport  # type: ignore[attr-defined]
    assert isinstance(transport, ContainerTransport)
    transport._stream.close()
    transport._socket.close()
    wait_until_gone(client, worker.name)
    worker.close()


@pytest.mark.docker
def test_a_container_killed_in_mid_run_costs_one_retry_and_no_verdict(docker_engine: str) -> None:
    backend = DockerBackend()
    names: list[str] = []
    start = backend.start_worker

    def remember() -> Any:
        worker = start()
        names.append(worker.name)
        return worker

    backend.start_worker = remember  # type: ignore[method-assign]
    with WorkerPool(backend, size=1) as pool:
        pool.run(b"print(1)", b"", LIMITS)
        killer = threading.Timer(
            0.5, subprocess.run, (["docker", "kill", names[0]],), {"capture_output": True}
        )
        killer.start()
        result = pool.run(b"import time\ntime.sleep(1)\nprint('done')", b"", LIMITS)
        killer.join()
    assert (result.status, result.stdout, result.retried) == (None, b"done\n", True)
    assert len(names) == 2


@pytest.mark.docker
def test_too_many_files_end_the_program_and_are_removed(docker_engine: str) -> None:
    bomb = b"for i in range(10**6): open(f'/tmp/{i}', 'w').close()"
    with WorkerPool(DockerBackend(), size=1) as pool:
        result = pool.run(bomb, b"", Limits(cpu_s=5.0))
        assert result.status is Status.RUNTIME_ERROR
        assert b"No space left" in result.stderr
        look = pool.run(b"import os\nprint(len(os.listdir('/tmp')))", b"", LIMITS)
        assert look.stdout == b"0\n"


@pytest.mark.docker
def test_an_unknown_image_or_runtime_is_told(docker_engine: str) -> None:
    for backend in (DockerBackend(image="no-such-image:0"), DockerBackend(runtime="no-such")):
        with pytest.raises(SandboxUnavailable, match="sandbox doctor"):
            backend.start_worker()


def test_an_absent_engine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(SandboxUnavailable) as caught:
        DockerBackend(image="any").start_worker()
    assert "unix:///nowhere/docker.sock" in str(caught.value)
    assert "mars-envs sandbox doctor" in str(caught.value)
