"""Who counts as gone, and what is removed then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import cgroup
from sandbox.container import OWNER_LABEL, DockerBackend
from sandbox.docker_client import connect, remove_container
from sandbox.owner import is_gone, this_owner
from sandbox.reaper import reap


def owner_of_a_finished_process() -> str:
    script = "from sandbox.owner import this_owner; print(this_owner())"
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def test_this_process_is_not_gone() -> None:
    assert not is_gone(this_owner())


def test_a_finished_process_is_gone(monkeypatch: pytest.MonkeyPatch, repo_dir: Path) -> None:
    monkeypatch.chdir(repo_dir)
    assert is_gone(owner_of_a_finished_process())


def test_a_process_that_only_took_over_the_number_does_not_count() -> None:
    host, pid, start = this_owner().rsplit(":", 2)
    assert is_gone(f"{host}:{pid}:{int(start) - 1}")


def test_a_dead_process_that_no_one_has_collected_is_gone() -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    host, _, _ = this_owner().rsplit(":", 2)
    start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    owner = f"{host}:{pid}:{start}"
    assert not is_gone(owner)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(owner)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("owner", ["elsewhere:1:1", "", "nonsense", "a:b:c"])
def test_owners_elsewhere_and_nonsense_are_left_alone(owner: str) -> None:
    assert not is_gone(owner)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups")
def test_control_groups_of_the_gone_are_removed_and_others_kept(
    monkeypatch: pytest.MonkeyPatch, repo_dir: Path
) -> None:
    monkeypatch.chdir(repo_dir)
    kept = cgroup.create(90_001, memory_mb=64, processes=8)
    if kept is None:
        pytest.skip("no control group can be made here")
    monkeypatch.setattr(cgroup, "this_owner", owner_of_a_finished_process)
    monkeypatch.setattr(cgroup, "_reap_once", lambda pid: None)
    left = cgroup.create(90_002, memory_mb=64, processes=8)
    assert left is not None
    try:
        assert cgroup.reap() >= len(left.folders)
        assert not any(folder.exists() for folder in left.folders)
        assert all(folder.exists() for folder in kept.folders)
    finally:
        kept.remove()
        left.remove()
    assert not any(folder.exists() for folder in kept.folders)


@pytest.fixture
def image(docker_engine: str) -> str:
    return DockerBackend().image()


@pytest.fixture
def leak(image: str) -> Iterator[str]:
    """A container that does not notice its owner's death, and outlives it."""
    script = (
        "import subprocess\n"
        "from sandbox.container import DockerBackend\n"
        "worker = DockerBackend().start_worker()\n"
        "subprocess.run(['docker', 'pause', worker.name], check=True, capture_output=True)\n"
        "print(worker.name, flush=True)\n"
        "input()\n"
    )
    repo = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=repo,
    ) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        owner.kill()
    assert name
    yield name
    client = connect()
    remove_container(client, name)
    client.close()


def names() -> set[str]:
    client = connect()
    try:
        entries = client.api.containers(all=True)
    finally:
        client.close()
    return {name.lstrip("/") for entry in entries for name in entry["Names"]}


@pytest.mark.docker
def test_a_container_whose_owner_was_killed_is_reaped(leak: str) -> None:
    assert leak in names()
    found = reap()
    assert found.engine
    assert leak in found.containers
    assert leak not in names()


@pytest.mark.docker
def test_containers_of_living_and_foreign_owners_are_kept(image: str) -> None:
    client = connect()
    mine, foreign, other = (f"sbx-test-{uuid.uuid4().hex[:8]}" for _ in range(3))
    try:
        for name, labels in (
            (mine, {OWNER_LABEL: this_owner()}),
            (foreign, {OWNER_LABEL: "elsewhere:1:1"}),
            (other, {}),
        ):
            client.api.create_container(image, ["true"], name=name, labels=labels)
        assert not {mine, foreign, other} & set(reap(client).containers)
        assert {mine, foreign, other} <= names()
    finally:
        for name in (mine, foreign, other):
            remove_container(client, name)
        client.close()


def test_without_an_engine_reaping_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert reap().engine is False


@pytest.mark.docker
def test_the_first_worker_of_a_backend_removes_what_others_leaked(leak: str) -> None:
    DockerBackend().start_worker().close()
    assert leak not in names()
