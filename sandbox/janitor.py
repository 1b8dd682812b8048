"""A process that outlives this one by a moment and removes the control groups that it leaves.

However this process ends, the kernel ends what runs in its groups and the engine its containers;
only the folders of the groups would stay until someone looks. No signal handler could see to that
after `kill -9`, and signals belong to the trainer. So while there are groups a shell waits for the
end of a pipe, which comes when this process is gone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

_SCRIPT = """
trap '' HUP INT TERM
read nothing
tries=0
while [ $tries -lt 100 ]; do
    left=no
    for start in "$@"; do
        for folder in "$start"*; do
            if [ -d "$folder" ] && ! rmdir "$folder" 2>/dev/null; then left=yes; fi
        done
    done
    if [ $left = no ]; then exit; fi
    tries=$((tries + 1))
    sleep 0.1
done
"""


class Janitor:
    """Waits for as long as someone needs it.

    Args:
        starts: how the paths of the folders begin that are to be removed.
    """

    def __init__(self, starts: Iterable[Path]) -> None:
        self._starts = tuple(map(str, starts))
        self._lock = threading.Lock()
        self._needed = 0
        self._pid = 0
        self._pipe = -1

    def need(self) -> None:
        """Have it wait, once more."""
        with self._lock:
            self._needed += 1
            if self._needed == 1:
                self._start()

    def need_no_more(self) -> None:
        """Take one call of `need` back; with the last one it ends."""
        with self._lock:
            self._needed -= 1
            if self._needed == 0:
                self._stop()

    def forget(self) -> None:
        """Let go of it without ending it: in a forked process it belongs to the parent."""
        if self._needed:
            os.close(self._pipe)

    def _start(self) -> None:
        theirs, self._pipe = os.pipe()
        try:
            # In a session of its own: what ends the trainer's group must not end this first.
            with contextlib.suppress(OSError):  # then the next start cleans up
                process = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT, "sandbox-janitor", *self._starts],
                    stdin=theirs,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
                self._pid = process.pid
                process.returncode = 0  # it may outlive this process, and is collected by `_stop`
        finally:
            os.close(theirs)

    def _stop(self) -> None:
        os.close(self._pipe)
        pid, self._pid = self._pid, 0
        if pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
