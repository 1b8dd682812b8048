"""Tasks that ask for a repair: HumanEvalPack and QuixBugs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import AssertBody, CodeTask, load_tasks

PACK = {
    "task": "HumanEval/900",
    "declaration": "def double(n):\n",
    "prompt": 'def double(n):\n    """ Return twice n. """\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * n\n",
    "buggy_solution": "    return n\n",
    "public_test": "def check(double):\n    assert double(0) == 0\ncheck(double)\n",
    "hidden_test": "def check(double):\n    assert double(3) == 6\n\ncheck(double)",
}
QUIX = {
    "name": "double",
    "docstring": '"""\nReturn twice n.\n\nExample:\n    >>> double(\'a\')\n    \'aa\'\n"""',
    "buggy_program": "def double(n):\n    return n",
    "solution": "def double(n):\n    return 2 * n",
    "tests": "assert double(*[3]) == 6",
}


def load(tmp_path: Path, record: dict[str, Any], **fields: Any) -> CodeTask:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(record | fields) + "\n")
    return load_tasks(path)[0]


def test_a_pack_brings_its_public_and_its_hidden_test(tmp_path: Path) -> None:
    task = load(tmp_path, PACK)
    assert task.public == (AssertBody(name="public/1", body="assert double(0) == 0"),)
    assert task.hidden == (AssertBody(name="hidden", body=PACK["hidden_test"]),)
    assert task.helpers == PACK["prompt"]


def test_the_statement_shows_the_broken_program(tmp_path: Path) -> None:
    assert load(tmp_path, PACK).statement == (
        f"{PACK['prompt'].rstrip()}\n\n# This program is wrong; mend it.\n"
        "def double(n):\n    return n\n"
    )
    assert load(tmp_path, QUIX).statement.endswith(
        "# This program is wrong; mend it.\ndef double(n):\n    return n\n"
    )


def test_the_examples_of_a_quixbugs_docstring_are_public(tmp_path: Path) -> None:
    task = load(tmp_path, QUIX)
    assert task.task_id == "QuixBugs/double"
    assert task.entry_point == "double"
    assert task.public == (AssertBody(name="public/1", body="assert double('a') == 'aa'"),)
    assert task.hidden == (AssertBody(name="hidden", body=QUIX["tests"]),)


def test_without_examples_the_tests_serve_as_both_and_are_not_shown(tmp_path: Path) -> None:
    task = load(tmp_path, QUIX, docstring='"""Return twice n."""')
    assert [test.name for test in task.public] == ["hidden"]
    assert task.oracle
    assert not task.show_tests


@pytest.mark.parametrize(
    ("record", "field"), [(PACK, "hidden_test"), (PACK, "buggy_solution"), (QUIX, "tests")]
)
def test_a_blank_field_is_named(tmp_path: Path, record: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidTask, match=f"field `{field}`: expected a text that is not blank"):
        load(tmp_path, record, **{field: " "})


@pytest.mark.data
def test_the_recorded_repairs_load(data_dir: Path) -> None:
    pack = load_tasks(data_dir / "functions" / "humanevalpack_bugs.jsonl")
    quix = load_tasks(data_dir / "functions" / "quixbugs.jsonl")
    assert len(pack) == 86
    assert len(quix) == 20
    assert sum(not task.oracle for task in quix) == 14  # have examples in their docstring
