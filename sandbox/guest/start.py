"""The first process of an isolated place: it confines itself, then forks the zygote.

Only then does it load what makes it the supervisor, so that no other process carries that along.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from . import seccomp, sockets, zygote

inherited: tuple[int, int, sockets.socket, int]
"""For the supervisor: input from and output to the host, the zygote's socket and process id."""


def main() -> Callable[[], NoReturn] | None:
    """Fork the zygote. Returns None in the first process, and in a template what it is to do."""
    global inherited
    seccomp.hide()
    host_in, host_out = (os.dup(fd) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    seccomp.install()
    ours, theirs = sockets.message_pair()
    pid = os.fork()
    if pid == 0:
        # Detached: no collected object may close a number that has found another use.
        ours.detach()
        return zygote.serve(theirs.detach())
    theirs.close()
    inherited = (host_in, host_out, ours, pid)
    return None
