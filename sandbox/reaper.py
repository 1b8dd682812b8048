"""Finding and removing what owners that are gone have left: containers and control groups.

Normally nothing is: a guest ends when its host hangs up. A guest that was stopped, or an engine
that was away at that moment, can leave a container behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import cgroup, container, docker_client
from .base import SandboxUnavailable
from .owner import is_gone

if TYPE_CHECKING:
    import docker


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What was removed."""

    containers: tuple[str, ...]
    """Names of containers."""
    groups: int
    """Number of control group folders."""
    engine: bool
    """Whether a Docker engine answered."""


def reap(client: docker.DockerClient | None = None) -> Reaped:
    """Remove the containers and control groups whose owner on this machine has ended.

    Args:
        client: of the engine to look at; None connects to the one the environment names.
    """
    groups = cgroup.reap()
    if client is not None:
        return Reaped(containers=reap_containers(client), groups=groups, engine=True)
    try:
        client = docker_client.connect()
    except SandboxUnavailable:
        return Reaped(containers=(), groups=groups, engine=False)
    try:
        return Reaped(containers=reap_containers(client), groups=groups, engine=True)
    finally:
        client.close()


def reap_containers(client: docker.DockerClient) -> tuple[str, ...]:
    """Remove containers of ours, running or not, whose owner is gone; return their names."""
    import docker.errors
    import requests

    label = container.OWNER_LABEL
    try:
        entries = client.api.containers(all=True, filters={"label": label})
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise SandboxUnavailable(
            f"the engine does not list its containers: {error}; "
            "`mars-envs sandbox doctor` says more"
        ) from error
    gone = [entry["Names"][0].lstrip("/") for entry in entries if is_gone(entry["Labels"][label])]
    return tuple(name for name in gone if docker_client.remove_container(client, name))
