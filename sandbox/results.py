"""From facts about a run to what is reported about a case."""

from __future__ import annotations

import math
import signal

from .types import CaseResult, Limits, Status
from .worker import Execution

MESSAGE_CHARACTERS = 300


def result(
    name: str,
    status: Status,
    execution: Execution,
    message: str,
    *,
    stderr: bytes | None = None,
    stdout: bytes | None = None,
    returned: str = "",
    score: float | None = None,
    digest: str = "",
) -> CaseResult:
    """Put a result together.

    Args:
        name: of the case.
        status: the verdict.
        execution: facts about the program.
        message: for people, any text.
        stderr: in place of the program's standard error.
        stdout: in place of the program's standard output.
        returned: what a function returned, for people.
        score: what a checker gave.
        digest: of the answer.
    """
    out = execution.stdout if stdout is None else stdout
    err = execution.stderr if stderr is None else stderr
    return CaseResult(
        name=name,
        status=status,
        cpu_s=execution.cpu_s,
        wall_s=execution.wall_s,
        max_rss_kb=execution.max_rss_kb,
        exit_code=execution.exit_code,
        signal=execution.signal,
        stdout=out.decode("utf-8", "surrogateescape"),
        returned=returned,
        stderr=err.decode("utf-8", "surrogateescape"),
        message=one_line(message),
        score=score,
        digest=digest,
    )


def one_line(text: str) -> str:
    """Return `text` as one line of printable characters, shortened.

    Programs write parts of messages, so a message could move a terminal's cursor, or its text.
    """
    start = text[: 4 * MESSAGE_CHARACTERS]
    printable = "".join(letter if letter.isprintable() else " " for letter in start)
    return " ".join(printable.split())[:MESSAGE_CHARACTERS]


def exceeded(status: Status | None, execution: Execution, limits: Limits) -> str:
    """Say which limit was exceeded and by what; empty where none was, or it is told elsewhere."""
    if status is Status.OUTPUT_LIMIT_EXCEEDED:
        return f"wrote more than {limits.output_bytes} bytes"
    if status is not Status.TIME_LIMIT_EXCEEDED:
        return ""
    if execution.cpu_s > limits.cpu_s or execution.signal == signal.SIGXCPU:
        spent_s = math.ceil(100 * execution.cpu_s) / 100
        return f"used {spent_s:.2f} of {limits.cpu_s:g} s of CPU time"
    return f"ended by the wall-clock guard after {execution.wall_s:.1f} s"


def last_words(execution: Execution) -> str:
    """Return the last line of standard error, or how the process ended."""
    lines = execution.stderr.decode("utf-8", "replace").strip().splitlines()
    if lines:
        return lines[-1].strip()
    if execution.signal is not None:
        return f"ended by signal {execution.signal}"
    return f"exit status {execution.exit_code}" if execution.exit_code else ""
