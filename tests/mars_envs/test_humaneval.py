from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import AssertBody, CodeTask, load_tasks
from mars_envs.tasks.humaneval import doctest_asserts, split_asserts

PROMPT = '''def double(n: int) -> int:
    """ Return twice n.
    >>> double(2)
    4
    """
'''
TEST = "def check(candidate):\n    assert candidate(3) == 6\n"


def problem(**fields: Any) -> dict[str, Any]:
    record = {
        "task_id": "HumanEval/900",
        "prompt": PROMPT,
        "entry_point": "double",
        "canonical_solution": "    return 2 * n\n",
        "test": TEST,
    }
    return record | fields


def load(tmp_path: Path, public: dict[str, str] | None = None, **fields: Any) -> CodeTask:
    path = tmp_path / "humaneval.jsonl"
    path.write_text(json.dumps(problem(**fields)) + "\n")
    if public is None:
        return load_tasks(path)[0]
    other = tmp_path / "public.jsonl"
    other.write_text(
        "".join(
            json.dumps({"task": key, "public_test": body}) + "\n" for key, body in public.items()
        )
    )
    return load_tasks(path, public_tests=other)[0]


def test_the_prompt_is_statement_and_helpers_and_the_test_is_hidden(tmp_path: Path) -> None:
    task = load(tmp_path)
    assert task.statement == task.helpers == PROMPT
    assert task.entry_point == "double"
    assert task.hidden == (AssertBody(name="hidden", body=TEST),)


def test_docstring_examples_are_the_public_tests(tmp_path: Path) -> None:
    task = load(tmp_path)
    assert task.public == (AssertBody(name="public/1", body="assert double(2) == 4"),)
    assert not task.oracle
    assert task.show_tests


def test_a_file_of_public_tests_goes_before_the_docstring(tmp_path: Path) -> None:
    body = (
        "def check(double):\n    assert double(1) == 2\n    assert double(0) == 0\ncheck(double)\n"
    )
    task = load(tmp_path, public={"HumanEval/900": body})
    assert [test.body for test in task.public if isinstance(test, AssertBody)] == [
        "assert double(1) == 2",
        "assert double(0) == 0",
    ]


@pytest.mark.parametrize(
    "public", [{"HumanEval/1": "def check(f):\n assert f()"}, {"HumanEval/900": ""}]
)
def test_a_task_without_an_entry_there_uses_its_docstring(
    tmp_path: Path, public: dict[str, str]
) -> None:
    task = load(tmp_path, public=public)
    assert task.public == (AssertBody(name="public/1", body="assert double(2) == 4"),)


def test_without_any_public_test_the_hidden_one_serves_both(tmp_path: Path) -> None:
    task = load(tmp_path, prompt="def double(n):\n    ''' Twice n. '''\n")
    assert task.public == (AssertBody(name="hidden", body=TEST),)
    assert task.hidden == ()
    assert task.oracle
    assert not task.show_tests


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def check(f):\n    assert f(1) == 2, 'no'\n", ["assert f(1) == 2, 'no'"]),
        (
            "def check(f):\n    # note\n    assert f(\n        1) == 2\ncheck(f)",
            ["assert f(\n    1) == 2"],
        ),
        ("def check(f):\n    assert True\n    print\n    assert f(1)\n", ["assert f(1)"]),
        ("def check(f):\n    assert not f('é')\n", ["assert not f('é')"]),
        (
            "def check(f):\n    x = [1]\n    assert f(x) == 2\ncheck(f)\n",
            ["def check(f):\n    x = [1]\n    assert f(x) == 2"],
        ),
        ("def check(c):\n    assert c(1) == 2\n", ["def check(c):\n    assert c(1) == 2"]),
        ("def check(f):\n    assert True\n", []),
        ("def check(f):\n    pass\n", []),
        ("", []),
        ("def check(f:\n", []),
        ("x = 1\n", []),
    ],
)
def test_a_check_is_split_into_its_asserts(body: str, expected: list[str]) -> None:
    assert split_asserts(body, "f") == expected


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (">>> f(1)\n2\n>>> f('a') # why\n'b'\n", ["assert f(1) == 2", "assert f('a') == 'b'"]),
        (">>> round(f([1]), 2)\n-0.5\n", ["assert round(f([1]), 2) == -0.5"]),
        (">>> f(1)\n[1, (2, None)]\n", ["assert f(1) == [1, (2, None)]"]),
        (">>> f(\n... 1)\n2\n", ["assert f(1) == 2"]),
        (">>> f(1)\nTraceback (most recent call last):\n  ...\nValueError: no\n", []),
        (">>> f(1)\nabout 2\n", []),
        (">>> f(1)\n", []),
        (">>> g(1)\n2\n", []),
        (">>> x = f(1)\n>>> x\n2\n", []),
        ("f(1) ==> 2\n", []),
        (">>>f(1)\n2\n", []),
    ],
)
def test_docstring_examples_with_literal_results_become_asserts(
    docstring: str, expected: list[str]
) -> None:
    assert doctest_asserts(docstring, "f") == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test": "def check(c:"}, "field `test`: expected Python source.*does not parse"),
        ({"prompt": "def double(n:"}, "field `prompt`: expected Python source"),
        (
            {"entry_point": "triple"},
            "`entry_point`: expected the name of a function that `prompt` op",
        ),
        ({"test": " "}, "field `test`: expected a text that is not blank"),
    ],
)
def test_a_bad_problem_is_named_with_its_fault(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=message):
        load(tmp_path, **fields)


def test_a_bad_file_of_public_tests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "humaneval.jsonl"
    path.write_text(json.dumps(problem()) + "\n")
    (tmp_path / "public.jsonl").write_text('{"task_id": "HumanEval/900"}\n')
    with pytest.raises(InvalidTask, match=r"public.jsonl, line 1, field `task`: expected a string"):
        load_tasks(path, public_tests=tmp_path / "public.jsonl")


@pytest.mark.data
def test_the_data_set_loads_with_public_tests_from_docstrings(data_dir: Path) -> None:
    tasks = load_tasks(data_dir / "functions" / "humaneval.jsonl")
    assert len(tasks) == 164
    assert sum(task.oracle for task in tasks) == 95
    for task in tasks:
        for test in (*task.public, *task.hidden):
            assert isinstance(test, AssertBody)
            ast.parse(test.body)


@pytest.mark.data
def test_the_recorded_tasks_have_public_tests_of_their_own(data_dir: Path) -> None:
    tasks = load_tasks(
        data_dir / "functions" / "humaneval.jsonl",
        public_tests=data_dir / "functions" / "humanevalpack_bugs.jsonl",
    )
    pool = (data_dir / "generations" / "codegen16b_pool.jsonl").read_text().splitlines()
    recorded = {json.loads(line)["task"] for line in pool}
    oracle = {task.task_id for task in tasks if task.task_id in recorded and task.oracle}
    # Its `public_test` is empty and its docstring has no example.
    assert oracle == {"HumanEval/41"}
