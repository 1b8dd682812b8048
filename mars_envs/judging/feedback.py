"""What the author of a program is told about the public tests: the same text on every machine.

A pure function from test results to `Feedback`. Addresses, host paths and timings would make two
episodes of one seed differ, so they are taken out; what cannot be encoded as UTF-8 is escaped.
Hidden tests never come here.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Protocol

from ..tasks.code import AssertBody, CodeTask, FunctionCall
from .base import CaseFeedback, Feedback

INPUT_CHARS = 300
OUTPUT_CHARS = 200
ERROR_CHARS = 200
FRAMES = 3
"""Innermost frames of a traceback that are shown."""

_OBJECT_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+")
_ADDRESS = re.compile(rf"\b0x[0-9a-fA-F]{{6,}}\b|{_OBJECT_ADDRESS.pattern}")
# A path starts at the line's start or behind a blank, quote or bracket: "1/2/3" is none.
_FOLDERS = re.compile(r"(?:(?<=[\s'\"(\[=<])|^)/(?:[^\s/'\"]+/)+", re.MULTILINE)
_TIMING = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds?)\b")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "[^"\n]*", line \d+')
_MARKS = re.compile(r"\s*[~^]+\s*")


class CaseOutcome(Protocol):
    """What is read of a `sandbox.CaseResult`."""

    @property
    def status(self) -> str:
        """A word of `sandbox.Status`."""
        ...

    @property
    def exit_code(self) -> int | None:
        """Exit status of the program."""
        ...

    @property
    def signal(self) -> int | None:
        """The signal that ended it."""
        ...

    @property
    def stdout(self) -> str:
        """Standard output."""
        ...

    @property
    def returned(self) -> str:
        """What a function returned, as Python would show it."""
        ...

    @property
    def stderr(self) -> str:
        """The tail of standard error."""
        ...

    @property
    def message(self) -> str:
        """One line from the grader."""
        ...


def public_feedback(
    task: CodeTask,
    outcomes: Sequence[CaseOutcome],
    *,
    time_limit_s: float,
    memory_mb: int,
) -> Feedback:
    """Say how a program did on the public tests of `task`.

    Args:
        task: its `public` tests are shown, unless `show_tests` is false.
        outcomes: one per public test, in their order.
        time_limit_s: CPU seconds that each test had.
        memory_mb: MiB that each test had.
    """
    statuses = [str(outcome.status) for outcome in outcomes]
    failed = next((i for i, status in enumerate(statuses) if status != "accepted"), None)
    failure = None
    if failed is not None and task.show_tests:
        error = _error(outcomes[failed], time_limit_s=time_limit_s, memory_mb=memory_mb)
        failure = _failure(task, failed, outcomes[failed], error)
    return Feedback(
        passed=statuses.count("accepted"),
        total=len(task.public),
        status="accepted" if failed is None else statuses[failed],
        failure=failure,
    )


def trim(text: str, limit: int) -> str:
    """Shorten a text to about `limit` characters by its middle: both ends tell most."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    return f"{text[:head]}…[{left_out} characters left out]…{text[-tail:]}"


def encodable(text: str) -> str:
    """Escape what UTF-8 cannot encode: bytes that were no text, and lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _failure(task: CodeTask, index: int, outcome: CaseOutcome, error: str) -> CaseFeedback:
    test = task.public[index]
    status = str(outcome.status)
    if isinstance(test, AssertBody):
        body = encodable(test.body.strip())
        return CaseFeedback(
            name=test.name,
            status=status,
            input=trim(body, INPUT_CHARS),
            error=error.removeprefix(body).removeprefix("; "),
        )
    # How much a program printed before it was stopped depends on the machine's load.
    stopped = status in ("time_limit_exceeded", "memory_limit_exceeded", "output_limit_exceeded")
    call = isinstance(test, FunctionCall)
    said = outcome.returned if call else outcome.stdout
    actual = "" if stopped else _OBJECT_ADDRESS.sub("0x…", said)
    if call and status == "output_limit_exceeded":
        error = "returned too large a value"
    return CaseFeedback(
        name=test.name,
        status=status,
        input=_shown(test.arguments if isinstance(test, FunctionCall) else test.input, INPUT_CHARS),
        expected=_shown(test.expected, OUTPUT_CHARS),
        actual=_shown(actual, OUTPUT_CHARS),
        error=error,
    )


def _shown(text: str, limit: int) -> str:
    return trim(encodable(text.rstrip("\n")), limit)


def _error(outcome: CaseOutcome, *, time_limit_s: float, memory_mb: int) -> str:
    """Say in a few lines what went wrong, beyond a wrong output."""
    match str(outcome.status):
        case "time_limit_exceeded":
            return f"ran longer than {time_limit_s:g} s"
        case "memory_limit_exceeded":
            return f"used more than {memory_mb} MiB of memory"
        case "output_limit_exceeded":
            return "printed too much"
        case "wrong_answer":
            return _cleaned(_TIMING.sub("…", outcome.message))
    if "Error" in outcome.stderr or _TRACEBACK in outcome.stderr:
        return _last_traceback(outcome.stderr)
    # A process that the sandbox stopped has a signal, too, and a message that tells more.
    if outcome.signal is not None and outcome.message in ("", f"ended by signal {outcome.signal}"):
        return f"ended by {_signal_name(outcome.signal)}"
    if outcome.message:
        return _cleaned(_TIMING.sub("…", outcome.message))
    if outcome.exit_code:
        return f"exited with status {outcome.exit_code}"
    return _cleaned(outcome.stderr.strip())


def _last_traceback(stderr: str) -> str:
    """Return the last frames and the exception of the last traceback in `stderr`."""
    start = stderr.rfind(_TRACEBACK)
    lines = stderr[max(start, 0) :].removeprefix(_TRACEBACK).strip("\n").split("\n")
    if start < 0:
        # Only the tail of the stream is kept, so the head of a long traceback may be missing.
        cut = next((number for number, line in enumerate(lines) if _FRAME.match(line)), 0)
        lines = lines[cut:]
    frames: list[list[str]] = []
    for number, line in enumerate(lines):
        if _FRAME.match(line):
            frames.append([line])
        elif frames and line.startswith("    ") and not _MARKS.fullmatch(line):
            frames[-1].append(line)
        elif line and not line.startswith(" "):
            last = "\n".join(lines[number:]).rstrip()
            shown = [text.removeprefix("  ") for frame in frames[-FRAMES:] for text in frame]
            return _cleaned("\n".join(shown), limit=FRAMES * ERROR_CHARS, then=last)
    return _cleaned(lines[-1])


def _cleaned(text: str, *, limit: int = ERROR_CHARS, then: str = "") -> str:
    """Take addresses and folders out of `text`, trim it, and add `then`, cleaned likewise."""
    parts = [
        trim(encodable(_FOLDERS.sub("", _ADDRESS.sub("0x…", part))), size)
        for part, size in ((text, limit), (then, ERROR_CHARS))
        if part
    ]
    return "\n".join(parts)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
