"""A journalled search goes on as if nothing had happened, and says what is wrong with a file."""

from __future__ import annotations

import copy
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mars_envs.errors import InvalidJournal, ProtocolError
from mars_envs.judging import CaseFeedback, Feedback, Verdict
from mars_envs.tree_search import PRESETS, Expansion, Node, SearchTree, TreeSearch, journal
from mars_envs.tree_search.journal import JournalFile, resume, start_journal

AGENTS = ["a", "b", "c"]


def score_of(expansion_id: int) -> float:
    """An answer that depends on the request alone, so that it can be given again."""
    return [0.0, 1.0, 0.5, 0.0, 0.25][expansion_id % 5]


def finish(search: TreeSearch) -> TreeSearch:
    """Answer what is pending, then go on one by one."""
    for expansion in search.pending:
        search.tell(expansion.id, score_of(expansion.id))
    while not search.done:
        (expansion,) = search.ask()
        search.tell(expansion.id, score_of(expansion.id))
    return search


def eventful(search: TreeSearch) -> TreeSearch:
    """Let everything happen that can."""
    for expansion in search.ask(4):
        search.tell(expansion.id, score_of(expansion.id), reply="print(1)\n\ud800", tokens=3)
    first, second, third = search.ask(3)
    search.fail(second.id, "no answer", tokens=1)
    search.redirect(third.id, 0)
    search.retire("c")
    search.tell(third.id, 0.5)
    search.ask(2, agents=["b"])
    search.tell(first.id, 1.0)
    return search


@pytest.mark.parametrize("selector", sorted(PRESETS))
def test_a_resumed_search_goes_on_exactly(selector: str, tmp_path: Path) -> None:
    def new() -> TreeSearch:
        return TreeSearch(AGENTS, selector, budget=25, seed=3, expand_solved=False)

    search = new()
    start_journal(search, tmp_path / "j.jsonl")
    eventful(search)
    twin = resume(tmp_path / "j.jsonl", selector)
    assert twin.save() == search.save() == eventful(new()).save()
    assert finish(twin).tree == finish(eventful(new())).tree


def test_a_resumed_search_is_journalled_further(tmp_path: Path) -> None:
    search = TreeSearch(AGENTS, budget=20, seed=3)
    start_journal(search, tmp_path / "j.jsonl")
    eventful(search)
    again = resume(tmp_path / "j.jsonl")
    finish(again)
    assert resume(tmp_path / "j.jsonl").save() == again.save()


def test_a_journal_may_begin_in_the_middle_of_a_search(tmp_path: Path) -> None:
    search = eventful(TreeSearch(AGENTS, budget=20, seed=3))
    start_journal(search, tmp_path / "j.jsonl")
    for expansion in search.ask(2):
        search.tell(expansion.id, 0.5)
    assert resume(tmp_path / "j.jsonl").save() == search.save()


def test_verdicts_are_kept_whole(tmp_path: Path) -> None:
    failure = CaseFeedback(name="1", status="runtime_error", input="x", error="Error\ud800")
    verdict = Verdict(
        score=0.5,
        solved=False,
        status="runtime_error",
        public_passed=1,
        public_total=2,
        feedback=Feedback(passed=1, total=2, status="runtime_error", failure=failure),
        program="print(1)",
        signature=("1f", "a0"),
    )
    search = TreeSearch(AGENTS, seed=0)
    start_journal(search, tmp_path / "j.jsonl")
    search.tell(search.ask()[0].id, verdict, "reply \0 \ud800")
    assert resume(tmp_path / "j.jsonl").tree == search.tree


def test_a_reward_model_is_not_asked_again_about_what_is_known(tmp_path: Path) -> None:
    asked: list[int] = []

    def score_fn(tree: SearchTree, node: Node) -> float:
        asked.append(node.id)
        return 0.25

    search = TreeSearch(AGENTS, seed=0, score_fn=score_fn, score_weight=0.5)
    start_journal(search, tmp_path / "j.jsonl")
    search.tell(search.ask()[0].id, 1.0)
    twin = resume(tmp_path / "j.jsonl", score_fn=score_fn)
    assert asked == [0]
    assert twin.tree[0].value == 0.625


def test_seconds_that_had_passed_are_known_as_of_the_last_line(tmp_path: Path) -> None:
    moments = iter([10.0, 12.5] + [14.0] * 9)
    search = TreeSearch(AGENTS, seed=0, max_seconds=5.0, clock=lambda: next(moments))
    start_journal(search, tmp_path / "j.jsonl")
    search.tell(search.ask()[0].id, 0.0)
    now = 1000.0
    twin = resume(tmp_path / "j.jsonl", clock=lambda: now)
    assert twin.seconds == 4.0
    twin.ask()
    now += 1.5
    assert twin.stop_reason == "seconds"


def test_what_changes_nothing_is_not_written(tmp_path: Path) -> None:
    search = TreeSearch(AGENTS, budget=1, seed=0)
    start_journal(search, tmp_path / "j.jsonl")
    (expansion,) = search.ask()
    search.tell(expansion.id, 1.0)
    before = (tmp_path / "j.jsonl").read_bytes()
    search.tell(expansion.id, 1.0)
    assert search.ask() == []
    assert (tmp_path / "j.jsonl").read_bytes() == before


# Processes that are killed --------------------------------------------------------------------


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10**6))
def test_a_file_that_was_cut_anywhere_behind_its_header_can_be_resumed(
    tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "j.jsonl"
    path.unlink(missing_ok=True)
    whole = TreeSearch(AGENTS, budget=9, seed=3)
    start_journal(whole, path)
    finish(whole)
    content = path.read_bytes()
    header = content.index(b"\n") + 1
    path.write_bytes(content[: header + cut % (len(content) - header + 1)])
    assert finish(resume(path)).tree == whole.tree
    assert resume(path).tree == whole.tree


def test_a_torn_last_line_is_cut_off_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j.jsonl"
    search = TreeSearch(AGENTS, seed=0)
    start_journal(search, path)
    search.tell(search.ask()[0].id, 0.5)
    good = path.read_bytes()
    path.write_bytes(good + b'{"do":"tell","id":1,"verd')
    with caplog.at_level(logging.WARNING):
        assert resume(path).save() == search.save()
    assert "ends in a torn line of 25 bytes, which is cut off" in caplog.text
    assert path.read_bytes() == good


PROGRAM = """
import sys
from mars_envs.tree_search import TreeSearch
from mars_envs.tree_search.journal import start_journal

search = TreeSearch(["a", "b", "c"], "paper", budget=100_000, seed=3)
start_journal(search, sys.argv[1])
while True:
    for expansion in search.ask(2):
        search.tell(expansion.id, [0.0, 1.0, 0.5, 0.0, 0.25][expansion.id % 5], "x" * 3000)
"""


def test_a_killed_process_loses_nothing_that_it_had_acted_upon(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size > 300_000):
            assert process.poll() is None, "the program ended by itself"
            assert time.monotonic() < deadline, "the program writes nothing"
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    search = resume(path, "paper")
    known = len(search.tree)
    assert known > 50
    undisturbed = TreeSearch(AGENTS, "paper", budget=100_000, seed=3)
    while len(undisturbed.tree) < known + 10:
        for expansion in undisturbed.ask(2):
            undisturbed.tell(expansion.id, score_of(expansion.id), "x" * 3000)
    for expansion in search.pending:
        search.tell(expansion.id, score_of(expansion.id), "x" * 3000)
    while len(search.tree) < len(undisturbed.tree):
        for expansion in search.ask(2):
            search.tell(expansion.id, score_of(expansion.id), "x" * 3000)
    assert list(search.tree) == list(undisturbed.tree)


# Disks that are full --------------------------------------------------------------------------


def full(event: Mapping[str, Any]) -> None:
    raise OSError(28, "No space left on device")


def test_a_change_that_cannot_be_written_does_not_happen() -> None:
    search = eventful(TreeSearch(AGENTS, budget=20, seed=3))
    twin = eventful(TreeSearch(AGENTS, budget=20, seed=3))
    (expansion, other) = search.pending
    search.journal = full
    for call in (
        lambda: search.ask(3),
        lambda: search.tell(expansion.id, 1.0),
        lambda: search.fail(other.id, "why"),
        lambda: search.redirect(other.id, 1),
        lambda: search.retire("a"),
    ):
        with pytest.raises(OSError, match="No space left"):
            call()
        assert search.save() == twin.save()
    search.journal = None
    assert finish(search).tree == finish(twin).tree


def test_a_selector_that_raises_leaves_no_trace_in_a_journalled_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = eventful(TreeSearch(AGENTS, budget=20, seed=3))
    start_journal(search, tmp_path / "j.jsonl")
    before = search.save()
    chosen: list[int] = []
    choose = search.choose

    def stumble(able: tuple[str, ...]) -> Expansion:
        if len(chosen) == 2:
            raise RuntimeError("the third choice fails")
        chosen.append(choose(able).id)
        return search.pending[-1]

    monkeypatch.setattr(search, "choose", stumble)
    with pytest.raises(RuntimeError, match="third choice"):
        search.ask(3)
    assert len(chosen) == 2
    assert search.save() == before == resume(tmp_path / "j.jsonl").save()


def test_a_line_that_was_written_in_part_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = JournalFile(tmp_path / "j.jsonl", sync=False, new=True)
    write({"do": "first"})

    def half(file: io.FileIO, data: bytes) -> None:
        file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_write_all", half)
        with pytest.raises(OSError, match="No space left"):
            write({"do": "this one is too long for the disk"})
    write({"do": "last"})
    lines = (tmp_path / "j.jsonl").read_text().splitlines()
    assert [json.loads(line)["do"] for line in lines] == ["first", "last"]


def test_a_file_that_takes_a_line_in_pieces_gets_all_of_it(tmp_path: Path) -> None:
    class Slow(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:3])

    with Slow(tmp_path / "file", "w") as file:
        journal._write_all(file, b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_two_searches_that_write_to_one_journal_are_found_out(tmp_path: Path) -> None:
    search = TreeSearch(AGENTS, budget=20, seed=3)
    start_journal(search, tmp_path / "j.jsonl")
    twin = copy.deepcopy(search)
    search.ask()
    with pytest.raises(ProtocolError, match="something else writes to its journal"):
        twin.ask()
    assert twin.pending == ()
    search.tell(0, 1.0)
    assert resume(tmp_path / "j.jsonl").save() == search.save()


def test_a_synced_journal_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    search = TreeSearch(AGENTS, seed=0)
    start_journal(search, tmp_path / "j.jsonl", sync=True)
    search.ask()
    assert len(synced) == 2, "the header and one line"


# Files that cannot be used --------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Path:
    search = TreeSearch(AGENTS, budget=20, seed=3)
    start_journal(search, tmp_path / "j.jsonl")
    eventful(search)
    return tmp_path / "j.jsonl"


def change(path: Path, line: int, text: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = text
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (3, b'{"do":"tell","id":0', "line 3: expected one JSON object, got b'"),
        (3, b"[1]", "line 3: expected one JSON object"),
        (3, b'{"do":"sing"}', "line 3: expected ask, tell, fail, retire or redirect, got 'sing'"),
        (3, b'{"do":"tell","id":0}', "line 3: 'verdict'"),
        (3, b'{"do":"fail","id":77,"reason":"","tokens":0}', "line 3: expansion 77 was never"),
        (3, b'{"do":"retire","agent":"z"}', "line 3: no agent 'z'"),
        (2, b'{"do":"ask","agents":null,"expansions":[[0,5,"a"]]}', "line 2: the search chose"),
        (1, b'{"journal":"other"}', "line 1: expected a journal of mars_envs.tree_search, version"),
        (1, b'{"journal":"mars_envs.tree_search","version":99}', "version 1, got .* version 99"),
        (1, b"", "line 1: expected one JSON object"),
        (1, b"[" * 100_000, "line 1: expected one JSON object"),
        (3, b"[" * 100_000, "line 3: expected one JSON object"),
        (3, b'{"do":"retire","agent":"c","seconds":"x"}', "seconds must be a number of at least 0"),
        (3, b'{"do":"fail","id":0,"reason":5,"tokens":0}', r"line 3: reason is a text \(str\)"),
        (3, b'{"do":"fail","id":0,"reason":"","tokens":NaN}', "line 3: tokens must be"),
    ],
)
def test_a_damaged_line_is_named(written: Path, line: int, text: bytes, message: str) -> None:
    change(written, line, text)
    with pytest.raises(InvalidJournal, match=message):
        resume(written)


JUNK = [None, [], {}, "x", -5, 1.5, float("nan"), 10**40, True, [[1]]]


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where things are in plain data, by the keys that lead there."""
    if here:
        yield here
    inside = value.items() if isinstance(value, dict) else []
    for key, item in enumerate(value) if isinstance(value, list) else inside:
        yield from places(item, (*here, key))


def test_whatever_stands_in_a_header_it_is_resumed_or_called_damaged(written: Path) -> None:
    search = eventful(TreeSearch(AGENTS, budget=9, seed=3, max_tokens=500, agent_budgets={"a": 5}))
    search.journal = None
    header = {"journal": "mars_envs.tree_search", "version": 1, "state": search.save()}
    refused = 0
    for place in places(header):
        if place[1:3] == ("tree", "nodes") and place[3:4] > (0,):
            continue  # like the first one
        changed = copy.deepcopy(header)
        parent: Any = changed
        for key in place[:-1]:
            parent = parent[key]
        for junk in JUNK:
            parent[place[-1]] = junk
            written.write_text(json.dumps(changed) + "\n")
            try:
                resume(written)
            except InvalidJournal:
                refused += 1
    assert refused > 500


def test_a_state_that_does_not_hang_together_is_refused() -> None:
    state = json.loads(json.dumps(eventful(TreeSearch(AGENTS, budget=20, seed=3)).save()))
    for changes, message in (
        ({"asked": 99}, "each of the 99 expansions asked for is pending, told or abandoned"),
        ({"pending": [[*state["pending"][0][:2], "z"], *state["pending"][1:]]}, "no agent 'z'"),
        ({"tree": []}, "expected a search tree as an object, got list"),
    ):
        with pytest.raises(ValueError, match=message):
            TreeSearch.load({**state, **changes})


def test_a_journal_needs_its_own_selector(written: Path) -> None:
    with pytest.raises(InvalidJournal, match=r"line 1: .* was saved with the selector NodeThen"):
        resume(written, "paper")


def test_a_file_without_a_complete_header_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_bytes(b'{"journal":')
    with pytest.raises(InvalidJournal, match="has no complete header"):
        resume(tmp_path / "j.jsonl")


def test_a_journal_does_not_overwrite_another(written: Path) -> None:
    with pytest.raises(FileExistsError):
        start_journal(TreeSearch(AGENTS), written)


def test_a_damaged_journal_is_left_as_it_is(written: Path) -> None:
    change(written, 3, b"{")
    before = written.read_bytes()
    with pytest.raises(InvalidJournal):
        resume(written)
    assert written.read_bytes() == before
