"""Merging level by level loses no note, keeps their order, and is one call where one will do."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.merge import MergeSpace, pack
from mars_envs.parallel_memory.methods import make_workflow
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.replies import Answer, Read
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import Call
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.tokenizers import WordTokenizer

MEMORY_TOKENS = 40


@dataclass
class Team:
    """Readers that report `fact<i>` among so many words; a merger that keeps facts alone.

    A fact is one token, so an intermediate note of as many as there are here is never cut: what is
    lost is lost by the plan.
    """

    words: list[int]
    """By chunk: how long its note is; 0: no note."""
    merges: list[Call] = field(default_factory=list)

    def drive(self, loop: MemoryLoop) -> MemoryLoop:
        while calls := loop.ask():
            for call in calls:
                loop.tell(call.id, self.reply(call))
        return loop

    def reply(self, call: Call) -> str:
        if call.role == "reader":
            length = self.words[call.index] if call.turn == 1 else 0
            words = ["word"] * (length - 1)
            words.insert(length // 2, f"fact{call.index}")
            return Read.yes(" ".join(words)) if length else Read.no()
        if call.role == "merger":
            self.merges.append(call)
            return " ".join(facts(call.memory, *(note.text for note in call.selected)))
        return Answer(call.memory)


def facts(*texts: str) -> list[str]:
    return [word for text in texts for word in text.split() if word.startswith("fact")]


def loop_of(n: int, window: int | None, **changes: object) -> MemoryLoop:
    chunks = chunk_document("chunk " * n, size=1)
    changes = {"memory_tokens": MEMORY_TOKENS, "reply_tokens": 100, "max_turns": 2, **changes}
    return MemoryLoop(
        "Who?", chunks, prompts="compact", settings=memory_settings(window=window, **changes)
    )


NOTES = st.lists(st.one_of(st.just(0), st.integers(1, 100)), min_size=1, max_size=40)
WINDOWS = st.integers(168, 600)
OVERHEAD = 5
"""Of a compact merge prompt: q, Who, ?, m, merge."""
SLOT = MEMORY_TOKENS + 1
"""Of an intermediate note: its tokens and the n before it."""


@settings(max_examples=25)
@given(words=NOTES, window=WINDOWS)
def test_every_note_enters_exactly_one_call_and_all_facts_arrive_in_order(
    words: list[int], window: int
) -> None:
    team = Team(words)
    loop = team.drive(loop_of(len(words), window))
    kept = [index for index, length in enumerate(words) if length]
    entered = [note for merge in team.merges for note in merge.selected]
    for index in kept:
        raw = [note for note in entered if (note.first, note.last) == (index, index)]
        assert sum(len(note.text.split()) == words[index] for note in raw) == 1
    assert facts(loop.memory) == [f"fact{index}" for index in kept]
    for merge in team.merges:
        places = [place for note in merge.selected for place in (note.first, note.last)]
        assert places == sorted(places)


@settings(max_examples=25)
@given(words=NOTES, window=WINDOWS)
def test_no_merge_is_larger_than_the_window(words: list[int], window: int) -> None:
    loop = Team(words).drive(loop_of(len(words), window))
    sizes = [record.prompt_tokens for record in loop.calls if record.role == "merger"]
    assert all(size + MEMORY_TOKENS <= window for size in sizes)


@settings(max_examples=25)
@given(words=NOTES, window=WINDOWS)
def test_the_depth_is_logarithmic_in_the_notes(words: list[int], window: int) -> None:
    team = Team(words)
    team.drive(loop_of(len(words), window))
    kept = sum(map(bool, words))
    fan_in = (window - MEMORY_TOKENS - OVERHEAD) // SLOT
    assert fan_in >= 2
    depth = 1 + max(merge.level for merge in team.merges) if team.merges else 0
    assert depth <= (math.ceil(math.log(kept, fan_in)) + 1 if kept else 0)


@settings(max_examples=25)
@given(words=NOTES)
def test_what_fits_is_merged_as_a_flat_merge_would_byte_for_byte(words: list[int]) -> None:
    prompts = []
    for changes in ({"window": 100_000}, {"window": None}, {"window": 170, "merge": "flat"}):
        team = Team(words)
        team.drive(loop_of(len(words), **changes))
        prompts.append([merge.prompt for merge in team.merges])
    assert prompts[0] == prompts[1] == prompts[2]
    assert len(prompts[0]) == any(words)


def test_each_level_is_labelled_by_the_chunks_that_its_notes_are_from() -> None:
    chunks = chunk_document("chunk " * 6, size=1)
    budgets = memory_settings(memory_tokens=40, reply_tokens=100, window=400, max_turns=1)
    loop = MemoryLoop("Who?", chunks, settings=budgets)
    team = Team([60, 0, 60, 60, 60, 0])
    team.drive(loop)
    first, *_, last = team.merges
    assert [(note.first, note.last) for note in first.selected] == [(0, 0), (2, 2)]
    assert 'number="1/6"' in first.prompt
    assert 'number="3/6"' in first.prompt
    assert (last.level, [(note.first, note.last) for note in last.selected]) == (
        1,
        [(0, 2), (3, 4)],
    )
    assert 'number="1-3/6"' in last.prompt
    assert 'number="4-5/6"' in last.prompt


def test_the_memory_enters_the_last_call_alone_and_its_place_is_kept() -> None:
    loop = loop_of(6, 200, max_turns=2)
    team = Team([5, 0, 0, 0, 0, 0])
    for call in loop.ask():
        loop.tell(call.id, team.reply(call))
    (merge,) = loop.ask()
    loop.tell(merge.id, " ".join(["fact0"] * MEMORY_TOKENS))
    for call in loop.ask():
        loop.tell(call.id, Read.yes(f"fact{call.index} " + "word " * 59))
    team.drive(loop)
    assert len(team.merges) > 2
    assert [bool(merge.memory) for merge in team.merges] == [False] * (len(team.merges) - 1) + [
        True
    ]
    assert facts(loop.memory)[:MEMORY_TOKENS] == ["fact0"] * MEMORY_TOKENS


def test_a_note_that_no_call_could_take_beside_the_memory_is_cut_and_flagged() -> None:
    window = OVERHEAD + MEMORY_TOKENS + 3 * SLOT
    loop = loop_of(3, window)

    def speak(view: Mapping[str, Any]) -> str:
        if view["role"] == "reader":
            return Read.yes("word " * (100 if view["turn"] == 2 and view["chunk_index"] else 20))
        return "kept " * MEMORY_TOKENS

    play(loop, speak)
    cut = [record.cut for record in loop.calls if record.role == "reader"]
    assert cut == [False, False, False, False, True, True]
    longest = max(len(note.text.split()) for turn in loop.turns for note in turn.notes)
    assert longest == window - OVERHEAD - MEMORY_TOKENS - SLOT - 1
    assert loop.turns[1].found == (0, 1, 2)


class Bytes:
    """Counts bytes of UTF-8, which `‹` for `<` makes more."""

    name = "bytes"

    def count(self, text: str) -> int:
        return len(text.encode())

    def offsets(self, text: str) -> NDArray[np.int64]:
        ends = np.cumsum([len(char.encode()) for char in text])
        places = np.searchsorted(ends, np.arange(self.count(text)), side="right")
        return np.stack([places, places + 1], axis=1)


class Quarters(Bytes):
    """Counts a token for every four characters begun, so that parts have more than the whole."""

    name = "quarters"

    def count(self, text: str) -> int:
        return -(-len(text) // 4)

    def offsets(self, text: str) -> NDArray[np.int64]:
        starts = np.arange(0, len(text), 4)
        return np.stack([starts, np.minimum(starts + 4, len(text))], axis=1)


@pytest.mark.parametrize("tokenizer", [Bytes(), Quarters()])
@pytest.mark.parametrize("piece", ["<note> ", "</memory>", "x" * 30 + " ", "é"])
def test_nor_is_it_where_tokens_do_not_add_up(tokenizer: Any, piece: str) -> None:
    chunks = chunk_document("c" * 24, size=8, tokenizer=tokenizer)
    window = 3_400

    def speak(view: Mapping[str, Any]) -> str:
        draw = random.Random(f"{view['role']}{view['chunk_index']}{view['turn']}")
        text = piece * draw.randrange(1, 120)
        return Read.yes(text) if view["role"] == "reader" else text

    budgets = memory_settings(memory_tokens=300, reply_tokens=900, window=window)
    loop = play(MemoryLoop("Who?", chunks, settings=budgets), speak)
    merges = [record for record in loop.calls if record.role == "merger"]
    assert len(merges) >= 3
    assert all(record.prompt_tokens + 300 <= window for record in merges)


@pytest.mark.parametrize("method", ["pi_mem", "recurrent", "gated"])
def test_chunks_that_do_not_fit_in_the_window_are_refused_before_the_first_call(
    method: str,
) -> None:
    def first(window: int, **changes: Any) -> Call:
        chunks = chunk_document("chunk " * 1_000, size=300)
        budgets = memory_settings(memory_tokens=50, reply_tokens=60, window=window, **changes)
        return make_workflow(method, "Who?", chunks, settings=budgets).ask()[0]

    with pytest.raises(InvalidSetting, match=r"smaller chunks.* or widen the window") as caught:
        first(400)
    needed = int(re.findall(r"takes (\d+)", str(caught.value))[0])
    call = first(needed)
    assert WordTokenizer().count(call.prompt) + 50 + call.max_tokens == needed
    with pytest.raises(InvalidSetting, match=f"takes {needed}"):
        first(needed - 1)
    assert first(10, merge="flat").role == call.role


def test_an_intermediate_merge_of_nothing_loses_nothing() -> None:
    loop = loop_of(6, 200)
    team = Team([60] * 6)
    while calls := loop.ask():
        for call in calls:
            intermediate = call.role == "merger" and not call.level
            loop.tell(call.id, " " if intermediate else team.reply(call))
    # Notes of 60 tokens, of which 40 are kept: each has its fact in the middle.
    assert facts(loop.memory)[0] == "fact0"
    assert loop.turns[0].memory


def test_a_window_too_small_to_merge_in_says_how_large_it_must_be() -> None:
    least = OVERHEAD + MEMORY_TOKENS + 3 * SLOT
    loop_of(3, least)
    with pytest.raises(InvalidSetting, match=f"at least {least} tokens"):
        loop_of(3, least - 1)


@given(
    sizes=st.lists(st.integers(1, 30), max_size=50),
    room=st.integers(1, 60),
)
def test_bins_are_neighbours_within_the_room_and_as_few_as_in_order_they_can_be(
    sizes: list[int], room: int
) -> None:
    bins = pack(sizes, room)
    assert [place for places in bins for place in places] == list(range(len(sizes)))
    loads = [sum(sizes[place] for place in places) for places in bins]
    assert all(load <= room or len(places) == 1 for load, places in zip(loads, bins, strict=True))
    for places, following in itertools.pairwise(bins):
        assert sum(sizes[place] for place in places) + sizes[following[0]] > room


def test_without_a_window_there_is_one_bin() -> None:
    space = MergeSpace(window=None, memory_tokens=5)
    assert space.bins([100, 10_000], 7) == [range(2)]


def test_merging_off_puts_notes_behind_the_memory() -> None:
    loop = play(loop_of(3, None, merging=False), lambda view: Read.yes(f"new {view['turn']}"))
    assert loop.memory == "new 1\n\nnew 1\n\nnew 1\n\nnew 2\n\nnew 2\n\nnew 2"
    assert {record.role for record in loop.calls} == {"reader", "answerer"}


@settings(max_examples=8)
@given(words=st.lists(st.integers(1, 100), min_size=20, max_size=40), chance=st.randoms())
def test_merges_of_a_level_may_be_told_in_any_order(
    words: list[int], chance: random.Random
) -> None:
    ends = []
    for shuffle in (False, True):
        team, loop = Team(words), loop_of(len(words), 200)
        while calls := loop.ask():
            if shuffle:
                chance.shuffle(calls)
            for call in calls:
                loop.tell(call.id, team.reply(call))
        ends.append((loop.calls, loop.turns, loop.reply))
    assert ends[0] == ends[1]
