from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import CodeTask, ExpectedCase, FunctionCall, OutputRule, load_tasks

COLUMNS = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
CALLS = {"fn_name": "add", "inputs": [[1, 2], [3, 4]], "outputs": [[3], 7]}
STDIO = (
    ExpectedCase(name="test/1", input="1 2\n", expected="3\n"),
    ExpectedCase(name="test/2", input="3 4\n", expected="7\n"),
)
CALLED = (
    FunctionCall(name="test/1", arguments="1\n2", expected="[3]", alternatives=("3",)),
    FunctionCall(name="test/2", arguments="3\n4", expected="7"),
)


def apps(**fields: Any) -> dict[str, Any]:
    """A record of APPS as published (codeparrot/apps)."""
    record = {
        "problem_id": 42,
        "question": "Add.",
        "solutions": '["print(sum(map(int, input().split())))"]',
        "input_output": json.dumps(COLUMNS),
        "difficulty": "interview",
        "url": "https://example.org/p/42",
        "starter_code": "",
    }
    return record | fields


def taco(**fields: Any) -> dict[str, Any]:
    """A record of TACO as published (BAAI/TACO): no id, limits as texts."""
    record = {
        "question": "Add.",
        "solutions": "[]",
        "starter_code": "class Solution:\n    def add(self, a, b):\n        ",
        "input_output": json.dumps(CALLS),
        "difficulty": "EASY",
        "raw_tags": "[]",
        "name": None,
        "source": "leetcode",
        "tags": "[]",
        "skill_types": "[]",
        "url": None,
        "Expected Auxiliary Space": None,
        "time_limit": "8.5 seconds",
        "date": None,
        "picture_num": "0",
        "memory_limit": "256.0 megabytes",
        "Expected Time Complexity": None,
    }
    return record | fields


LISTED = [
    {"input": "1 2\n", "output": "3\n", "type": "stdin_stdout"},
    {"input": "3 4\n", "output": "7\n", "type": "stdin_stdout"},
]
FUNCTIONS = [
    {"type": "function_call", "fn_name": "add", "input": [1, 2], "output": [3]},
    {"type": "function_call", "fn_name": "add", "input": [3, 4], "output": 7},
]
LINES = [{"input": "1\n2", "output": "3", "testtype": "functional"}]


def load(tmp_path: Path, record: dict[str, Any], **options: Any) -> CodeTask:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps(record) + "\n")
    return load_tasks(path, **options)[0]


def test_one_set_of_tests_serves_search_and_reward_unseen(tmp_path: Path) -> None:
    assert load(tmp_path, apps()) == CodeTask(
        task_id="train/42",
        statement="Add.",
        public=STDIO,
        rule=OutputRule(kind="auto"),
        time_limit_s=6.0,
        memory_mb=1024,
        oracle=True,
        show_tests=False,
        meta={"difficulty": "interview", "url": "https://example.org/p/42"},
    )


def test_a_named_function_is_called_with_arguments(tmp_path: Path) -> None:
    task = load(tmp_path, taco())
    assert task.task_id == "train/1"
    assert task.public == CALLED
    assert task.entry_point == "Solution.add"
    assert task.time_limit_s == 8.5
    assert task.statement.startswith("Add.\n\nComplete this starter code:\n\n```python\nclass Sol")
    assert load(tmp_path, taco(starter_code="def add(a, b):\n")).entry_point == "add"


def test_lines_of_a_text_may_be_kept_as_a_list(tmp_path: Path) -> None:
    lines = {"inputs": [["1", "2"], "x"], "outputs": [[3, 4.5], ["x"]]}
    assert load(tmp_path, apps(input_output=lines)).public == (
        ExpectedCase(name="test/1", input="1\n2", expected="3\n4.5"),
        ExpectedCase(name="test/2", input="x", expected="x"),
    )


DEEPCODER = {
    "primeintellect, stdin": ({"problem": "Add.", "tests": json.dumps(LISTED)}, STDIO, None),
    "primeintellect, function": ({"problem": "Add.", "tests": FUNCTIONS}, CALLED, "add"),
    "taco": ({"problem": "Add.", "solutions": [], "tests": json.dumps(CALLS)}, CALLED, "add"),
    "codeforces": (
        {"problem": "Add.", "tests": [{"input": "1 2\n", "output": "3\n"}]},
        STDIO[:1],
        None,
    ),
    "lcbv5": (
        {
            "problem": "Add.",
            "starter_code": "class Solution:\n    def add(self, a, b): pass",
            "tests": json.dumps(LINES),
            "metadata": {"func_name": "add"},
        },
        (FunctionCall(name="test/1", arguments="1\n2", expected="3"),),
        "Solution.add",
    ),
    "rLLM": (
        {
            "question": "Add.",
            "ground_truth": json.dumps([{**LINES[0], "metadata": {"func_name": "add"}}]),
            "data_source": "livecodebench",
            "uid": "deepcoder_7",
            "metadata": "{}",
        },
        (FunctionCall(name="test/1", arguments="1\n2", expected="3"),),
        "add",
    ),
    "rLLM, stdin": (
        {
            "question": "Add.",
            "ground_truth": json.dumps([{**LISTED[0], "metadata": {"func_name": None}}]),
            "metadata": "not JSON, and not needed",
        },
        STDIO[:1],
        None,
    ),
    "verl": (
        {
            "data_source": "livecodebench",
            "prompt": [{"role": "system", "content": "Hm."}, {"role": "user", "content": "Add."}],
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": json.dumps(CALLS)},
            "extra_info": {"split": "train", "index": 0},
        },
        CALLED,
        "add",
    ),
    "Prime Intellect": (
        {
            "problem_id": "vcp_1",
            "task_type": "verifiable_code",
            "in_source_id": "p1",
            "prompt": "Add.",
            "gold_standard_solution": "print()",
            "verification_info": {"language": "python", "test_cases": LISTED},
            "metadata": {"difficulty": "easy"},
        },
        STDIO,
        None,
    ),
    "SYNTHETIC-1": (
        {
            "prompt": "Add.",
            "verification_info": json.dumps({"test_cases": json.dumps(COLUMNS), "fn_name": None}),
        },
        STDIO,
        None,
    ),
}


@pytest.mark.parametrize("layout", DEEPCODER)
def test_every_published_layout_gives_the_same_tests(tmp_path: Path, layout: str) -> None:
    record, tests, entry_point = DEEPCODER[layout]
    task = load(tmp_path, record)
    assert task.public == tests
    assert task.entry_point == entry_point
    assert task.statement.startswith("Add.")
    assert task.oracle
    assert task.task_id == record.get("uid", record.get("problem_id", "train/1"))


def test_some_tests_may_be_given_up_to_be_seen(tmp_path: Path) -> None:
    many = {"inputs": [str(n) for n in range(9)], "outputs": [str(n) for n in range(9)]}
    first = load(tmp_path, apps(input_output=many), public_count=2)
    assert [test.name for test in first.public] == ["test/1", "test/2"]
    assert [test.name for test in first.hidden] == [f"test/{n}" for n in range(3, 10)]
    assert not first.oracle
    assert first.show_tests
    drawn = [
        load(tmp_path, apps(input_output=many), public_count=2, split_seed=seed)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    for task in drawn:
        assert len(task.public) == 2
        assert {*task.public, *task.hidden} == {*first.public, *first.hidden}
    assert load(tmp_path, apps(), public_count=2).oracle  # one test at least has to be hidden


BAD: list[tuple[dict[str, Any], str]] = [
    (apps(input_output="{"), "field `input_output`: expected JSON in a string"),
    (apps(input_output=None), "field `input_output`: expected a list of JSON objects, got null"),
    (apps(input_output=""), "field `input_output`: expected JSON in a string"),
    (apps(input_output={"inputs": ["1"]}), "`input_output.outputs`: expected a list with an entry"),
    (apps(input_output={**COLUMNS, "inputs": []}), "`input_output.inputs`: expected at least one"),
    (
        apps(input_output={**COLUMNS, "outputs": ["3"]}),
        "`input_output.outputs`: expected as many entries as `inputs` has, 2, got a list of 1",
    ),
    (
        apps(input_output={"inputs": [None], "outputs": ["1"]}),
        r"`input_output.inputs\[0\]`: expected a string, got null",
    ),
    (
        apps(input_output={"inputs": [[["1"]]], "outputs": ["1"]}),
        r"`input_output.inputs\[0\]`: expected a text, or a list of its lines",
    ),
    (
        apps(input_output={"fn_name": "f", "inputs": [7], "outputs": ["1"]}),
        r"`input_output.inputs\[0\]`: expected a list of arguments, or a text with one JSON value",
    ),
    (apps(input_output={**CALLS, "fn_name": 3}), "`input_output.fn_name`: expected a string"),
    (apps(question=" "), "field `question`: expected a text that is not blank"),
    ({"problem": "Add.", "tests": []}, "field `tests`: expected at least one entry"),
    (
        {"problem": "Add.", "tests": [{"input": "", "output": "", "type": "interactive"}]},
        r"`tests\[0\].type`: expected one of stdin, stdin_stdout, functional, function_call",
    ),
    (
        {"problem": "Add.", "tests": [LISTED[0], FUNCTIONS[0] | {"fn_name": None}]},
        "field `tests`: expected tests of one kind",
    ),
    (
        {"problem": "Add.", "tests": [FUNCTIONS[0], FUNCTIONS[1] | {"fn_name": "sub"}]},
        "field `tests`: expected tests of one function, .*'add', 'sub'",
    ),
    ({"problem": "Add.", "tests": LINES}, "its tests call a function, but nothing says which"),
    (
        {"problem": "Add.", "tests": [{"type": "function_call", "fn_name": "f", "input": [1]}]},
        r"`tests\[0\].output`: expected the value that is returned, got nothing",
    ),
    (
        {"prompt": [], "reward_model": {"ground_truth": "[]"}},
        "field `prompt`: expected at least one entry",
    ),
    ({"prompt": "Add.", "reward_model": {}}, "field `prompt`: expected a list of JSON objects"),
    (
        {"prompt": "Add.", "verification_info": {"language": "rust", "test_cases": LISTED}},
        "`verification_info.language`: expected \"python\", got the string 'rust'",
    ),
    ({"prompt": "Add.", "verification_info": "{}"}, "`verification_info.test_cases`: expected a l"),
]


@pytest.mark.parametrize(("record", "message"), BAD, ids=[message[:60] for _, message in BAD])
def test_a_bad_problem_is_named_with_its_fault(
    tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=f"train.jsonl, line 1.*{message}"):
        load(tmp_path, record)
