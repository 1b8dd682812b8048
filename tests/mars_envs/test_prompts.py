"""The prose prompts, and prompt sets by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mars_envs.judging import CaseFeedback, Feedback
from mars_envs.tasks import AssertBody, CodeTask, ExpectedCase
from mars_envs.tree_search import ParentView, resolve_prompts
from mars_envs.tree_search import prose_prompts as prose

TASK = CodeTask(
    task_id="t",
    statement="Add two numbers.\n",
    public=(ExpectedCase(name="1", input="1 2", expected="3"),),
    hidden=(ExpectedCase(name="2", input="SECRET", expected="SECRET"),),
    time_limit_s=1.5,
)


def parent(feedback: Feedback, reply: str = "```python\nprint(4)\n```", **more: Any) -> ParentView:
    solved = feedback.passed >= feedback.total
    return ParentView(
        reply=reply, program="print(4)", feedback=feedback, solved_public=solved, **more
    )


WRONG = Feedback(
    passed=0,
    total=1,
    status="wrong_answer",
    failure=CaseFeedback(
        name="1", status="wrong_answer", input="1 2\n", expected="3\n", actual="4\n"
    ),
)


def test_a_root_prompt_is_the_statement_and_the_form_of_the_answer() -> None:
    assert prose.root(TASK, "coder_0") == (
        "Add two numbers.\n\n"
        "Write a Python 3 program that reads standard input and writes standard output. Reply with "
        "one full program in one ```python fence.\n"
    )


def test_a_function_task_names_its_function() -> None:
    task = dataclasses.replace(
        TASK, public=(AssertBody(name="1", body="assert add(1, 2) == 3"),), entry_point="add"
    )
    assert "that defines the function `add`" in prose.root(task, "coder_0")


def test_a_refinement_tells_statement_reply_and_feedback_in_this_order() -> None:
    assert prose.refine(TASK, parent(WRONG), "coder_0") == (
        "Add two numbers.\n\n"
        "An earlier answer was:\n\n"
        "```python\nprint(4)\n```\n\n"
        "It passes 0 of 1 public tests. Its output is wrong.\n\n"
        "The first public test that fails:\n"
        "Input:\n1 2\nExpected output:\n3\nActual output:\n4\n\n"
        "Find out what is wrong with the earlier answer, and write a better one.\n\n"
        "Write a Python 3 program that reads standard input and writes standard output. Reply with "
        "one full program in one ```python fence.\n"
    )


def test_prompts_of_siblings_share_everything_up_to_the_reply() -> None:
    first = prose.refine(TASK, parent(WRONG, reply="aaa"), "coder_0")
    second = prose.refine(TASK, parent(WRONG, reply="bbb"), "coder_1")
    start = TASK.statement + "\nAn earlier answer was:\n\n"
    assert first.startswith(start)
    assert second.startswith(start)
    assert prose.root(TASK, "coder_0").startswith(TASK.statement)


def test_a_solved_parent_asks_for_an_independent_and_robust_solution() -> None:
    text = prose.refine(TASK, parent(Feedback(passed=1, total=1, status="accepted")), "coder_0")
    assert "It passes 1 of 1 public tests.\n\nSolve the task again, deriving" in text
    assert "wrong" not in text


def test_a_reply_without_code_is_said_to_hold_none() -> None:
    feedback = Feedback(passed=0, total=1, status="no_code")
    text = prose.refine(TASK, parent(feedback, reply="Sorry."), "coder_0")
    assert "Sorry.\n\nNo program was found in that reply." in text


def test_an_empty_reply_is_named() -> None:
    feedback = Feedback(passed=0, total=1, status="no_code")
    assert "(an empty reply)" in prose.refine(TASK, parent(feedback, reply=" \n"), "coder_0")


def test_a_time_limit_is_stated() -> None:
    feedback = Feedback(passed=0, total=1, status="time_limit_exceeded")
    assert "stopped at the time limit of 1.5 s of CPU time" in prose.refine(
        TASK, parent(feedback), "coder_0"
    )


def test_an_error_is_shown_and_a_missing_output_is_not_blamed_then() -> None:
    failure = CaseFeedback(
        name="1", status="runtime_error", input="x", expected="3", error="ValueError: x\n  line 1"
    )
    feedback = Feedback(passed=0, total=1, status="runtime_error", failure=failure)
    text = prose.refine(TASK, parent(feedback), "coder_0")
    assert "It failed with a runtime error." in text
    assert "Error:\nValueError: x\n  line 1" in text
    assert "Actual output" not in text


def test_an_empty_output_is_news_where_one_was_expected() -> None:
    failure = CaseFeedback(name="1", status="wrong_answer", input="x", expected="3")
    feedback = Feedback(passed=0, total=1, status="wrong_answer", failure=failure)
    assert "Actual output:\n(nothing)" in prose.refine(TASK, parent(feedback), "coder_0")


def test_long_cases_keep_head_and_tail() -> None:
    failure = CaseFeedback(
        name="1",
        status="wrong_answer",
        input="i" * 1000 + "I",
        expected="e" * 1000 + "E",
        actual="a" * 1000 + "A",
    )
    feedback = Feedback(passed=0, total=1, status="wrong_answer", failure=failure)
    text = prose.refine(TASK, parent(feedback), "coder_0")
    for small, big, limit in (("i", "I", 300), ("e", "E", 200), ("a", "A", 200)):
        half = limit // 2
        note = f"[… {1001 - limit} characters left out …]"
        assert f"\n{small * half}{note}{small * (half - 1)}{big}\n" in text


def test_contents_that_must_stay_hidden_are_not_shown() -> None:
    task = dataclasses.replace(TASK, show_tests=False)
    text = prose.refine(task, parent(WRONG), "coder_0")
    assert "It passes 0 of 1 public tests. Its output is wrong." in text
    assert "Expected output" not in text


def test_hidden_tests_are_in_no_prompt() -> None:
    assert "SECRET" not in prose.root(TASK, "a") + prose.refine(TASK, parent(WRONG), "a")


@pytest.mark.parametrize(
    "name", ["prose", "mars_envs.tree_search.prose_prompts", "mars_envs.tree_search:prose_prompts"]
)
def test_prompts_can_be_named(name: str) -> None:
    assert resolve_prompts(name).root(TASK, "a") == prose.root(TASK, "a")


def test_the_compact_set_exists() -> None:
    assert len(resolve_prompts("compact").root(TASK, "a")) < 60


def test_an_object_may_be_a_set_of_prompts() -> None:
    class Own:
        def root(self, task: CodeTask, agent: str) -> str:
            return f"{agent}: {task.statement}"

        def refine(self, task: CodeTask, parent: ParentView, agent: str) -> str:
            return parent.reply

    assert resolve_prompts(Own()).root(TASK, "a") == "a: Add two numbers.\n"
    assert resolve_prompts(Own).refine(TASK, parent(WRONG, reply="r"), "a") == "r"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("haiku", "unknown prompts 'haiku'; expected one of prose, compact"),
        (object(), "is no set of prompts: it lacks root, refine"),
        ("mars_envs.errors", "lacks root, refine"),
    ],
)
def test_what_is_no_set_of_prompts_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_prompts(given)
