"""The process that the tests of one program are forked from.

It becomes an unprivileged user, then compiles the program, and never runs a line of it: each test
is a fork that finds the program compiled and the streams open, which halves the cost of a test.

It takes orders from the supervisor over a socket of its own: run (with the descriptors of input,
output, error and perhaps a channel). It and its children answer there, one letter first: `S` every
restriction is in force; `F` and why one is not; `R` or `C` a child, whose process id the kernel
attaches, is about to run the program, or to say why it does not compile; `E` and the facts about an
ended child. A child closes the socket before the program's first line, so a program can fake none
of these.

Neither can it harm this process. The tests' user id is only the effective one here; the real and
the saved one are an id that nothing else has. A process may signal another if one of its ids
matches the real or saved id of the other, so a test may not; yet a process without any privilege
may take on its effective id for good, so a child can become the tests' user, and cannot go back.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import struct
import types
from collections.abc import Sequence
from typing import NoReturn

from . import child, limits, seccomp, sockets

ENDED = struct.Struct(">cIdI")  # `E`, wait status, CPU seconds, resident KiB
RUN = b"R"

# The zygote has taken 0 to 3, so these two are the first that it receives.
CONTROL_FD = 4
_PROGRAM_FD = 5
STAND_INS = (10, 11, 12, 13)
"""Descriptors that take the places of 0, 1, 2 and 3 while there is no test."""

# Imported here, once, where a program names them, instead of in each of its tests. Not what has
# threads or files. (`random` draws a new seed after each fork.)
PREIMPORTED = frozenset(
    (
        *("abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy"),
        *("dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "heapq"),
        *("io", "itertools", "json", "math", "numbers", "operator", "os", "random", "re"),
        *("statistics", "string", "struct", "sys", "textwrap", "time", "typing"),
    )
)


def main(
    own_id: int, tests_id: int, numbers: Sequence[int], descriptors: Sequence[int]
) -> NoReturn:
    """Confine this process, prepare the program and fork its tests.

    Args:
        own_id: real and saved user and group id to take.
        tests_id: user and group id of the tests.
        numbers: CPU seconds, then what `limits.set_sizes` takes.
        descriptors: the supervisor's socket and a file with the program.
    """
    cpu, *sizes = numbers
    assert tuple(descriptors) == (CONTROL_FD, _PROGRAM_FD)
    os.closerange(STAND_INS[-1] + 1, limits.OPEN_FILES)
    try:
        limits.set_sizes(*sizes)
        limits.set_cpu_for_now(cpu)
        os.setsid()
        os.setresgid(own_id, tests_id, own_id)
        os.setresuid(own_id, tests_id, own_id)
        if not seccomp.hidden_by_change_of_user():
            seccomp.hide()
    except OSError as error:
        os.write(CONTROL_FD, b"F" + str(error).encode())
        os._exit(1)
    os.write(CONTROL_FD, b"S")
    program = child.Prepared(os.pread(_PROGRAM_FD, os.fstat(_PROGRAM_FD).st_size, 0))
    os.close(_PROGRAM_FD)
    if program.code is not None:
        _import_modules_of(program.code)
    limits.set_cpu_for_now(None)
    gc.freeze()
    program.make_main()
    _serve(program, cpu, tests_id)


def _serve(program: child.Prepared, cpu: int, user: int) -> NoReturn:
    """Fork a test for each order.

    All pages are shared after a fork, and whoever writes to one, if only to count a reference,
    pays for a copy. So this is one flat function on local names; what can be is done before the
    fork.
    """
    control = sockets.socket(fileno=CONTROL_FD)
    word = b"R" if program.code is not None else b"C"
    limit, cpu_limits = resource.RLIMIT_CPU, (cpu, cpu + 1)  # a second for who catches SIGXCPU
    run, reply, pack = program.run, control.send, ENDED.pack
    receive, room = control.recvmsg, sockets.room_for(4)
    unpack = {count: struct.Struct(f"{count}i").unpack for count in (3, 4)}
    fork, wait4, write, close, dup2 = os.fork, os.wait4, os.write, os.close, os.dup2
    closerange, most = os.closerange, limits.OPEN_FILES
    setrlimit, setresgid, setresuid = resource.setrlimit, os.setresgid, os.setresuid
    while True:
        order, ancillary, _, _ = receive(1, room)
        if order != RUN:
            os._exit(0)
        rights = ancillary[0][2]
        descriptors = unpack[len(rights) // 4](rights)
        for number, descriptor in enumerate(descriptors):
            dup2(descriptor, number)
            close(descriptor)
        spare = len(descriptors)
        pid = fork()
        if pid == 0:
            setrlimit(limit, cpu_limits)
            setresgid(user, user, user)
            setresuid(user, user, user)
            write(CONTROL_FD, word)
            closerange(spare if spare == CONTROL_FD else child.CHANNEL_FD, most)
            run()
        # Only then the rest: pages that no one shares any more need no copy.
        _, status, usage = wait4(pid, 0)
        for number in range(spare):
            dup2(STAND_INS[number], number)
        reply(pack(b"E", status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))


def _import_modules_of(code: types.CodeType) -> None:
    # Names of imported modules are among those that the outermost code mentions.
    for name in PREIMPORTED.intersection(code.co_names):
        try:
            importlib.import_module(name)
        except Exception:  # the program will meet it, if it comes so far
            continue
