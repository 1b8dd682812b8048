"""The loop of PI-Mem, driven by hand."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting, ProtocolError
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.play import call_view, play, read_selected
from mars_envs.parallel_memory.replies import Answer, Merge, Read
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import Call, Note, Phase
from mars_envs.reading.chunking import Chunks, chunk_document

WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]


def chunks_of(*texts: str) -> Chunks:
    """A document of one chunk a text."""
    words = [text.split() for text in texts]
    size = max(map(len, words))
    assert all(len(text) == size for text in words[:-1]), "chunks are equally long"
    return chunk_document(" ".join(texts), size=size)


def loop_of(n: int = 4, **changes: Any) -> MemoryLoop:
    return MemoryLoop("Who?", chunks_of(*WORDS[:n]), settings=memory_settings(**changes))


def tell_reads(loop: MemoryLoop, replies: Sequence[str | None]) -> None:
    """Tell what each reader of a turn says; None: its call fails."""
    calls = loop.ask()
    assert [call.role for call in calls] == ["reader"] * len(replies)
    for call, reply in zip(calls, replies, strict=True):
        if reply is None:
            loop.fail(call.id, "no answer")
        else:
            loop.tell(call.id, reply)


def only(calls: list[Call]) -> Call:
    assert len(calls) == 1
    return calls[0]


def by_words(view: Mapping[str, Any]) -> str:
    """Reads: a chunk is new if the memory lacks its words. Merges by joining, answers with all."""
    if view["role"] == "reader":
        chunk = view["chunk"].strip()
        return Read.no() if chunk in view["memory"] else Read.yes(chunk)
    if view["role"] == "merger":
        notes = [note.text for note in read_selected(view["selected"])]
        return Merge(" ".join(filter(None, [view["memory"], *notes])))
    return Answer(view["memory"])


def test_a_turn_reads_every_chunk_and_merges_what_is_new_in_the_order_of_the_chunks() -> None:
    loop = loop_of(4)
    tell_reads(loop, [Read.yes("one"), Read.no(), Read.yes("three"), Read.no()])
    merge = only(loop.ask())
    assert merge.role == "merger"
    assert merge.selected == (
        Note(text="one", first=0, last=0),
        Note(text="three", first=2, last=2),
    )
    loop.tell(merge.id, Merge("one and three"))
    reads = loop.ask()
    assert [call.turn for call in reads] == [2] * 4
    assert {call.memory for call in reads} == {"one and three"}


def test_reading_ends_when_no_reader_finds_anything_new() -> None:
    loop = play(loop_of(4), by_words)
    assert (loop.turn, loop.exit_reason) == (2, "no_new_evidence")
    assert loop.answer == "alpha bravo charlie delta"
    assert [record.role for record in loop.calls] == (
        ["reader"] * 4 + ["merger"] + ["reader"] * 4 + ["answerer"]
    )


def test_nothing_found_at_all_still_asks_for_an_answer_from_an_empty_memory() -> None:
    loop = loop_of(2)
    tell_reads(loop, [Read.no(), Read.no()])
    call = only(loop.ask())
    assert (call.role, call.memory, loop.exit_reason) == ("answerer", "", "no_new_evidence")
    loop.tell(call.id, Answer("a guess"))
    assert (loop.phase, loop.answer, loop.turn) == (Phase.DONE, "a guess", 1)


def test_the_last_turn_merges_before_the_answer() -> None:
    loop = loop_of(1, max_turns=1)
    tell_reads(loop, [Read.yes("new")])
    loop.tell(only(loop.ask()).id, Merge("new"))
    assert only(loop.ask()).role == "answerer"
    assert (loop.exit_reason, loop.turn, loop.memory) == ("max_turns", 1, "new")


def test_a_document_without_chunks_has_nothing_to_find() -> None:
    loop = MemoryLoop("Who?", chunk_document(""))
    call = only(loop.ask())
    assert (call.role, loop.exit_reason, loop.turn) == ("answerer", "no_new_evidence", 1)
    assert loop.turns[0].read == ()


def test_a_failed_read_is_asked_again_within_its_turn_after_the_others() -> None:
    loop = loop_of(3)
    tell_reads(loop, [Read.no(), None, Read.no()])
    call = only(loop.ask())
    assert (call.index, call.attempt, call.turn) == (1, 1, 1)
    loop.tell(call.id, Read.no())
    assert loop.exit_reason == "no_new_evidence"


def test_a_read_that_is_given_up_is_not_a_no() -> None:
    loop = loop_of(3, retries=0)
    tell_reads(loop, [Read.no(), None, Read.no()])
    assert loop.exit_reason == ""
    assert loop.turns[0].failed == (1,)
    assert [call.index for call in loop.ask()] == [1], "only it is read under the same memory"


def test_the_last_turn_with_a_failed_read_ends_as_max_turns() -> None:
    loop = loop_of(2, retries=0, max_turns=1)
    tell_reads(loop, [Read.no(), None])
    assert only(loop.ask()).role == "answerer"
    assert loop.exit_reason == "max_turns"


def test_more_failures_than_allowed_end_the_episode_without_an_answer() -> None:
    loop = loop_of(3, retries=0, max_failures=1)
    tell_reads(loop, [None, None, Read.yes("late")])
    assert (loop.phase, loop.exit_reason, loop.answer) == (Phase.DONE, "backend_error", "")
    assert loop.ask() == []


@pytest.mark.parametrize("role", ["merger", "answerer"])
def test_nothing_stands_for_a_merge_or_an_answer_that_is_given_up(role: str) -> None:
    loop = loop_of(1, retries=0)
    tell_reads(loop, [Read.yes("new") if role == "merger" else Read.no()])
    call = only(loop.ask())
    assert call.role == role
    loop.fail(call.id, "no answer")
    assert (loop.phase, loop.exit_reason) == (Phase.DONE, "backend_error")


def test_what_was_open_when_the_episode_ended_may_still_be_told() -> None:
    loop = loop_of(2, retries=0, max_failures=0)
    first, second = loop.ask()
    loop.fail(second.id, "no answer")
    loop.tell(first.id, Read.yes("late"))
    assert loop.exit_reason == "backend_error"
    assert [record.status for record in loop.calls] == ["yes", "error"]


def test_calls_are_told_once_and_only_after_they_were_asked_for() -> None:
    loop = loop_of(2)
    with pytest.raises(ProtocolError, match="never asked"):
        loop.tell(0, Read.no())
    call = only(loop.ask(1))
    loop.tell(call.id, Read.no())
    with pytest.raises(ProtocolError, match="settled before"):
        loop.tell(call.id, Read.no())
    with pytest.raises(ProtocolError, match="settled before"):
        loop.fail(call.id, "no answer")


def test_waves_ask_for_a_few_calls_at_a_time() -> None:
    loop = loop_of(4)
    assert [call.index for call in loop.ask(3)] == [0, 1, 2]
    assert [call.index for call in loop.ask(3)] == [3]
    assert loop.ask(3) == []


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_in_the_middle_of_an_episode_goes_on_alike(copier: Any) -> None:
    loop = loop_of(4)
    calls = loop.ask(3)
    loop.tell(calls[1].id, Read.yes("bravo"))
    twin = copier(loop)
    ends = []
    for one in (loop, twin):
        one.tell(calls[0].id, Read.no())
        one.tell(calls[2].id, Read.no())
        ends.append(play(one, by_words))
    assert ends[0].calls == ends[1].calls
    assert ends[0].turns == ends[1].turns


def test_a_copy_shares_the_document() -> None:
    loop = loop_of(2)
    assert copy.deepcopy(loop).chunks is loop.chunks


def test_an_unknown_setting_says_which_there_are() -> None:
    with pytest.raises(InvalidSetting, match="max_turns"):
        memory_settings(turns=3)


def test_an_observation_has_the_prompt_and_its_parts() -> None:
    loop = loop_of(2)
    call = loop.ask()[1]
    view = call_view(loop, call)
    assert view["chunk"] == "bravo"
    assert (view["chunk_index"], view["n_chunks"], view["turn"]) == (1, 2, 1)
    assert view["prompt"] == call.prompt
    assert view["chunk"] in view["prompt"]
