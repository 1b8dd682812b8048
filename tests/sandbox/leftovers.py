"""What is there of a process's sandboxes: containers, processes, control groups."""

from __future__ import annotations

import contextlib
from pathlib import Path

from sandbox import cgroup
from sandbox.base import SandboxUnavailable
from sandbox.container import OWNER_LABEL
from sandbox.docker_client import connect


def containers_of(owner: str) -> list[str]:
    """Names of an owner's containers, running or not."""
    client = connect()
    try:
        entries = client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner}"})
    finally:
        client.close()
    return [entry["Names"][0] for entry in entries]


def groups_of(owner: str) -> list[Path]:
    """An owner's control groups."""
    name = f"{cgroup._PREFIX}{owner.replace(':', '_')}-"
    parents = {parent for parents in cgroup._candidates() for parent in parents}
    return [path for parent in parents for path in parent.glob(f"{name}*")]


def descendants(pid: int) -> list[int]:
    """Processes below a process."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += [int(child) for child in task.read_text().split()]
        except OSError:
            continue  # the thread has ended
    return children + [below for child in children for below in descendants(child)]


def left_by(owner: str, pid: int) -> list[str]:
    """All that is left of the sandboxes of a process that has closed them."""
    found = [f"control group {path}" for path in groups_of(owner)]
    with contextlib.suppress(SandboxUnavailable):
        found += [f"container {name}" for name in containers_of(owner)]
    for below in descendants(pid):
        try:
            line = Path(f"/proc/{below}/cmdline").read_bytes()
        except OSError:
            continue
        if b"bwrap" in line or b"sandbox-janitor" in line:
            found.append(f"process {below}: {line[:80]!r}")
    return found
