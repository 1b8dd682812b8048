"""The process that children are forked from. It never sees a program, an input or a result.

So a child inherits nothing of an earlier run. It takes orders from the supervisor over a socket:
run (with the descriptors of program, input, output, error and setup pipe) or sweep (kill what a
user id left behind).
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import struct
import sys
from collections.abc import Callable
from typing import NoReturn

from . import child, cleaning, limits

ORDER = struct.Struct(">BIIQQI")  # operation, uid, CPU seconds, address space, file size, processes
ENDED = struct.Struct(">IdI")  # wait status, CPU seconds, resident KiB
RUN, SWEEP = b"RS"
SWEPT = b"D"

CONTROL_FD = 3

# What most programs import. Not random, queue or threading: their fork hooks and state cost
# every child more than they save.
PRELOADED = (
    *("array", "bisect", "cmath", "collections", "copy", "functools", "heapq", "itertools"),
    *("json", "math", "operator", "re", "string", "struct", "traceback", "typing"),
)


def warm_up() -> None:
    """Load what children will need and settle the interpreter."""
    for name in PRELOADED:
        importlib.import_module(name)
    sys.set_int_max_str_digits(0)
    child.rehearse()
    gc.freeze()


def serve(control: socket.socket) -> Callable[[], NoReturn]:
    """Follow orders for ever. Returns only in a child: the function that runs its program."""
    os.setgroups([])
    limits.set_constant()
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("900")
    warm_up()
    control.send(SWEPT)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, ORDER.size, 6)
        if not message:
            os._exit(0)
        operation, uid, *numbers = ORDER.unpack(message)
        if operation == SWEEP:
            cleaning.kill_all_of(uid)
            cleaning.remove_files_of(uid)
            control.send(SWEPT)
            continue
        pid = os.fork()
        if pid == 0:
            control.detach()  # or its collection would close the child's descriptor 3
            return _become(uid, numbers, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        control.send(ENDED.pack(status, cpu, usage.ru_maxrss))


def _become(uid: int, numbers: list[int], descriptors: list[int]) -> Callable[[], NoReturn]:
    """Turn this forked process into the confined child."""
    program, stdin, stdout, stderr, setup, *channel = descriptors
    source = os.pread(program, os.fstat(program).st_size, 0)
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    # Received descriptors start right after the control socket: stepping on 3 and 4 is safe in
    # this order.
    setup = os.dup(setup)
    if channel:
        os.dup2(channel[0], CONTROL_FD)
    else:
        os.close(CONTROL_FD)
    os.dup2(setup, child.SETUP_FD, inheritable=False)
    os.closerange(child.SETUP_FD + 1, limits.OPEN_FILES)
    os.chdir(cleaning.TMP)
    limits.set_for_run(*numbers)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    return child.prepare(source, child.SETUP_FD, os.getpid())
