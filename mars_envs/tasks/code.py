"""What an episode of programming is about: a statement, public tests, hidden tests.

Public tests drive the search and may be shown as feedback. Hidden tests decide the reward and never
appear in a prompt, in feedback or in a search statistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..errors import InvalidTask

MAX_SECONDS = 86_400
"""The longest time limit per test, a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRule:
    """How an output is compared with the expected one (see `sandbox.Checker`)."""

    kind: Literal["lines", "tokens"] = "lines"
    case_sensitive: bool = True
    float_abs: float | None = None
    float_rel: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCase:
    """A test of a program that reads standard input and writes standard output."""

    name: str
    input: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertBody:
    """A test in the style of HumanEval: trusted code with asserts on the task's `entry_point`."""

    name: str
    body: str


Test = ExpectedCase | AssertBody


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeTask:
    """One programming task.

    Raises:
        InvalidTask: there is no test at all, or an assert body without an `entry_point`.
    """

    task_id: str
    statement: str
    public: tuple[Test, ...]
    hidden: tuple[Test, ...] = ()
    entry_point: str | None = None
    helpers: str = ""
    """Trusted source that tests and completions may rely on (HumanEval's prompt)."""
    rule: OutputRule = field(default_factory=OutputRule)
    time_limit_s: float = 2.0
    """CPU seconds per test."""
    memory_mb: int = 512
    oracle: bool = False
    """True when one set of tests serves search and reward: results must be marked `oracle`."""
    show_tests: bool = True
    """Whether feedback may show the contents of the public tests."""
    meta: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.public:
            raise InvalidTask(
                f"task {self.task_id!r} has no public test; a task needs at least one test in "
                "`public` (mark it `oracle=True` where the same tests also decide the reward)"
            )
        if not 0 < self.time_limit_s <= MAX_SECONDS:
            raise InvalidTask(
                f"task {self.task_id!r}: time_limit_s must be a positive number of CPU seconds, "
                f"{MAX_SECONDS} at most, got {self.time_limit_s!r}"
            )
        if not isinstance(self.memory_mb, int) or self.memory_mb < 1:
            raise InvalidTask(
                f"task {self.task_id!r}: memory_mb must be a whole number of MiB, at least 1, got "
                f"{self.memory_mb!r}"
            )
        asserts = any(isinstance(test, AssertBody) for test in (*self.public, *self.hidden))
        if asserts and not self.entry_point:
            raise InvalidTask(
                f"task {self.task_id!r} has assert tests but no `entry_point`; name the function "
                "that they call"
            )
