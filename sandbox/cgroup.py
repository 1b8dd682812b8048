"""A memory and process limit for a group of processes, where control groups can be made by hand.

Works on version 1 hierarchies and on version 2 where the memory controller is handed down. A
place in a control group is optional: where none can be made, `create` returns None and the
backend says so.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .janitor import Janitor
from .owner import is_gone, this_owner

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "mars-envs-sandbox-"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group made by `create`."""

    folders: tuple[Path, ...]
    """One folder (version 2) or one for each controller (version 1); memory comes first."""

    def oom_kills(self) -> int | None:
        """Return how many processes of the group have been killed for memory."""
        try:
            lines = Path(self.oom_counter()[0]).read_text().splitlines()
        except OSError:
            return None
        return next((int(line[9:]) for line in lines if line.startswith("oom_kill ")), None)

    def oom_counter(self) -> tuple[str, str]:
        """Return the file that counts kills for memory, and where a guest looks for it."""
        version_2 = self.folders[0] / "memory.events"
        if version_2.exists():
            return str(version_2), "/sys/fs/cgroup/memory.events"
        version_1 = self.folders[0] / "memory.oom_control"
        return str(version_1), "/sys/fs/cgroup/memory/memory.oom_control"

    def enter_command(self) -> list[str]:
        """Return a command prefix that enters the group and then becomes its arguments."""
        script = 'for f in $0; do echo $$ > "$f/cgroup.procs" || exit 125; done; exec "$@"'
        return ["/bin/sh", "-c", script, " ".join(map(str, self.folders))]

    def remove(self) -> None:
        """Remove the group, whose processes have ended or are about to. Never raises."""
        self._remove()
        _janitor(os.getpid()).need_no_more()

    def _remove(self) -> None:
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        break
                    time.sleep(0.01)
                else:
                    break


def create(number: int, *, memory_mb: int, processes: int) -> ControlGroup | None:
    """Make a group, the owner's `number`th, or return None where that is not possible."""
    _reap_once(os.getpid())
    for parents in _candidates():
        # No blanks: the folders go through a shell as one word list.
        folders = tuple(parent / f"{_leaf()}{number}" for parent in parents)
        group = ControlGroup(folders)
        try:
            for folder in folders:
                folder.mkdir()
            _limit(folders, memory_mb << 20, processes)
        except OSError:
            group._remove()
            continue
        _janitor(os.getpid()).need()
        return group
    return None


def _leaf() -> str:
    """Return how the names of this process's groups begin."""
    return f"{_PREFIX}{this_owner().replace(':', '_')}-"


_janitors: dict[int, Janitor] = {}
_making = threading.Lock()


def _janitor(pid: int) -> Janitor:
    """Return this process's janitor: a fork has its own. The same one for all threads."""
    with _making:
        if pid not in _janitors:
            parents = [parent for parents in _candidates() for parent in parents]
            _janitors[pid] = Janitor(parent / _leaf() for parent in parents)
        return _janitors[pid]


def _forget_janitor() -> None:
    global _making
    _making = threading.Lock()  # another thread of the parent may have held it
    for janitor in _janitors.values():
        janitor.forget()
    _janitors.clear()


os.register_at_fork(after_in_child=_forget_janitor)


def reap() -> int:
    """Remove the groups of owners that are gone; return how many folders went.

    They may be anywhere in the hierarchy: an owner makes its groups below its own.
    """
    removed = 0
    hierarchies = (_ROOT / "memory", _ROOT / "pids") if (_ROOT / "memory").is_dir() else (_ROOT,)
    for hierarchy in hierarchies:
        for parent, folders, _ in os.walk(hierarchy):
            for name in [name for name in folders if name.startswith(_PREFIX)]:
                folders.remove(name)
                owner = name.removeprefix(_PREFIX).rpartition("-")[0]
                if is_gone(":".join(owner.rsplit("_", 2))):
                    with contextlib.suppress(OSError):
                        os.rmdir(f"{parent}/{name}")
                        removed += 1
    return removed


@functools.cache
def _reap_once(pid: int) -> None:
    """Remove what earlier processes were killed too suddenly to remove."""
    reap()


def _candidates() -> list[tuple[Path, ...]]:
    """Return the sets of parents to try: this process's own groups, then the top ones."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text("utf-8", "replace").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path.lstrip("/")
    found = []
    if (_ROOT / "memory").is_dir():
        for paths in (own, {}):
            found.append(tuple(_ROOT / kind / paths.get(kind, "") for kind in ("memory", "pids")))
    else:
        for path in (own.get("", ""), ""):
            found.append((_ROOT / path,))
    return found


def _limit(folders: tuple[Path, ...], memory: int, processes: int) -> None:
    first, last = folders[0], folders[-1]
    if (first / "memory.limit_in_bytes").exists():
        (first / "memory.limit_in_bytes").write_text(str(memory))
        with contextlib.suppress(OSError):  # absent where swap is not accounted
            (first / "memory.memsw.limit_in_bytes").write_text(str(memory))
    else:
        (first / "memory.max").write_text(str(memory))
        with contextlib.suppress(OSError):
            (first / "memory.swap.max").write_text("0")
    (last / "pids.max").write_text(str(processes))
    if not os.access(first / "cgroup.procs", os.W_OK):
        raise PermissionError("processes cannot be moved there")
