"""CPU time of a process and all its descendants, dead ones included, nothing counted twice.

The kernel keeps for each process what its own threads have used, ended ones too, and what the
children have used that it has waited for, with what these had waited for in turn. A child's time is
handed to its parent at the moment that the child disappears, so the sum of both numbers over the
processes that are there at one moment is the time of all that ever were, provided that every one
stays in the tree. Orphans would leave it: those of an engine and of a bubblewrap that was ended are
caught by subreapers (`engine_host`, `keeping_orphans`), those in a place by its first process.

Own time is exact to the nanosecond, handed-over time to a tick (10 ms) for each process that waits.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") >> 10
_SETTLED_S = 0.05
_SETTLE_WAIT_S = 3.0
_GUEST_ROLES = {
    "containerd-shim": "supervisor",
    "bwrap": "supervisor",
    "supervisor": "zygote",
    "zygote": "template",
    "template": "program",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process has used so far."""

    role: str
    """What it is: `client` (this process), `dockerd`, `bwrap`, `supervisor`, `zygote` ..."""
    own_s: float
    """CPU seconds of its threads."""
    reaped_s: float
    """CPU seconds of the children that it has waited for, and of theirs."""
    rss_kb: int


Usages = Mapping[int, Usage]
"""By process id."""


@dataclass(frozen=True, slots=True)
class _Stat:
    parent: int
    command: str
    ticks: int
    reaped_ticks: int
    pages: int
    dead: bool
    """Whether it has ended and has not been waited for."""


def usages(*, without: Collection[int] = ()) -> Usages:
    """Return what this process and its descendants have used.

    Args:
        without: ids of children that are left out with all below them.
    """
    stats = dict(_all_stats())
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    me = os.getpid()
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        me: Usage(
            role="client",
            own_s=time.process_time(),
            reaped_s=reaped.ru_utime + reaped.ru_stime,
            rss_kb=stats[me].pages * _PAGE_KB,
        )
    }
    queue = [(pid, "client") for pid in children.get(me, ()) if pid not in without]
    while queue:
        pid, parent_role = queue.pop()
        stat = stats[pid]
        role = _role(stat.command, parent_role)
        found[pid] = Usage(
            role=role,
            own_s=_own_s(pid, stat),
            reaped_s=stat.reaped_ticks * _TICK_S,
            rss_kb=stat.pages * _PAGE_KB,
        )
        queue += [(child, role) for child in children.get(pid, ())]
    return found


@contextlib.contextmanager
def keeping_orphans() -> Iterator[None]:
    """Keep the orphans of descendants in this process's tree for the length of the block.

    They are waited for at the end of it only: until then, dead ones show what they have used.
    """
    libc = ctypes.CDLL(None)
    before = {pid for pid, stat in _all_stats() if stat.parent == os.getpid()}
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid, stat in _all_stats():
            if stat.parent == os.getpid() and stat.dead and pid not in before:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def settled(*, without: Collection[int] = (), patience_s: float = _SETTLE_WAIT_S) -> Usages:
    """Return `usages` once no process comes or goes any more, or after `patience_s` anyway.

    An engine still cleans up when its client has long been answered.
    """
    deadline_s = time.monotonic() + patience_s
    now = usages(without=without)
    while True:
        time.sleep(_SETTLED_S)
        before, now = now, usages(without=without)
        if before.keys() == now.keys() or time.monotonic() > deadline_s:
            return now


def spent_s(before: Usages, after: Usages) -> float:
    """Return the CPU seconds between two looks at a tree."""
    return _total_s(after) - _total_s(before)


def spent_by_role_s(before: Usages, after: Usages) -> dict[str, float]:
    """Return where the time went: seconds by role, what a role has waited for as `<role>'s dead`.

    The time of a process that disappeared in between is among its parent's dead, all of it, and
    taken off its own role: look at long-lived processes, or take it as the sum that it is.
    """
    roles: dict[str, float] = {}
    for looks, sign in ((before, -1), (after, 1)):
        for usage in looks.values():
            dead = f"{usage.role}'s dead"
            roles[usage.role] = roles.get(usage.role, 0.0) + sign * usage.own_s
            roles[dead] = roles.get(dead, 0.0) + sign * usage.reaped_s
    return roles


def _total_s(looks: Usages) -> float:
    return sum(usage.own_s + usage.reaped_s for usage in looks.values())


def _role(command: str, parent_role: str) -> str:
    """Guests all run the same command, so what they are follows from whose children they are."""
    if command.startswith("python"):
        return _GUEST_ROLES.get(parent_role, command)
    return command


def _all_stats() -> Iterator[tuple[int, _Stat]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                text = Path("/proc", name, "stat").read_text("utf-8", "replace")
            except OSError:
                continue  # it has just ended
            yield int(name), _parsed(text)


def _parsed(text: str) -> _Stat:
    """Read a line of /proc/PID/stat; the command may hold blanks and parentheses."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return _Stat(
        parent=int(fields[1]),
        command=head.partition("(")[2],
        ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
        pages=int(fields[21]),
        dead=fields[0] == "Z",
    )


def _own_s(pid: int, stat: _Stat) -> float:
    try:
        # The kernel's name for the CPU clock of another process, as `clock_getcpuclockid` makes it.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:  # a zombie, or gone
        return stat.ticks * _TICK_S
