"""Running one program: compile it, run it as `__main__`, and leave as the interpreter would.

A program is compiled once and may then run in many forked processes. The code and the streams on
the descriptors 0, 1 and 2, and the module that it is, are made beforehand.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import os
import sys
import types
from typing import NoReturn

CHANNEL_FD = 3
FILENAME = "solution.py"

_MOST_FRAMES = 100

_SUSPENDABLE = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator
_NOTICEABLE = frozenset(
    (
        *("open", "fdopen", "io", "detach", "reconfigure", "__class__", "__del__", "type"),
        *("exec", "eval", "compile", "__import__", "getattr", "globals", "locals", "vars"),
        *("__builtins__", "modules", "finalize"),
    )
)

_exit = os._exit


class Prepared:
    """A program that is ready to run, or the reason why it does not compile.

    Streams have to be open (`open_streams`) before it runs.
    """

    def __init__(self, source: bytes) -> None:
        """Compile `source`, any bytes at all; a failure is kept for `run`."""
        self._failure: BaseException | None = None
        try:
            # Whatever the compiler chokes on (NUL bytes, bad encodings, nesting) makes the
            # program one that does not compile.
            self.code: types.CodeType | None = compile(source, FILENAME, "exec", dont_inherit=True)
        except BaseException as error:
            error.__traceback__ = None
            self.code = None
            self._failure = error
        self._plain = self.code is not None and is_plain(self.code)
        self.main: types.ModuleType | None = None
        """The module that the program is (`make_main`)."""
        self._loader = _Loader(source)
        sys.argv = [FILENAME]

    def make_main(self) -> None:
        """Make the module that the program will be.

        It and what hangs on it are collected at exit, so after a `gc.freeze`, which would keep it.
        """
        self.main = sys.modules["__main__"] = types.ModuleType("__main__")
        self.main.__dict__.update(__builtins__=builtins, __file__=FILENAME, __loader__=self._loader)

    def run(self) -> NoReturn:
        """Run the program and end this process, or say why it does not compile."""
        if self.code is None:
            assert self._failure is not None
            _report(self._failure)
            _exit(1)
        assert self.main is not None
        status, modules = 0, len(sys.modules)
        try:
            exec(self.code, self.main.__dict__)
        except SystemExit as error:
            status = _exit_status(error)
        except BaseException as error:
            # Our own frame is no business of whoever reads the traceback.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            _report(error)
            status = 1
        _leave(self, status, plain=self._plain and len(sys.modules) == modules)


def is_plain(code: types.CodeType) -> bool:
    """Whether no object of this program can have an effect when it is collected at exit.

    What may have one: streams of its own, finalizers, suspended generators, and code that cannot
    be seen here. To look for these costs a tenth of what it saves in each test.
    """
    if code.co_flags & _SUSPENDABLE or not _NOTICEABLE.isdisjoint(code.co_names):
        return False
    return all(is_plain(part) for part in code.co_consts if isinstance(part, types.CodeType))


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
    open_streams()
    exec(compile("print(sum(map(int, '1 2'.split())))", FILENAME, "exec"), {})
    sys.stdout.flush()


def open_streams() -> None:
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

            # To write out a hundred thousand frames would cost more than the program.
            traceback.print_exception(error, limit=-_MOST_FRAMES, file=sys.stderr)
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


def _leave(prepared: Prepared, status: int, *, plain: bool) -> NoReturn:
    """Do what programs rely on at exit, in the interpreter's order, without its teardown.

    Args:
        prepared: the program.
        status: exit status so far.
        plain: whether nobody would notice if the program's objects were not collected.
    """
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        if not _flush_standard_streams():
            status = status or 120
        if not plain:
            _collect(prepared)
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        _report(error)
        status = status or 120
    if not plain or sys.stdout is not sys.__stdout__:
        for stream in (sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(BaseException):  # the interpreter does it without a word, too
                if stream is not None:
                    stream.flush()
    _exit(status)


def _flush_standard_streams() -> bool:
    """Flush what the program has for standard output and error; return whether that worked."""
    worked = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not _is_closed(stream):
                stream.flush()
        except BaseException as error:
            worked = False
            if stream is sys.stdout:
                _report(error)
    return worked


def _is_closed(stream: object) -> bool:
    try:
        return bool(getattr(stream, "closed", False))
    except Exception:
        return False


def _collect(prepared: Prepared) -> None:
    """Let finalizers run and streams of the program's own be flushed, its globals intact."""
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    prepared.main = None
    sys.modules.pop("__main__", None)
    gc.collect()
