"""What an engine's events say about the end of a container."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from sandbox.autopsy import lost_from_outside, speaks_for_outside
from sandbox.container import DockerBackend
from sandbox.docker_client import connect, remove_container


def event(action: str, **attributes: str) -> dict[str, Any]:
    return {"Action": action, "Actor": {"Attributes": attributes}}


@pytest.mark.parametrize(
    ("events", "outside"),
    [
        ([event("kill", signal="9"), event("die", exitCode="137")], True),
        ([event("die", exitCode="137")], True),  # a kill -9 on the machine
        ([event("oom"), event("die", exitCode="137")], False),  # it ran out of its memory
        ([event("die", exitCode="0")], True),  # it saw its host hang up
        ([event("die", exitCode="79")], True),  # what it needs was killed
        ([event("die", exitCode="1")], False),
        ([event("die", exitCode="139")], False),
        ([event("oom"), event("die", exitCode="1")], False),
        ([event("oom")], True),  # the engine went away
        ([], True),
    ],
)
def test_only_an_end_of_its_own_speaks_against_a_program(
    events: list[dict[str, Any]], outside: bool
) -> None:
    assert speaks_for_outside(events) is outside


@pytest.mark.docker
@pytest.mark.parametrize(
    ("code", "outside"), [("raise SystemExit(0)", True), ("raise SystemExit(3)", False)]
)
def test_the_engine_remembers_how_a_removed_container_ended(
    docker_engine: str, code: str, outside: bool
) -> None:
    image = DockerBackend().image()
    client = connect()
    name = f"sbx-test-{uuid.uuid4().hex[:8]}"
    try:
        config = client.api.create_host_config(auto_remove=True, network_mode="none")
        client.api.create_container(image, ["python3", "-c", code], name=name, host_config=config)
        client.api.start(name)
        assert lost_from_outside(client, name) is outside
    finally:
        remove_container(client, name)
        client.close()
