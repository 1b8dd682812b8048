"""Runs inside the driver's guest: trusted test code against a stub of the untrusted function.

The stub turns each call into a message to the host, which hands it to the guest of the program.
What comes back is rebuilt by `codec.decode` from exact built-in types, so the comparisons of the
test happen here, out of the program's reach. The last message says how the test ended; what that
means for the program is decided on the host (`drivers`).
"""

from __future__ import annotations

import builtins
import collections
import itertools
import math
import os
import re
import sys
from typing import Any, NoReturn

from .codec import CodecError, Frames, Inexpressible, Opaque, decode, encode, pack

CHANNEL_FD = 3
MESSAGE_BYTES = 1 << 26
BODY = "<body>"


class _Unsupported(BaseException):
    """The test passes an argument that cannot be carried."""


class Channel:
    """Messages over the session's socket."""

    def __init__(self, fd: int = CHANNEL_FD) -> None:
        self._fd = fd
        self._frames = Frames(MESSAGE_BYTES)

    def send(self, *message: Any) -> None:
        """Send one message."""
        data = memoryview(pack(message))
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self) -> Any:
        """Wait for the next message; the process ends when the host has gone."""
        while (message := self._frames.pop()) is None:
            data = os.read(self._fd, 1 << 16)
            if not data:
                os._exit(0)
            self._frames.feed(data)
        return message


class Stub:
    """Stands for the program's function. Keeps the facts that the verdict needs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.answered = 0
        self.raised: list[BaseException] = []
        self.last = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program's function: its value, its exception, its changes to the arguments."""
        try:
            trees = encode(list(args)), encode(kwargs)
        except Inexpressible as error:
            if _holds_opaque(args) or _holds_opaque(tuple(kwargs.values())):
                raise TypeError("the program's own value cannot be an argument") from None
            raise _Unsupported(f"an argument holds {error}") from None
        except CodecError as error:
            raise _Unsupported(f"an argument is too large: {error}") from None
        self._channel.send("call", *trees)
        kind, *rest = self._channel.receive()
        self.answered += 1
        if kind == "raised":
            exception = _exception(*rest)
            if isinstance(exception, (StopIteration, StopAsyncIteration)):
                # As in a generator (PEP 479): else `map` takes a failing call for the end, and a
                # test that loops over the calls passes without having compared anything.
                exception = RuntimeError(f"the function raised {type(exception).__name__}")
            self.raised.append(exception)
            raise exception
        value, changed = rest
        result = decode(value)
        if changed is not None:
            new_args, new_kwargs = decode(changed[0]), decode(changed[1])
            for old, new in zip(args, new_args, strict=False):
                _copy_back(old, new)
            for name, old in kwargs.items():
                _copy_back(old, new_kwargs.get(name))
        self.last = _short(result)
        return result


def drive(helpers: str, body: str, entry_point: str, call_check: bool) -> NoReturn:
    """Run the test and say how it ended.

    Args:
        helpers: trusted source that is executed first.
        body: the test.
        entry_point: the name under which helpers and body know the function.
        call_check: whether to call the body's `check` with the function.
    """
    channel = Channel()
    stub = Stub(channel)
    modules = (collections, itertools, math, re, sys)
    namespace: dict[str, Any] = {module.__name__: module for module in modules}
    namespace["__name__"] = "test"
    try:
        exec(compile(helpers, "<helpers>", "exec", dont_inherit=True), namespace)
        namespace[entry_point] = stub
        exec(compile(body, BODY, "exec", dont_inherit=True), namespace)
        if call_check:
            namespace["check"](stub)
    except BaseException as error:
        channel.send("done", *_ending(error, stub), stub.answered, stub.last)
    else:
        channel.send("done", "passed", "", 0, stub.answered, stub.last)
    os._exit(0)


def _ending(error: BaseException, stub: Stub) -> tuple[str, str, int]:
    """Return (kind, text, line of the body) for an exception that ended the test."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == BODY:
            line = trace.tb_lineno
        trace = trace.tb_next
    text = f"{type(error).__name__}: {error}"[:500].rstrip(": ")
    if isinstance(error, _Unsupported):
        return "unsupported", str(error), line
    if any(error is raised for raised in stub.raised):
        return "candidate", text, line
    if isinstance(error, AssertionError):
        return "assertion", text, line
    if any(link is raised for link in _chain(error) for raised in stub.raised):
        return "candidate", text, line
    # No value can make a name undefined or a module absent: the test itself is broken.
    broken = isinstance(error, (NameError, ImportError, SyntaxError)) or not stub.answered
    return ("broken" if broken else "error"), text, line


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


def _exception(names: list[str], args: Any, message: str) -> BaseException:
    """Rebuild an exception of the program: its nearest built-in class, never its own."""
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            try:
                return kind(*decode(args))
            except Exception:
                break
    return RuntimeError(message)


def _holds_opaque(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_opaque, itertools.chain(value.keys(), value.values())))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(_holds_opaque, value))
    return isinstance(value, Opaque)


def _copy_back(old: Any, new: Any) -> None:
    """Make the container `old` equal to `new`, keeping inner containers where they match."""
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        for position, (mine, theirs) in enumerate(zip(old, new, strict=False)):
            old[position] = _merged(mine, theirs)
        old[len(new) :] = new[len(old) :]
    elif isinstance(old, dict):
        merged = {key: _merged(old.get(key), theirs) for key, theirs in new.items()}
        old.clear()
        old.update(merged)
    elif isinstance(old, set):
        old.clear()
        old.update(new)


def _merged(mine: Any, theirs: Any) -> Any:
    if type(mine) is type(theirs) and isinstance(mine, (list, dict, set)):
        _copy_back(mine, theirs)
        return mine
    return theirs


def _short(value: Any) -> str:
    digits = sys.get_int_max_str_digits()
    # Printing a huge int takes quadratic time, which the program would be charged for.
    sys.set_int_max_str_digits(4300)
    try:
        text = repr(value)
    except Exception:  # e.g. more digits than that
        return f"<{type(value).__name__} object>"
    finally:
        sys.set_int_max_str_digits(digits)
    return text if len(text) <= 120 else text[:117] + "..."
