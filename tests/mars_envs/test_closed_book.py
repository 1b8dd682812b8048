"""Questions that can be answered without their document are found, and it is said why."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.scripted import lexical, oracle
from mars_envs.reading import Evidence, ReadingTask, TextDocument
from mars_envs.reading.closed_book import ClosedBook, ClosedBookFailed, closed_book_filter


def task(name: str, *answers: str, question: str = "", **fields: Any) -> ReadingTask:
    return ReadingTask(
        task_id=name,
        question=question or f"What is {name}?",
        document=TextDocument("never read"),
        answers=answers,
        **fields,
    )


TASKS = [
    task("France", "Paris", "Paris, France"),
    task("novel", "Moby-Dick"),
    task("flat", "no"),
    task("cat", "Mia"),
]
REPLIES = {
    "France": r"It is \boxed{Paris, France}",
    "novel": r"I think of Moby-Dick, but \boxed{Emma}",
    "flat": r"I do not know. \boxed{unknown}",
    "cat": r"Miami? \boxed{Rex}",
}


def model(prompt: str) -> str:
    return next(reply for name, reply in REPLIES.items() if f"What is {name}?" in prompt)


def ids(tasks: tuple[ReadingTask, ...]) -> list[str]:
    return [one.task_id for one in tasks]


def test_a_task_goes_if_a_reply_has_its_answer_in_the_box_or_anywhere() -> None:
    found = closed_book_filter(TASKS, generate=model)
    # As published: "no" stands in "not" and "unknown", and "mia" in "miami".
    assert ids(found.dropped) == ["France", "novel", "flat", "cat"]
    assert [(hit.task_id, hit.why, hit.gold) for hit in found.hits[::2]] == [
        ("France", "boxed", "Paris"),
        ("novel", "contained", "Moby-Dick"),
        ("flat", "contained", "no"),
        ("cat", "contained", "Mia"),
    ]
    assert [hit.asked for hit in found.hits[:2]] == ["0/0", "0/1"]
    assert found.hits[0].reply == REPLIES["France"]
    assert (found.replies, found.failed, found.accuracy) == (8, 0, 0.25)


@pytest.mark.parametrize(
    ("contains", "dropped"), [("words", ["France", "novel"]), ("never", ["France"])]
)
def test_milder_rules_keep_more(contains: Any, dropped: list[str]) -> None:
    found = closed_book_filter(TASKS, generate=model, contains=contains)
    assert ids(found.dropped) == dropped
    assert ids(found.kept) == [one.task_id for one in TASKS if one.task_id not in dropped]


def test_one_right_sample_of_many_is_enough() -> None:
    lock, count = threading.Lock(), itertools.count()

    def seldom(prompt: str) -> str:
        with lock:
            return r"\boxed{Mia}" if next(count) == 5 else r"\boxed{Rex}"

    found = closed_book_filter([TASKS[3]], generate=[seldom, model], samples=6, contains="words")
    assert ids(found.dropped) == ["cat"]
    assert found.replies == 12
    assert found.accuracy == pytest.approx(1 / 12)
    assert found.hits[0].asked.startswith("0/")


def test_answers_that_all_belong_to_a_question_must_all_be_known() -> None:
    both = [task("pair", "red", "blue", match="all")]

    def says(text: str) -> ClosedBook:
        return closed_book_filter(both, generate=lambda prompt: text, samples=1)

    assert ids(says(r"\boxed{blue, red}").dropped) == ["pair"]
    assert says(r"blue and then red").hits[0].gold == "red, blue"
    assert ids(says(r"\boxed{red}").kept) == ["pair"]


def test_agents_that_need_no_prompt_may_be_asked_too() -> None:
    known = task("t", "Rex", evidence=(Evidence(start=0, end=5, text="never", triggers=()),))
    for speak in (lexical(), oracle(known)):
        found = closed_book_filter([known], speak=speak, samples=1)
        assert ids(found.kept) == ["t"]
    seen: list[dict[str, Any]] = []

    def speak(view: Any) -> str:
        seen.append(dict(view))
        return r"\boxed{Rex}"

    assert ids(closed_book_filter([known], speak=speak, samples=1).dropped) == ["t"]
    assert (seen[0]["question"], seen[0]["memory"], seen[0]["chunk"]) == ("What is t?", "", "")
    assert "never read" not in json.dumps(seen[0])


def test_a_task_whose_reply_never_came_is_neither_kept_nor_dropped() -> None:
    def flaky(prompt: str) -> str:
        if "cat" in prompt:
            raise ConnectionError("refused")
        return model(prompt)

    found = closed_book_filter(TASKS, generate=flaky, contains="words", retries=1, delay_s=0.0)
    assert ids(found.undecided) == ["cat"]
    assert ids(found.dropped) == ["France", "novel"]
    assert ids(found.kept) == ["flat"]
    assert (found.replies, found.failed) == (6, 2)


def test_failed_calls_are_made_again() -> None:
    lock, count = threading.Lock(), itertools.count(1)

    def every_third(prompt: str) -> str:
        with lock:
            number = next(count)
        if number % 3 == 0:
            raise ConnectionError(f"call {number}")
        return model(prompt)

    found = closed_book_filter(TASKS, generate=every_third, retries=1, delay_s=0.0, concurrency=1)
    assert found == closed_book_filter(TASKS, generate=model)


def test_without_any_reply_there_is_an_error_and_no_verdict() -> None:
    def down(prompt: str) -> str:
        raise ConnectionError("refused")

    def broken(prompt: str) -> str:
        raise TypeError("a bug")

    with pytest.raises(ClosedBookFailed, match=r"not one of 8 replies came.*refused"):
        closed_book_filter(TASKS, generate=down, retries=0)
    with pytest.raises(ConnectionError):
        closed_book_filter(TASKS, generate=down, retries=0, failures=(TimeoutError,))
    with pytest.raises(TypeError, match="bug"):
        closed_book_filter(TASKS, generate=broken)
    nothing = closed_book_filter([], generate=down)
    assert (nothing.kept, nothing.accuracy) == ((), None)


def test_settings_that_cannot_work_are_refused() -> None:
    for options, message in [
        ({}, "somebody has to be asked"),
        ({"generate": model, "samples": 0}, "samples must be at least 1"),
        ({"generate": model, "contains": "part"}, "contains is one of"),
        ({"generate": model, "concurrency": 0}, "at least one call"),
        ({"generate": lambda prompt: 5}, "must return a text"),
        ({"speak": lambda view: 5}, "a reply is a text"),
    ]:
        with pytest.raises(InvalidSetting, match=message):
            closed_book_filter(TASKS, **options)


def test_progress_counts_replies() -> None:
    heard: list[int] = []
    closed_book_filter(TASKS, generate=model, progress=heard.append)
    assert heard == list(range(1, 9))


@pytest.mark.data
def test_real_questions_that_a_model_knew_are_found(data_dir: Path) -> None:
    """Answers recorded from a model without context stand for a closed-book model."""
    lines = (data_dir / "qa/reflexion_hotpot_answers.jsonl").read_text().splitlines()
    records = {json.loads(line)["question"]: json.loads(line) for line in lines}

    def recorded(prompt: str) -> str:
        said = next(one for question, one in records.items() if question in prompt)["prediction"]
        return rf"\boxed{{{said}}}"

    tasks = [
        task(f"q{number}", one["gold"], question=question)
        for number, (question, one) in enumerate(records.items())
        if question.strip() and not any(question in other for other in records if other != question)
    ]
    found = closed_book_filter(tasks, generate=recorded, samples=1, contains="never")
    correct = [one for one in tasks if records[one.question]["published_verdict"] == "CORRECT"]
    boxable = [one for one in correct if records[one.question]["prediction"].strip()]
    assert ids(found.dropped) == [one.task_id for one in boxable]
    assert found.dropped
