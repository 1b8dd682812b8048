"""Long contexts, and how they are stored."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading import (
    Evidence,
    JoinedDocument,
    LongContextSettings,
    Passage,
    ReadingTask,
    TextDocument,
    chunk_document,
    count_tokens,
    load_reading_tasks,
    long_context_tasks,
    passage_pool,
    save_reading_tasks,
    write_shards,
)
from mars_envs.reading.evidence import verify_evidence
from mars_envs.reading.shards import ShardedTasks


def item(number: int, own: int = 4) -> ReadingTask:
    """A task whose evidence is in the second of its passages."""
    passages = [Passage(f"p{i}", f"Own {number}.{i}", f"Fact {i} of {number}.") for i in range(own)]
    document = JoinedDocument(passages)
    start = document.text_start(1)
    evidence = Evidence(start=start, end=start + 6, text="Fact 1", doc_id="p1")
    return ReadingTask(
        task_id=f"t{number}",
        question="What is it?",
        document=document,
        answers=("1",),
        evidence=(evidence,),
        source={"licence": "CC0"},
    )


def pool(size: int = 500) -> list[Passage]:
    return [Passage(f"d{i}", f"Other {i}", "words " * (5 + i % 20)) for i in range(size)]


def long_tasks(items: int = 3, size: int = 500, **settings: Any) -> Sequence[ReadingTask]:
    return long_context_tasks(
        [item(number) for number in range(items)],
        pool=pool(size),
        settings=LongContextSettings(**settings),
    )


def titles(task: ReadingTask) -> list[str]:
    return [part.title for part in task.document.parts]


def fillers(seed: str) -> Any:
    class Endless:
        def __getitem__(self, number: int) -> tuple[str, str]:
            return f"Filler {seed} {number}", "filling " * 10

    return Endless()


def alike(seed: str) -> Any:
    class Endless:
        def __getitem__(self, number: int) -> tuple[str, str]:
            return "Same", "text"

    return Endless()


def test_an_item_keeps_its_passages_and_its_evidence_among_others() -> None:
    for number, task in enumerate(long_tasks(documents=50)):
        assert len(task.document.parts) == 50
        assert len(set(titles(task))) == 50
        assert {f"Own {number}.{i}" for i in range(4)} <= set(titles(task))
        verify_evidence(task)
        assert task.evidence[0].text == "Fact 1"
        assert task.source["licence"] == "CC0"
        assert (task.source["documents"], task.source["seed"]) == ("50", "0")


def test_an_item_may_bring_any_number_of_passages() -> None:
    """Comparing each with each would take 5 billion comparisons here."""
    many = dataclasses.replace(item(0, own=100_000), evidence=())
    (task,) = long_context_tasks(
        [many], pool=pool(10), settings=LongContextSettings(documents=100_005)
    )
    assert len(task.document.parts) == 100_005


def test_documents_are_numbered_where_that_is_asked_for() -> None:
    numbered, plain = long_tasks(documents=7)[0], long_tasks(documents=7, headers=False)[0]
    starts = [part.start for part in numbered.document.parts]
    lines = [numbered.document.read(at, at + 11) for at in starts]
    assert lines == [f"Document {i}:" for i in range(1, 8)]
    assert titles(numbered) == titles(plain)
    assert "Document" not in plain.document.read(0, len(plain.document))


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.parametrize("tokens", [60, 300, 2000])
def test_as_many_passages_as_fit_make_the_tokens(tokens: int, headers: bool) -> None:
    for task in long_tasks(tokens=tokens, headers=headers):
        verify_evidence(task)
        # The shortest passage that could still be added has 7 + 3 tokens.
        assert tokens - 10 < count_tokens(task.document) <= tokens


def test_tokens_are_those_of_the_tokenizer() -> None:
    (task,) = long_tasks(items=1, tokens=900, tokenizer=len)
    assert 780 < len(task.document) <= 900  # characters, that is


def test_a_short_context_keeps_the_evidence() -> None:
    for task in long_tasks(documents=1):
        assert [title[-2:] for title in titles(task)] == [".1"]
    (task,) = long_tasks(items=1, documents=3)
    assert all(title.startswith("Own") for title in titles(task))


def test_the_same_seed_makes_the_same_document_and_another_seed_another() -> None:
    for length in ({"documents": 40}, {"tokens": 700}):
        first, again = long_tasks(**length), long_tasks(**length)
        assert [titles(task) for task in first] == [titles(task) for task in again]
        assert titles(long_tasks(seed=1, **length)[0]) != titles(first[0])


def test_an_item_s_document_does_not_depend_on_the_others() -> None:
    alone = long_context_tasks([item(2)], pool=pool(), settings=LongContextSettings(documents=40))
    assert titles(alone[0]) == titles(long_tasks(documents=40)[2])


def test_where_evidence_stands_in_one_item_says_nothing_about_another() -> None:
    tasks = long_tasks(items=400, documents=100)
    places = [titles(task).index(f"Own {i}.1") / 99 for i, task in enumerate(tasks)]
    # Uniform on [0, 1]: of 400, the mean has a standard error of 0.0144, the correlation of
    # neighbours one of 0.05; allowed are four.
    assert abs(statistics.fmean(places) - 0.5) < 4 * 0.0144
    assert abs(statistics.correlation(places[:-1], places[1:])) < 4 * 0.05
    assert len(set(places)) > 80


def test_distractors_are_drawn_from_all_of_the_pool() -> None:
    tasks = long_tasks(items=200, documents=104)
    drawn = [int(t.split()[1]) for task in tasks for t in titles(task) if t.startswith("Other")]
    # 20,000 draws of 500 numbers without repetition: a mean of 249.5, standard error 0.91.
    assert len(drawn) == 20_000
    assert abs(statistics.fmean(drawn) - 249.5) < 4 * 0.91
    assert set(drawn) == set(range(500))


def test_namesakes_of_an_item_s_own_passages_are_left_out() -> None:
    twins = [Passage(f"x{i}", "Own 0.1", f"Another text {i}.") for i in range(30)]
    (task,) = long_context_tasks(
        [item(0)], pool=[*twins, *pool(10)], settings=LongContextSettings(documents=14)
    )
    assert titles(task).count("Own 0.1") == 1


def test_repeated_passages_of_a_pool_count_once() -> None:
    again = [Passage(f"again{i}", passage.title, passage.text) for i, passage in enumerate(pool(9))]
    tasks = long_context_tasks(
        [item(0)], pool=[*pool(9), *again], settings=LongContextSettings(documents=14)
    )
    with pytest.raises(InvalidSetting, match="the pool of 9 passages is too small for 14 doc"):
        tasks[0]


def test_the_pool_of_items_is_what_they_bring_each_once() -> None:
    items = [item(0), item(1), item(1)]
    passages = passage_pool(items)
    assert [passage.title for passage in passages] == [
        f"Own {number}.{i}" for number, i in itertools.product(range(2), range(4))
    ]
    assert len({passage.doc_id for passage in passages}) == 8
    tasks = long_context_tasks(items[:2], settings=LongContextSettings(documents=8))
    assert (
        sorted(titles(tasks[0]))
        == sorted(titles(tasks[1]))
        == sorted(passage.title for passage in passages)
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"documents": 30}, r"the pool of 20 passages is too small for 30 documents: it makes 24"),
        ({"tokens": 5000}, r"the pool of 20 passages is too small for 5000 tokens: it makes \d+"),
        ({"tokens": 5}, "t0: its evidence alone takes 12 tokens, so it cannot be made to fit 5"),
    ],
)
def test_lengths_that_cannot_be_made_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        long_tasks(size=20, **settings)[0]


@pytest.mark.parametrize("length", [{"documents": 700}, {"tokens": 9000}])
def test_a_pool_that_is_too_small_can_be_filled_up(length: Any) -> None:
    for fill in (fillers, "grammar"):
        (task,) = long_tasks(items=1, size=20, fill=fill, **length)
        found = titles(task)
        verify_evidence(task)
        assert len(set(found)) == len(found)
        assert {f"Other {i}" for i in range(20)} <= set(found)
        if "documents" in length:
            assert len(found) == 700
        else:
            assert 8900 < count_tokens(task.document) <= 9000


def test_a_pool_that_is_large_enough_is_not_filled_up() -> None:
    plain, filled = long_tasks(documents=40), long_tasks(documents=40, fill=fillers)
    assert titles(plain[0]) == titles(filled[0])


def test_passages_that_are_all_alike_do_not_fill_anything() -> None:
    with pytest.raises(InvalidSetting, match="are all alike"):
        long_tasks(size=20, documents=900, fill=alike)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs `tokens` or `documents`, one of the two"),
        ({"tokens": 5, "documents": 5}, "needs `tokens` or `documents`, one of the two"),
        ({"tokens": 0}, "tokens must be a whole number, at least 1, got 0"),
        ({"documents": 2.5}, "documents must be a whole number"),
        ({"tokens": 5, "fill": "more"}, 'fill must be "refuse", "grammar" or "module:function"'),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        LongContextSettings(**settings)


def test_a_document_without_parts_makes_no_long_context() -> None:
    task = ReadingTask(task_id="t", question="?", document=TextDocument("a b"), answers=("a",))
    with pytest.raises(InvalidTask, match="t: a long context is made of the parts of a document"):
        long_context_tasks([task], settings=LongContextSettings(documents=2))


def test_items_that_were_saved_make_the_same_long_contexts(tmp_path: Path) -> None:
    save_reading_tasks([item(i) for i in range(3)], tmp_path / "items.jsonl")
    items = load_reading_tasks(tmp_path / "items.jsonl")
    settings = LongContextSettings(documents=30)
    again = long_context_tasks(items, pool=pool(), settings=settings)
    for one, other in zip(long_tasks(documents=30), again, strict=True):
        assert one.document.digest == other.document.digest
        assert [e.start for e in one.evidence] == [e.start for e in other.evidence]


@pytest.mark.data
@pytest.mark.parametrize("length", [{"documents": 200}, {"tokens": 28_000}])
def test_long_contexts_of_recorded_hotpotqa_items(length: Any, data_dir: Path) -> None:
    tasks = load_reading_tasks(data_dir / "hotpotqa", limit=40, **length)
    items = load_reading_tasks(data_dir / "hotpotqa", limit=40)
    assert len(tasks.passages) == 2633  # type: ignore[attr-defined]
    for task, base in zip(tasks, items, strict=True):
        verify_evidence(task)
        assert [e.text for e in task.evidence] == [e.text for e in base.evidence]
        assert {part.title for part in base.document.parts} <= set(titles(task))
        assert task.source["licence"] == "CC BY-SA 4.0"
        chunks = chunk_document(task.document, size=1000, align="document")
        assert sum(chunks.counts) == count_tokens(task.document)
        if "tokens" in length:
            assert 27_900 < sum(chunks.counts) <= 28_000


# Shards


def same(one: ReadingTask, other: ReadingTask) -> bool:
    return (
        one.document.digest == other.document.digest
        and list(one.document.parts) == list(other.document.parts)
        and one.evidence == other.evidence
        and dict(one.source) == dict(other.source)
        and (one.task_id, one.question, one.answers)
        == (other.task_id, other.question, other.answers)
    )


def test_long_contexts_are_stored_as_numbers_in_one_pool(tmp_path: Path) -> None:
    tasks = long_tasks(items=7, documents=30)
    report = write_shards(tasks, tmp_path / "out", shard_size=3)
    assert (report.tasks, report.shards, report.written) == (7, 3, 7)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    shards = ["00000.jsonl", "00001.jsonl", "00002.jsonl"]
    assert names == [*shards, "manifest.json", "plan.json", "pool.jsonl"]
    again = load_reading_tasks(tmp_path / "out")
    assert isinstance(again, ShardedTasks)
    assert again.ids == tuple(f"t{i}" for i in range(7))
    assert all(map(same, tasks, again))
    assert same(again[2:][-1], tasks[6])
    assert same(pickle.loads(pickle.dumps(again))[4], tasks[4])
    assert again[0].document.passages is again[6].document.passages  # type: ignore[attr-defined]


def test_long_documents_are_stored_in_files_of_their_own(tmp_path: Path) -> None:
    tasks = [item(0), item(1, own=40)]
    write_shards(tasks, tmp_path / "out", inline=300)
    files = sorted(path.name for path in (tmp_path / "out" / "documents" / "00000").iterdir())
    assert files == ["1.parts.json", "1.txt"]
    assert all(map(same, tasks, load_reading_tasks(tmp_path / "out")))


def test_synthetic_tasks_come_back_as_they_were(tmp_path: Path) -> None:
    tasks = load_reading_tasks("kg2?tokens=3000&n=3")
    write_shards(tasks, tmp_path / "out", inline=1000)
    assert all(map(same, tasks, load_reading_tasks(tmp_path / "out")))


class Stopping(Sequence[ReadingTask]):
    """Tasks of which one cannot be made, once."""

    def __init__(self, stop: int) -> None:
        self.made: list[int] = []
        self._stop = stop

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: Any) -> Any:
        if index == self._stop:
            raise KeyboardInterrupt
        self.made.append(index)
        return item(index)


def test_a_run_that_was_stopped_goes_on_behind_its_last_shard(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        write_shards(Stopping(5), folder, shard_size=2, identity={"seed": 0})
    with pytest.raises(InvalidTask, match="have not all been written; write them again with resu"):
        load_reading_tasks(folder)
    with pytest.raises(InvalidSetting, match=r"holds tasks already; .*resume=True"):
        write_shards(Stopping(99), folder, shard_size=2, identity={"seed": 0})
    with pytest.raises(InvalidSetting, match=r"identity was \{'seed': 0\}, is \{'seed': 1\}"):
        write_shards(Stopping(99), folder, shard_size=2, identity={"seed": 1}, resume=True)
    with pytest.raises(InvalidSetting, match="shard_size was 2, is 3"):
        write_shards(Stopping(99), folder, shard_size=3, identity={"seed": 0}, resume=True)
    rest, told = Stopping(99), list[int]()
    report = write_shards(
        rest, folder, shard_size=2, identity={"seed": 0}, resume=True, progress=told.append
    )
    assert rest.made == [4, 5, 6]
    assert told == [2, 4, 5, 6, 7]
    assert (report.tasks, report.written) == (7, 3)
    assert all(same(item(i), task) for i, task in enumerate(load_reading_tasks(folder)))
    assert (
        write_shards(Stopping(0), folder, shard_size=2, identity={"seed": 0}, resume=True).written
        == 0
    )


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InvalidSetting, match="is not empty, and no folder of tasks"):
        write_shards([item(0)], tmp_path)
    with pytest.raises(InvalidSetting, match="shard_size must be at least 1"):
        write_shards([item(0)], tmp_path / "new", shard_size=0)
    with pytest.raises(InvalidSetting, match="the task id 't0' comes twice"):
        write_shards([item(0), item(0)], tmp_path / "twice")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.txt"]


def test_damaged_shards_are_refused_with_their_place(tmp_path: Path) -> None:
    write_shards([item(0), item(1)], tmp_path / "out")
    tasks = load_reading_tasks(tmp_path / "out")
    lines = (tmp_path / "out" / "00000.jsonl").read_text().splitlines()
    (tmp_path / "out" / "00000.jsonl").write_text(f"{lines[0]}\n{lines[1][:50]}\n")
    assert same(tasks[0], item(0))
    with pytest.raises(InvalidTask, match=r"00000.jsonl, line 2: expected a task as write_shards"):
        tasks[1]
    for manifest in ("no JSON", "{}", json.dumps({"ids": [], "shard_size": 1, "format": "x"})):
        (tmp_path / "out" / "manifest.json").write_text(manifest)
        with pytest.raises(InvalidTask, match=r"manifest.json: expected what write_shards writes"):
            load_reading_tasks(tmp_path / "out")
    other = {"ids": [], "shard_size": 1, "format": "mars_envs.reading", "version": 2}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(other))
    with pytest.raises(InvalidTask, match=r"version 1, got 'mars_envs.reading', version 2"):
        load_reading_tasks(tmp_path / "out")
