"""Who owns a worker: a name for this process that outlives it and cannot be taken over.

A process id alone would be reused one day; with the start time it is unique where ids are counted,
which is a process namespace between two boots of a machine. Several containers, or machines that
are clones of one, may share a host name and an engine.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_owner() -> str:
    """Return `<place>:<pid>:<start time>` of this process."""
    pid = os.getpid()
    return f"{_place()}:{pid}:{_start_time(pid)}"


def is_gone(owner: str) -> bool:
    """Whether the process that `owner` names has ended. Owners in other places count as alive."""
    place, _, rest = owner.rpartition(":")[0].rpartition(":")
    pid, start = rest, owner.rpartition(":")[2]
    if place != _place() or not pid.isdigit():
        return False
    return _start_time(int(pid)) != start


def _place() -> str:
    """Return what tells apart where process ids are counted: host, boot and namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"{socket.gethostname()}-{boot}-{namespace}"


def _start_time(pid: int) -> str:
    """Return clock ticks from boot to the start of process `pid`; empty if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    # A zombie has ended; only its parent has not noticed.
    return "" if state in "ZX" else fields[18]
