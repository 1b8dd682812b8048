"""Where records come from: every kind of file, and folders of them."""

from __future__ import annotations

import gzip
import inspect
import json
import logging
import os
import sys
import tracemalloc
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import load_tasks
from mars_envs.tasks.files import jsonable
from mars_envs.tree_search import TreeSearchEnv


def record(task_id: str | int | None = "a", **fields: Any) -> dict[str, Any]:
    data = {"question": "Add.", "input_output": {"inputs": ["1"], "outputs": ["2"]}}
    return data | ({} if task_id is None else {"task_id": task_id}) | fields


def lines(*records: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def ids(source: str | Path, **options: Any) -> list[str]:
    return [task.task_id for task in load_tasks(source, **options)]


def test_lines_may_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(lines(record("a"), record("b")).encode()))
    assert ids(path) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["jsonl.gz", "json.gz"])
def test_a_gzip_file_that_is_cut_off_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    whole = gzip.compress(lines(*(record(str(n)) for n in range(100))).encode())
    path.write_bytes(whole[:-30])
    with pytest.raises(InvalidTask, match=r"expected a whole file, got one that is cut off"):
        load_tasks(path)
    path.write_bytes(b"this is no gzip")
    with pytest.raises(InvalidTask, match=r"line 1: expected a whole file.*Not a gzipped file"):
        load_tasks(path)


def test_what_stands_before_the_cut_can_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.jsonl.gz"
    noise = [record(str(n), noise=os.urandom(200).hex()) for n in range(100)]
    whole = gzip.compress(lines(*noise).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with caplog.at_level(logging.WARNING, "mars_envs"):
        found = ids(path, on_error="skip")
    assert 10 < len(found) < 90
    assert found == [str(n) for n in range(len(found))]
    assert f"left out 1 of {len(found) + 1} records" in caplog.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps([record("a"), record("b")]), ["a", "b"]),
        (json.dumps({"x": record(None), "y": record("b")}), ["x", "b"]),
        (json.dumps(record("a"), indent=2), ["a"]),
        (lines(record("a"), record("b")), ["a", "b"]),
        ("\ufeff" + json.dumps([record("a")]), ["a"]),
    ],
    ids=["a list", "an object by id", "one record", "lines after all", "a byte order mark"],
)
def test_a_json_file_holds_records_in_several_ways(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    assert ids(tmp_path / "t.json") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", "t.json, entry 1: expected a JSON object, got 1; write one object per record"),
        (b"[{]", "t.json: expected a JSON list of records, got text that is no JSON"),
        (b"3", "t.json, entry 1: expected a JSON object, got 3"),
        (b'["\xff"]', "t.json: expected UTF-8 text"),
        (b"[]", "expected one JSON object per line, got an empty file"),
        (json.dumps([record(), {}]).encode(), "t.json, entry 2: unknown task format"),
        (
            json.dumps([record("a"), record("a")]).encode(),
            "t.json, entry 2: the task id 'a' came before, in entry 1",
        ),
    ],
)
def test_a_bad_json_file_is_named_with_its_fault(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(InvalidTask, match=message):
        load_tasks(tmp_path / "t.json")


def parquet(path: Path, *rows: dict[str, Any]) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def test_rows_of_a_parquet_file_are_records(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", record("a"), *(record(f"b{n}") for n in range(40)))
    assert ids(path, limit=20) == ["a", *(f"b{n}" for n in range(19))]
    assert len(ids(path)) == 41
    with pytest.raises(InvalidTask, match=r"t.parquet, row 2, field `question`: expected a text"):
        load_tasks(parquet(path, record("a"), record("b", question=" ")))
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidTask, match=r"row 1: expected a parquet file, got one that cannot"):
        load_tasks(path)


def test_values_of_other_libraries_become_json() -> None:
    import numpy as np

    row = {"day": datetime(2025, 1, 2), "list": np.arange(2), "deep": [{"n": np.int64(3)}], 1: "x"}
    assert jsonable(row) == {
        "day": "2025-01-02T00:00:00",
        "list": [0, 1],
        "deep": [{"n": 3}],
        "1": "x",
    }


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(lines(record("b")))
    (tmp_path / "a.json").write_text(json.dumps([record("a1"), record("a2")]))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.jsonl").write_text(lines(record("x"), record("y")))
    (tmp_path / "README.md").write_text("not records")
    (tmp_path / ".hidden.jsonl").write_text("not read")
    assert ids(tmp_path) == ["a1", "a2", "b", "x", "y"]
    assert ids(tmp_path, limit=3) == ["a1", "a2", "b"]


def test_records_without_ids_are_named_after_their_file_and_line(tmp_path: Path) -> None:
    for folder in ("train", "test"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.jsonl").write_text(lines(record(None), record(None)))
    assert ids(tmp_path) == ["test/data/1", "test/data/2", "train/data/1", "train/data/2"]
    assert ids(tmp_path / "train" / "data.jsonl") == ["data/1", "data/2"]


def test_a_folder_without_any_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"expected a folder with .jsonl, .* packages"):
        load_tasks(tmp_path)


def test_ids_may_not_come_twice_in_a_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(lines(record("same")))
    with pytest.raises(InvalidTask, match=r"b.jsonl, line 1: the task id 'same' .*a.jsonl, line 1"):
        load_tasks(tmp_path)


def test_a_file_is_read_as_far_as_it_is_needed(tmp_path: Path) -> None:
    """A hundred records of a megabyte: one at a time is in memory, and no more than the limit."""
    path = tmp_path / "large.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        for number in range(100):
            file.write(lines(record(str(number), solutions="x" * 1_000_000)))
        file.write("{")
    load_tasks(path, limit=1)
    tracemalloc.start()
    assert len(load_tasks(path, limit=100)) == 100
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_options_may_stand_behind_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines(*(record(str(n), difficulty="easy") for n in range(5)), "{"))
    assert ids(f"{path}?limit=2") == ["0", "1"]
    assert ids(f"{path}?on_error=skip&difficulty=EASY") == ["0", "1", "2", "3", "4"]
    assert ids(f"{path}?limit=3", limit=1) == ["0", "1", "2"]
    assert ids("tiny_code:held_out?limit=2") == ids("tiny_code:held_out")[:2]
    odd = tmp_path / "t.jsonl?limit=1"
    odd.write_text(lines(record("a"), record("b")))
    assert ids(odd) == ["a", "b"]


def test_an_environment_takes_the_same_sources(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(record("a")))
    (tmp_path / "b.json").write_text(json.dumps([record("b")]))
    env = TreeSearchEnv(tasks=f"{tmp_path}?limit=1", judge="mars_envs.testing:StubJudge")
    for seed in range(5):
        env.reset(seed=seed)
        assert env.infos[env.agent_selection]["task_id"] == "a"
    with pytest.raises(ValueError, match="no task 'b' among 1 tasks"):
        env.reset(options={"task": "b"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limt=2", "unknown option 'limt=2' .* with the keys public_tests, format, on_error, lim"),
        ("limit", "unknown option 'limit'"),
        ("limit=two", "the option 'limit=two' of a source of tasks needs a whole number"),
        ("limit=0", "limit must be a whole number of at least 1, got 0"),
        ("on_error=ignore", 'on_error must be "raise" or "skip"'),
        ("format=codecontests", "format must be auto, code_task"),
        ("split_seed=1", "say how many with public_count"),
        ("split=test", "`split` is for data sets of a hub"),
    ],
)
def test_a_bad_option_is_named(tmp_path: Path, query: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines(record()))
    with pytest.raises(InvalidTask, match=message):
        load_tasks(f"{path}?{query}")


def test_an_archive_without_a_package_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("data.jsonl", lines(record()))
    with pytest.raises(InvalidTask, match=r"expected an archive with a problem.yaml, found none"):
        load_tasks(tmp_path / "t.zip")
    (tmp_path / "t.zip").write_bytes(b"no archive")
    with pytest.raises(InvalidTask, match=r"expected a zip archive .*File is not a zip file"):
        load_tasks(tmp_path / "t.zip")


def test_only_the_suffix_of_a_file_is_left_out_of_ids(tmp_path: Path) -> None:
    for name in ("part.1.jsonl", "part.2.jsonl", "train.json", "train.jsonl"):
        (tmp_path / name).write_text(lines(record(None)))
    assert ids(tmp_path) == ["part.1/1", "part.2/1", "train/1", "train.jsonl/1"]
    assert ids(tmp_path / "part.2.jsonl") == ["part.2/1"]


def test_links_and_pipes_in_a_folder_are_bad_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "b.jsonl").write_text(lines(record("b")))
    (tmp_path / "a.jsonl").symlink_to("nothing")
    (tmp_path / "c.jsonl").symlink_to("c.jsonl")
    os.mkfifo(tmp_path / "d.zip")  # to open it would be to wait for a writer
    (tmp_path / "up").symlink_to("..")
    with caplog.at_level(logging.WARNING, "mars_envs"):
        assert ids(tmp_path, on_error="skip") == ["b"]
    assert "left out 3 of 4 records" in caplog.text
    with pytest.raises(InvalidTask, match=r"a.jsonl: No such(.|\n)*c.jsonl: Too many(.|\n)*no reg"):
        load_tasks(tmp_path)


def test_folders_may_be_nested_deeper_than_calls(tmp_path: Path) -> None:
    """200 folders, with room for 150 calls: deeper ones pytest itself could not remove."""
    folder = tmp_path.joinpath(*["a"] * 200)
    folder.mkdir(parents=True)
    (folder / "t.jsonl").write_text(lines(record("deep")))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        assert ids(tmp_path) == ["deep"]
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "expected the name of a source of tasks, got ''"),
        ("a\0b", "cannot read the task file a\0b: embedded null byte"),
        ("a" * 5000, "File name too long"),
        ("a" * 5000 + "?limit=1", "File name too long"),
    ],
    ids=["empty", "a null byte", "too long", "too long, with options"],
)
def test_a_source_that_cannot_be_a_path_is_refused(source: str, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        load_tasks(source)


def test_a_date_that_is_none_is_in_no_window(tmp_path: Path) -> None:
    rest = {"statement": "s", "public": [{"name": "p", "input": "", "expected": ""}]}
    dates = {"a": "yesterday", "b": "2025-01-31", "c": "2025-02-01T12:00:00"}
    path = tmp_path / "t.jsonl"
    path.write_text(lines(*({"task_id": k, **rest, "meta": {"date": d}} for k, d in dates.items())))
    assert ids(path, start_date="2025-01-31") == ["b", "c"]
    assert ids(path, end_date="2025-01-31") == ["b"]


def test_ids_from_file_names_are_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.jsonl")).write_text(lines(record(None)))
    assert ids(tmp_path) == ["\ufffd/1"]


def test_lone_surrogates_in_what_goes_into_meta_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines(record("a", difficulty="\ud800")))
    with pytest.raises(InvalidTask, match=r"field `difficulty`: expected text that UTF-8 can"):
        load_tasks(path)
