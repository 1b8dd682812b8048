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
from typing import NoReturn

from . import sockets, wire
from .host import Host
from .place import Place
from .run import Run


def main(host_in: int, host_out: int, control: sockets.socket, zygote_pid: int) -> NoReturn:
    """Answer requests until the host hangs up.

    Args:
        host_in: requests of the host.
        host_out: answers to the host.
        control: socket of the zygote.
        zygote_pid: process id of the zygote.
    """
    host, place = Host(host_in, host_out), Place(control, zygote_pid)
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
