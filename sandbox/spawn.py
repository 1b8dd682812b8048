"""Starting processes that must die with this process.

The kernel's parent-death signal, which `bwrap --die-with-parent` asks for, comes when the
*thread* that started a process ends. Worker threads of a trainer come and go, so one thread,
which lives as long as the process, starts everything.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future

_Job = tuple[Future["subprocess.Popen[bytes]"], Sequence[str], tuple[int, int, int], Sequence[int]]

_jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
_lock = threading.Lock()
_running = False


def spawn(
    command: Sequence[str], *, stdio: tuple[int, int, int], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start `command` from the thread that outlives all others.

    Args:
        command: program and arguments; it gets no environment.
        stdio: descriptors for its standard input, output and error.
        pass_fds: further descriptors that it keeps under the same numbers.

    Raises:
        OSError: it could not be started.
    """
    global _running
    job: _Job = (Future(), command, stdio, pass_fds)
    with _lock:
        if not _running:
            threading.Thread(target=_work, name="sandbox-spawner", daemon=True).start()
            _running = True
        _jobs.put(job)
    return job[0].result()


def _work() -> None:
    while True:
        future, command, (stdin, stdout, stderr), pass_fds = _jobs.get()
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                env={},
                start_new_session=True,  # a Ctrl-C at the terminal is for the trainer alone
            )
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(process)


def _reset() -> None:
    """In a forked process there is no such thread any more."""
    global _jobs, _lock, _running
    _jobs, _lock, _running = queue.SimpleQueue(), threading.Lock(), False


os.register_at_fork(after_in_child=_reset)
