"""Points for groups of tests, and problems whose own solution fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import (
    CaseResult,
    Checker,
    Grader,
    Limits,
    Program,
    ReferenceRejected,
    ScoringGroup,
    Status,
    StdioCase,
    UnsupportedCase,
    grade_groups,
    score_groups,
    validate,
)
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.types import AssertCase

ECHO_BELOW_TEN = Program("n = int(input())\nprint(n if n < 10 else 0)")


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(WorkerPool(LocalBackend(), size=1)) as grader:
        yield grader


def result(name: str, accepted: bool = True, score: float | None = None) -> CaseResult:
    status = Status.ACCEPTED if accepted else Status.WRONG_ANSWER
    return CaseResult(name=name, status=status, score=score)


def group(name: str, points: float, *cases: str, **options: Any) -> ScoringGroup:
    return ScoringGroup(name=name, points=points, cases=cases, **options)


def echo(*numbers: int) -> list[StdioCase]:
    return [StdioCase(name=str(n), stdin=str(n), expected=str(n)) for n in numbers]


def test_a_group_gives_its_points_only_if_all_its_tests_pass() -> None:
    scores = score_groups(
        [result("a"), result("b"), result("c", False), result("d")],
        [group("sample", 0, "a"), group("one", 11, "a", "b"), group("two", 10, "c", "d")],
    )
    assert (scores.points, scores.max_points) == (11, 21)
    assert [(g.points, g.passed, g.judged) for g in scores.groups] == [
        (0, 1, 1),
        (11, 2, 2),
        (0, 1, 2),
    ]


def test_a_group_without_tests_gives_nothing_and_counts_for_nothing() -> None:
    scores = score_groups([result("a")], [group("one", 11, "a"), group("six", 24)])
    assert (scores.points, scores.max_points) == (11, 11)


def test_tests_left_out_after_a_failure_are_no_gap() -> None:
    assert score_groups([result("a", False)], [group("one", 5, "a", "b")]).points == 0
    with pytest.raises(ValueError, match="group 'one' has no result for its test 'b'"):
        score_groups([result("a")], [group("one", 5, "a", "b")])


def test_a_checkers_score_is_a_share_of_the_points() -> None:
    results = [result("a", score=0.5), result("b", score=0.75), result("c", False, score=0.9)]
    scores = score_groups(results, [group("one", 20, "a", "b"), group("two", 20, "c")])
    assert [each.points for each in scores.groups] == [10, 0]


@given(
    st.lists(st.booleans(), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 50), st.sets(st.integers(0, 5))), max_size=4),
)
def test_points_are_what_the_definition_says(
    accepted: list[bool], sets: list[tuple[int, set[int]]]
) -> None:
    results = [result(str(n), ok) for n, ok in enumerate(accepted)]
    chosen = [(points, {n for n in tests if n < len(accepted)}) for points, tests in sets]
    groups = [group("g", points, *map(str, sorted(tests))) for points, tests in chosen]
    expected = sum(points for points, tests in chosen if tests and all(accepted[n] for n in tests))
    assert score_groups(results, groups).points == expected


def test_groups_that_make_no_sense_are_refused(grader: Grader) -> None:
    with pytest.raises(ValueError, match="names a test twice"):
        group("one", 1, "a", "a")
    with pytest.raises(ValueError, match="points of at least 0"):
        group("one", -1, "a")
    with pytest.raises(ValueError, match="two results are named 'a'"):
        score_groups([result("a"), result("a", False)], [])
    with pytest.raises(ValueError, match="tests are in no group: '2'"):
        grade_groups(grader, ECHO_BELOW_TEN, echo(1, 2), [group("one", 1, "1")])
    with pytest.raises(ValueError, match="groups name tests that are not there: 'x'"):
        grade_groups(grader, ECHO_BELOW_TEN, echo(1), [group("one", 1, "1", "x")])
    with pytest.raises(ValueError, match="two tests have the same name"):
        grade_groups(grader, ECHO_BELOW_TEN, echo(1, 1), [group("one", 1, "1")])


def test_a_failed_group_stops_and_other_groups_go_on(grader: Grader) -> None:
    groups = [
        group("sample", 0, "1"),
        group("one", 30, "2", "30", "4"),
        group("two", 30, "5", "6"),
        group("all", 40, "7", "80", "90", stop=False),
    ]
    graded = grade_groups(grader, ECHO_BELOW_TEN, echo(1, 2, 30, 4, 5, 6, 7, 80, 90), groups)
    assert [case.name for case in graded.report.cases] == [
        "1",
        "2",
        "30",
        "5",
        "6",
        "7",
        "80",
        "90",
    ]
    assert graded.report.status is Status.WRONG_ANSWER
    assert (graded.scores.points, graded.scores.max_points) == (30, 100)


def test_a_test_shared_between_groups_runs_once_and_fails_both(grader: Grader) -> None:
    groups = [group("one", 10, "1", "20"), group("two", 10, "20", "3"), group("three", 10, "1")]
    graded = grade_groups(grader, ECHO_BELOW_TEN, echo(1, 20, 3), groups)
    assert [case.name for case in graded.report.cases] == ["1", "20"]
    assert [each.points for each in graded.scores.groups] == [0, 0, 10]


@pytest.mark.data
def test_a_partial_submission_of_an_olympiad_loses_the_groups_that_it_fails(
    grader: Grader, data_dir: Path
) -> None:
    """Points from recorded verdicts and from our own runs agree."""
    lines = (data_dir / "problems" / "kattis_problems.jsonl").read_text("utf-8").splitlines()
    record = next(
        data
        for data in map(json.loads, lines)
        if data["id"] == "swedish-olympiad-2025-public/skol/trulstrubbel"
    )
    tests = record["tests"]
    cases = [
        StdioCase(
            name=test["name"],
            stdin=test["input"],
            expected=test["answer"],
            checker=Checker(kind="tokens", case_sensitive=False),
        )
        for test in tests
    ]
    groups = [
        group(name, spec["accept_score"], *_tests_of(name, tests))
        for name, spec in record["scoring_groups"].items()
        if "accept_score" in spec
    ]
    points = {}
    for submission in record["submissions"]:
        graded = grade_groups(
            grader, Program(submission["source"]), cases, groups, Limits(cpu_s=5.0)
        )
        points[submission["expected"]] = graded.scores.points
        observed = submission["per_test_observed"]
        verdicts = list(observed.values()) if isinstance(observed, dict) else observed
        recorded = [
            result(case.name, verdict == "AC")
            for case, verdict in zip(cases, verdicts, strict=True)
        ]
        assert graded.scores.points == score_groups(recorded, groups).points
    assert points["AC"] == 100
    assert 0 < points["PARTIAL"] < 100


def _tests_of(group_name: str, tests: Sequence[dict[str, Any]]) -> list[str]:
    return [test["name"] for test in tests if test["name"].startswith(group_name + "/")]


def test_a_reference_that_passes_is_reported(grader: Grader) -> None:
    assert validate(grader, ECHO_BELOW_TEN, echo(1, 2)).accepted


def test_a_reference_that_fails_is_a_data_error_that_names_the_case(grader: Grader) -> None:
    message = r"fails 2 of 3 cases, first '20': wrong_answer \(line 1 differs\); correct the tests"
    with pytest.raises(ReferenceRejected, match=message):
        validate(grader, ECHO_BELOW_TEN, echo(1, 20, 30))
    body = AssertCase(name="none", body="assert True", entry_point="f")
    with pytest.raises(UnsupportedCase):
        validate(grader, Program("def f(): pass"), [body])
