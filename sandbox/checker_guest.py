"""Runs a trusted checker inside a guest of its own: values in, its verdict out.

The question comes in on standard input, the verdict goes out on what was standard output; what the
checker prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from .codec import CodecError, Frames, decode, pack

_QUESTION_BYTES = 1 << 30


def judge(source: str) -> NoReturn:
    """Ask the `check` that `source` defines. Whatever goes wrong ends the process with a traceback.

    Args:
        source: the checker.
    """
    results = os.dup(1)  # closed in whatever is executed
    os.dup2(2, 1)
    frames = Frames(_QUESTION_BYTES)
    while data := os.read(0, 1 << 20):
        frames.feed(data)
    try:
        question = [decode(tree) for tree in frames.pop()]
    except CodecError:  # only a program that forged its answer can have sent such a value
        os.write(results, pack([False, "the value cannot be read", None]))
        os._exit(0)
    namespace: dict[str, Any] = {"__name__": "checker"}
    exec(compile(source, "checker.py", "exec", dont_inherit=True), namespace)
    verdict = namespace["check"](*question)
    answer = verdict if isinstance(verdict, tuple) else (verdict,)
    os.write(results, pack(_plain(answer)))
    sys.stdout.flush()
    os._exit(0)


def _plain(answer: tuple[Any, ...]) -> list[Any]:
    """Return (accepted, message, score) with defaults filled in."""
    defaults: tuple[Any, ...] = ("", None)
    accepted, message, score = answer + defaults[len(answer) - 1 :]
    if type(accepted) is not bool or not isinstance(message, str):
        raise TypeError(
            "check() returns a bool, (bool, message) or (bool, message, score); "
            f"it returned {answer!r:.200}"
        )
    if score is not None and not 0 <= score <= 1:
        raise ValueError(f"the score is a number from 0 to 1, or None; got {score!r:.100}")
    return [accepted, message[:1000], None if score is None else float(score)]
