"""Runs inside the program's guest: loads the untrusted program and serves operations on it."""

from __future__ import annotations

import os
import sys
import types
from typing import NoReturn

from .candidate_peer import FILE, Candidate, describe
from .peers import Channel


def serve(
    source: str,
    entry_point: str,
    units: list[tuple[str, str]],
    shared: list[str],
) -> NoReturn:
    """Load the program, then answer operations until the host closes the channel.

    Args:
        source: the program.
        entry_point: the name that it has to define.
        units: definitions of the test that the program may use.
        shared: names of classes whose instances travel by value.
    """
    channel = Channel()
    try:
        code = compile(source, FILE, "exec", dont_inherit=True)
    except BaseException as error:
        channel.send("compile_error", *describe(error, source=source))
        os._exit(1)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    candidate = Candidate(channel, module, source)
    candidate.define(units, shared)
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        channel.send("load_error", *describe(error, source=source))
        os._exit(1)
    candidate.adopt(shared)
    function = module.__dict__.get(entry_point)
    if callable(function):
        channel.send("ready", candidate.entries(function))
    else:
        channel.send("missing")
    while (message := channel.receive())[0] == "call":
        candidate.serve(*message[1:])
    os._exit(0)
