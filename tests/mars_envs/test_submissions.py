"""Submissions on disk: every layout that is read, and what is said of a record that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks.submissions import Submission, read_submissions


def read(tmp_path: Path, *records: dict[str, Any] | str) -> list[Submission | InvalidTask]:
    path = tmp_path / "submissions.jsonl"
    lines = (r if isinstance(r, str) else json.dumps(r) for r in records)
    path.write_text("".join(f"{line}\n" for line in lines))
    return list(read_submissions(path))


@pytest.mark.parametrize("task", ["task_id", "task", "problem"])
@pytest.mark.parametrize("text", ["text", "source", "code"])
def test_a_program_needs_a_task_and_a_text(tmp_path: Path, task: str, text: str) -> None:
    assert read(tmp_path, {task: "t", text: "print(1)"}) == [
        Submission(task_id="t", name="line 1", text="print(1)")
    ]


def test_everything_that_may_stand_beside_a_program_is_read(tmp_path: Path) -> None:
    record = {
        "task_id": "t",
        "id": "mine",
        "text": "  return 1",
        "form": "completion",
        "prompt": "def f():\n",
        "observed": "pass",
        "expected": "fail",
    }
    assert read(tmp_path, record) == [
        Submission(
            task_id="t",
            name="mine",
            text="  return 1",
            form="completion",
            prompt="def f():\n",
            recorded="pass",
        )
    ]


def test_human_evals_own_samples_are_completions(tmp_path: Path) -> None:
    sample = {"task_id": "t", "completion": "  return 1", "passed": False}
    (found,) = read(tmp_path, sample)
    assert isinstance(found, Submission)
    assert (found.form, found.recorded) == ("completion", "fail")


def test_several_submissions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one = {"task": "t", "name": "me", "text": "1"}
    names = [found.name for found in read(tmp_path, one, one) if isinstance(found, Submission)]
    assert names == ["me", "me (2)"]


def test_a_problem_brings_its_judges_submissions_with_samples_first(tmp_path: Path) -> None:
    problem = {
        "id": "p",
        "tests": [{"name": "secret", "sample": False}, {"name": "sample", "sample": True}],
        "submissions": [
            {"id": "wa-1", "source": "x", "expected": "WA", "per_test_observed": ["WA", None]}
        ],
    }
    assert read(tmp_path, problem) == [
        Submission(task_id="p", name="p/wa-1", text="x", recorded="WA", recorded_tests=(None, "WA"))
    ]


def test_a_pool_of_samples_continues_the_prompt_that_was_used(tmp_path: Path) -> None:
    pool = {
        "task": "t",
        "prompt_used": "def f():\n",
        "samples": [{"completion": "  1", "observed": "fail"}, {"completion": "  2"}],
    }
    first, second = read(tmp_path, pool)
    assert first == Submission(
        task_id="t",
        name="t, sample 1",
        text="  1",
        form="completion",
        prompt="def f():\n",
        recorded="fail",
    )
    assert isinstance(second, Submission)
    assert second.recorded == ""


def test_a_refinement_run_brings_each_program_and_the_final_one(tmp_path: Path) -> None:
    chain = {
        "task": "t",
        "implementations": ["a", "b"],
        "observed": ["fail", "pass"],
        "final_solution": "b",
        "observed_final": "pass",
    }
    found = [one for one in read(tmp_path, chain) if isinstance(one, Submission)]
    assert [(one.name, one.text, one.recorded) for one in found] == [
        ("t, line 1, program 1", "a", "fail"),
        ("t, line 1, program 2", "b", "pass"),
        ("t, line 1, final", "b", "pass"),
    ]


@pytest.mark.parametrize(
    ("record", "programs"),
    [
        (
            {"task_id": "HumanEval/1", "canonical_solution": "  return 1"},
            [("solution", "  return 1", "completion", "pass")],
        ),
        (
            {"task_id": "Mbpp/1", "canonical_solution": "def f(): ...", "assertion": "..."},
            [("solution", "def f(): ...", "full_program", "pass")],
        ),
        (
            {
                "task": "HumanEval/1",
                "declaration": "def f():\n",
                "canonical_solution": "  return 1",
                "buggy_solution": "  return 2",
                "observed": {"canonical_hidden": "pass", "buggy_hidden": "timeout"},
            },
            [
                ("solution", "def f():\n  return 1", "full_program", "pass"),
                ("buggy", "def f():\n  return 2", "full_program", "timeout"),
            ],
        ),
        (
            {"name": "f", "docstring": "d", "solution": "good", "buggy_program": "bad"},
            [
                ("solution", "good", "full_program", "pass"),
                ("buggy", "bad", "full_program", "fail"),
            ],
        ),
    ],
    ids=["humaneval", "mbpp_plus", "humanevalpack", "quixbugs"],
)
def test_a_task_brings_its_own_solutions(
    tmp_path: Path, record: dict[str, Any], programs: list[tuple[str, ...]]
) -> None:
    found = [one for one in read(tmp_path, record) if isinstance(one, Submission)]
    assert [
        (one.name.rsplit("/")[-1], one.text, one.form, one.recorded) for one in found
    ] == programs


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "line 1: expected one JSON object, got text that is no JSON"),
        ({"task": "t"}, "field `text`: expected a program in `text`, `source`, `code` or"),
        ({"text": "x"}, "field `task_id`: expected the id of a task, got nothing"),
        ({"task": "t", "text": 1}, "field `text`: expected a program as a string, got 1"),
        (
            {"task": "t", "text": "x", "form": "poem"},
            "field `form`: expected one of full_program, completion, completion_or_full, reply",
        ),
        (
            {"task": "t", "text": "x", "per_test_observed": "AC"},
            "field `per_test_observed`: expected a list of verdicts",
        ),
        (
            {"task": "t", "implementations": ["a"], "observed": []},
            "t, line 1, program 1",
        ),
        (
            {"task": "t", "implementations": ["a", "b"], "observed": ["pass"]},
            "field `implementations`: expected a list of programs, and `observed` a list with a",
        ),
    ],
)
def test_a_bad_record_is_named_and_the_others_are_read(
    tmp_path: Path, record: dict[str, Any] | str, message: str
) -> None:
    first, second = read(tmp_path, record, {"task": "t", "text": "good"})
    if isinstance(first, Submission):
        assert first.name == message
    else:
        assert message in str(first)
    assert isinstance(second, Submission)
    assert second.text == "good"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"cannot read .*none\.jsonl: No such file"):
        list(read_submissions(tmp_path / "none.jsonl"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("problems/kattis_problems.jsonl", 171),
        ("functions/humaneval.jsonl", 164),
        ("functions/mbpp_plus.jsonl", 377),
        ("functions/humanevalpack_bugs.jsonl", 2 * 86),
        ("functions/quixbugs.jsonl", 2 * 20),
        ("generations/humaneval.jsonl", 1032),
        ("generations/mbpp_ldb.jsonl", 732),
        ("generations/mbpp_multipl_e.jsonl", 386),
        ("generations/codegen16b_pool.jsonl", 640),
        ("generations/refinement_chains.jsonl", 417 + 141),
    ],
)
def test_every_recorded_program_is_read(data_dir: Path, place: str, count: int) -> None:
    found = list(read_submissions(data_dir / place))
    assert len(found) == count
    assert all(isinstance(one, Submission) and one.recorded for one in found)
