"""The whole agreement run: verdicts as recorded, and a document that says what comes out.

Sixteen programs at once, on however many cores there are. The document was made with two at once,
so equal fingerprints show that a crowd changes no verdict.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandbox import open_sandbox

pytestmark = [pytest.mark.data, pytest.mark.slow, pytest.mark.timeout(1800)]

CROWD = 16
KATTIS = "Kattis problems, judges' submissions"


@pytest.fixture(scope="module")
def script(repo_dir: Path, load_module: Callable[[Path], ModuleType]) -> ModuleType:
    return load_module(repo_dir / "tests" / "sandbox" / "agreement_run.py")


@pytest.fixture(scope="module")
def whole(script: ModuleType, data_dir: Path) -> Any:
    """Everything, in Docker where an engine answers, else in bubblewrap."""
    backend = "docker" if os.environ.get("MARS_ENVS_REQUIRE_DOCKER") == "1" else "auto"
    with open_sandbox(backend, workers=CROWD) as sandbox:
        return script.run(data_dir, sandbox, workers=CROWD)


def disagreeing(results: Sequence[Any]) -> list[tuple[str, str, str, str]]:
    return [
        (result.name, result.recorded, result.status, result.message)
        for result in results
        if result.differs or not result.graded
    ]


def test_every_recorded_verdict_on_a_test_of_a_contest_is_reproduced(whole: Any) -> None:
    tests = [test for result in whole.results[KATTIS] for test in result.tests]
    assert Counter(test.recorded for test in tests) == {"AC": 1489, "WA": 200, "RTE": 33, "TLE": 6}
    assert [test for test in tests if not test.agrees] == []


def test_every_submission_shows_the_verdict_that_it_is_named_after(whole: Any) -> None:
    results = whole.results[KATTIS]
    named = Counter(result.recorded for result in results)
    assert named == {"AC": 101, "WA": 34, "PARTIAL": 28, "TLE": 6, "RTE": 2}
    assert disagreeing(results) == []


def test_points_are_those_that_the_recorded_verdicts_give(whole: Any, data_dir: Path) -> None:
    lines = (data_dir / "problems" / "kattis_problems.jsonl").read_text("utf-8").splitlines()
    expected: dict[str, float | None] = {}
    for problem in map(json.loads, lines):
        names = [test["name"] for test in problem["tests"]]
        groups = [
            (folder["accept_score"], [name for name in names if name.startswith(f"{path}/")])
            for path, folder in (problem.get("scoring_groups") or {}).items()
            if folder.get("accept_score")
        ]
        for submission in problem["submissions"]:
            verdicts = dict(zip(names, submission["per_test_observed"], strict=True))
            known = any(members for _, members in groups) and None not in verdicts.values()
            expected[f"{problem['id']}/{submission['id']}"] = (
                sum(
                    points
                    for points, members in groups
                    if members and all(verdicts[name] == "AC" for name in members)
                )
                if known
                else None
            )
    assert {result.name: result.points for result in whole.results[KATTIS]} == expected
    assert len({points for points in expected.values() if points}) > 10


@pytest.mark.parametrize(
    ("name", "count"),
    [("HumanEval, canonical solutions", 164), ("MBPP+, canonical solutions", 377)],
)
def test_every_canonical_solution_is_accepted(whole: Any, name: str, count: int) -> None:
    results = whole.results[name]
    assert len(results) == count
    assert [result for result in results if result.status != "accepted"] == []


@pytest.mark.parametrize(
    ("name", "count"),
    [("HumanEvalPack, fixed and buggy", 86), ("QuixBugs, fixed and buggy", 20)],
)
def test_repaired_programs_are_accepted_and_broken_ones_are_not(
    whole: Any, name: str, count: int
) -> None:
    results = whole.results[name]
    assert disagreeing(results) == []
    fixed = [result for result in results if result.name.endswith("/solution")]
    broken = [result for result in results if result.name.endswith("/buggy")]
    assert len(fixed) == len(broken) == count
    assert all(result.status == "accepted" for result in fixed)
    assert all(result.status != "accepted" for result in broken)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("HumanEval, 12 models", 1032),
        ("HumanEval, CodeGen-16B samples", 640),
        ("HumanEval, refinement runs", 417 + 141),
        ("MBPP (LDB), 3 models", 732),
        ("MBPP (MultiPL-E), gpt-4", 386),
    ],
)
def test_recorded_generations_get_their_verdicts_or_a_reason(
    whole: Any, script: ModuleType, name: str, count: int
) -> None:
    results = whole.results[name]
    assert len(results) == count
    assert [d for d in disagreeing(results) if d[0] not in script.EXPLAINED] == []


def test_no_difference_is_explained_that_is_none(whole: Any, script: ModuleType) -> None:
    assert {result.name for result in whole.every if result.differs} == set(script.EXPLAINED)


def test_the_document_says_what_comes_out(whole: Any, script: ModuleType) -> None:
    written = script.DOCUMENT.read_text(encoding="utf-8").partition(script.BEGIN)[2]
    assert written.strip() == script.render(whole).strip(), (
        "docs/sandbox_agreement.md is out of date, or a verdict depends on how many programs run "
        "at once: python tests/sandbox/agreement_run.py --workers 2 16 --write"
    )


def test_a_sample_gets_the_same_verdicts_in_bubblewrap(
    whole: Any, script: ModuleType, data_dir: Path
) -> None:
    if {result.backend for result in whole.every} == {"bubblewrap"}:
        pytest.skip("no Docker engine answers, so the whole run was made in bubblewrap")
    with open_sandbox("bubblewrap", workers=4) as sandbox:
        sample = script.run(data_dir, sandbox, workers=4, every=19)
    assert len(sample.every) > 200
    assert set(sample.verdicts()) <= set(whole.verdicts())
