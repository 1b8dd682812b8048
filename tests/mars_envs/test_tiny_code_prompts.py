"""Compact prompts, and the warm-up examples written in them."""

from __future__ import annotations

import random
import re

from mars_envs.judging.base import CaseFeedback, Feedback
from mars_envs.tasks.tiny_code import BOILERPLATE, TinyTasks, tiny_tasks
from mars_envs.tree_search import compact_prompts
from mars_envs.tree_search.prompts import ParentView
from mars_envs.tree_search.warmup import GROUNDED_WORDS, public_feedback, warmup_pairs

ACCEPTED = Feedback(passed=2, total=2, status="accepted")


def parent(reply: str, feedback: Feedback) -> ParentView:
    return ParentView(
        reply=reply, program=reply, feedback=feedback, solved_public=feedback.failure is None
    )


def wrong(status: str = "wrong_answer", **texts: str) -> Feedback:
    return Feedback(
        passed=0,
        total=2,
        status=status,
        failure=CaseFeedback(name="public 0", status=status, **texts),
    )


def test_a_refinement_continues_the_root_prompt_with_reply_and_feedback() -> None:
    task = tiny_tasks()[0]
    reply = f"{BOILERPLATE}+5)*9)"
    feedback = wrong(input="0\n", expected="-1\n", actual="45\n")
    root = compact_prompts.root(task, "coder_0")
    assert root == f"{task.meta['compact']}\n"
    assert (
        compact_prompts.refine(task, parent(reply, feedback), "coder_1")
        == f"{root}{reply}\nin 0 want -1 got 45\n"
    )


def test_a_parent_that_passed_the_public_tests_is_told_ok() -> None:
    prompt = compact_prompts.refine(tiny_tasks()[0], parent("x", ACCEPTED), "a")
    assert prompt.endswith("\nok\n")


def test_other_failures_are_told_by_their_status() -> None:
    task = tiny_tasks()[0]
    for feedback in (
        wrong("runtime_error", input="0\n", expected="1\n", error="ZeroDivisionError"),
        Feedback(passed=0, total=2, status="runtime_error"),
    ):
        assert compact_prompts.refine(task, parent("x", feedback), "a").endswith(
            "\nruntime_error\n"
        )


def test_contents_of_tests_that_may_not_be_shown_are_not_asked_for() -> None:
    prompt = compact_prompts.refine(tiny_tasks()[0], parent("x", wrong()), "a")
    assert prompt.endswith("\nwrong_answer\n")


def test_an_overlong_reply_and_overlong_values_are_cut_the_same_way_every_time() -> None:
    task = tiny_tasks()[0]
    feedback = wrong(input="0\n", expected="1\n", actual="9" * 500)
    for reply in ("x" * 10_000, BOILERPLATE + "+" * 10_000):
        prompt = compact_prompts.refine(task, parent(reply, feedback), "a")
        assert prompt == compact_prompts.refine(task, parent(reply, feedback), "a")
        # The boilerplate is one token for the coders.
        assert len(prompt.replace(BOILERPLATE, "B")) <= 64


def test_a_task_without_a_short_statement_falls_back_to_its_statement() -> None:
    task = tiny_tasks()[0]
    plain = type(task)(task_id="x", statement="Print 1.", public=task.public)
    assert compact_prompts.root(plain, "a") == "Print 1.\n"


def test_public_feedback_names_the_first_failing_case() -> None:
    spec = next(s for s in tiny_tasks().specs if s.compact == "mul 3, add 8")
    swapped = type(spec.gold)("*", 3, "+", 2)
    feedback = public_feedback(spec.task(), swapped)
    assert feedback.failure is not None
    assert (feedback.passed, feedback.total) == (0, 2)
    assert (feedback.failure.input, feedback.failure.expected, feedback.failure.actual) == (
        "0\n",
        "8\n",
        "2\n",
    )
    assert public_feedback(spec.task(), spec.gold) == ACCEPTED


def test_warmup_shows_training_tasks_only() -> None:
    train = {spec.compact for spec in TinyTasks(tiny_tasks("train").specs).specs}
    for prompt, _ in warmup_pairs(random.Random(0), 500):
        assert prompt.split("\n")[0] in train


def test_warmup_grounds_four_words_and_leaves_the_others_random() -> None:
    right: dict[bool, list[bool]] = {True: [], False: []}
    operator = {"add": "+", "sub": "-", "mul": "*", "mod": "%"}
    synonym = {"plus": "+", "more": "+", "minus": "-", "less": "-", "times": "*", "rem": "%"}
    for prompt, completion in warmup_pairs(random.Random(1), 2000, refine_share=0):
        word = prompt.split(" ")[0]
        used = completion.removeprefix(BOILERPLATE)[0]
        right[word in GROUNDED_WORDS].append(used == (operator | synonym)[word])
    assert all(right[True])
    assert 0.2 < sum(right[False]) / len(right[False]) < 0.3


def test_warmup_refinements_repeat_what_passed_and_change_what_failed() -> None:
    pairs = warmup_pairs(random.Random(2), 3000, refine_share=1)
    passed = [(p, c) for p, c in pairs if p.endswith("\nok\n")]
    told = [(p, c) for p, c in pairs if "?" not in p and not p.endswith("\nok\n")]
    assert len(passed) > 100
    assert len(told) > 100
    assert all(c in p for p, c in passed)
    assert not any(c in p for p, c in told)


def test_warmup_reads_a_missing_constant_from_the_feedback_about_half_of_the_time() -> None:
    read = []
    for prompt, completion in warmup_pairs(random.Random(3), 4000, refine_share=1):
        match = re.search(r"\?\n(?s:.*)\nin 0 want (-?\d+) got", prompt)
        if match:
            read.append(completion.endswith(f"{abs(int(match[1]))})"))
    # Half of the time on purpose, else one guess in eight.
    assert 0.5 < sum(read) / len(read) < 0.62
