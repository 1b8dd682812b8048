"""What a finished episode of reading says, and whether its readers were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mars_envs.parallel_memory.summary import MemorySummary, RoleSummary, repeated_lines, summarize
from mars_envs.parallel_memory.supervision import evidence_states, reader_supervision
from mars_envs.parallel_memory.workflow import CallRecord, Note, Phase, TurnRecord
from mars_envs.reading import Evidence, ReadingTask, TextDocument

FIRST, SECOND = "The mayor of Olm is Tia.", "The dog of Tia is Rex."


def task(**changes: Any) -> ReadingTask:
    fields: dict[str, Any] = {
        "task_id": "t",
        "question": "What is the dog of the mayor of Olm called?",
        "document": TextDocument(FIRST + SECOND),
        "answers": ("Rex",),
        "evidence": (
            Evidence(start=0, end=len(FIRST), text=FIRST, triggers=("Olm",)),
            Evidence(start=len(FIRST), end=len(FIRST + SECOND), text=SECOND, triggers=("Tia",)),
        ),
    }
    return ReadingTask(**{**fields, **changes})


GOLD = [(2,), (0,)]  # the second step stands before the first


def note(chunk: int, text: str) -> Note:
    return Note(text=text, first=chunk, last=chunk)


def turn(number: int, notes: list[Note], memory: str, **changes: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "turn": number,
        "read": (0, 1, 2),
        "found": tuple(one.first for one in notes),
        "notes": tuple(notes),
        "failed": (),
        "malformed": 0,
        "dropped": 0,
        "memory": memory,
        "memory_tokens": len(memory.split()),
        "memory_cut": False,
    }
    return TurnRecord(**{**fields, **changes})


def read(number: int, chunk: int, status: Any, **changes: Any) -> CallRecord:
    fields: dict[str, Any] = {
        "id": 0,
        "role": "reader",
        "turn": number,
        "index": chunk,
        "level": 0,
        "attempt": 0,
        "status": status,
        "prompt_tokens": 100,
        "output_tokens": 10,
    }
    return CallRecord(**{**fields, **changes})


@dataclass
class Ended:
    turns: list[TurnRecord]
    calls: list[CallRecord]
    turn: int = 3
    max_turns: int = 3
    n_chunks: int = 3
    reply: str = r"\boxed{Rex}"
    answer: str = "Rex"
    exit_reason: str = "no_new_evidence"
    phase: Phase = Phase.DONE
    memory: str = ""


TURNS = [
    turn(1, [note(2, FIRST)], FIRST),
    turn(2, [note(0, SECOND), note(1, f"nothing\n {FIRST.upper()}")], f"{FIRST} {SECOND}"),
    turn(3, [], f"{FIRST} {SECOND}"),
]
CALLS = [
    *(read(1, chunk, "yes" if chunk == 2 else "no") for chunk in range(3)),
    read(1, 0, "done", role="merger"),
    *(read(2, chunk, "no" if chunk == 2 else "yes") for chunk in range(3)),
    read(2, 0, "done", role="merger"),
    *(read(3, chunk, "no") for chunk in range(3)),
    read(3, 0, "done", role="answerer", output_tokens=5),
]


def summary(turns: list[TurnRecord] = TURNS, **changes: Any) -> MemorySummary:
    return summarize(Ended(turns, CALLS, **changes), task(), GOLD)  # type: ignore[arg-type]


def test_a_summary_has_the_figures_of_the_worked_example() -> None:
    found = summary()
    assert (found.k_used, found.k_productive, found.exit_reason) == (3, 2, "no_new_evidence")
    assert found.scores.em == 1.0
    assert found.gold_chunks == 2
    assert [one.gold_recall for one in found.turns] == [0.5, 1.0, 1.0]
    assert [(one.gold_read, one.gold_found) for one in found.turns] == [(2, 1), (2, 1), (2, 0)]
    assert [(one.other_read, one.other_found) for one in found.turns] == [(1, 0), (1, 1), (1, 0)]
    assert found.gold_yes_rate == pytest.approx(2 / 6)
    assert found.other_yes_rate == pytest.approx(1 / 3)
    assert found.memory_tokens == 12  # words of both passages


def test_calls_and_tokens_are_counted_by_role() -> None:
    found = summary()
    assert found.roles["reader"] == RoleSummary(calls=9, prompt_tokens=900, output_tokens=90)
    assert found.roles["merger"].calls == 2
    assert found.calls == RoleSummary(calls=12, prompt_tokens=1200, output_tokens=115)


def test_lines_that_were_known_are_counted() -> None:
    # Of turn 2's three lines, one stood in the memory, in other letters.
    found = summary()
    assert [(one.note_lines, one.repeated_lines) for one in found.turns] == [(1, 0), (3, 1), (0, 0)]
    assert found.repeated_share == 0.25
    assert repeated_lines([note(0, "a b\n\na  B"), note(1, "c\nd")], "say C too") == (4, 2)


def test_a_failed_read_is_no_read_and_failures_are_counted() -> None:
    turns = [turn(1, [note(2, FIRST)], FIRST, failed=(0,), dropped=4, memory_cut=True)]
    found = summary(turns)
    assert (found.turns[0].gold_read, found.turns[0].failed, found.turns[0].dropped) == (1, 1, 4)
    assert found.memory_cuts == 1
    assert found.gold_yes_rate == 1.0


def test_without_evidence_or_turns_there_are_no_rates() -> None:
    empty = summarize(Ended([], [], turn=1, answer="", n_chunks=0), task())  # type: ignore[arg-type]
    assert (empty.gold_yes_rate, empty.other_yes_rate, empty.repeated_share) == (None, None, None)
    assert empty.scores.em == 0.0
    assert empty.calls == RoleSummary()
    cut_off = summary(exit_reason="backend_error", answer="")
    assert not cut_off.scored


def verdicts(calls: list[CallRecord], turns: list[TurnRecord] = TURNS) -> dict[Any, int]:
    return reader_supervision(Ended(turns, calls), task(), GOLD)  # type: ignore[arg-type]


def test_a_passage_is_new_once_what_leads_to_it_is_known() -> None:
    assert evidence_states(task(), GOLD, []) == ["new", "hidden"]
    assert evidence_states(task(), GOLD, TURNS[:1]) == ["held", "new"]
    assert evidence_states(task(), GOLD, TURNS[:2]) == ["held", "held"]
    reworded = [turn(1, [note(2, FIRST)], "Tia governs Olm.")]
    assert evidence_states(task(), GOLD, reworded) == ["lost", "new"]
    lost = [turn(1, [note(2, FIRST)], "Tiana is not meant.")]
    assert evidence_states(task(), GOLD, lost) == ["lost", "hidden"]


def test_readers_are_judged_by_what_was_news_in_their_turn() -> None:
    every = {
        (1, 2, "yes"): 1,
        (1, 2, "no"): -1,
        (1, 2, "empty"): -1,  # yes with nothing behind it is no
        (1, 0, "yes"): 0,  # right by luck: nothing leads there yet
        (1, 0, "no"): 1,
        (1, 1, "yes"): -1,
        (1, 1, "no"): 1,
        (1, 1, "empty"): 1,
        (1, 1, "malformed"): -1,
        (2, 0, "yes"): 1,
        (2, 0, "no"): -1,
        (2, 2, "yes"): -1,  # the memory holds it
        (2, 2, "no"): 1,
        (3, 0, "yes"): -1,
    }
    for (number, chunk, status), expected in every.items():
        assert verdicts([read(number, chunk, status)]) == {(number, chunk): expected}, (
            number,
            chunk,
            status,
        )


def test_nobody_is_judged_over_a_passage_that_the_memory_may_have_lost() -> None:
    reworded = [turn(1, [note(2, FIRST)], "Tia governs Olm.")]
    for status in ("yes", "no"):
        assert verdicts([read(2, 2, status)], reworded) == {(2, 2): 0}


def test_only_answered_reads_are_judged_and_only_where_evidence_is_known() -> None:
    assert verdicts([read(1, 2, "error"), read(1, 0, "done", role="merger")]) == {}
    assert verdicts([read(1, 2, "error"), read(1, 2, "yes", attempt=1)]) == {(1, 2): 1}
    assert reader_supervision(Ended(TURNS, CALLS), task(evidence=()), []) == {}  # type: ignore[arg-type]
    some = reader_supervision(Ended(TURNS, CALLS), task(), GOLD, records=CALLS[4:7])  # type: ignore[arg-type]
    assert some == {(2, 0): 1, (2, 1): -1, (2, 2): 1}
