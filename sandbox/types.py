"""The records that cross the sandbox's border: what to run, under which limits, and what happened.

All of them are frozen: a report can be cached, compared and sent between threads.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

from . import checks

MAX_SECONDS = 86_400
"""The longest time limit, a day: more is surely a mistake, and kernels have clocks that end."""
LEAST_MEMORY_MB = 32
"""Address space that an interpreter needs to start and import a little, with room to spare. With
less, a right program would be taken for one that does not compile."""
LEAST_WORKER_MB = 64
"""Memory that a worker needs for one such program beside its own processes."""
_MOST = (1 << 40) - 1
"""The largest whole number that a limit may be."""


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
        checks.text("Program.source", self.source)


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
        checks.positive("Limits.cpu_s", self.cpu_s, most=MAX_SECONDS, unit="seconds")
        if self.wall_s is not None:
            checks.positive("Limits.wall_s", self.wall_s, most=MAX_SECONDS, unit="seconds")
        for name in ("output_bytes", "processes", "tmp_mb"):
            checks.whole(f"Limits.{name}", getattr(self, name), least=1, most=_MOST)
        checks.whole("Limits.stderr_bytes", self.stderr_bytes, least=0, most=_MOST)
        checks.whole(
            "Limits.memory_mb",
            self.memory_mb,
            least=LEAST_MEMORY_MB,
            most=_MOST,
            why="MiB; with less an interpreter may not start",
        )

    @property
    def wall_limit_s(self) -> float:
        """The wall-clock guard in seconds, with its default filled in."""
        return self.wall_s if self.wall_s is not None else max(5.0, 10.0 * self.cpu_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """How an output is compared with the expected one. The comparison runs on the host.

    `lines` compares line by line without trailing whitespace and trailing blank lines. `tokens`
    compares what is left after splitting on whitespace. `auto` is for data sets that do not say
    whether numbers are exact: as `lines`, but lines with as many tokens are equal where every two
    tokens that differ are finite decimals, at least one of them with a point or an exponent, and
    no further apart than 1e-6, absolutely or relatively.

    Raises:
        ValueError: the settings contradict each other.
    """

    kind: Literal["lines", "tokens", "auto"] = "lines"
    case_sensitive: bool = True
    space_change_sensitive: bool = False
    """Whether the whitespace between tokens counts, too, to the byte (`tokens` only)."""
    float_abs: float | None = None
    """Absolute tolerance for tokens that are finite decimals on both sides; None: exact."""
    float_rel: float | None = None
    """Relative tolerance; a token passes if either tolerance accepts it."""

    def __post_init__(self) -> None:
        for name in ("case_sensitive", "space_change_sensitive"):
            checks.kind(f"Checker.{name}", getattr(self, name), bool, "True or False")
        if self.kind not in ("lines", "tokens", "auto"):
            raise ValueError(f"Checker.kind is lines, tokens or auto, got {self.kind!r}")
        if self.space_change_sensitive and self.kind != "tokens":
            raise ValueError("space_change_sensitive needs Checker.kind='tokens'")
        _check_tolerances(self)
        if self.kind == "auto" and (self.float_abs is not None or self.float_rel is not None):
            raise ValueError("Checker.kind='auto' has a tolerance of its own; leave float_* out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChecker:
    """How a value that a function returned is compared with the expected one, on the host.

    As Python compares, but a tuple equals a list of the same items, NaN equals NaN, and a number
    passes where the expected one is a float and the error is within a tolerance. An expected int
    needs an equal number.

    Raises:
        ValueError: a tolerance is no number of at least 0, or the order is unknown.
    """

    float_abs: float | None = 1e-6
    """Absolute tolerance; None together with `float_rel`: exact."""
    float_rel: float | None = 1e-6
    """Relative tolerance; a number passes if either tolerance accepts it."""
    order: Literal["given", "outer", "any"] = "given"
    """`outer`: the items of the value itself may come in any order; `any`: those of every list."""
    iterables: bool = False
    """Whether an iterator or a range may stand for a list."""

    def __post_init__(self) -> None:
        if self.order not in ("given", "outer", "any"):
            raise ValueError(f"ValueChecker.order is given, outer or any, got {self.order!r}")
        checks.kind("ValueChecker.iterables", self.iterables, bool, "True or False")
        _check_tolerances(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerProgram:
    """A trusted checker in Python, for answers that no comparison can judge.

    `source` defines `check(input, output, expected)`. It runs in a slot of its own, never beside
    the program that it judges. For a `StdioCase` it is given the three texts (bytes of the output
    that are not UTF-8 as lone surrogates); for a `FunctionCase` the list of arguments, the value
    returned and the expected one. It returns whether the answer is accepted, or
    `(accepted, message)`, or `(accepted, message, score)` with a score from 0 to 1. It must reject
    whatever a program may answer: a checker that raises, runs out of its limits or returns anything
    else is a `CheckerFailed`, which is no verdict.
    """

    source: str
    limits: Limits = field(default_factory=lambda: Limits(cpu_s=10.0))

    def __post_init__(self) -> None:
        checks.text("CheckerProgram.source", self.source)
        checks.kind("CheckerProgram.limits", self.limits, Limits, "a Limits(...)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCase:
    """Feed `stdin`, compare standard output with `expected`. `expected` never enters its guest."""

    name: str
    stdin: str
    expected: str
    checker: Checker | CheckerProgram = field(default_factory=Checker)

    def __post_init__(self) -> None:
        _check_texts(self, "name", "stdin", "expected")
        wanted = "a Checker(...) or a CheckerProgram(...)"
        checks.kind("StdioCase.checker", self.checker, (Checker, CheckerProgram), wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCase:
    """Call a function of the program, compare what it returns. `expected` never enters its guest.

    The program is imported, not run as `__main__`, in a process of its own for each case. Arguments
    and values are made of None, bool, int, float, str, list, tuple, dict, set, frozenset, bytes,
    complex and range. `Limits.output_bytes` bounds the value returned, as it is encoded; what the
    function prints counts as standard error.
    """

    name: str
    entry_point: str
    """A function, or a method as in `Solution.twoSum`. A bare name is looked up in a class
    `Solution`, if there is one, and then in the module. Each case gets a new instance."""
    args: tuple[Any, ...]
    expected: Any
    alternatives: tuple[Any, ...] = ()
    """Further right answers."""
    checker: ValueChecker | CheckerProgram = field(default_factory=ValueChecker)
    compare_argument: int | None = None
    """Compare this argument after the call in place of the return value (in-place functions)."""
    arg_types: tuple[str, ...] = ()
    """What arrays among `args` stand for: `ListNode`, `TreeNode` (in level order, None for no
    node), `list[ListNode]`, `list[TreeNode]`; "" or left out: themselves."""
    return_type: str = ""
    """Likewise, for the value returned."""
    assume: Literal["nothing", "leetcode"] = "nothing"
    """`leetcode`: supply what programs written for LeetCode take for granted: names of `typing`,
    `collections`, `math` and the like, `ListNode`, `TreeNode`, a recursion limit of 50,000."""

    def __post_init__(self) -> None:
        _check_texts(self, "name", "entry_point", "return_type")
        parts = self.entry_point.split(".")
        if len(parts) > 2 or not all(part.isidentifier() for part in parts):
            raise ValueError(
                "FunctionCase.entry_point is the name of a function, like 'twoSum', or of a method "
                f"in a class, like 'Solution.twoSum', got {self.entry_point!a:.60}"
            )
        for name, of in (
            ("args", "the arguments of one call"),
            ("alternatives", "further right answers"),
            ("arg_types", "the types of arguments"),
        ):
            values = checks.sequence(f"FunctionCase.{name}", getattr(self, name), of)
            object.__setattr__(self, name, values)
        for number, kind in enumerate(self.arg_types):
            checks.text(f"FunctionCase.arg_types[{number}]", kind)
        wanted = "a ValueChecker(...) or a CheckerProgram(...)"
        checks.kind("FunctionCase.checker", self.checker, (ValueChecker, CheckerProgram), wanted)
        if self.compare_argument is not None:
            wanted = "the number of an argument, from 0, or None"
            checks.kind("FunctionCase.compare_argument", self.compare_argument, int, wanted)
        if self.assume not in ("nothing", "leetcode"):
            raise ValueError(f"FunctionCase.assume is nothing or leetcode, got {self.assume!a:.60}")

    @classmethod
    def from_json_lines(
        cls, name: str, entry_point: str, arguments: str, expected: str, **options: Any
    ) -> Self:
        """Make a case from the format of LiveCodeBench's functional tests.

        Args:
            name: of the case.
            entry_point: `func_name` of the problem's metadata.
            arguments: one positional argument a line, as JSON.
            expected: the return value, as JSON.
            options: further fields; `assume` is `leetcode` if not given.

        Raises:
            ValueError: something is not JSON.
        """
        values = [
            _json(line, f"case {name!r}: line {number} of the arguments")
            for number, line in enumerate(arguments.split("\n"), start=1)
            if line.strip()
        ]
        return cls(
            name=name,
            entry_point=entry_point,
            args=tuple(values),
            expected=_json(expected, f"case {name!r}: the expected value"),
            **{"assume": "leetcode", **options},
        )

    @classmethod
    def from_apps(
        cls, name: str, entry_point: str, arguments: list[Any], expected: Any, **options: Any
    ) -> Self:
        """Make a case from one of the `inputs` and `outputs` of APPS or TACO with a `fn_name`.

        These wrap some expected values in a list of one item, so that item is right, too.
        """
        wrapped = isinstance(expected, list) and len(expected) == 1
        return cls(
            name=name,
            entry_point=entry_point,
            args=tuple(arguments),
            expected=expected,
            alternatives=tuple(expected) if wrapped else (),
            **{"assume": "leetcode", **options},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertCase:
    """A trusted test body in the style of HumanEval, run against functions of the program.

    `body` runs in a driver process of its own, in another container than the program. It must
    define `check(candidate)`, or call `entry_point` in assert statements, or import what it tests
    `from solution`; its test functions and classes are run as pytest would run them.
    """

    name: str
    body: str
    entry_point: str
    """Name of a function or class that the program has to define."""
    helpers: str = ""
    """Trusted source (say, the dataset's prompt) that defines what `body` needs besides."""

    def __post_init__(self) -> None:
        _check_texts(self, "name", "body", "entry_point", "helpers")


Case = StdioCase | FunctionCase | AssertCase


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
    returned: str = ""
    """What a `FunctionCase` compared, as Python would show it, shortened."""
    stderr: str = ""
    """The tail of standard error, decoded likewise."""
    message: str = ""
    """One line for people, e.g. the failing assertion or 'no function named solve'."""
    score: float | None = None
    """From 0 to 1, where a `CheckerProgram` gave one; None: 1 if accepted, else 0."""
    digest: str = ""
    """A short digest of the answer, normalised as its checker reads it (see `digests`); empty where
    the status says all: a comparison accepted it, or there is none."""


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

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError(
                "a Report needs at least one case: a program that was not tested has no verdict"
            )

    @property
    def passed(self) -> int:
        """How many cases were accepted."""
        return sum(case.status is Status.ACCEPTED for case in self.cases)

    @property
    def accepted(self) -> bool:
        """Whether every case was accepted."""
        return self.status is Status.ACCEPTED


def _check_tolerances(checker: Checker | ValueChecker) -> None:
    for name in ("float_abs", "float_rel"):
        value = getattr(checker, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):
            raise ValueError(
                f"{type(checker).__name__}.{name} is a number of at least 0, or None for no "
                f"tolerance, got {value!a:.60}"
            )


def _check_texts(case: StdioCase | FunctionCase | AssertCase, *names: str) -> None:
    for name in names:
        checks.text(f"{type(case).__name__}.{name}", getattr(case, name))


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON ({error}): {text:.60}") from error
