"""What an episode of programming is about: a statement, public tests, hidden tests.

Public tests drive the search and may be shown as feedback. Hidden tests decide the reward and never
appear in a prompt, in feedback or in a search statistic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ..errors import InvalidTask

MAX_SECONDS = 86_400
"""The longest time limit per test, a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRule:
    """How an output or a returned value is compared with the expected one.

    See `sandbox.Checker` and, for functions, `sandbox.ValueChecker`, whose tolerances hold where
    none is given here.

    Raises:
        InvalidTask: the settings contradict each other.
    """

    kind: Literal["lines", "tokens", "auto"] = "lines"
    case_sensitive: bool = True
    space_change_sensitive: bool = False
    float_abs: float | None = None
    float_rel: float | None = None
    order: Literal["given", "outer", "any"] = "given"
    """Of the lists that functions return."""

    def __post_init__(self) -> None:
        if self.space_change_sensitive and self.kind != "tokens":
            raise InvalidTask("a rule that is `space_change_sensitive` has the kind `tokens`")
        if self.kind == "auto" and (self.float_abs, self.float_rel) != (None, None):
            raise InvalidTask("a rule of kind `auto` has tolerances of its own; give it none")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A test that calls the task's `entry_point` and compares what it returns (LiveCodeBench).

    Raises:
        InvalidTask: something is not JSON.
    """

    name: str
    arguments: str
    """The positional arguments, one JSON value a line."""
    expected: str
    """The return value, as JSON."""
    alternatives: tuple[str, ...] = ()
    """Further right values, as JSON: some data sets wrap the value in a list of one item."""

    def __post_init__(self) -> None:
        _check_json(
            f"test {self.name!r}: expected one JSON value a line as arguments and a JSON value as "
            "the expected one",
            *filter(str.strip, self.arguments.split("\n")),
            self.expected,
            *self.alternatives,
        )


Test = ExpectedCase | AssertBody | FunctionCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An input without an expected output: it shows how a program behaves, and is never scored."""

    name: str
    input: str
    """Standard input; for a task with an `entry_point` its arguments, one JSON value a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringGroup:
    """Tests that give points together, all of them or none (see `sandbox.ScoringGroup`)."""

    name: str
    points: float
    tests: tuple[str, ...]
    """Names of tests of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeTask:
    """One programming task.

    Raises:
        InvalidTask: there is no test at all, or one that calls a function and no `entry_point`, or
            something given is not what it has to be.
    """

    task_id: str
    statement: str
    public: tuple[Test, ...]
    hidden: tuple[Test, ...] = ()
    entry_point: str | None = None
    helpers: str = ""
    """Trusted source that tests and completions may rely on (HumanEval's prompt)."""
    rule: OutputRule = field(default_factory=OutputRule)
    checker: str = ""
    """Trusted source of a checker in place of `rule` (see `sandbox.CheckerProgram`)."""
    probes: tuple[Probe, ...] = ()
    """Run after the public tests for `Verdict.signature`; no part of score, reward or feedback."""
    groups: tuple[ScoringGroup, ...] = ()
    """Of problems that give points for a part of the tests; score and reward do without them."""
    time_limit_s: float = 2.0
    """CPU seconds per test."""
    memory_mb: int = 512
    oracle: bool = False
    """True when one set of tests serves search and reward: results must be marked `oracle`."""
    show_tests: bool = True
    """Whether feedback may show the contents of the public tests."""
    meta: Mapping[str, str] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Frozen, and perhaps megabytes of tests: copies of an environment share their tasks.
        return self

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
        kinds = {type(test) for test in (*self.public, *self.hidden)}
        if kinds & {AssertBody, FunctionCall} and not self.entry_point:
            raise InvalidTask(
                f"task {self.task_id!r} has tests that call a function but no `entry_point`; name "
                "the function, or the method as in Solution.twoSum"
            )
        if self.entry_point:
            for probe in self.probes:
                _check_json(
                    f"task {self.task_id!r}, probe {probe.name!r}: expected one JSON value a line, "
                    f"the arguments of {self.entry_point!r}",
                    *filter(str.strip, probe.input.split("\n")),
                )
        names = [test.name for test in (*self.public, *self.hidden)]
        for group in self.groups:
            strangers = [name for name in group.tests if name not in names]
            if strangers or not 0 <= group.points < float("inf"):
                raise InvalidTask(
                    f"task {self.task_id!r}: the scoring group {group.name!r} must name tests of "
                    f"the task and give at least 0 points, got {strangers or group.points!r}"
                )
        if self.checker and AssertBody in kinds:
            raise InvalidTask(
                f"task {self.task_id!r} has a `checker`, but assert tests judge for themselves; "
                "leave one of them out"
            )


def _check_json(expected: str, *texts: str) -> None:
    for text in texts:
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidTask(f"{expected}, got {text:.60} ({error}); quote strings") from error
