"""MBPP in both of its layouts: what becomes public, what hidden, which function is meant."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import AssertBody, CodeTask, load_tasks
from mars_envs.tasks.mbpp import AS_SETS

PLUS = {
    "task_id": "Mbpp/900",
    "prompt": '"""\nWrite a function to halve a number.\n"""\n',
    "entry_point": "half",
    "canonical_solution": "\ndef half(n):\n    return n / 2\n",
    "assertion": "\nimport math\nassert half(4) == 2\nassert math.isclose(half(1), 0.5)\n",
}
CHECK = {
    "task": "Mbpp/901",
    "prompt": 'def half(n):\n    """Halve a number."""\n',
    "entry_point": "half",
    "test": "def check(candidate):\n    assert candidate(4) == 2\n    assert candidate(2) == 1\n",
}


def load(tmp_path: Path, record: dict[str, Any], **fields: Any) -> CodeTask:
    path = tmp_path / "mbpp.jsonl"
    path.write_text(json.dumps(record | fields) + "\n")
    return load_tasks(path)[0]


def test_the_first_assert_is_public_with_the_imports_before_it(tmp_path: Path) -> None:
    task = load(tmp_path, PLUS)
    assert task.task_id == "Mbpp/900"
    assert task.public == (AssertBody(name="public/1", body="import math\nassert half(4) == 2\n"),)
    assert task.hidden == (AssertBody(name="hidden", body=PLUS["assertion"]),)
    assert not task.oracle


def test_the_first_assert_of_a_check_is_public(tmp_path: Path) -> None:
    task = load(tmp_path, CHECK)
    assert task.public == (
        AssertBody(name="public/1", body="def check(candidate):\n    assert candidate(4) == 2\n"),
    )
    assert task.helpers == CHECK["prompt"]


def test_a_single_assert_serves_as_both_and_is_not_shown(tmp_path: Path) -> None:
    task = load(tmp_path, PLUS, assertion="assert half(4) == 2")
    assert task.oracle
    assert not task.show_tests
    assert task.hidden == ()


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("def check(candidate):\n    assert whole(2) == 4\n\ncheck(half)", "whole"),
        ("def check(candidate):\n    assert candidate(2) == sum([1])\n\ncheck(half)", "half"),
        ("def check(candidate):\n    assert half(2) == whole(1)\n", "half"),
        ("def check(candidate):\n    assert whole(other(2)) == 4\n", "half"),
        ("def check(candidate):\n    f = whole\n    assert f(2) == 4\n", "half"),
    ],
)
def test_the_function_that_the_asserts_call_alone_is_meant(
    tmp_path: Path, body: str, function: str
) -> None:
    assert load(tmp_path, CHECK, test=body).entry_point == function


def test_answers_that_may_come_in_any_order_are_compared_as_sets(tmp_path: Path) -> None:
    body = "assert f((1, 2)) == (3, 4)\nassert f(()) == ()\n"
    as_sets = "assert set(f((1, 2))) == set((3, 4))\nassert set(f(())) == set(())\n"
    fields = {"entry_point": "f", "assertion": body}
    hidden = load(tmp_path, PLUS, task_id="Mbpp/2", **fields).hidden
    assert hidden == (AssertBody(name="hidden", body=as_sets),)
    assert load(tmp_path, PLUS, **fields).hidden == (AssertBody(name="hidden", body=body),)


@pytest.mark.parametrize(
    ("record", "field"), [(PLUS, "assertion"), (CHECK, "test")], ids=["plus", "check"]
)
def test_a_body_that_is_no_python_is_named(
    tmp_path: Path, record: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidTask, match=f"line 1, field `{field}`: expected Python source"):
        load(tmp_path, record, **{field: "assert half(4) == "})


@pytest.mark.data
@pytest.mark.parametrize(
    ("place", "count", "renamed"),
    [
        ("functions/mbpp_plus.jsonl", 377, {}),
        ("generations/mbpp_multipl_e_tasks.jsonl", 193, {}),
        (
            "generations/mbpp_ldb_tasks.jsonl",
            244,
            {
                "Mbpp/18": "remove_dirty_chars",
                "Mbpp/30": "count_Substring_With_Equal_Ends",
                "Mbpp/45": "get_gcd",
                "Mbpp/152": "merge_sort",
                "Mbpp/181": "common_prefix",
                "Mbpp/323": "re_arrange",
                "Mbpp/338": "count_Substring_With_Equal_Ends",
                "Mbpp/348": "find_ways",
            },
        ),
    ],
)
def test_the_recorded_tasks_load(
    data_dir: Path, place: str, count: int, renamed: dict[str, str]
) -> None:
    path = data_dir / place
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    tasks = load_tasks(path)
    assert len(tasks) == count
    assert not any(task.oracle for task in tasks)
    named = [record["entry_point"] for record in records]
    assert {
        task.task_id: task.entry_point
        for task, name in zip(tasks, named, strict=True)
        if task.entry_point != name
    } == renamed


@pytest.mark.data
def test_the_tasks_that_the_agreement_page_names_are_in_the_data(data_dir: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "sandbox_agreement.md"
    lists = re.findall(r"Mbpp/([\d, and]+)", page.read_text())
    named = {f"Mbpp/{number}" for text in lists for number in re.findall(r"\d+", text)}
    tasks = load_tasks(data_dir / "functions" / "mbpp_plus.jsonl")
    assert {*AS_SETS} <= named <= {task.task_id for task in tasks}


def original(**fields: Any) -> dict[str, Any]:
    """A record of mbpp.jsonl as its authors publish it."""
    record = {
        "task_id": 11,
        "text": "Write a function to add.",
        "code": "def helper(a):\n    return a\n\ndef add(a, b):\n    return helper(a) + b\n",
        "test_list": ["assert add(helper(1), 2) == 3", "assert add(2, 2) == 4"],
        "test_setup_code": "import math",
        "challenge_test_list": ["assert add(0, 0) == 0"],
    }
    return record | fields


def load_original(tmp_path: Path, record: dict[str, Any]) -> CodeTask:
    path = tmp_path / "mbpp.jsonl"
    path.write_text(json.dumps(record))
    return load_tasks(path)[0]


def test_mbpp_as_published_shows_its_first_assert(tmp_path: Path) -> None:
    task = load_original(tmp_path, original())
    assert task.task_id == "Mbpp/11"
    assert task.statement == '"""\nWrite a function to add.\nassert add(helper(1), 2) == 3\n"""\n'
    assert task.entry_point == "add"
    first = "import math\nassert add(helper(1), 2) == 3\n"
    assert task.public == (AssertBody(name="public/1", body=first),)
    assert task.hidden == (AssertBody(name="hidden", body=f"{first}assert add(2, 2) == 4\n"),)
    assert not task.oracle


def test_the_sanitized_variant_has_a_prompt_and_imports(tmp_path: Path) -> None:
    sanitized = {
        "source_file": "Benchmark Questions Verification V2.ipynb",
        "task_id": 11,
        "prompt": "Add.",
        "code": "def add(a, b):\n    return a + b",
        "test_imports": ["import re", "import sys"],
        "test_list": ["assert add(1, 2) == 3"],
    }
    task = load_original(tmp_path, sanitized)
    body = "import re\nimport sys\nassert add(1, 2) == 3\n"
    assert task.public == (AssertBody(name="hidden", body=body),)
    assert task.oracle


def test_a_script_of_mbpp_plus_is_one_more_hidden_test(tmp_path: Path) -> None:
    script = "import numpy as np\nfor inp in [[1, 2]]:\n    assert np.allclose(add(*inp), 3)\n"
    task = load_original(tmp_path, original(prompt="Add.", test=script, test_imports=[]))
    assert [test.name for test in task.hidden] == ["hidden", "plus"]
    assert "import numpy" not in task.hidden[1].body  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task_id": "11"}, "`task_id`: expected the number of a problem of MBPP, got the string"),
        ({"test_list": []}, "`test_list`: expected at least one entry"),
        ({"test_list": "assert add(1, 2) == 3"}, "`test_list`: expected a list of strings"),
        ({"test_list": ["assert sub(1)"]}, "`test_list`: expected asserts that call a function"),
        ({"test_list": ["assert ("]}, "`test_list`: expected Python source"),
        ({"code": "def ("}, "`code`: expected Python source"),
        ({"text": ""}, "`text`: expected a text that is not blank"),
        ({"test_imports": "import re"}, "`test_imports`: expected a list of strings"),
    ],
)
def test_a_bad_problem_as_published_is_named_with_its_fault(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=f"line 1, field {message}"):
        load_original(tmp_path, original(**fields))
