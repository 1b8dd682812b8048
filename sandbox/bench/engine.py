"""An engine of our own for the time of a measurement, below this process in the process tree.

It shares nothing with an engine that is there already: its own sockets, folders and `containerd`.
Its CPU time, and that of the containers, is then this tree's (`cpu`), on any version of control
groups and next to any neighbours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base import SandboxUnavailable
from ..engine import listens

_STARTS_S = 60.0
_STOPS_S = 40.0
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class OwnEngine:
    """An engine that `own_engine` has started."""

    url: str
    pid: int
    """Of the child of this process above all of the engine."""


def why_no_own_engine() -> str | None:
    """Return what keeps this process from starting an engine of its own, or None."""
    if os.geteuid() != 0:
        return "starting an engine takes root"
    missing = [name for name in ("dockerd", "containerd") if _find(name) is None]
    return f"{' and '.join(missing)}: not found on PATH" if missing else None


@contextlib.contextmanager
def own_engine() -> Iterator[OwnEngine]:
    """Start an engine and point DOCKER_HOST at it; stop and remove it when the block ends.

    Raises:
        SandboxUnavailable: it did not start.
    """
    reason = why_no_own_engine()
    dockerd, containerd = _find("dockerd"), _find("containerd")
    if reason is not None or dockerd is None or containerd is None:
        raise SandboxUnavailable(f"no engine of our own: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="mars-envs-bench-"))
    script = Path(__file__).with_name("engine_host.py")
    host = subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), str(folder), containerd, dockerd],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C at the terminal is for us, who then end it in order
    )
    before = os.environ.get("DOCKER_HOST")
    try:
        _wait_for(folder, host)
        url = f"unix://{folder}/docker.sock"
        os.environ["DOCKER_HOST"] = url
        yield OwnEngine(url, host.pid)
    finally:
        if before is None:
            os.environ.pop("DOCKER_HOST", None)
        else:
            os.environ["DOCKER_HOST"] = before
        assert host.stdin is not None
        host.stdin.close()
        try:
            host.wait(_STOPS_S)
        except subprocess.TimeoutExpired:
            host.kill()
            host.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_SYSTEM_PATH)


def _wait_for(folder: Path, host: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _STARTS_S
    while time.monotonic() < deadline_s and host.poll() is None:
        if listens(str(folder / "docker.sock")):
            return
        time.sleep(0.05)
    try:
        log = (folder / "engine.log").read_text("utf-8", "replace")
    except OSError:
        log = "no log"
    raise SandboxUnavailable(
        "an engine for the measurement did not start; the end of its log: " + log[-500:].strip()
    )
