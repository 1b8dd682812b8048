"""Finding the Docker engine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import engine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any engine."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(engine, "SYSTEM_SOCKET", str(tmp_path / "system.sock"))
    monkeypatch.setattr(engine, "ENGINE_SOCKET", str(tmp_path / "ours.sock"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def listen() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()


def start(path: Path, sockets: list[socket.socket]) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    sockets.append(server)


def test_docker_host_decides_even_where_nothing_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:2375")
    assert engine.engine_host() == "tcp://elsewhere:2375"


def test_without_an_engine_there_is_no_host(home: Path) -> None:
    (home / "system.sock").touch()  # left behind by an engine that is gone
    assert engine.engine_host() is None


def test_the_system_engine_comes_before_the_one_that_make_engine_starts(
    home: Path, listen: list[socket.socket]
) -> None:
    start(home / "ours.sock", listen)
    assert engine.engine_host() == f"unix://{home}/ours.sock"
    assert engine.engine_environment()["DOCKER_HOST"] == f"unix://{home}/ours.sock"
    start(home / "docker.sock", listen)
    assert engine.engine_host() == f"unix://{home}/docker.sock"
    start(home / "system.sock", listen)
    assert engine.engine_host() == f"unix://{home}/system.sock"


def test_the_script_and_the_package_agree_on_the_socket(repo_dir: Path) -> None:
    script = (repo_dir / "sandbox" / "image" / "engine.sh").read_text()
    folder = Path(engine.ENGINE_SOCKET).parent
    assert f"readonly RUN={folder} " in script
    assert "unix://$RUN/docker.sock" in script
