"""What a perfect reader needs: turns of the parallel loop, passes of the recurrent one.

With an oracle nothing can go wrong but the method, so these numbers are exact: h hops in different
chunks take h productive turns, whatever the number of chunks and wherever they stand.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mars_envs.parallel_memory.methods import make_workflow
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import Workflow
from mars_envs.reading.chunking import Chunks, chunk_document, chunks_holding
from mars_envs.reading.document import TextDocument
from mars_envs.reading.synthetic import synthetic_tasks
from mars_envs.reading.task import ReadingTask

CHUNK = 64
SIZES = pytest.mark.parametrize("n", [4, 64, pytest.param(720, marks=pytest.mark.slow)])


def tasks_of(family: str, n: int, **options: Any) -> Sequence[ReadingTask]:
    """Tasks of n chunks of 64 tokens, each passage of the evidence in a chunk of its own."""
    count = 2 if n < 64 else 1
    settings = {"style": "compact", "sentences": 2, "decoys": 1, **options}
    return synthetic_tasks(family, tokens=n * CHUNK, chunk_tokens=CHUNK, n=count, **settings)


def read(
    task: ReadingTask, method: str, chunks: Chunks | None = None, turns: int = 3, **options: Any
) -> Workflow:
    chunks = chunks or chunk_document(task.document, size=CHUNK)
    workflow = make_workflow(
        method,
        task.question,
        chunks,
        settings=memory_settings(max_turns=turns),
        prompts="compact",
        **options,
    )
    return play(workflow, oracle(task))


def gold(task: ReadingTask) -> str:
    return ", ".join(task.answers) if task.match == "all" else task.answers[0]


def productive(workflow: Workflow) -> int:
    return sum(bool(turn.found) for turn in workflow.turns)


def shuffled(task: ReadingTask, seed: int) -> ReadingTask:
    """The same task with its chunks in another order."""
    chunks = list(chunk_document(task.document, size=CHUNK))
    random.Random(seed).shuffle(chunks)
    text = "".join(chunks)
    evidence = tuple(
        type(e)(
            start=text.index(e.text),
            end=text.index(e.text) + len(e.text),
            text=e.text,
            triggers=e.triggers,
        )
        for e in task.evidence
    )
    return ReadingTask(
        task_id=task.task_id,
        question=task.question,
        document=TextDocument(text),
        answers=task.answers,
        match=task.match,
        evidence=evidence,
        hops=task.hops,
        kind=task.kind,
    )


CHAINS: list[tuple[str, dict[str, Any], int]] = [
    ("kg2", {}, 2),
    ("kg3", {}, 3),
    ("vt", {"hops": 1}, 1),
    ("vt", {"hops": 4}, 4),
]


@SIZES
@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize(("family", "options", "hops"), CHAINS)
def test_h_hops_in_different_chunks_take_h_productive_turns_and_an_empty_one(
    n: int, order: str, family: str, options: Mapping[str, Any], hops: int
) -> None:
    for task in tasks_of(family, n, order=order, **options):
        loop = read(task, "pi_mem", turns=hops + 1)
        assert loop.n_chunks == n
        assert (productive(loop), loop.turn) == (hops, hops + 1)
        assert loop.exit_reason == "no_new_evidence"
        assert loop.answer == gold(task)


@SIZES
@pytest.mark.parametrize(("family", "options", "hops"), CHAINS)
def test_h_turns_are_enough_and_the_last_one_is_not_confirmed(
    n: int, family: str, options: Mapping[str, Any], hops: int
) -> None:
    for task in tasks_of(family, n, **options):
        loop = read(task, "pi_mem", turns=hops)
        assert (productive(loop), loop.turn, loop.exit_reason) == (hops, hops, "max_turns")
        assert loop.answer == gold(task)


@SIZES
@pytest.mark.parametrize(("family", "options", "hops"), CHAINS)
def test_fewer_turns_than_hops_fail(
    n: int, family: str, options: Mapping[str, Any], hops: int
) -> None:
    for task in tasks_of(family, n, **options):
        for turns in range(1, hops):
            loop = read(task, "pi_mem", turns=turns)
            assert (productive(loop), loop.exit_reason) == (turns, "max_turns")
            assert loop.answer == "unknown"


@SIZES
@pytest.mark.parametrize(("family", "options", "hops"), CHAINS)
def test_a_recurrent_reader_needs_a_pass_per_hop_of_a_chain_in_reverse_order(
    n: int, family: str, options: Mapping[str, Any], hops: int
) -> None:
    for task in tasks_of(family, n, order="reverse", **options):
        for passes in {1, hops - 1, hops, hops + 1} - {0}:
            loop = read(task, "recurrent", passes=passes)
            assert loop.answer == (gold(task) if passes >= hops else "unknown")
            assert sum(call.role == "memorizer" for call in loop.calls) == passes * n


@SIZES
@pytest.mark.parametrize(("family", "options", "hops"), CHAINS)
def test_a_recurrent_reader_needs_one_pass_of_a_chain_in_forward_order(
    n: int, family: str, options: Mapping[str, Any], hops: int
) -> None:
    for task in tasks_of(family, n, order="forward", **options):
        assert read(task, "recurrent", passes=1).answer == gold(task)


@pytest.mark.parametrize(("n", "family"), [(4, "kg2"), (4, "kg3"), (16, "kg2")])
def test_shuffled_chunks_change_what_a_recurrent_reader_finds_and_not_what_pi_mem_does(
    n: int, family: str
) -> None:
    recurrent = set()
    for task in tasks_of(family, n, order="forward"):
        parallel = set()
        for seed in range(6):
            other = shuffled(task, seed)
            loop = read(other, "pi_mem", turns=4)
            parallel.add((productive(loop), loop.turn, loop.answer, loop.memory))
            recurrent.add(read(other, "recurrent").answer == gold(task))
        assert parallel == {(task.hops, task.hops + 1, gold(task), loop.memory)}
    assert recurrent == {True, False}


def test_seven_hundred_and_twenty_chunks_are_like_four() -> None:
    # The longest document of the papers in chunks: what the slow tests say of all families.
    (task,) = tasks_of("kg2", 720, order="reverse")
    straight, other = read(task, "pi_mem"), read(shuffled(task, 1), "pi_mem")
    assert straight.memory == other.memory
    assert straight.n_chunks == other.n_chunks == 720
    for loop in (straight, other):
        assert (productive(loop), loop.turn, loop.answer) == (2, 3, gold(task))
    assert read(task, "pi_mem", turns=1).answer == "unknown"
    assert read(task, "recurrent", passes=1).answer == "unknown"
    assert read(task, "recurrent", passes=2).answer == gold(task)


PARALLEL: list[tuple[str, dict[str, Any]]] = [
    ("kv", {}),
    ("kv", {"queries": 2, "values": 2}),
    ("compare", {}),
    ("count", {"matches": 4}),
    ("set", {"matches": 4}),
    ("overwrite", {}),
]


@SIZES
@pytest.mark.parametrize(("family", "options"), PARALLEL)
def test_what_the_question_names_is_found_in_one_turn_and_confirmed_in_the_next(
    n: int, family: str, options: Mapping[str, Any]
) -> None:
    for task in tasks_of(family, n, **options):
        loop = read(task, "pi_mem")
        assert (productive(loop), loop.turn) == (1, 2)
        assert loop.exit_reason == "no_new_evidence"
        assert loop.answer == gold(task)
        held = chunks_holding(chunk_document(task.document, size=CHUNK), task.evidence)
        assert set(loop.turns[0].found) == {chunk for chunks in held for chunk in chunks}


@SIZES
def test_where_the_text_does_not_say_one_turn_is_enough(n: int) -> None:
    for task in tasks_of("none", n):
        loop = read(task, "pi_mem")
        assert (productive(loop), loop.turn, loop.exit_reason) == (0, 1, "no_new_evidence")
        assert loop.answer == "unknown" == gold(task)
        assert len(loop.calls) == n + 1


def forgetful(task: ReadingTask) -> Any:
    """An oracle whose memory holds one line, the last one read that looks like the answer."""
    perfect = oracle(task)
    kind, place = task.question.split("latest ")[1].rstrip("?").split(" of ")

    def speak(view: Mapping[str, Any]) -> str:
        if view["role"] != "memorizer":
            return perfect(view)
        told = [line for line in view["chunk"].split(".") if f"{kind} of {place}" in line]
        return f"{told[-1].strip()}." if told else view["memory"]

    return speak


@SIZES
def test_older_revisions_overwrite_the_latest_in_a_memory_of_one_line(n: int) -> None:
    for task in tasks_of("overwrite", n, revisions=2):
        chunks = chunk_document(task.document, size=CHUNK)
        workflow = make_workflow("recurrent", task.question, chunks, prompts="compact")
        assert play(workflow, forgetful(task)).answer == "unknown"
        assert read(task, "recurrent").answer == gold(task)
    for task in tasks_of("overwrite", n, revisions=0):
        chunks = chunk_document(task.document, size=CHUNK)
        workflow = make_workflow("recurrent", task.question, chunks, prompts="compact")
        assert play(workflow, forgetful(task)).answer == gold(task)
