"""Partial scores: groups of tests that give points only together (Kattis `type: scoring`).

A group gives its points if every one of its tests is accepted; where a checker gives accepted
answers a score from 0 to 1, the group gives the least of them as a share. `score_groups` is a pure
function of results, however they were had; `grade_groups` has them with as few runs as it can:
the rest of a group that has failed is left out, other groups go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .base import Sandbox
from .types import Case, CaseResult, Limits, Program, Report, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringGroup:
    """Tests that give points together.

    Raises:
        ValueError: the points are negative, or a test is named twice.
    """

    name: str
    points: float
    cases: tuple[str, ...]
    """The names of its tests, in the order in which they run. Groups may share tests."""
    stop: bool = True
    """Whether to leave out the tests after the first that fails (Kattis `on_reject: break`)."""

    def __post_init__(self) -> None:
        if not self.points >= 0:
            raise ValueError(f"group {self.name!r}: points of at least 0, got {self.points!r}")
        if len(set(self.cases)) < len(self.cases):
            raise ValueError(f"group {self.name!r} names a test twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """What one group gave."""

    name: str
    points: float
    max_points: float
    """0 for a group without tests."""
    passed: int
    """How many of its tests were accepted."""
    judged: int
    """How many were judged; the rest was left out after a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What all groups gave."""

    groups: tuple[GroupScore, ...]

    @property
    def points(self) -> float:
        """The sum of the points."""
        return sum(group.points for group in self.groups)

    @property
    def max_points(self) -> float:
        """The most that there was to have."""
        return sum(group.max_points for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedReport:
    """The verdict on a program, and its points."""

    report: Report
    """The tests that were judged, in the order in which they were given."""
    scores: Scores


def score_groups(results: Iterable[CaseResult], groups: Sequence[ScoringGroup]) -> Scores:
    """Return the points for results of a program.

    Args:
        results: of single tests, e.g. `report.cases`; tests without a group do not count.
        groups: the groups.

    Raises:
        ValueError: two results have the same name, or a test is missing from a group of which none
            has failed.
    """
    known: dict[str, CaseResult] = {}
    for result in results:
        if known.setdefault(result.name, result) is not result:
            raise ValueError(f"two results are named {result.name!r}; groups go by the name")
    return Scores(groups=tuple(_score(group, known) for group in groups))


def grade_groups(
    sandbox: Sandbox,
    program: Program,
    cases: Iterable[Case],
    groups: Sequence[ScoringGroup],
    limits: Limits | None = None,
) -> GroupedReport:
    """Run a program on its tests group by group, and score it.

    Args:
        sandbox: where to run.
        program: the untrusted program.
        cases: the tests, each of them in a group.
        groups: the groups, in the order in which they run.
        limits: per case.

    Raises:
        SandboxError: the sandbox failed; the program has no verdict and no points.
        ValueError: there are no tests, or they are not those that the groups name.
    """
    cases, groups = tuple(cases), tuple(groups)
    if not cases:
        raise ValueError("a program needs at least one case to be graded; got none")
    named = {case.name: case for case in cases}
    _check_names(cases, named, groups)
    known: dict[str, CaseResult] = {}
    reports: list[Report] = []
    for group in groups:
        failed = any(_failed(known[name]) for name in group.cases if name in known)
        todo = [named[name] for name in group.cases if name not in known]
        if todo and not (failed and group.stop):
            report = sandbox.grade(program, todo, limits, stop_at_first_failure=group.stop)
            reports.append(report)
            known.update({result.name: result for result in report.cases})
    results = tuple(known[case.name] for case in cases if case.name in known)
    capabilities = sandbox.capabilities
    report = Report(
        status=next((case.status for case in results if _failed(case)), Status.ACCEPTED),
        cases=results,
        backend=capabilities.backend,
        isolated=capabilities.isolated,
        cached=sum(each.cached for each in reports),
    )
    return GroupedReport(report=report, scores=score_groups(results, groups))


def _check_names(
    cases: Sequence[Case], named: dict[str, Case], groups: Sequence[ScoringGroup]
) -> None:
    if len(named) < len(cases):
        raise ValueError("two tests have the same name; groups go by the name")
    grouped = {name for group in groups for name in group.cases}
    for problem, names in (
        ("groups name tests that are not there", grouped - named.keys()),
        ("tests are in no group", named.keys() - grouped),
    ):
        if names:
            shown = ", ".join(map(repr, sorted(names)[:3]))
            raise ValueError(f"{problem}: {shown}{', ...' if len(names) > 3 else ''}")


def _score(group: ScoringGroup, known: dict[str, CaseResult]) -> GroupScore:
    results = [known[name] for name in group.cases if name in known]
    failed = any(map(_failed, results))
    if not failed and len(results) < len(group.cases):
        missing = next(name for name in group.cases if name not in known)
        raise ValueError(f"group {group.name!r} has no result for its test {missing!r}")
    share = 0.0
    if results and not failed:
        share = min(1.0 if result.score is None else result.score for result in results)
    return GroupScore(
        name=group.name,
        points=group.points * share,
        max_points=group.points if group.cases else 0.0,
        passed=sum(not _failed(result) for result in results),
        judged=len(results),
    )


def _failed(result: CaseResult) -> bool:
    return result.status is not Status.ACCEPTED
