"""Which Docker engine to talk to.

DOCKER_HOST decides where it is set. Else the first of the usual sockets that answers is taken: the
system's, a rootless engine's, Docker Desktop's, and the one that `make engine` starts.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

SYSTEM_SOCKET = "/var/run/docker.sock"
ENGINE_SOCKET = "/run/mars-envs-docker/docker.sock"
"""Where `make engine` (image/engine.sh) puts the socket of the engine that it starts."""

_CONNECT_S = 5.0


def engine_host() -> str | None:
    """Return the URL of the engine to use, or None if DOCKER_HOST is unset and none listens.

    An engine that listens may still be ill: the caller's first request finds out.
    """
    named = os.environ.get("DOCKER_HOST")
    if named:
        return named
    for path in _sockets():
        if listens(path):
            return f"unix://{path}"
    return None


def engine_environment() -> dict[str, str]:
    """Return the environment for `docker.from_env(environment=...)` that leads to that engine."""
    host = engine_host()
    return {**os.environ, "DOCKER_HOST": host} if host else dict(os.environ)


def _sockets() -> list[str]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [
        SYSTEM_SOCKET,
        *([f"{runtime}/docker.sock"] if runtime else []),
        str(Path.home() / ".docker" / "run" / "docker.sock"),
        ENGINE_SOCKET,
    ]


def listens(path: str) -> bool:
    """Return whether a server accepts connections on the socket at `path`."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
