"""HumanEval+ in EvalPlus' layout; what its tests do is checked by running them, here on the host:
the programs are this file's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import AssertBody, CodeTask, load_tasks
from mars_envs.tasks.evalplus import INPUTS_PER_TEST
from mars_envs.tasks.numpy_free import without_numpy

PROMPT = 'def half(n):\n    """Halve.\n    >>> half(4)\n    2.0\n    """\n'
FIND_ZERO = (
    "def poly(xs, x):\n    return sum(c * x**i for i, c in enumerate(xs))\n\n\n"
    'def find_zero(xs):\n    """Find x such that poly(xs, x) is 0."""\n'
)


def problem(**fields: Any) -> dict[str, Any]:
    """A record of HumanEvalPlus.jsonl as EvalPlus releases it."""
    record = {
        "task_id": "HumanEval/900",
        "prompt": PROMPT,
        "contract": "    assert isinstance(n, int)\n",
        "canonical_solution": "    return n / 2\n",
        "entry_point": "half",
        "base_input": [[4], [5]],
        "plus_input": [[number] for number in range(INPUTS_PER_TEST + 1)],
        "atol": 0,
    }
    return record | fields


def load(tmp_path: Path, **fields: Any) -> CodeTask:
    path = tmp_path / "HumanEvalPlus.jsonl"
    path.write_text(json.dumps(problem(**fields)) + "\n")
    return load_tasks(path)[0]


def accepts(test: Any, candidate: Callable[..., Any]) -> bool:
    assert isinstance(test, AssertBody)
    space: dict[str, Any] = {}
    exec(test.body, space)
    try:
        space["check"](candidate)
    except AssertionError:
        return False
    return True


def test_examples_are_public_and_the_inputs_hidden_in_parts(tmp_path: Path) -> None:
    task = load(tmp_path)
    assert task.task_id == "HumanEval/900"
    assert task.public == (AssertBody(name="public/1", body="assert half(4) == 2.0"),)
    assert [test.name for test in task.hidden] == ["base", "plus/1", "plus/2"]
    assert task.statement == task.helpers == PROMPT
    assert not task.oracle


def test_without_examples_all_inputs_serve_search_and_reward_unseen(tmp_path: Path) -> None:
    task = load(tmp_path, prompt='def half(n):\n    """Halve."""\n', plus_input=[])
    assert [test.name for test in task.public] == ["base"]
    assert task.oracle
    assert not task.show_tests


def test_public_tests_may_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    pack = {"task": "HumanEval/900", "public_test": "def check(half):\n    assert half(8) == 4\n"}
    (tmp_path / "pack.jsonl").write_text(json.dumps(pack))
    (tmp_path / "plus.jsonl").write_text(json.dumps(problem()))
    task = load_tasks(tmp_path / "plus.jsonl", public_tests=tmp_path / "pack.jsonl")[0]
    assert task.public == (AssertBody(name="public/1", body="assert half(8) == 4"),)


def test_the_published_solution_says_what_is_right(tmp_path: Path) -> None:
    base, first, last = load(tmp_path).hidden
    for test in (base, first, last):
        assert accepts(test, lambda n: n / 2)
    assert not accepts(base, lambda n: n // 2)  # 5
    wrong_for_one = lambda n: n / 2 if n < INPUTS_PER_TEST else 0  # noqa: E731
    assert accepts(first, wrong_for_one)
    assert not accepts(last, wrong_for_one)


def test_floats_are_compared_with_a_tolerance_and_other_values_without(tmp_path: Path) -> None:
    base = load(tmp_path).hidden[0]
    assert accepts(base, lambda n: n / 2 + 1e-7)
    assert not accepts(base, lambda n: n / 2 + 1e-5)
    loose = load(tmp_path, atol=0.1).hidden[0]
    assert accepts(loose, lambda n: n / 2 + 0.05)
    listed = load(tmp_path, canonical_solution="    return [n / 2, 1.0]\n").hidden[0]
    assert accepts(listed, lambda n: [n / 2 + 1e-7, 1.0])
    assert not accepts(listed, lambda n: [n / 2])
    assert not accepts(listed, lambda n: n / 2)
    exact = load(tmp_path, canonical_solution="    return [n, 'a']\n").hidden[0]
    assert accepts(exact, lambda n: [n, "a"])
    assert not accepts(exact, lambda n: [n + 1e-9, "a"])


def test_a_program_that_changes_its_argument_does_not_change_what_is_right(tmp_path: Path) -> None:
    test = load(
        tmp_path,
        prompt='def half(n):\n    """Sort."""\n',
        canonical_solution="    n.sort()\n    return n[0]\n",
        base_input=[[[3, 1, 2]]],
        plus_input=[],
    ).public[0]
    assert accepts(test, min)
    assert not accepts(test, max)


def test_any_zero_of_a_polynomial_is_right(tmp_path: Path) -> None:
    task = load(
        tmp_path,
        prompt=FIND_ZERO,
        canonical_solution="    return 1.0\n",
        entry_point="find_zero",
        base_input=[[[-1, 0, 1]]],
        atol=0.0001,
    )
    assert accepts(task.public[0], lambda xs: -1.0)
    assert not accepts(task.public[0], lambda xs: 0.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base_input": [], "plus_input": []}, "`base_input`: expected at least one input"),
        ({"base_input": [4]}, "`base_input`: expected a list with a list of arguments for each"),
        ({"plus_input": None}, "`plus_input`: expected a list with a list of arguments for each"),
        ({"canonical_solution": "  )"}, "`canonical_solution`: expected what continues `prompt`"),
        ({"entry_point": "third"}, "`entry_point`: expected the name of a function that `prompt`"),
        ({"atol": "small"}, "`atol`: expected a number above 0"),
    ],
)
def test_a_bad_problem_is_named_with_its_fault(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=f"line 1, field {message}"):
        load(tmp_path, **fields)


SCRIPT = """
import numpy as np

def is_floats(x) -> bool:
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    if isinstance(x, np.ndarray):
        return x.dtype == np.float64 or x.dtype == np.float32
    return isinstance(x, float)

def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match

def check(candidate):
    for inp, exp in zip([[4], [5]], [2.0, 2.5]):
        assertion(candidate(*inp), exp, 0)
"""
"""As the hub's copies of HumanEval+ and MBPP+ have it in `test`."""


def test_scripts_that_need_numpy_for_closeness_alone_do_without(tmp_path: Path) -> None:
    record = problem() | {"test": SCRIPT}
    path = tmp_path / "hub.jsonl"
    path.write_text(json.dumps(record))
    (hidden,) = load_tasks(path)[0].hidden
    assert isinstance(hidden, AssertBody)
    assert "import numpy" not in hidden.body
    for offset, right in ((0.0, True), (1e-7, True), (1e-5, False)):
        for test in (hidden, AssertBody(name="as published", body=SCRIPT)):
            assert accepts(test, lambda n, offset=offset: n / 2 + offset) is right
    other = "import numpy as np\nassert np.sum([1]) == f()\n"
    assert without_numpy(other) == other


def test_the_stand_in_is_as_close_as_numpy() -> None:
    import numpy as np

    space: dict[str, Any] = {}
    exec(without_numpy("import numpy as np\nnp.allclose\n"), space)
    values = (0.0, 1e-7, 1.0, 1.0 + 1e-7, 1.0 + 1e-5, 1e8, 1e8 + 5, -1.0)
    for a in values:
        for b in values:
            for left, right in ((a, b), ([a, b], [b, b]), ([a, b], b), (a, [a, b])):
                expected = bool(np.allclose(left, right, rtol=1e-7, atol=1e-6))
                assert space["np"].allclose(left, right, rtol=1e-7, atol=1e-6) is expected


@pytest.mark.data
def test_the_recorded_problems_load(data_dir: Path) -> None:
    functions = data_dir / "functions"
    tasks = load_tasks(functions / "humaneval_plus_mini.jsonl")
    assert len(tasks) == 164
    plain = {task.task_id: task for task in load_tasks(functions / "humaneval.jsonl")}
    same = [task for task in tasks if task.statement == plain[task.task_id].statement]
    assert len(same) == 163  # EvalPlus mended the prompt of HumanEval/115
    for task in same:
        mine = [] if task.oracle else list(task.public)
        theirs = [] if plain[task.task_id].oracle else list(plain[task.task_id].public)
        assert mine == theirs
