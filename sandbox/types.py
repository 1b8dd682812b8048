"""The records that cross the sandbox's border: what to run, under which limits, and what happened.

All of them are frozen: a report can be cached, compared and sent between threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

MAX_SECONDS = 86_400
"""The longest time limit, a day: more is surely a mistake, and kernels have clocks that end."""


class Status(StrEnum):
    """The verdict on one case or on a whole program.

    Trouble of the sandbox itself is never a status, so that it can never be scored: it is raised
    as a `SandboxError`.
    """

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    TIME_LIMIT_EXCEEDED = "time_limit_exceeded"
    MEMORY_LIMIT_EXCEEDED = "memory_limit_exceeded"
    OUTPUT_LIMIT_EXCEEDED = "output_limit_exceeded"
    RUNTIME_ERROR = "runtime_error"
    COMPILE_ERROR = "compile_error"


@dataclass(frozen=True, slots=True)
class Program:
    """A Python program as source text. It may contain anything at all, NUL bytes included."""

    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.source, str):
            raise TypeError(f"Program.source is text (str), got {type(self.source).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one case may use."""

    cpu_s: float = 2.0
    """CPU seconds of the process and its descendants; the time limit is judged on these."""
    wall_s: float | None = None
    """Seconds on the clock, a guard against sleeping programs. None: `max(5, 10 * cpu_s)`."""
    memory_mb: int = 512
    """Address space of each process, in MiB."""
    output_bytes: int = 1 << 20
    """Bytes of standard output kept; one more is `output_limit_exceeded`."""
    stderr_bytes: int = 4096
    """Bytes of the tail of standard error that are kept."""
    processes: int = 16
    """Processes and threads alive at once."""
    tmp_mb: int = 32
    """Size of the private /tmp, in MiB."""

    def __post_init__(self) -> None:
        for name in ("cpu_s", "wall_s"):
            value = getattr(self, name)
            if name == "wall_s" and value is None:
                continue
            if not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
                raise ValueError(
                    f"Limits.{name} must be a positive number of seconds, {MAX_SECONDS} at most, "
                    f"got {value!r}"
                )
        for name in ("memory_mb", "output_bytes", "stderr_bytes", "processes", "tmp_mb"):
            value = getattr(self, name)
            least = 0 if name == "stderr_bytes" else 1
            if not isinstance(value, int) or not least <= value < 1 << 40:
                raise ValueError(
                    f"Limits.{name} must be a whole number of at least {least}, got {value!r}"
                )

    @property
    def wall_limit_s(self) -> float:
        """The wall-clock guard in seconds, with its default filled in."""
        return self.wall_s if self.wall_s is not None else max(5.0, 10.0 * self.cpu_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """How an output is compared with the expected one. The comparison runs on the host.

    `lines` compares line by line without trailing whitespace and trailing blank lines; `tokens`
    compares what is left after splitting on whitespace.
    """

    kind: Literal["lines", "tokens"] = "lines"
    case_sensitive: bool = True
    float_abs: float | None = None
    """Absolute tolerance for tokens that are finite decimals on both sides; None: exact."""
    float_rel: float | None = None
    """Relative tolerance; a token passes if either tolerance accepts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCase:
    """Feed `stdin`, compare standard output with `expected`. `expected` never enters a guest."""

    name: str
    stdin: str
    expected: str
    checker: Checker = field(default_factory=Checker)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertCase:
    """A trusted test body in the style of HumanEval, run against a function of the program.

    `body` runs in a driver process of its own, in another container than the program. It must
    define `check(candidate)` or consist of assert statements that call `entry_point`.
    """

    name: str
    body: str
    entry_point: str
    helpers: str = ""
    """Trusted source (say, the dataset's prompt) that defines what `body` needs besides."""


Case = StdioCase | AssertCase


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What one case did."""

    name: str
    status: Status
    cpu_s: float = 0.0
    wall_s: float = 0.0
    max_rss_kb: int = 0
    exit_code: int | None = None
    """Exit status of the program; None when a signal ended it or it never ran."""
    signal: int | None = None
    stdout: str = ""
    """Standard output; bytes that are not UTF-8 are lone surrogates (`surrogateescape`)."""
    stderr: str = ""
    """The tail of standard error, decoded likewise."""
    message: str = ""
    """One line for people, e.g. the failing assertion or 'no function named solve'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verdict on a program: the first case that was not accepted decides."""

    status: Status
    cases: tuple[CaseResult, ...]
    backend: str
    """The backend that ran it: `docker`, `bubblewrap` or `local`."""
    isolated: bool
    cached: int = 0
    """How many of the cases were answered from a cache."""

    @property
    def passed(self) -> int:
        """How many cases were accepted."""
        return sum(case.status is Status.ACCEPTED for case in self.cases)

    @property
    def accepted(self) -> bool:
        """Whether every case was accepted."""
        return self.status is Status.ACCEPTED
