"""Running one program: compile it, run it as `__main__`, and leave as the interpreter would.

The setup pipe tells how far it came: a number, `S` once every restriction is in force, `C` if the
program does not compile, `R` just before its first line. The pipe is closed before that line, so
a program can fake none of these.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import os
import sys
import types
from collections.abc import Callable
from typing import NoReturn

CHANNEL_FD = 3
SETUP_FD = 4
FILENAME = "solution.py"

_exit = os._exit


def prepare(source: bytes, setup: int, note: int) -> Callable[[], NoReturn]:
    """Compile `source` and return the function that runs it and never returns.

    Args:
        source: the program, any bytes at all.
        setup: the writing end of the setup pipe, which this closes.
        note: a number to write there before the first letter.
    """
    os.write(setup, b"%dS" % note)
    try:
        # Whatever the compiler chokes on (NUL bytes, bad encodings, nesting) makes the program
        # one that does not compile.
        code = compile(source, FILENAME, "exec", dont_inherit=True)
    except BaseException as error:
        os.write(setup, b"C")
        os.close(setup)
        _open_streams()
        error.__traceback__ = None
        _report(error)
        _exit(1)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=FILENAME, __loader__=_Loader(source))
    sys.modules["__main__"] = main
    sys.argv = [FILENAME]
    _open_streams()

    def run() -> NoReturn:
        status = 0
        os.write(setup, b"R")
        os.close(setup)
        try:
            exec(code, main.__dict__)
        except SystemExit as error:
            status = _exit_status(error)
        except BaseException as error:
            # Our own frame is no business of whoever reads the traceback.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            _report(error)
            status = 1
        _leave(main, status)

    return run


class _Loader:
    """Where tracebacks find the lines of the program, which is in no file."""

    def __init__(self, source: bytes) -> None:
        self._source = source

    def get_source(self, name: str) -> str:
        return self._source.decode("utf-8", "replace")


def rehearse() -> None:
    """Go through a run on the null device, so that children find the interpreter set up for it.

    The first compilation of a process alone costs 2 ms.
    """
    _open_streams()
    exec(compile("print(sum(map(int, '1 2'.split())))", FILENAME, "exec"), {})
    sys.stdout.flush()


def _open_streams() -> None:
    """Put real streams, with a `.buffer`, on the descriptors 0, 1 and 2."""
    # ruff: noqa: SIM115 - they stay open
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _report(error: BaseException) -> None:
    """Print an uncaught exception as the interpreter would, with source lines."""
    try:
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
        else:
            import traceback  # a program that does not fail need not pay for it

            traceback.print_exception(error, file=sys.stderr)
    except MemoryError:
        os.write(2, b"MemoryError\n")
    except BaseException:
        os.write(2, b"error in printing an exception\n")


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    try:
        print(error.code, file=sys.stderr)
    except BaseException:
        os.write(2, b"error in printing the exit code\n")
    return 1


def _leave(main: types.ModuleType, status: int) -> NoReturn:
    """Do what programs rely on at exit, in the interpreter's order, without its teardown."""
    stdout = sys.__stdout__
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, stdout, sys.stderr):
            if stream is not None and not getattr(stream, "closed", True):
                stream.flush()
        # Streams that the program opened itself are flushed when they are collected.
        main.__dict__.clear()
        gc.collect()
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        _report(error)
        status = status or 120
    _exit(status)
