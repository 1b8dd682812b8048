"""Talking to a Docker engine that may be away, hang, or come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import SandboxUnavailable
from .engine import SYSTEM_SOCKET, engine_environment, listens

if TYPE_CHECKING:
    import docker

ANSWER_S = 15
"""How long an engine may take to say who it is, or to remove a container."""


def connect() -> docker.DockerClient:
    """Return a client for the engine that DOCKER_HOST names, or that is found (see `engine`).

    Raises:
        SandboxUnavailable: the SDK is not installed, or no engine answers.
    """
    try:
        import docker
        import docker.errors
        import requests
    except ImportError as error:
        raise SandboxUnavailable(
            f"the docker SDK is missing ({error}): pip install 'mars-envs[docker]'; "
            "`mars-envs sandbox doctor` says what else can be tried"
        ) from error
    environment, host = engine_environment(), address()
    try:
        if is_away(host):
            raise ConnectionRefusedError("nothing listens on that socket")
        # Asks for the engine's version, so an engine that hangs is found out here.
        return docker.from_env(timeout=ANSWER_S, environment=environment)
    # ValueError: an address that is none.
    except (docker.errors.DockerException, requests.RequestException, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"no Docker engine answers at {host}: {error}; start one or set DOCKER_HOST; "
            "`mars-envs sandbox doctor` says what else can be tried"
        ) from error


def address() -> str:
    """Return the address of the engine that `connect` goes to."""
    return engine_environment().get("DOCKER_HOST", f"unix://{SYSTEM_SOCKET}")


def is_away(host: str) -> bool:
    """Whether no one listens at that address, as far as is known without asking.

    The SDK would leave its socket open behind a failure.
    """
    return host.startswith("unix://") and not listens(host.removeprefix("unix://"))


_leftovers: set[tuple[str, str]] = set()
"""Engine and name of each container that could not be removed when it was due."""


def remove_or_remember(client: docker.DockerClient, engine: str, name: str) -> None:
    """Remove a container; if the engine is away or hangs, do it when the next one is made."""
    client.api.timeout = ANSWER_S
    if is_away(engine) or remove_container(client, name) is None:
        _leftovers.add((engine, name))


def remove_leftovers(client: docker.DockerClient, engine: str) -> None:
    """Remove what was remembered of an engine that answers again."""
    for place, name in tuple(_leftovers):
        if place == engine and remove_container(client, name) is not None:
            _leftovers.discard((place, name))


def remove_container(client: docker.DockerClient, name: str) -> bool | None:
    """Kill and remove a container by name. Never raises.

    Returns:
        Whether it was there; None if the engine did not do it.
    """
    import docker.errors
    import requests

    try:
        client.api.remove_container(name, force=True)
    except docker.errors.NotFound:
        return False
    except docker.errors.APIError as error:
        # The engine is removing it already.
        return True if error.status_code == 409 else None
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return None
    return True
