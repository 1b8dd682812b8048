"""Tasks of several data sets, judged in a sandbox by the rule of each of them.

A record of every format is judged in `test_tasks_docs`; here are the finer points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mars_envs.judging import CodeJudge
from mars_envs.judging.code import close_shared_sandboxes
from mars_envs.tasks import CodeTask, load_tasks


@pytest.fixture(scope="module")
def judge() -> Iterator[CodeJudge]:
    yield CodeJudge("bubblewrap")
    close_shared_sandboxes()


def load(tmp_path: Path, record: dict[str, Any]) -> CodeTask:
    (tmp_path / "t.jsonl").write_text(json.dumps(record))
    return load_tasks(tmp_path / "t.jsonl")[0]


def solves(judge: CodeJudge, task: CodeTask, program: str) -> bool:
    verdict = judge.judge(task, f"```python\n{program}\n```")
    assert verdict.status in ("accepted", "wrong_answer", "runtime_error"), verdict
    return verdict.solved


def livecodebench(kind: str, given: str, wanted: str, **fields: Any) -> dict[str, Any]:
    test = {"input": given, "output": wanted, "testtype": kind}
    return {
        "question_content": "Do it.",
        "question_id": "1",
        "public_test_cases": [test],
        "private_test_cases": [test],
        **fields,
    }


def test_livecodebench_compares_lines_and_equal_decimals(judge: CodeJudge, tmp_path: Path) -> None:
    task = load(tmp_path, livecodebench("stdin", "", "0.5 a\n2\n"))
    for text, right in (
        ("0.5 a\\n2", True),
        ("0.50 a \\n2.0\\n\\n", True),
        ("0.5 a 2", False),
        ("0.5000001 a\\n2", False),
        ("0.5 A\\n2", False),
    ):
        assert solves(judge, task, f"print('{text}')") is right, text


def test_livecodebench_compares_returned_values_exactly(judge: CodeJudge, tmp_path: Path) -> None:
    record = livecodebench("functional", '{"a": 1}', "[0.3]", metadata={"func_name": "f"})
    task = load(tmp_path, {**record, "starter_code": "class Solution:\n    def f(self, d):\n"})
    assert task.entry_point == "Solution.f"
    head = "class Solution:\n    def f(self, d: Dict[str, int]) -> List[float]:\n"
    assert solves(judge, task, f"{head}        return (0.3,)")
    assert not solves(judge, task, f"{head}        return [0.1 + 0.2]")


@pytest.mark.parametrize(
    "starter", ["class Solution:\n    def add(self, a, b):\n", "def add(a, b):\n"]
)
def test_functions_of_taco_may_be_methods(judge: CodeJudge, tmp_path: Path, starter: str) -> None:
    tests = {"fn_name": "add", "inputs": [[1, 2], ["a", "b"]], "outputs": [[3], "ab"]}
    record = {"question": "Add.", "input_output": json.dumps(tests), "starter_code": starter}
    task = load(tmp_path, record)
    assert solves(judge, task, "def add(a, b):\n    return a + b")
    assert solves(judge, task, "class Solution:\n    def add(self, a, b):\n        return a + b")
    # The value as the data set has it, in a list, is right, too.
    assert solves(judge, task, "def add(a, b):\n    return [3] if a == 1 else 'ab'")
    assert not solves(judge, task, "def add(a, b):\n    return [a + b]")
    assert not solves(judge, task, "def sub(a, b):\n    return a + b")


def test_programs_of_apps_may_differ_in_the_last_digits(judge: CodeJudge, tmp_path: Path) -> None:
    tests = {"inputs": [["1", "3"]], "outputs": [["0.333333", "2"]]}
    task = load(tmp_path, {"question": "Divide.", "input_output": tests})
    program = "a = int(input())\nb = int(input())\nprint(a / b)\n"
    assert solves(judge, task, f"{program}print(2)")
    assert not solves(judge, task, f"{program}print(3)")


EVALPLUS_SCRIPT = """
import numpy as np

def assertion(out, exp, atol):
    if out != exp:
        assert np.allclose(out, exp, rtol=1e-07, atol=1e-06)

def check(candidate):
    for inp, exp in zip([[4], [5]], [2.0, 2.5]):
        assertion(candidate(*inp), exp, 0)
"""


def test_scripts_of_evalplus_run_without_numpy(judge: CodeJudge, tmp_path: Path) -> None:
    record = {
        "task_id": "HumanEval/900",
        "prompt": 'def half(n):\n    """Halve."""\n',
        "entry_point": "half",
        "test": EVALPLUS_SCRIPT,
    }
    task = load(tmp_path, record)
    assert solves(judge, task, "def half(n):\n    return n / 2 + 1e-7")
    assert not solves(judge, task, "def half(n):\n    return n // 2")


VALIDATOR = """
import sys
with open(sys.argv[1]) as file:
    total = int(file.read())
a, b = map(int, sys.stdin.read().split())
sys.exit(42 if a + b == total else 43)
"""
PACKAGE = {
    "problem.yaml": "name: Parts\nvalidation: custom\n",
    "problem_statement/problem.en.md": "Print two numbers with the given sum.\n",
    "data/sample/1.in": "3\n",
    "data/sample/1.ans": "1 2\n",
    "data/secret/1.in": "10\n",
    "data/secret/1.ans": "1 9\n",
    "output_validators/validate.py": VALIDATOR,
}


def test_the_validator_of_a_package_judges_in_the_sandbox(judge: CodeJudge, tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (task,) = load_tasks(tmp_path)
    assert solves(judge, task, "print(0, input())")
    assert solves(judge, task, "print(1, int(input()) - 1)")
    assert not solves(judge, task, "print(1, 2)")
    assert not solves(judge, task, "print('one', 2)")


@pytest.mark.data
@pytest.mark.parametrize("number", [15, 32, 130])
def test_published_solutions_of_humaneval_plus_are_accepted(
    judge: CodeJudge, data_dir: Path, number: int
) -> None:
    """Values too large to carry, any zero of a polynomial, and a slow one."""
    path = data_dir / "functions" / "humaneval_plus_mini.jsonl"
    record = json.loads(path.read_text(encoding="utf-8").splitlines()[number])
    task = next(one for one in load_tasks(path) if one.task_id == record["task_id"])
    assert solves(judge, task, record["prompt"] + record["canonical_solution"])
