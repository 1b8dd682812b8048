"""PID 1 of an isolated place: speaks with the host, starts programs through zygote and template.

Levels of trust: the supervisor owns the channel to the host; the zygote forks a template for each
program; a template compiles it as an unprivileged user and forks a child for each test, which runs
it. The supervisor treats every byte that comes from a child as opaque; what it reports are facts of
the kernel: exit status, CPU time, sizes, its own clock and the memory controller's counter. The end
of the host's stream ends the supervisor and with it the place.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from . import seccomp, sockets, wire, zygote
from .host import Host
from .place import Place
from .run import Run


def main() -> Callable[[], NoReturn]:
    """Serve the host until it hangs up. Returns only in a template: what it is to do."""
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
        os.dup2(theirs.detach(), zygote.CONTROL_FD)
        os.closerange(zygote.CONTROL_FD + 1, 4096)
        return zygote.serve(sockets.socket(fileno=zygote.CONTROL_FD))
    theirs.close()
    return serve(Host(host_in, host_out), Place(ours, pid))


def serve(host: Host, place: Place) -> NoReturn:
    """Answer requests until the host hangs up."""
    gc.freeze()
    host.post(wire.pack(wire.HELLO, sys.version.encode()))
    while True:
        kind, payload = host.next_request()
        if kind == wire.LOAD:
            place.load(*wire.unpack_load(payload))
        elif kind in (wire.RUN, wire.OPEN):
            run = Run(place, host, payload, with_channel=kind == wire.OPEN)
            facts = run.watch()
            host.post(wire.pack_result(facts, bytes(run.stdout), bytes(run.stderr)))
            if not place.clean:
                # Whoever has asked for more must ask elsewhere.
                host.flush()
                os._exit(0)
        # Data and the end of a session that has ended by itself come too late.
