"""The process that the tests of one program are forked from.

It becomes an unprivileged user, then compiles the program, and never runs a line of it: each test
is a fork that finds the program compiled and the streams open, which halves the cost of a test.

It takes orders from the supervisor over a socket of its own: run (with the descriptors of input,
output, error and perhaps a channel). It and its children answer there, one letter first: `S` every
restriction is in force; `F` and why one is not; `R` or `C` with the process id of a child that is
about to run the program, or to say why it does not compile; `E` with the facts about an ended
child. A child closes the socket before the program's first line, so a program can fake none of
these.

Neither can it harm this process. The tests' user id is only the effective one here; the real and
the saved one are an id that nothing else has. A process may signal another if one of its ids
matches the real or saved id of the other, so a test may not; yet a process without any privilege
may take on its effective id for good, so a child can become the tests' user, and cannot go back.
"""

from __future__ import annotations

import gc
import importlib
import os
import struct
import types
from collections.abc import Callable, Sequence
from typing import NoReturn

from . import child, limits, seccomp, sockets

ENDED = struct.Struct(">cIdI")  # `E`, wait status, CPU seconds, resident KiB
RUN = b"R"

CONTROL_FD = 4
_PROGRAM_FD = 5

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


def serve(
    own_id: int, tests_id: int, numbers: Sequence[int], descriptors: Sequence[int]
) -> Callable[[], NoReturn]:
    """Confine this process and follow orders. Returns only in a child: the function that runs it.

    Args:
        own_id: real and saved user and group id to take.
        tests_id: user and group id of the tests.
        numbers: CPU seconds, then what `limits.set_sizes` takes.
        descriptors: the supervisor's socket and a file with the program.
    """
    cpu, *sizes = numbers
    _arrange(descriptors)
    try:
        limits.set_sizes(*sizes)
        limits.set_cpu_for_now(cpu)
        os.setsid()
        os.setresgid(own_id, tests_id, own_id)
        os.setresuid(own_id, tests_id, own_id)
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
    control = sockets.socket(fileno=CONTROL_FD)
    while True:
        order, descriptors = sockets.receive(control, 1, 4)
        if order != RUN:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            control.detach()  # or its collection would close a number that has another use by then
            return _become_test(program, cpu, tests_id, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status, usage = os.wait4(pid, 0)
        control.send(ENDED.pack(b"E", status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))


def _arrange(descriptors: Sequence[int]) -> None:
    """Put each descriptor in its place; 0, 1 and 2 are of the kinds that a test will find there."""
    control, program = (os.dup2(fd, 20 + i) for i, fd in enumerate(descriptors))
    os.closerange(0, 20)
    os.memfd_create("stdin")
    reading, _ = os.pipe()
    os.dup2(2, reading)
    os.dup2(control, CONTROL_FD, inheritable=False)
    os.dup2(program, _PROGRAM_FD, inheritable=False)
    os.closerange(_PROGRAM_FD + 1, limits.OPEN_FILES)


def _become_test(
    program: child.Prepared, cpu: int, user: int, descriptors: Sequence[int]
) -> Callable[[], NoReturn]:
    """Turn this forked process into a confined test."""
    stdin, stdout, stderr, *channel = descriptors
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    first_unused = child.CHANNEL_FD
    if channel:
        os.dup2(channel[0], child.CHANNEL_FD)
        first_unused += 1
    limits.set_cpu(cpu)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.write(CONTROL_FD, b"%c%d" % (b"C" if program.code is None else b"R", os.getpid()))
    os.closerange(first_unused, limits.OPEN_FILES)
    return program.run


def _import_modules_of(code: types.CodeType) -> None:
    # Names of imported modules are among those that the outermost code mentions.
    for name in PREIMPORTED.intersection(code.co_names):
        try:
            importlib.import_module(name)
        except Exception:  # the program will meet it, if it comes so far
            continue
