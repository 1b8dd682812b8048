"""One call from a question and a document to an answer and its evidence."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mars_envs
from mars_envs import AnswerFailed, answer
from mars_envs.answer import Progress, Reading
from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.methods import METHODS
from mars_envs.parallel_memory.replies import Answer, Read
from mars_envs.parallel_memory.scripted import lexical, oracle
from mars_envs.parallel_memory.workflow import Phase
from mars_envs.reading import Evidence, Part, ReadingTask, TextDocument

FILLER = "Nothing much happened in the valley that year. "
FIRST, SECOND = "The mayor of Olm is Tia Nor.", "The dog of Tia Nor is called Rex."
TEXT = FILLER * 40 + SECOND + " " + FILLER * 40 + FIRST + " " + FILLER * 40
QUESTION = "What is the dog of the mayor of Olm called?"


def evidence(text: str, trigger: str) -> Evidence:
    start = TEXT.index(text)
    return Evidence(start=start, end=start + len(text), text=text, triggers=(trigger,))


TASK = ReadingTask(
    task_id="t",
    question=QUESTION,
    document=TextDocument(
        TEXT,
        [
            Part(doc_id="p1", start=0, end=1000, title="Page 1"),
            Part(doc_id="p2", start=1000, end=3500, title="Page 2"),
            Part(doc_id="p3", start=3500, end=len(TEXT), title=""),
        ],
    ),
    answers=("Rex",),
    evidence=(evidence(FIRST, "Olm"), evidence(SECOND, "Tia Nor")),
)


def ask(**options: Any) -> Reading:
    settings: dict[str, Any] = {"chunk_tokens": 100, "delay_s": 0.0}
    return answer(QUESTION, TASK.document, **{**settings, **options})


def test_the_answer_comes_with_its_evidence_and_where_that_stands() -> None:
    reading = ask(speak=oracle(TASK))
    assert (reading.answer, reading.exit_reason) == ("Rex", "no_new_evidence")
    assert [(one.turn, one.text) for one in reading.evidence] == [(1, FIRST), (2, SECOND)]
    for one, text in zip(reading.evidence, (FIRST, SECOND), strict=True):
        (quote,) = one.quotes
        assert (quote.start, quote.end, quote.text) == (
            TEXT.index(text),
            TEXT.index(text) + len(text),
            text,
        )
        assert one.start <= quote.start < quote.end <= one.end
    assert [one.parts for one in reading.evidence] == [("p3",), ("Page 2",)]
    assert [one.quotes[0].parts for one in reading.evidence] == [("p3",), ("Page 2",)]
    assert FIRST in reading.memory
    assert SECOND in reading.memory
    assert len(reading.turns) == 3
    assert reading.turns[2].found == ()
    roles = [call.role for call in reading.calls]
    assert roles.count("reader") == 3 * reading.n_chunks
    assert roles[-1] == "answerer"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reads_with_agents_and_with_text_generators(method: str) -> None:
    if method == "retrieval":
        pytest.importorskip("bm25s")
    agent = ask(speak=lexical(), method=method)
    assert agent.method == method
    assert agent.calls[-1].role == "answerer"
    for start, end in [(one.start, one.end) for one in agent.evidence]:
        assert 0 <= start < end <= len(TEXT)
    model = ask(generate=lambda prompt: Read.yes(FIRST) + Answer("Rex"), method=method)
    assert model.answer == "Rex"


def test_options_of_a_method_are_passed_on() -> None:
    twice = ask(speak=oracle(TASK), method="recurrent", options={"passes": 2})
    assert twice.answer == "Rex"  # the chain stands against the order of the document
    assert ask(speak=oracle(TASK), method="recurrent").answer == "unknown"
    assert [quote.text for one in twice.evidence for quote in one.quotes].count(FIRST) >= 1
    with pytest.raises(InvalidSetting, match="takes no options"):
        ask(speak=oracle(TASK), options={"passes": 2})


def shout(prompt: str) -> str:
    return Read.no() + Answer("Rex")


async def shout_later(prompt: str, *, max_tokens: int) -> str:
    await asyncio.sleep(0)
    assert max_tokens > 0
    return shout(prompt)


@pytest.mark.parametrize("generator", [shout, shout_later])
def test_any_function_from_a_prompt_to_a_text_will_do(generator: Any) -> None:
    reading = ask(generate=generator)
    assert (reading.answer, reading.evidence, reading.memory) == ("Rex", (), "")
    assert len(reading.turns) == 1


def test_the_outcome_does_not_depend_on_how_many_calls_are_in_flight() -> None:
    lock = threading.Lock()
    waiting: list[threading.Event] = []

    def out_of_order(prompt: str) -> str:
        own = threading.Event()
        with lock:
            waiting.append(own)
            if len(waiting) % 3 == 0:
                for other in reversed(waiting):
                    other.set()
        own.wait(0.01)
        if SECOND in prompt or FIRST in prompt:
            return Read.yes(FIRST if FIRST in prompt else SECOND) + Answer("Rex")
        return Read.no() + Answer("?")

    alone = ask(generate=out_of_order, concurrency=1)
    assert ask(generate=out_of_order, concurrency=7) == alone
    assert alone.answer == "Rex"


def test_progress_is_told_after_every_call_and_says_when_a_turn_ends() -> None:
    heard: list[Progress] = []
    reading = ask(speak=oracle(TASK), progress=heard.append)
    assert len(heard) == len(reading.calls)
    assert tuple(one.finished for one in heard if one.finished) == reading.turns
    first = [one for one in heard if one.turn == 1]
    assert [one.read for one in first[: reading.n_chunks]] == list(range(1, reading.n_chunks + 1))
    assert heard[-1].phase is Phase.DONE


class EveryThird:
    """Fails on every third call."""

    def __init__(self, inner: Callable[[str], str]) -> None:
        self.inner, self.calls, self.lock = inner, 0, threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self.lock:
            self.calls += 1
            if self.calls % 3 == 0:
                raise ConnectionError(f"call {self.calls}: refused")
        return self.inner(prompt)


def test_a_backend_that_fails_on_every_third_call_changes_nothing() -> None:
    flaky = ask(generate=EveryThird(shout), concurrency=3)
    whole = ask(generate=shout)
    assert (flaky.answer, flaky.turns, flaky.exit_reason) == (
        whole.answer,
        whole.turns,
        whole.exit_reason,
    )
    failed = [call for call in flaky.calls if call.status == "error"]
    assert len(failed) == (len(whole.calls) + len(failed)) // 3
    assert len(flaky.calls) == len(whole.calls) + len(failed)


def test_a_backend_that_is_down_is_an_error_with_what_was_found_and_never_an_answer() -> None:
    def down(prompt: str) -> str:
        raise ConnectionError("refused")

    with pytest.raises(AnswerFailed, match=r"calls failed.*ConnectionError: refused") as caught:
        ask(generate=down)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert caught.value.reading.answer == ""
    assert caught.value.reading.exit_reason == "backend_error"
    assert isinstance(caught.value, mars_envs.MarsEnvsError)
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (str(sent), sent.reading) == (str(caught.value), caught.value.reading)


@pytest.mark.parametrize("max_turns", [1, 3])
def test_readers_that_all_fail_leave_nothing_to_answer_from(max_turns: int) -> None:
    def deaf(prompt: str) -> str:
        if "<part" in prompt:
            raise ConnectionError("refused")
        return Answer("from nowhere")

    with pytest.raises(AnswerFailed, match="ConnectionError: refused"):
        answer("Who?", "A short text.", generate=deaf, max_turns=max_turns, delay_s=0.0)


def test_errors_that_are_no_failures_end_it_at_once() -> None:
    calls = []

    def broken(prompt: str) -> str:
        calls.append(prompt)
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        ask(generate=broken, failures=(OSError,), concurrency=1)
    assert len(calls) == 1
    with pytest.raises(InvalidSetting, match="must return a text"):
        ask(generate=lambda prompt: None)  # type: ignore[arg-type, return-value]


def test_a_bug_in_a_generator_ends_it_at_once_unless_it_is_named_a_failure() -> None:
    calls = []

    def broken(prompt: str) -> str:
        calls.append(prompt)
        raise NameError("name 'prmopt' is not defined")

    async def outdated(prompt: str) -> str:
        calls.append(prompt)
        raise AttributeError("the client has no such method")

    for bug, kind in [(broken, NameError), (outdated, AttributeError)]:
        calls.clear()
        with pytest.raises(kind):
            ask(generate=bug, concurrency=1)
        assert len(calls) == 1
    with pytest.raises(AnswerFailed, match="NameError"):
        ask(generate=broken, failures=(Exception,))


def test_a_document_without_text_is_answered_from_nothing() -> None:
    for text in ("", "  \n "):
        reading = answer("Who?", text, generate=shout)
        assert (reading.answer, reading.memory, reading.evidence) == ("Rex", "", ())


def test_a_question_that_the_document_does_not_answer_ends_after_one_turn() -> None:
    nothing = answer("Who?", FILLER * 50, generate=lambda p: Read.no(), chunk_tokens=50)
    assert (nothing.answer, nothing.reply, len(nothing.turns)) == ("", Read.no(), 1)
    assert nothing.exit_reason == "no_new_evidence"


def test_one_turn_may_have_to_do() -> None:
    reading = ask(speak=oracle(TASK), max_turns=1)
    assert (reading.answer, reading.exit_reason) == ("unknown", "max_turns")
    assert [one.text for one in reading.evidence] == [FIRST]


def test_settings_that_cannot_work_are_refused() -> None:
    for options, message in [
        ({}, "either generate= .* or speak="),
        ({"generate": shout, "speak": oracle(TASK)}, "either generate= .* or speak="),
        ({"generate": shout, "method": "magic"}, "unknown method 'magic'"),
        ({"generate": shout, "max_turn": 2}, r"\['max_turn'\] \(did you mean max_turns\?\)"),
        ({"generate": shout, "chunk_size": 5}, r"did you mean chunk_tokens\?.*'align'.*'speak'"),
        ({"generate": shout, "chunk_tokens": "5"}, "chunk_tokens must be .* at least 1, got '5'"),
        ({"generate": shout, "concurrency": 0}, "concurrency must be .* at least 1, got 0"),
        ({"generate": shout, "concurrency": "8"}, "concurrency must be .* at least 1, got '8'"),
        ({"generate": shout, "concurrency": 2.5}, "concurrency must be .* at least 1, got 2.5"),
        ({"speak": oracle(TASK), "delay_s": -1}, "delay_s is .* at least 0, got -1"),
        ({"generate": shout, "delay_s": float("nan")}, "delay_s is .* at least 0, got nan"),
        ({"generate": shout, "delay_s": "x"}, "delay_s is .* at least 0, got 'x'"),
        ({"generate": shout, "failures": 5}, "failures is a tuple of exceptions, .* got 5"),
        ({"generate": shout, "failures": [ValueError]}, "failures is a tuple of exceptions"),
        ({"generate": shout, "failures": (5,)}, "failures is a tuple of exceptions"),
        ({"generate": shout, "progress": 5}, "progress is a function"),
        ({"generate": shout, "options": 5}, "options are a dict .* got 5"),
        ({"generate": "model"}, "a function from a prompt to a text"),
    ]:
        with pytest.raises(InvalidSetting, match=message):
            ask(**options)


@pytest.mark.parametrize("document", [5, None, b"x", ["a"]])
def test_what_is_no_document_is_refused(document: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"a document is its text .*, got a \w+: "):
        answer("Who?", document, generate=shout)


def test_the_name_of_a_file_is_not_read_as_a_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Ada wrote it.")
    with pytest.raises(InvalidSetting, match=r"there is a file of this name: give Path\("):
        answer("Who?", str(path), generate=shout)
    assert answer("Who?", path, generate=shout).n_chunks == 1
    assert answer("Who?", TextDocument(str(path)), generate=shout).n_chunks == 1


@pytest.mark.parametrize("question", [5, None, b"Who?"])
def test_what_is_no_question_is_refused(question: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"a question is a text \(str\), got "):
        answer(question, "text", generate=shout)


HANGING = """
import sys, time
from mars_envs import answer

def generate(prompt):
    sys.stdout.write("called\\n")  # at once, whoever else writes
    sys.stdout.flush()
    time.sleep(600)

answer("Who?", "A text. " * 100, generate=generate, chunk_tokens=20, concurrency=4)
"""


def test_an_interrupt_ends_it_though_calls_hang() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "called\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert "KeyboardInterrupt" in errors
            assert process.returncode != 0
        finally:
            process.kill()
