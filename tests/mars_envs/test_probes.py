"""Probes from files, and made from public tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidTask
from mars_envs.tasks import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    argument_probes,
    load_probes,
    load_tasks,
    mutated_probes,
    with_probes,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def task_of(*public: Any) -> CodeTask:
    return CodeTask(task_id="t", statement="?", public=public, entry_point="f", oracle=True)


def arguments(inputs: str) -> list[Any]:
    return [json.loads(line) for line in inputs.split("\n")]


@given(st.lists(st.lists(json_values, min_size=1, max_size=3), min_size=1, max_size=3))
def test_probes_of_function_calls_are_new_calls_with_as_many_arguments(
    calls: list[list[Any]],
) -> None:
    tests = [
        FunctionCall(name=str(number), arguments="\n".join(map(json.dumps, call)), expected="0")
        for number, call in enumerate(calls)
    ]
    task = task_of(*tests)
    probes = mutated_probes(task, 5)
    assert probes == mutated_probes(task, 5)
    inputs = [probe.input for probe in probes]
    assert len(set(inputs)) == len(inputs) <= 5
    assert not set(inputs) & {test.arguments for test in tests}
    assert {len(arguments(each)) for each in inputs} <= {len(call) for call in calls}


def test_literal_calls_in_asserts_are_changed_and_others_left_alone() -> None:
    task = task_of(
        AssertBody(name="1", body="assert f([1, 2], 'ab') == 3"),
        AssertBody(name="2", body="assert f((1, 2), 'no tuples') and f(x, 'no names')"),
        AssertBody(name="3", body="def check(candidate):\n    assert g(9) == candidate([], 'z')"),
    )
    probes = mutated_probes(task, 40)
    assert len(probes) == 40
    for probe in probes:
        numbers, text = arguments(probe.input)
        assert isinstance(numbers, list)
        assert set(text.lower()) <= set("abz")
    assert {probe.name for probe in probes} == {f"mutated/{number}" for number in range(1, 41)}


def test_another_seed_gives_other_probes() -> None:
    task = task_of(FunctionCall(name="1", arguments="[1, 2, 3]", expected="6"))
    assert mutated_probes(task, seed=1) != mutated_probes(task, seed=2)


def test_where_nothing_can_be_changed_there_are_no_probes() -> None:
    stdio = CodeTask(
        task_id="s", statement="?", public=(ExpectedCase(name="1", input="1\n", expected=""),)
    )
    assert mutated_probes(stdio) == ()
    assert mutated_probes(task_of(FunctionCall(name="1", arguments="null", expected="0"))) == ()
    assert mutated_probes(task_of(AssertBody(name="1", body="assert f("))) == ()
    assert mutated_probes(task_of(AssertBody(name="1", body="assert f() == 1"))) == ()


def test_probes_are_read_from_a_file_and_put_to_their_tasks(tmp_path: Path) -> None:
    path = tmp_path / "plus.jsonl"
    path.write_text('{"task_id": "t", "base_input": [[0]], "plus_input": [[1, "a"], [[2]]]}\n')
    probes = load_probes(path)
    assert [probe.input for probe in probes["t"]] == ['1\n"a"', "[2]"]
    other = task_of(FunctionCall(name="1", arguments="1", expected="0"))
    assert with_probes([other], probes)[0].probes == probes["t"]
    assert with_probes([other], {"u": argument_probes([[1]])})[0].probes == ()


def test_a_file_of_probes_with_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "plus.jsonl"
    path.write_text('{"task_id": "t", "plus_input": [1]}\n')
    with pytest.raises(InvalidTask, match="line 1, field `plus_input`: expected a list of lists"):
        load_probes(path)


@pytest.mark.data
def test_most_recorded_tasks_can_be_probed_both_ways(data_dir: Path) -> None:
    tasks = load_tasks(
        data_dir / "functions/humaneval.jsonl",
        public_tests=data_dir / "functions/humanevalpack_bugs.jsonl",
    )
    probes = load_probes(data_dir / "functions/humaneval_plus_mini.jsonl")
    given = with_probes(tasks, probes)
    assert all(task.probes for task in given)
    assert len(load_probes(data_dir / "functions/mbpp_plus.jsonl")) == 377
    own = [task for task in tasks if not task.oracle]
    assert sum(len(mutated_probes(task)) == 16 for task in own) >= 0.9 * len(own)
