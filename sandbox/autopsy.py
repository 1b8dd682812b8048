"""Why a container ended, as its engine tells.

A container is removed as soon as it has ended, so its state cannot be looked up; the engine's
record of events outlives it.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .guest import wire

if TYPE_CHECKING:
    import docker

_EVENTS = ("die", "oom", "kill")
_INNOCENT = ("0", str(wire.KILLED_EXIT))
_PATIENCE_S = 5.0
"""How long the engine may take to notice the end of a container whose streams have ended."""


def lost_from_outside(client: docker.DockerClient, name: str) -> bool:
    """Return whether something other than the container's own first process ended it.

    Args:
        client: of the engine.
        name: of the container, whose streams have ended.
    """
    with contextlib.closing(_events(client, name)) as events:
        return speaks_for_outside(events)


def speaks_for_outside(events: Iterable[Mapping[str, Any]]) -> bool:
    """Return what the events of a container, in their order, say about its end.

    From outside comes what someone asked the engine to kill; a first process that ended with
    status 0, because it saw its host hang up, or with the one that says that what it needs has been
    killed; one that was killed though no memory was lacking, for from inside it cannot be; and an
    end of which the engine does not know.
    """
    lacked_memory = False
    for event in events:
        action = event.get("Action")
        if action == "kill":
            return True
        if action == "oom":
            lacked_memory = True
        elif action == "die":
            status = event.get("Actor", {}).get("Attributes", {}).get("exitCode")
            if status == str(128 + signal.SIGKILL):
                return not lacked_memory
            return status in _INNOCENT
    return True


def _events(client: docker.DockerClient, name: str) -> Generator[dict[str, Any], None, None]:
    """Yield the container's events, those to come too, until none comes for a while."""
    import docker.errors
    import requests

    api = client.api
    parameters = {
        "since": "1",
        "filters": json.dumps({"type": ["container"], "container": [name], "event": _EVENTS}),
    }
    try:
        with api.get(
            f"{api.base_url}/v{api.api_version}/events",
            params=parameters,
            stream=True,
            timeout=_PATIENCE_S,
        ) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines(chunk_size=1):
                if line:
                    yield json.loads(line)
    except (docker.errors.DockerException, requests.RequestException, OSError, ValueError):
        return  # it is away, hangs, or has nothing more to say
