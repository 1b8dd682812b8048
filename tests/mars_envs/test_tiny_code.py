"""The generated family: exact truth, a split without leaks, prompts that say enough."""

from __future__ import annotations

import contextlib
import io

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks.code import CodeTask, ExpectedCase
from mars_envs.tasks.tiny_code import (
    CONSTANTS,
    HELD_OUT_PROGRAMS,
    OPERATORS,
    TinyProgram,
    held_out_programs,
    tiny_tasks,
)


def run(source: str, given: str) -> str:
    """The oracle: the interpreter itself."""
    out = io.StringIO()
    lines = iter(given.splitlines())
    with contextlib.redirect_stdout(out):
        exec(compile(source, "program", "exec"), {"input": lambda: next(lines)})
    return out.getvalue()


def passes(source: str, cases: tuple[ExpectedCase, ...]) -> bool:
    return all(run(source, case.input) == case.expected for case in cases)


def cases(task: CodeTask, group: str) -> tuple[ExpectedCase, ...]:
    tests = task.public if group == "public" else task.hidden
    return tuple(test for test in tests if isinstance(test, ExpectedCase))


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_every_gold_program_passes_its_tests_when_really_executed(split: str) -> None:
    for task in tiny_tasks(split)[:300]:
        assert passes(task.meta["gold"], cases(task, "public") + cases(task, "hidden"))


def test_evaluate_agrees_with_the_interpreter_on_every_pair_of_operators_and_negative_inputs() -> (
    None
):
    for first in OPERATORS:
        for second in OPERATORS:
            program = TinyProgram(first, 7, second, 3)
            for n in (-11, -3, 0, 5, 17):
                assert run(program.source, f"{n}\n") == f"{program.evaluate(n)}\n"


def test_no_gold_program_occurs_in_both_splits() -> None:
    train = {task.meta["gold"] for task in tiny_tasks("train")}
    held_out = {task.meta["gold"] for task in tiny_tasks("held_out", seed=3)}
    assert not train & held_out
    assert len(held_out_programs()) == HELD_OUT_PROGRAMS
    assert len(train | held_out) > 1000


def test_task_ids_are_unique_and_tell_the_kind() -> None:
    tasks = list(tiny_tasks("train"))
    assert len({task.task_id for task in tasks}) == len(tasks)
    assert all(task.task_id.startswith(f"tiny/{task.meta['kind']}/") for task in tasks)


def test_thirty_percent_of_the_tasks_hide_a_constant() -> None:
    for split in ("train", "held_out"):
        kinds = [spec.kind for spec in tiny_tasks(split).specs]
        assert kinds.count("hidden") / len(kinds) == pytest.approx(0.3, abs=0.002)


def test_the_first_public_test_reveals_a_hidden_constant_and_the_statement_does_not() -> None:
    hidden = [spec for spec in tiny_tasks("train").specs if spec.kind == "hidden"]
    statements: dict[str, set[str]] = {}
    for spec in hidden:
        first = cases(spec.task(), "public")[0]
        assert first.input == "0\n"
        assert abs(int(first.expected)) == spec.b
        statements.setdefault(spec.compact, set()).add(spec.statement)
    assert len(statements) < len(hidden) / 4
    assert all(len(texts) == 1 for texts in statements.values())


def test_some_wrong_program_passes_the_public_tests_of_a_task() -> None:
    candidates = [
        TinyProgram(first, a, second, b)
        for first in OPERATORS
        for a in CONSTANTS
        for second in OPERATORS
        for b in CONSTANTS
    ]
    fooled = 0
    for task in tiny_tasks("held_out")[:20]:
        expected = {int(c.input): int(c.expected) for c in cases(task, "public")}
        hidden = {int(c.input): int(c.expected) for c in cases(task, "hidden")}
        fooled += any(
            all(p.evaluate(n) == v for n, v in expected.items())
            and any(p.evaluate(n) != v for n, v in hidden.items())
            for p in candidates
        )
    assert fooled >= 3


def test_the_same_seed_gives_the_same_tasks_and_another_seed_another_order() -> None:
    first = [task.task_id for task in tiny_tasks("train", seed=1)[:50]]
    assert first == [task.task_id for task in tiny_tasks("train", seed=1)[:50]]
    assert first != [task.task_id for task in tiny_tasks("train", seed=2)[:50]]


def test_a_slice_is_a_lazy_sequence_and_negative_indices_work() -> None:
    tasks = tiny_tasks("held_out")
    assert [task.task_id for task in tasks[:3]] == [tasks[i].task_id for i in range(3)]
    assert tasks[-1] == tasks[len(tasks) - 1]
    with pytest.raises(IndexError):
        tasks[len(tasks)]


def test_the_statement_tells_a_chat_model_the_operations_in_order() -> None:
    spec = next(
        s for s in tiny_tasks("train").specs if s.kind == "told" and s.gold.first != s.gold.second
    )
    text = spec.statement
    assert "standard input" in text
    assert "1. " in text
    assert text.index(str(spec.a), text.index("1. ")) < text.index("2. ")
    assert str(spec.b) in text[text.index("2. ") + 3 :]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "'train' and 'held_out'"),
        ({"hidden_share": 1.5}, "in \\[0, 1\\]"),
        ({"size": 100_000}, "makes 1 to"),
        ({"size": 0}, "makes 1 to"),
    ],
)
def test_impossible_requests_are_refused_with_the_arithmetic(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidTask, match=message):
        tiny_tasks(**options)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_either_kind_can_be_had_alone(share: float) -> None:
    kinds = {spec.kind for spec in tiny_tasks("held_out", hidden_share=share).specs}
    assert kinds == ({"hidden"} if share else {"told"})
