"""The baselines of PI-Mem: recurrent, gated, direct and retrieval."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mars_envs.errors import InvalidSetting, ProtocolError
from mars_envs.parallel_memory import observations, retrieval, single_pass
from mars_envs.parallel_memory.gated import GatedMemory
from mars_envs.parallel_memory.gated_replies import Update
from mars_envs.parallel_memory.methods import METHODS, make_workflow
from mars_envs.parallel_memory.play import call_view, play
from mars_envs.parallel_memory.recurrent import RecurrentMemory
from mars_envs.parallel_memory.relevance import most_relevant
from mars_envs.parallel_memory.replies import Answer
from mars_envs.parallel_memory.retrieval import Retrieval, bm25
from mars_envs.parallel_memory.scripted import lexical, oracle
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.single_pass import Direct
from mars_envs.parallel_memory.single_pass_env import ParallelSinglePassEnv
from mars_envs.parallel_memory.workflow import Phase, Workflow
from mars_envs.reading import Evidence, ReadingTask, TextDocument
from mars_envs.reading.chunking import Chunks, chunk_document, chunks_holding
from mars_envs.reading.tokenizers import WordTokenizer

BASELINES = tuple(name for name in METHODS if name != "pi_mem")
LETTERS = "abcdefghij"


def letters(n: int = 4) -> Chunks:
    """n chunks of two words: "a0 a1", "b0 b1", ..."""
    return chunk_document(" ".join(f"{c}0 {c}1" for c in LETTERS[:n]), size=2)


def remember_all(view: Mapping[str, Any]) -> str:
    """A memorizer that forgets nothing; an answerer that says what it sees."""
    if view["role"] == "memorizer":
        memory = " ".join((view["memory"] + " " + view["chunk"]).split())
        return Update(memory) if view["gated"] else memory
    return Answer(" | ".join(filter(None, (view["memory"], view["selected"]))))


def chain(order: Sequence[int], *, fillers: int = 0) -> tuple[ReadingTask, Chunks]:
    """A chain of len(order) passages, each in a chunk of its own, in the given order.

    Passage h is "The key of n<h> is n<h+1>."; the question names n0.
    """
    rng = random.Random(7)
    passages = [f"The key of n{hop} is n{hop + 1} ." for hop in range(len(order))]
    rows = [passages[hop] for hop in order]
    for filler in range(fillers):
        rows.insert(rng.randrange(len(rows) + 1), f"The key of m{filler} is m{filler + 1} .")
    text = " ".join(rows)
    evidence = tuple(
        Evidence(
            start=text.index(passage),
            end=text.index(passage) + len(passage),
            text=passage,
            triggers=(f"n{hop}",),
        )
        for hop, passage in enumerate(passages)
    )
    task = ReadingTask(
        task_id="chain",
        question=f"What is {len(order)} keys behind n0 ?",
        document=TextDocument(text),
        answers=(f"n{len(order)}",),
        evidence=evidence,
        hops=len(order),
    )
    return task, chunk_document(task.document, size=7)


def answered(method: str, task: ReadingTask, chunks: Chunks, **options: Any) -> str:
    return play(make_workflow(method, task.question, chunks, **options), oracle(task)).answer


# Recurrent.


def test_recurrent_reads_each_chunk_once_in_order_and_then_answers_from_its_memory() -> None:
    loop = play(RecurrentMemory("Which?", letters()), remember_all)
    assert [(call.role, call.index, call.turn) for call in loop.calls] == [
        ("memorizer", 0, 1),
        ("memorizer", 1, 1),
        ("memorizer", 2, 1),
        ("memorizer", 3, 1),
        ("answerer", 0, 1),
    ]
    assert loop.memory == loop.answer == "a0 a1 b0 b1 c0 c1 d0 d1"
    assert loop.exit_reason == "read_all"


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_recurrent_makes_one_call_for_each_chunk_and_one_for_the_answer(n: int) -> None:
    assert len(play(RecurrentMemory("Which?", letters(n)), remember_all).calls) == n + 1


def test_an_update_cannot_be_asked_for_before_the_one_before_it_is_told() -> None:
    loop = RecurrentMemory("Which?", letters())
    (first,) = loop.ask()
    assert loop.ask() == []
    loop.tell(first.id, "x")
    (second,) = loop.ask()
    assert (second.index, second.memory, second.chunk) == (1, "x", "b0 b1 ")
    assert second.span == (6, 12)
    assert "x" in second.prompt
    assert "b0 b1" in second.prompt


def test_the_whole_memory_is_rewritten_so_what_is_left_out_is_lost() -> None:
    loop = play(
        RecurrentMemory("Which?", letters()),
        lambda view: view["chunk"] if view["role"] == "memorizer" else Answer(view["memory"]),
    )
    assert loop.answer == "d0 d1"
    (turn,) = loop.turns
    assert (turn.read, turn.found, turn.memory) == ((0, 1, 2, 3), (0, 1, 2, 3), "d0 d1")


def test_an_empty_update_keeps_the_memory() -> None:
    loop = play(
        RecurrentMemory("Which?", letters()),
        lambda view: "" if view["chunk_index"] > 0 else "kept",
    )
    assert loop.memory == "kept"
    assert [call.status for call in loop.calls[:4]] == ["done", "empty", "empty", "empty"]
    assert [call.found for call in loop.calls[:4]] == [True, False, False, False]
    assert loop.turns[0].found == (0,)


def test_a_memory_that_is_written_again_as_it_was_is_no_find() -> None:
    loop = play(RecurrentMemory("Which?", letters()), lambda view: "same")
    assert [call.found for call in loop.calls[:4]] == [True, False, False, False]
    assert loop.turns[0].found == (0,)


def test_a_memory_over_its_budget_is_cut_and_flagged() -> None:
    settings = memory_settings(memory_tokens=5)
    loop = play(RecurrentMemory("Which?", letters(), settings=settings), remember_all)
    # Marks are tokens, too, but there are none; no sentence ends, so words are what is cut.
    assert loop.memory == "a0 a1 b0 b1 c0"
    assert loop.turns[0].memory_tokens == 5
    assert loop.turns[0].memory_cut
    assert [call.cut for call in loop.calls[:4]] == [False, False, True, True]


def test_a_second_pass_starts_from_the_memory_of_the_first() -> None:
    loop = RecurrentMemory("Which?", letters(2), passes=2)
    seen = []

    def speak(view: Mapping[str, Any]) -> str:
        seen.append((view["turn"], view["max_turns"], view["chunk_index"], view["memory"]))
        return f"{view['memory']}{view['turn']}"

    play(loop, speak)
    assert seen == [
        (1, 2, 0, ""),
        (1, 2, 1, "1"),
        (2, 2, 0, "11"),
        (2, 2, 1, "112"),
        (2, 2, -1, "1122"),
    ]
    assert [turn.memory for turn in loop.turns] == ["11", "1122"]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("fillers", [0, 12])
def test_a_chain_against_the_order_of_reading_takes_a_pass_for_each_hop(
    hops: int, fillers: int
) -> None:
    task, chunks = chain(range(hops)[::-1], fillers=fillers)
    assert len(chunks) == hops + fillers
    solved = [answered("recurrent", task, chunks, passes=p) == f"n{hops}" for p in range(1, 6)]
    assert solved == [passes >= hops for passes in range(1, 6)]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_a_chain_in_the_order_of_reading_takes_one_pass(hops: int) -> None:
    task, chunks = chain(range(hops), fillers=12)
    assert answered("recurrent", task, chunks) == f"n{hops}"


def test_how_many_passes_a_chain_takes_is_one_and_each_step_back_in_the_document() -> None:
    for order in itertools.permutations(range(4)):
        task, chunks = chain(order)
        places = [order.index(hop) for hop in range(4)]
        needed = 1 + sum(later < earlier for earlier, later in itertools.pairwise(places))
        solved = [answered("recurrent", task, chunks, passes=p) == "n4" for p in range(1, 5)]
        assert solved == [passes >= needed for passes in range(1, 5)]


def test_what_is_rewritten_with_every_chunk_may_be_forgotten_with_every_chunk() -> None:
    task, chunks = chain([0], fillers=24)
    ((place, *_),) = chunks_holding(chunks, task.evidence)

    def kept(method: str, seeds: int) -> float:
        right = 0
        for seed in range(seeds):
            workflow = make_workflow(method, task.question, chunks, prompts="compact")
            right += play(workflow, oracle(task, forget=0.05, seed=seed)).answer == "n1"
        return right / seeds

    expected = 0.95 ** (len(chunks) - 1 - place)
    assert 0.3 < expected < 0.7
    four_errors = 4 * (expected * (1 - expected) / 150) ** 0.5
    assert kept("recurrent", 150) == pytest.approx(expected, abs=four_errors)
    # Neither rewrites a memory to which nothing is added.
    assert kept("pi_mem", 10) == kept("gated", 10) == 1.0


# Gated.


def gates(*replies: str, **options: Any) -> GatedMemory:
    """Play replies to a gated memorizer of four chunks, by chunk."""
    return play(
        GatedMemory("Which?", letters(), **options),
        lambda view: (
            replies[view["chunk_index"]] if view["role"] == "memorizer" else Answer(view["memory"])
        ),
    )


def test_the_update_gate_decides_whether_the_memory_is_replaced() -> None:
    loop = gates(Update("one"), Update(None), Update("three"), Update(None))
    assert [call.status for call in loop.calls] == ["yes", "no", "yes", "no", "done"]
    assert loop.turns[0].found == (0, 2)
    assert (loop.memory, loop.exit_reason) == ("three", "read_all")


def test_the_exit_gate_ends_reading_at_once() -> None:
    loop = gates(Update("one"), Update("two", end=True), "never", "never")
    assert loop.turns[0].read == (0, 1)
    assert [call.role for call in loop.calls] == ["memorizer", "memorizer", "answerer"]
    assert (loop.answer, loop.exit_reason) == ("two", "exit_gate")


def test_the_exit_gate_may_open_without_an_update() -> None:
    loop = gates(Update("one"), Update(None, end=True), "never", "never")
    assert (loop.answer, loop.exit_reason) == ("one", "exit_gate")


def test_an_exit_gate_that_is_switched_off_is_not_heeded() -> None:
    loop = gates(*[Update(str(i), end=True) for i in range(4)], exit_gate=False)
    assert loop.turns[0].read == (0, 1, 2, 3)
    assert (loop.answer, loop.exit_reason) == ("3", "read_all")


def test_an_exit_at_the_last_chunk_is_an_exit() -> None:
    loop = gates(*[Update(str(i), end=i == 3) for i in range(4)])
    assert (loop.turns[0].read, loop.exit_reason) == ((0, 1, 2, 3), "exit_gate")


def test_an_exit_ends_all_passes() -> None:
    loop = gates(Update(None, end=True), *["never"] * 3, passes=3)
    assert (len(loop.turns), loop.turn, loop.exit_reason) == (1, 1, "exit_gate")


def test_a_gated_reply_without_a_gate_changes_nothing_and_is_counted() -> None:
    loop = gates(Update("kept"), "no tags at all", "<check>yes</check>", "")
    assert [call.status for call in loop.calls[:4]] == ["yes", "malformed", "empty", "malformed"]
    assert (loop.memory, loop.turns[0].malformed) == ("kept", 2)


def test_a_gated_memory_is_cut_to_its_budget() -> None:
    loop = gates(
        Update("1 2 3 4 5 6"), *[Update(None)] * 3, settings=memory_settings(memory_tokens=4)
    )
    assert (loop.memory, loop.turns[0].memory_cut) == ("1 2 3 4", True)
    assert [call.cut for call in loop.calls[:4]] == [True, False, False, False]


def test_with_the_oracle_a_gated_memory_stops_where_the_evidence_ends() -> None:
    task, chunks = chain([0, 1], fillers=30)
    ((*_, last),) = chunks_holding(chunks, task.evidence[-1:])
    loop = play(GatedMemory(task.question, chunks), oracle(task))
    assert (loop.answer, loop.exit_reason) == ("n2", "exit_gate")
    assert loop.turns[0].read == tuple(range(last + 1))


# Direct.


def shown(workflow: Workflow) -> list[str]:
    """What the single call of a workflow that reads at once is shown."""
    (call,) = workflow.ask()
    assert call.role == "answerer"
    for note in call.selected:
        assert note.text in call.prompt
    return [note.text for note in call.selected]


def test_direct_shows_a_document_that_fits_as_it_is() -> None:
    chunks = letters()
    whole = chunks.document.read(0, len(chunks.document))
    assert shown(Direct("Which?", chunks)) == [whole]
    assert shown(Direct("Which?", chunks, context_tokens=8)) == [whole]


@pytest.mark.parametrize("kept", range(1, 8))
def test_direct_leaves_out_the_middle_of_a_document_that_does_not_fit(kept: int) -> None:
    words = " ".join(f"{c}0 {c}1" for c in LETTERS[:4]).split()
    tail = kept // 2
    parts = shown(Direct("Which?", letters(), context_tokens=kept))
    assert [word for part in parts for word in part.split()] == [
        *words[: kept - tail],
        *words[len(words) - tail :],
    ]
    assert len(parts) == (2 if tail else 1)


class Blanks:
    """A tokenizer whose tokens stand between blanks, however long."""

    name = "blanks"

    def count(self, text: str) -> int:
        return len(text.split())

    def offsets(self, text: str) -> NDArray[np.int64]:
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        return np.array(spans, np.int64).reshape(-1, 2)


@pytest.fixture
def small_observations(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters the texts of observations hold."""
    limit = 6000
    for module in (single_pass, retrieval, observations):
        monkeypatch.setattr(module, "TEXT_LIMIT", limit)
    return limit


def needle(filler: str, place: float, *, length: int) -> tuple[ReadingTask, str]:
    """A task whose only fact stands at a share of the document, and that fact."""
    rows = [filler] * (length // len(filler))
    rows[int(place * len(rows))] = fact = "The key of n0 is n1. "
    text = "".join(rows)
    start = text.index(fact)
    task = ReadingTask(
        task_id="needle",
        question="What is the key of n0?",
        document=TextDocument(text),
        answers=("n1",),
        evidence=(Evidence(start=start, end=start + len(fact), text=fact),),
    )
    return task, fact


@pytest.mark.parametrize("place", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("filler", ["No word. ", 'A "\\n"\n', "\x01 ", "x" * 100 + " "])
@pytest.mark.parametrize("length", [5500, 18_000])
def test_an_environment_shows_of_a_long_document_what_direct_shows(
    small_observations: int, filler: str, place: float, length: int
) -> None:
    task, fact = needle(filler, place, length=length)
    workflow = Direct(task.question, chunk_document(task.document))
    (call,) = workflow.ask()
    env = ParallelSinglePassEnv(tasks=[task])
    seen, infos = env.reset(seed=0)
    assert seen["answerer_0"] == call_view(workflow, call)
    assert infos["answerer_0"]["prompt_truncated"] is False
    # More than two thirds of the space are used, of whichever text is the longer.
    longer = max(len(seen["answerer_0"][name]) for name in ("prompt", "selected"))
    assert 0.67 * small_observations < longer <= small_observations

    info = env.step({"answerer_0": oracle(task)(seen["answerer_0"])})[4]["answerer_0"]
    shown = fact.strip() in call.prompt
    assert shown or place == 0.5
    assert info["gold_recall"] == info["exact_match"] == float(shown)
    assert play(Direct(task.question, chunk_document(task.document)), oracle(task)).answer == (
        "n1" if shown else "unknown"
    )
    tokens = workflow.chunks.tokenizer.count(call.prompt)
    assert info["prompt_tokens"] == pytest.approx(tokens, rel=0.01)


def test_a_long_question_takes_room_from_the_document(small_observations: int) -> None:
    question = "Which? " * (small_observations // 10)
    (call,) = Direct(question, chunk_document("No word. " * 3000)).ask()
    assert 0.97 * small_observations < len(call.prompt) <= small_observations


def test_of_two_passages_one_of_which_is_left_out_half_is_found() -> None:
    text = "A is B. " + "No. " * 100 + "B is C. " + "No. " * 100
    facts = ("A is B.", "B is C.")
    task = ReadingTask(
        task_id="two",
        question="What is A?",
        document=TextDocument(text),
        answers=("C",),
        evidence=tuple(
            Evidence(start=text.index(fact), end=text.index(fact) + len(fact), text=fact)
            for fact in facts
        ),
    )
    _, infos = ParallelSinglePassEnv(tasks=[task], context_tokens=20).reset(seed=0)
    assert infos["answerer_0"]["gold_recall"] == 0.5


def test_retrieval_shows_as_many_pieces_as_an_observation_holds(small_observations: int) -> None:
    chunks = chunk_document("word " * 3000)
    workflow = Retrieval("Which word?", chunks, piece_tokens=500)
    (call,) = workflow.ask()
    assert [note.first for note in call.selected] == [0, 1]
    assert workflow.turns[0].read == workflow.turns[0].found == (0, 1)
    assert len(call.prompt) <= small_observations


@pytest.mark.parametrize("method", ["direct", "retrieval"])
@pytest.mark.parametrize(
    ("question", "words"), [("Which?", "x" * 6001), ("Which? " * 1000, "No word")]
)
def test_what_cannot_be_observed_at_all_is_refused(
    small_observations: int, method: str, question: str, words: str
) -> None:
    chunks = chunk_document(words, tokenizer=Blanks())
    with pytest.raises(InvalidSetting, match="an observation of 6,000 characters has no room"):
        make_workflow(method, question, chunks)


def test_direct_fits_its_prompt_and_answer_into_the_window() -> None:
    chunks = chunk_document("word " * 1000, size=100)
    settings = memory_settings(window=300, answer_tokens=50)
    (call,) = Direct("Which?", chunks, settings=settings).ask()
    # One token less than there is room for could be lost to nothing but a seam.
    assert chunks.tokenizer.count(call.prompt) == 250
    with pytest.raises(InvalidSetting, match="no room for a document"):
        Direct("Which?", chunks, settings=memory_settings(window=60, answer_tokens=50))


def test_with_the_oracle_direct_answers_iff_no_evidence_is_in_the_middle() -> None:
    for place in range(12):
        rows = [f"The key of m{i} is m{i + 1} ." for i in range(12)]
        rows[place] = "The key of n0 is n1 ."
        text = " ".join(rows)
        start = text.index(rows[place])
        task = ReadingTask(
            task_id="needle",
            question="What is the key of n0 ?",
            document=TextDocument(text),
            answers=("n1",),
            evidence=(Evidence(start=start, end=start + len(rows[place]), text=rows[place]),),
        )
        # Seven tokens a row: four rows at either end.
        answer = answered("direct", task, chunk_document(text, size=7), context_tokens=8 * 7)
        assert answer == ("n1" if place < 4 or place >= 8 else "unknown")


# Retrieval.


def okapi(query: str, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Robertson's BM25, from its formula."""
    bags = [text.lower().split() for text in texts]
    mean = sum(map(len, bags)) / len(bags)
    scores = []
    for bag in bags:
        score = 0.0
        for word in query.lower().split():
            holders = sum(word in other for other in bags)
            idf = math.log(max(1.0, (len(bags) - holders + 0.5) / (holders + 0.5)))
            tf = bag.count(word)
            score += idf * tf / (tf + k1 * (1 - b + b * len(bag) / mean))
        scores.append(score)
    return scores


def test_scores_are_those_of_the_formula() -> None:
    rng = random.Random(3)
    vocabulary = [f"{c}{d}" for c in "abXY" for d in range(6)]
    for _ in range(30):
        texts = [" ".join(rng.choices(vocabulary, k=rng.randint(1, 30))) for _ in range(12)]
        query = " ".join(rng.choices([*vocabulary, "unheard"], k=6))
        assert bm25(query, texts).tolist() == pytest.approx(okapi(query, texts), rel=1e-9)


def test_two_texts_score_nothing_and_two_notes_are_told_apart() -> None:
    """Why the cap on notes has weights of its own."""
    texts = ["red kilo", "blue lima"]
    assert bm25("blue", texts).tolist() == [0.0, 0.0]
    assert most_relevant(texts, "blue", 1) == [1]


def test_what_no_text_has_scores_nothing() -> None:
    assert bm25("unheard", ["a b", "c d"]).tolist() == [0.0, 0.0]
    assert bm25("", ["a b"]).tolist() == [0.0]
    assert bm25("a", []).tolist() == []


def test_retrieval_shows_the_best_pieces_in_the_order_of_the_document() -> None:
    rng = random.Random(5)
    text = " ".join(rng.choices([f"w{i}" for i in range(40)], k=400))
    question = "w1 w2 W3 w7 w9"
    workflow = Retrieval(question, chunk_document(text, size=100), piece_tokens=10, top=6)
    pieces = list(chunk_document(text, size=10))
    scores = okapi(question, pieces)
    best = sorted(range(40), key=lambda i: (-round(scores[i], 9), i))[:6]
    assert shown(workflow) == [pieces[i] for i in sorted(best)]
    assert workflow.turns[0].read == tuple(sorted(best))
    assert workflow.n_chunks == 40


def test_by_default_six_pieces_of_two_thousand_tokens_are_shown() -> None:
    chunks = chunk_document("word " * 20_000, size=5000)
    parts = shown(Retrieval("word", chunks))
    assert [part.count("word") for part in parts] == [2000] * 6


def test_with_a_window_as_many_of_the_best_pieces_as_fit_are_shown() -> None:
    words = [f"w{i} " * 20 + ("dog " if i in (2, 5, 7) else "cat ") for i in range(10)]
    chunks = chunk_document("".join(words), size=21)

    def shown(window: int | None) -> tuple[int, ...]:
        loop = Retrieval(
            "Which dog",
            chunks,
            settings=memory_settings(window=window, answer_tokens=30),
            piece_tokens=21,
            top=3,
        )
        (call,) = loop.ask()
        assert tuple(note.first for note in call.selected) == loop.turns[0].found
        assert window is None or WordTokenizer().count(call.prompt) + 30 <= window
        return loop.turns[0].found

    whole = shown(None)
    assert whole == (2, 5, 7)
    assert shown(10_000) == whole
    sizes = [len(shown(window)) for window in range(150, 300, 5)]
    assert sizes == sorted(sizes)
    assert set(sizes) == {1, 2, 3}
    with pytest.raises(InvalidSetting, match="no room for a piece of 21"):
        shown(60)


def test_of_fewer_pieces_all_are_shown() -> None:
    chunks = letters()
    assert shown(Retrieval("b0", chunks, piece_tokens=2)) == list(chunks)


def test_without_its_library_retrieval_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"mars-envs\[retrieval\]"):
        make_workflow("retrieval", "a0", letters())


# All of them.


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_an_easy_question(method: str) -> None:
    task, chunks = chain([0], fillers=5)
    workflow = play(make_workflow(method, task.question, chunks), oracle(task))
    assert workflow.answer == "n1"
    assert workflow.phase is Phase.DONE
    assert workflow.ask() == []


@pytest.mark.parametrize("method", BASELINES)
def test_an_empty_document_leaves_only_the_answer_to_ask_for(method: str) -> None:
    workflow = play(make_workflow(method, "Which?", chunk_document("")), lexical())
    assert [call.role for call in workflow.calls] == ["answerer"]
    assert (workflow.answer, workflow.exit_reason) == ("unknown", "read_all")


@pytest.mark.parametrize("method", BASELINES)
def test_an_answer_without_a_box_is_no_answer_and_is_malformed(method: str) -> None:
    workflow = play(make_workflow(method, "Which?", letters()), lambda view: "a0")
    assert (workflow.reply, workflow.answer) == ("a0", "")
    assert workflow.calls[-1].status == "malformed"
    assert workflow.exit_reason == "read_all"


@pytest.mark.parametrize("method", BASELINES)
def test_a_backend_that_fails_on_every_third_call_changes_nothing_but_the_calls(
    method: str,
) -> None:
    count = itertools.count(1)

    def failing(view: Mapping[str, Any]) -> str:
        if next(count) % 3 == 0:
            raise ConnectionError("no reply")
        return remember_all(view)

    quiet = play(make_workflow(method, "Which?", letters(9)), remember_all)
    workflow = play(
        make_workflow(method, "Which?", letters(9)), failing, failures=(ConnectionError,)
    )
    assert (workflow.answer, workflow.exit_reason) == (quiet.answer, "read_all")
    assert workflow.turns == quiet.turns
    assert [call.status for call in workflow.calls].count("error") == (len(workflow.calls)) // 3


@pytest.mark.parametrize("method", BASELINES)
def test_a_backend_that_always_fails_ends_without_an_answer(method: str) -> None:
    workflow = make_workflow(method, "Which?", letters(), settings=memory_settings(max_failures=2))

    def dead(view: Mapping[str, Any]) -> str:
        raise ConnectionError("no reply")

    play(workflow, dead, failures=(ConnectionError,))
    assert (workflow.exit_reason, workflow.answer) == ("backend_error", "")
    assert {call.status for call in workflow.calls} == {"error"}


def test_a_chunk_whose_update_is_given_up_is_read_again_behind_the_last_one() -> None:
    loop = RecurrentMemory("Which?", letters(), settings=memory_settings(retries=1))
    failures = 0

    def speak(view: Mapping[str, Any]) -> str:
        nonlocal failures
        if view["chunk_index"] == 1 and failures < 2:
            failures += 1
            raise ConnectionError("no reply")
        return remember_all(view)

    play(loop, speak, failures=(ConnectionError,))
    assert loop.answer == "a0 a1 c0 c1 d0 d1 b0 b1"
    assert loop.turns[0].read == (0, 2, 3, 1)
    assert [(call.index, call.attempt, call.status) for call in loop.calls[:6]] == [
        (0, 0, "done"),
        (1, 0, "error"),
        (1, 1, "error"),
        (2, 0, "done"),
        (3, 0, "done"),
        (1, 0, "done"),
    ]


@pytest.mark.parametrize("passes", [1, 2])
def test_an_exit_waits_for_chunks_whose_update_was_given_up(passes: int) -> None:
    loop = GatedMemory("Which?", letters(), settings=memory_settings(retries=0), passes=passes)
    loop.fail(loop.ask()[0].id, "no reply")
    for reply in (Update("a", end=True), Update("ab")):
        (call,) = loop.ask()
        loop.tell(call.id, reply)
    (call,) = loop.ask()
    assert (call.role, call.memory) == ("answerer", "ab")
    assert (loop.exit_reason, loop.turns[-1].read) == ("exit_gate", (1, 0))


@pytest.mark.parametrize("method", ["recurrent", "gated"])
def test_nothing_is_answered_with_a_chunk_whose_update_never_came(method: str) -> None:
    def speak(view: Mapping[str, Any]) -> str:
        if view["chunk_index"] == 0:
            raise ConnectionError("no reply")
        return Update("all", end=True) if view["gated"] else "all"

    loop = play(make_workflow(method, "Which?", letters()), speak, failures=(ConnectionError,))
    assert (loop.exit_reason, loop.answer) == ("backend_error", "")


@pytest.mark.parametrize("method", BASELINES)
def test_a_call_is_told_once(method: str) -> None:
    workflow = make_workflow(method, "Which?", letters())
    (call,) = workflow.ask()
    workflow.tell(call.id, "x")
    with pytest.raises(ProtocolError, match="no call 0 is open"):
        workflow.tell(call.id, "x")
    with pytest.raises(ProtocolError, match="no call 99 is open"):
        workflow.fail(99, "gone")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_in_the_middle_of_an_episode_goes_on_alike(
    method: str, twin: Callable[[Workflow], Workflow]
) -> None:
    task, chunks = chain([1, 0], fillers=3)
    workflow = make_workflow(method, task.question, chunks)
    if method in ("recurrent", "gated"):
        (call,) = workflow.ask()
        workflow.tell(call.id, Update("first") if method == "gated" else "first")
    other = twin(workflow)
    speak = oracle(task)
    one, two = play(workflow, speak), play(other, speak)
    assert (one.reply, one.calls, one.turns) == (two.reply, two.calls, two.turns)


@pytest.mark.parametrize("method", METHODS)
def test_equal_episodes_are_equal_and_count_tokens_alike(method: str) -> None:
    task, chunks = chain([1, 0], fillers=6)
    speak = oracle(task, miss=0.3, false_yes=0.3, seed=5)
    one, two = (play(make_workflow(method, task.question, chunks), speak) for _ in range(2))
    assert (one.reply, one.calls, one.turns) == (two.reply, two.calls, two.turns)
    assert all(call.prompt_tokens > 0 for call in one.calls)


@pytest.mark.parametrize("method", BASELINES)
def test_prompt_tokens_are_those_of_the_prompt(method: str) -> None:
    chunks = letters()
    workflow = make_workflow(method, "Which?", chunks)
    counted = []
    while workflow.phase is not Phase.DONE:
        for call in workflow.ask():
            counted.append(chunks.tokenizer.count(call.prompt))
            workflow.tell(call.id, Update("a few words") if call.gated else "a few words")
    assert [call.prompt_tokens for call in workflow.calls] == counted


@pytest.mark.parametrize(
    ("paper", "method"),
    [
        ("MemAgent", "recurrent"),
        ("mem_agent", "recurrent"),
        ("gru_mem", "gated"),
        ("GRU-Mem", "gated"),
        ("PI-Mem", "pi_mem"),
        ("bm25", "retrieval"),
        ("long context", "direct"),
    ],
)
def test_the_name_of_a_paper_is_refused_with_the_name_of_the_method(
    paper: str, method: str
) -> None:
    message = rf"unknown method '{paper}' \(here it is called '{method}'\); expected one of"
    with pytest.raises(InvalidSetting, match=message):
        make_workflow(paper, "Which?", letters())


def test_methods_are_known_by_name_and_options_are_checked() -> None:
    with pytest.raises(InvalidSetting, match="unknown method 'magic'; expected one of pi_mem, rec"):
        make_workflow("magic", "Which?", letters())
    with pytest.raises(InvalidSetting, match=r"'gate' \(did you mean gated\?\); expected"):
        make_workflow("gate", "Which?", letters())
    with pytest.raises(InvalidSetting, match=r"'direct' takes no options \['top'\]"):
        make_workflow("direct", "Which?", letters(), top=3)
    with pytest.raises(InvalidSetting, match="passes must be a whole number of at least 1, got 0"):
        make_workflow("gated", "Which?", letters(), passes=0)
    with pytest.raises(InvalidSetting, match="top must be a whole number of at least 1, got True"):
        make_workflow("retrieval", "Which?", letters(), top=True)
    with pytest.raises(InvalidSetting, match="at least 1, got 0"):
        make_workflow("direct", "Which?", letters(), context_tokens=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("question", [None, 5, b"Who?", ["Who?"]])
def test_a_question_is_a_text(method: str, question: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"a question is a text \(str\)"):
        make_workflow(method, question, letters())


@pytest.mark.parametrize(
    ("method", "options"),
    [
        *(("recurrent", {"passes": value}) for value in (1.5, "2", True, 0, None)),
        *(("gated", {"exit_gate": value}) for value in ("no", 1, None)),
        *(("retrieval", {"top": value}) for value in (2.5, "3", 0)),
        *(("retrieval", {"piece_tokens": value}) for value in (2.5, "3", 0)),
    ],
)
def test_options_of_another_kind_are_refused(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(options))):
        make_workflow(method, "Which?", letters(), **options)
