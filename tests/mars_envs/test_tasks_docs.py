"""docs/tasks.md: each record in it is loaded and judged, each program of it is run."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.judging import CodeJudge
from mars_envs.judging.code import close_shared_sandboxes
from mars_envs.tasks import CodeTask, load_tasks
from mars_envs.tasks.formats import REQUIRED, Format, build_task
from mars_envs.tasks.options import LoadOptions
from mars_envs.tasks.records import Record


@pytest.fixture(scope="module")
def page(repo_dir: Path) -> str:
    return (repo_dir / "docs" / "tasks.md").read_text(encoding="utf-8")


@pytest.fixture
def records(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The record of each format, also as a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    found = dict(re.findall(r"^### (\w+)\n(?:(?!^#).)*?^```json\n(.*?)^```$", page, re.M | re.S))
    for name, text in found.items():
        (tmp_path / f"{name}.json").write_text(text)
    return found


@pytest.fixture(scope="module")
def judge() -> Iterator[CodeJudge]:
    yield CodeJudge("bubblewrap")
    close_shared_sandboxes()


SUM = "print(sum(map(int, input().split())))"
ADD = "def add(a, b):\n    return a + b"
SHIFT = "class Solution:\n    def shift(self, xs, n):\n        return [x + n for x in xs]"
PROGRAMS = {
    "code_task": ("print(2 * int(input()))", "print(int(input()) + 1)"),
    "humaneval": ("def half(n):\n    return n / 2", "def half(n):\n    return n // 2"),
    "humaneval_plus": ("def half(n):\n    return n / 2", "def half(n):\n    return abs(n) / 2"),
    "mbpp_original": (ADD, "def add(a, b):\n    return 3"),
    "livecodebench": (SHIFT, SHIFT.replace("x + n", "x + 3").replace("xs]", "xs] or [3]")),
    "apps": (SUM, "print(3)"),
    "deepcoder": (ADD, "def add(a, b):\n    return [a + b]"),
    "verl": (SUM, "print(7)"),
    "synthetic": (SUM, "print('x')"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_of_a_format_is_recognised_and_judged(
    records: dict[str, str], judge: CodeJudge, name: str
) -> None:
    (task,) = load_tasks(f"{name}.json")
    assert (task,) == load_tasks(f"{name}.json?format={name}")
    right, wrong = PROGRAMS[name]
    assert judge.judge(task, f"```python\n{right}\n```").solved
    verdict = judge.judge(task, f"```python\n{wrong}\n```")
    assert not verdict.solved
    assert verdict.status == "wrong_answer"


def test_no_statement_gives_away_a_hidden_test(records: dict[str, str]) -> None:
    for name in records:
        (task,) = load_tasks(f"{name}.json")
        unseen = task.hidden or (task.public if task.oracle else ())
        for test in unseen:
            parts = [getattr(test, field, "") for field in ("input", "body", "arguments")]
            assert not any(part.strip() in task.statement for part in parts if part.strip()), name


WRONG: list[Any] = [None, True, -1, 0.5, 10**400, "", " ", "{", "[]", "x\ud800", [], [[]], [1], {}]
WRONG += [{"a": 1}, [{}], {"inputs": 1, "outputs": 2}, [{"input": [], "output": None}], "2 seconds"]


def damaged(value: Any, rng: random.Random) -> Any:
    """Replace something in a JSON value, or take it away."""
    if rng.random() < 0.3 or not isinstance(value, dict | list | str) or not value:
        return rng.choice(WRONG)
    if isinstance(value, str):
        try:
            return json.dumps(damaged(json.loads(value), rng))
        except ValueError:
            return rng.choice(WRONG)
    copy = value.copy()
    key = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
    if rng.random() < 0.2:
        del copy[key]
    else:
        copy[key] = damaged(copy[key], rng)
    return copy


def test_a_damaged_record_is_a_task_or_a_complaint(records: dict[str, str]) -> None:
    rng = random.Random(0)
    refused = 0
    for name, text in records.items():
        for _ in range(150):
            record = damaged(json.loads(text), rng)
            try:
                fields = record if isinstance(record, dict) else {"record": record}
                build_task(Record(file="t", line=1, data=fields), cast(Format, name))
            except InvalidTask:
                refused += 1
    assert 500 < refused < 1300


def test_every_format_stands_in_the_table_with_its_fields(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\| ((?:[^|\\]|\\\|)*) \|", page, re.M)
    table = {name: tuple(fields.replace("\\|", "|").split(", ")) for name, fields in rows}
    options = set(LoadOptions.__dataclass_fields__)
    assert {name: fields for name, fields in table.items() if name not in options} == dict(REQUIRED)
    assert list(table)[-len(REQUIRED) :] == list(REQUIRED)


def test_every_option_is_explained(page: str) -> None:
    names = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.M)
    told = set(re.findall(r"\w+", " ".join(names)))
    assert set(LoadOptions.__dataclass_fields__) <= told


def test_the_programs_of_the_page_run(
    page: str, records: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    space: dict[str, object] = {}
    for program in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(program, space)
    assert capsys.readouterr().out == "9001 1 1 False\n"


def test_a_single_set_of_tests_makes_an_oracle_task(records: dict[str, str]) -> None:
    tasks: dict[str, CodeTask] = {name: load_tasks(f"{name}.json")[0] for name in records}
    oracle = {name for name, task in tasks.items() if task.oracle}
    assert oracle == {"apps", "deepcoder", "verl", "synthetic"}
    assert not any(tasks[name].show_tests for name in oracle)
    assert all(json.loads(text) for text in records.values())
