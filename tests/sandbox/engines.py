"""A Docker engine of a test's own, to be configured, stopped and killed; never the shared one."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from sandbox.container import DockerBackend
from sandbox.docker_client import connect

_STARTS_S = 60.0
_FLAGS = ("--bridge=none", "--iptables=false", "--ip6tables=false", "--log-driver=none")


class OwnEngine:
    """A dockerd with folders and a socket of its own.

    Args:
        folder: on a disk, short enough for the path of a socket.
        flags: further flags of dockerd.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self.url = f"unix://{folder}/docker.sock"
        self._folder = folder
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, again if need be, and wait until it answers."""
        folder = self._folder
        # Left by a killed engine, these keep the next one from starting.
        for pid_file in (folder / "docker.pid", folder / "exec/containerd/containerd.pid"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                if pid_file.name == "containerd.pid":
                    os.kill(int(pid_file.read_text()), signal.SIGKILL)
                pid_file.unlink()
        command = ["dockerd", f"--data-root={folder}/data", f"--exec-root={folder}/exec"]
        command += [f"--host={self.url}", f"--pidfile={folder}/docker.pid", *_FLAGS, *self._flags]
        with (folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        deadline_s = time.monotonic() + _STARTS_S
        while not self.answers():
            assert self._process.poll() is None, (folder / "dockerd.log").read_text()[-2000:]
            assert time.monotonic() < deadline_s, "dockerd did not come up"
            time.sleep(0.1)

    def answers(self) -> bool:
        """Whether it answers."""
        if not (self._folder / "docker.sock").exists():
            return False
        command = ["docker", "-H", self.url, "version", "-f", "{{.Server.Version}}"]
        try:
            return subprocess.run(command, capture_output=True, timeout=10).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def signal(self, number: int) -> None:
        """Send dockerd a signal; wait for its end if it is to end."""
        assert self._process is not None
        self._process.send_signal(number)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self._process.wait(60)

    def containers(self) -> int:
        """Number of its containers, running or not."""
        client = docker.DockerClient(self.url, timeout=30)
        try:
            return len(client.api.containers(all=True))
        finally:
            client.close()

    def remove(self) -> None:
        """Stop it and delete all that it has."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        # A killed engine leaves its containerd, shims and mounts behind.
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (
                    entry.name.isdigit()
                    and str(self._folder).encode() in (entry / "cmdline").read_bytes()
                ):
                    os.kill(int(entry.name), signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if mount.startswith(str(self._folder))]):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)


class Proxy:
    """Forwards a TCP port of this machine to the socket of an engine, until the line is cut."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[Any] = []
        self.url = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._path)
            self._open += [client, engine]
            for source, target in ((client, engine), (engine, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source: Any, target: Any) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Break every connection."""
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()
        self.cut()
        for end in self._open:
            end.close()


@contextlib.contextmanager
def own_engine(folder: Path, *flags: str, image_from: str | None = None) -> Iterator[OwnEngine]:
    """Run an engine for the length of the block.

    Args:
        folder: where it keeps everything; deleted afterwards.
        flags: further flags of dockerd.
        image_from: tag of a guest image that the shared engine has; None lets it build its own.
    """
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        reason = "an engine of the test's own needs root and dockerd"
        if os.environ.get("MARS_ENVS_REQUIRE_DOCKER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    engine = OwnEngine(folder, *flags)
    folder.chmod(0o755)  # an engine with user ids of its own looks in as someone else
    try:
        engine.start()
        if image_from is not None:
            _copy_image(image_from, engine)
        yield engine
    finally:
        engine.remove()


def _copy_image(tag: str, engine: OwnEngine) -> None:
    source, target = connect(), docker.DockerClient(engine.url, timeout=120)
    try:
        target.images.load(io.BytesIO(b"".join(source.images.get(tag).save(named=True))))
    finally:
        source.close()
        target.close()


def shared_image() -> str:
    """Tag of the guest image, which the shared engine has."""
    return DockerBackend().image()
