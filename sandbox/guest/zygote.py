"""The process that templates are forked from. It never sees a program, an input or a result.

So a template, and a test forked from it, inherits nothing of other programs. It takes orders from
the supervisor over a socket: start a template (with the descriptors of its socket and of the
program), collect it (kill it and tell how it ended), or sweep (kill what a user id left behind and
remove its files).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import NoReturn

from . import child, cleaning, limits, sockets, template

# Operation, template's id, tests' id, CPU seconds, address space, file size, processes
ORDER = struct.Struct(">BIIIQQI")
COLLECTED = struct.Struct(">Id")  # wait status, CPU seconds
START, COLLECT, SWEEP = b"TCS"
DONE = b"D"

CONTROL_FD = 20
_STDERR_FD = 21
_READER_FD = 22

# What most programs import, or need for a traceback. Each fork copies the tables of all memory, so
# this is short: a template imports what else its program names.
PRELOADED = (
    *("collections", "functools", "itertools", "math", "operator", "re", "string", "traceback"),
    "typing",
)


def warm_up() -> None:
    """Load what children will need and settle the interpreter."""
    for name in PRELOADED:
        importlib.import_module(name)
    sys.set_int_max_str_digits(0)
    child.rehearse()
    gc.freeze()


def serve(control: int) -> Callable[[], NoReturn]:
    """Follow orders for ever. Returns only in a template: the function that it is.

    Args:
        control: descriptor of the socket of the supervisor.
    """
    end = _arrange(control)
    try:
        os.setgroups([])
        limits.set_constant()
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("900")
        warm_up()
        end.send(DONE)
        return _follow(end)
    except BaseException:
        os.dup2(_STDERR_FD, 2)
        raise


def _arrange(control: int) -> sockets.socket:
    """Put other descriptors where a test has its own, of the same kinds, so that streams fit."""
    os.dup2(2, _STDERR_FD, inheritable=False)
    os.dup2(control, CONTROL_FD, inheritable=False)
    os.closerange(0, CONTROL_FD)
    os.closerange(_STDERR_FD + 1, 4096)
    os.memfd_create("stdin")
    reading, writing = os.pipe()
    os.dup2(reading, _READER_FD)
    os.dup2(writing, reading)
    os.dup2(writing, child.CHANNEL_FD)
    for number, other in enumerate(template.STAND_INS):
        os.dup2(number, other)
    return sockets.socket(fileno=CONTROL_FD)


def _follow(control: sockets.socket) -> Callable[[], NoReturn]:
    pid = 0
    while True:
        message, descriptors = sockets.receive(control, ORDER.size, 2)
        if not message:
            os._exit(0)
        operation, own_id, tests_id, *numbers = ORDER.unpack(message)
        if operation == SWEEP:
            cleaning.kill_all_of(tests_id)
            cleaning.remove_files_of(tests_id)
            control.send(DONE)
        elif operation == COLLECT:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            control.send(COLLECTED.pack(status, usage.ru_utime + usage.ru_stime))
        else:
            pid = os.fork()
            if pid == 0:
                control.detach()  # or its collection would close a number that has another use
                return functools.partial(template.main, own_id, tests_id, numbers, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
