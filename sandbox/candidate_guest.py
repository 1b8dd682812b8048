"""Runs inside the program's guest: loads the untrusted program and serves calls of its function.

Everything here shares a process with the program and may be rewritten by it. Nothing rests on
that: whatever it sends is, to the test's driver, just what the function returned.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from typing import Any, NoReturn

from .codec import TooLarge, decode, encode, pack
from .driver_guest import Channel

FILE = "solution.py"
TRACE_CHARACTERS = 4000


def serve(source: str, entry_point: str) -> NoReturn:
    """Load the program, then answer calls until the host closes the channel.

    Args:
        source: the program.
        entry_point: the function to call.
    """
    channel = Channel()
    try:
        code = compile(source, FILE, "exec", dont_inherit=True)
    except BaseException as error:
        channel.send("compile_error", *_describe(error, source))
        os._exit(1)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        channel.send("load_error", *_describe(error, source))
        os._exit(1)
    function = module.__dict__.get(entry_point)
    channel.send("ready" if callable(function) else "missing")
    while True:
        message = channel.receive()
        if message[0] != "call":
            os._exit(0)
        _answer(channel, function, decode(message[1]), decode(message[2]), source)


def _answer(channel: Channel, function: Any, args: Any, kwargs: Any, source: str) -> None:
    before = pack(encode([args, kwargs]))
    try:
        value = encode(function(*args, **kwargs), opaque=True)
        after = encode([args, kwargs], opaque=True)
    except TooLarge:
        channel.send("too_large")
    except BaseException as error:
        classes = [kind.__name__ for kind in type(error).__mro__ if _is_builtin(kind)]
        try:
            arguments = encode(error.args, opaque=True)
        except BaseException:
            arguments = {"t": []}
        channel.send("raised", classes, arguments, *_describe(error, source))
    else:
        channel.send("returned", value, None if before == pack(after) else after)


def _is_builtin(kind: type) -> bool:
    return getattr(builtins, kind.__name__, None) is kind


def _describe(error: BaseException, source: str) -> tuple[str, str]:
    """Return 'Class: message' and the tail of the traceback, the program's own frames only."""
    import linecache
    import traceback

    try:
        lines = source.splitlines(keepends=True)
        linecache.cache[FILE] = (len(source), None, lines, FILE)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
            trace = trace.tb_next
        error.__traceback__ = trace
        text = "".join(traceback.format_exception(error))
        last = traceback.format_exception_only(error)[-1].strip()
    except BaseException:
        last = text = type(error).__name__
    return last[:500], text[-TRACE_CHARACTERS:]
