from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import CodeTask, ExpectedCase, OutputRule, ScoringGroup, load_tasks


def problem(**fields: Any) -> dict[str, Any]:
    record = {
        "id": "p/sum",
        "name": "Sum",
        "statement": "Add $a$ and $b$.",
        "checker": {"type": "tokens", "case_sensitive": False, "flags": ""},
        "time_limit_s": None,
        "time_limit_s_suggested": 1.5,
        "tests": [
            {"name": "sample/1", "sample": True, "input": "1 2\n", "answer": "3\n"},
            {"name": "secret/1", "sample": False, "input": "2 2\n", "answer": "4\n"},
        ],
    }
    return record | fields


def load(tmp_path: Path, **fields: Any) -> CodeTask:
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps(problem(**fields)) + "\n")
    return load_tasks(path)[0]


def test_samples_are_public_and_secret_tests_hidden(tmp_path: Path) -> None:
    task = load(tmp_path)
    assert task.task_id == "p/sum"
    assert task.public == (ExpectedCase(name="sample/1", input="1 2\n", expected="3\n"),)
    assert task.hidden == (ExpectedCase(name="secret/1", input="2 2\n", expected="4\n"),)
    assert not task.oracle
    assert task.show_tests
    assert task.meta == {"name": "Sum"}


def test_the_statement_ends_with_the_samples_as_judges_publish_them_in_files(
    tmp_path: Path,
) -> None:
    assert load(tmp_path).statement == (
        "Add $a$ and $b$.\n\nSample input 1:\n1 2\n\nSample output 1:\n3\n"
    )


def test_a_long_sample_and_an_oracle_tasks_samples_are_not_shown(tmp_path: Path) -> None:
    sample, secret = problem()["tests"]
    long = {**sample, "input": "1 " * 600}
    assert load(tmp_path, tests=[long, secret]).statement == "Add $a$ and $b$.\n"
    assert load(tmp_path, tests=[sample]).statement == "Add $a$ and $b$.\n"


@pytest.mark.parametrize("index", [0, 1], ids=["samples only", "secret only"])
def test_one_set_alone_makes_an_oracle_task(tmp_path: Path, index: int) -> None:
    test = problem()["tests"][index]
    task = load(tmp_path, tests=[test])
    assert [case.name for case in task.public] == [test["name"]]
    assert task.hidden == ()
    assert task.oracle
    assert not task.show_tests


def test_the_published_time_limit_goes_before_the_suggested_one(tmp_path: Path) -> None:
    assert load(tmp_path).time_limit_s == 1.5
    assert load(tmp_path, time_limit_s=4).time_limit_s == 4.0


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ("", OutputRule(kind="tokens", case_sensitive=False)),
        ("case_sensitive", OutputRule(kind="tokens")),
        (
            "float_tolerance 1e-6",
            OutputRule(kind="tokens", case_sensitive=False, float_abs=1e-6, float_rel=1e-6),
        ),
        (
            "float_absolute_tolerance 1e-8",
            OutputRule(kind="tokens", case_sensitive=False, float_abs=1e-8),
        ),
        (
            "float_relative_tolerance 0.01 case_sensitive",
            OutputRule(kind="tokens", float_rel=0.01),
        ),
        (
            "float_absolute_tolerance 1e-8 float_relative_tolerance 1e-4",
            OutputRule(kind="tokens", case_sensitive=False, float_abs=1e-8, float_rel=1e-4),
        ),
        (
            "space_change_sensitive",
            OutputRule(kind="tokens", case_sensitive=False, space_change_sensitive=True),
        ),
    ],
)
def test_validator_flags_become_the_rule(tmp_path: Path, flags: str, rule: OutputRule) -> None:
    checker = {"type": "tokens", "case_sensitive": False, "flags": flags}
    assert load(tmp_path, checker=checker).rule == rule


def test_folders_that_give_points_are_groups(tmp_path: Path) -> None:
    groups = {
        "sample": {"accept_score": 0},
        "secret/1": {"accept_score": 40, "grader_flags": "min"},
        "secret/2": {"accept_score": 60, "grader_flags": "min"},
        "secret/none": {"accept_score": 5},
        "secret": {"range": "0 100"},
    }
    names = ("sample/a", "secret/1/a", "secret/2/a", "secret/1/b")
    tests = [
        {"name": name, "sample": name == "sample/a", "input": "1 2", "answer": "3"}
        for name in names
    ]
    assert load(tmp_path, scoring_groups=groups, tests=tests).groups == (
        ScoringGroup(name="secret/1", points=40.0, tests=("secret/1/a", "secret/1/b")),
        ScoringGroup(name="secret/2", points=60.0, tests=("secret/2/a",)),
    )
    assert load(tmp_path, scoring_groups=None).groups == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scoring_groups": {"secret": {"accept_score": "x"}}}, "`scoring_groups.secret.accept_s"),
        ({"tests": []}, "field `tests`: expected at least one entry"),
        ({"checker": {"type": "custom"}}, '`checker.type`: expected "tokens", or "program"'),
        ({"checker": {"type": "tokens", "flags": "fast"}}, "`checker.flags`: .*remove 'fast'"),
        (
            {"checker": {"type": "tokens", "flags": "float_tolerance"}},
            "a number of at least 0 afte",
        ),
        ({"checker": {"type": "tokens", "flags": "float_tolerance x"}}, "a number of at least 0"),
        ({"checker": {"type": "tokens", "flags": "float_tolerance nan"}}, "a number of at least 0"),
        ({"time_limit_s_suggested": None}, "`time_limit_s_suggested`: expected a number above 0"),
        ({"tests": [{"name": "a", "input": "", "answer": None}]}, r"`tests\[0\].answer`: expected"),
    ],
)
def test_a_bad_problem_is_named_with_its_fault(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=message):
        load(tmp_path, **fields)


@pytest.mark.data
def test_the_recorded_problems_load(data_dir: Path) -> None:
    tasks = load_tasks(data_dir / "problems" / "kattis_problems.jsonl")
    assert len(tasks) == 60
    assert sum(len(task.public) + len(task.hidden) for task in tasks) == 597
    assert sum(task.oracle for task in tasks) == 6
    assert sum(task.rule.float_abs is not None for task in tasks) == 3
    assert sum(bool(task.groups) for task in tasks) == 24
