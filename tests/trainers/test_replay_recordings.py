from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trainers.errors import RolloutFormatError
from trainers.policies import Recording, RecordingFormatError, load_recordings


def write(path: Path, *records: Any) -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_single_generations_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl",
        {"task": "a", "text": "x", "form": "completion", "model": "m", "observed": "pass"},
        {"task_id": "b", "text": "y", "form": "reply"},
        {"task": "a", "text": "z", "form": "full_program", "prompt": "p"},
    )
    assert load_recordings(path) == {
        "a": [
            Recording(text="x", form="completion", source="m", label="pass"),
            Recording(text="z", form="full_program", prompt="p"),
        ],
        "b": [Recording(text="y", form="reply")],
    }


def test_a_pool_of_samples_carries_its_prompt(tmp_path: Path) -> None:
    samples = [{"completion": "x", "observed": "fail"}, {"completion": "y"}]
    path = write(
        tmp_path / "g.jsonl", {"task": "a", "prompt_used": "p", "model": "m", "samples": samples}
    )
    assert load_recordings(path)["a"] == [
        Recording(text="x", form="completion", source="m", label="fail", prompt="p"),
        Recording(text="y", form="completion", source="m", prompt="p"),
    ]


def test_submissions_are_whole_programs(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl",
        {"id": "a", "submissions": [{"id": "ac-1", "expected": "AC", "source": "print(1)"}]},
    )
    assert load_recordings(path) == {
        "a": [Recording(text="print(1)", form="full_program", source="ac-1", label="AC")]
    }


def test_the_programs_of_a_refinement_run_are_whole(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl",
        {"task": "a", "model": "m", "implementations": ["x", "y"], "observed": ["fail", "pass"]},
    )
    assert [(r.text, r.form, r.label) for r in load_recordings(path)["a"]] == [
        ("x", "full_program", "fail"),
        ("y", "full_program", "pass"),
    ]


def test_one_source_can_be_picked(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl",
        *[{"task": "a", "text": m, "form": "reply", "model": m} for m in ("m", "n")],
    )
    assert [r.text for r in load_recordings(path, source="n")["a"]] == ["n"]
    with pytest.raises(
        RecordingFormatError, match="expected recordings by 'o', got only those by 'm', 'n'"
    ):
        load_recordings(path, source="o")


def test_sources_can_be_picked_by_patterns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl",
        *[
            {"task": "a", "text": m, "form": "reply", "model": m}
            for m in ("gpt-4", "gpt-4 [2]", "llama", "coder, 7b")
        ],
    )
    for pattern, expected in {
        "gpt-4*": ["gpt-4", "gpt-4 [2]"],
        "gpt-4 [2]": ["gpt-4 [2]"],
        "llama|coder*": ["llama", "coder, 7b"],
    }.items():
        assert [r.text for r in load_recordings(path, source=pattern)["a"]] == expected


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"foo": 1}, "line 1: unknown format of recordings; .*got foo"),
        ({}, "unknown format of recordings; .*got none"),
        ('{"task": "a", "te', "line 1: expected one JSON object, .*is the file cut off"),
        ([1], "line 1: expected one JSON object, got a list"),
        ({"task": "a", "text": 1, "form": "reply"}, "field `text`: expected a string, got int"),
        (
            {"task": "a", "text": "", "form": "chat"},
            "field `form`: expected one of completion, .*got 'chat'",
        ),
        ({"text": "", "form": "reply"}, "field `task`: expected a string, got NoneType"),
        (
            {"id": "a", "submissions": "x"},
            "field `submissions`: expected a list of objects, got str",
        ),
        ({"id": "a", "submissions": [{}]}, "field `source`: expected a string, got NoneType"),
        (
            {"task": "a", "prompt_used": "", "samples": [1]},
            "field `samples`: expected a list of obj",
        ),
        (
            {"task": "a", "implementations": [1]},
            "field `implementations`: expected a list of strin",
        ),
        ("", "expected one recording per line, got an empty file"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path: Path, record: Any, message: str) -> None:
    with pytest.raises(RecordingFormatError, match=message):
        load_recordings(write(tmp_path / "g.jsonl", record))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RolloutFormatError, match=r"cannot read the recordings .*no.jsonl: No such"):
        load_recordings(tmp_path / "no.jsonl")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(RecordingFormatError, match="expected UTF-8 text"):
        load_recordings(tmp_path / "g.jsonl")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "tasks", "forms"),
    [
        ("generations/codegen16b_pool.jsonl", 32, {"completion": 640}),
        (
            "generations/humaneval.jsonl",
            86,
            {"completion": 258, "full_program": 430, "completion_or_full": 344},
        ),
        ("problems/kattis_problems.jsonl", 60, {"full_program": 171}),
        ("generations/mbpp_ldb.jsonl", 244, {"full_program": 732}),
    ],
)
def test_the_recorded_files_load(
    data_dir: Path, name: str, tasks: int, forms: dict[str, int]
) -> None:
    recordings = load_recordings(data_dir / name)
    assert len(recordings) == tasks
    assert Counter(r.form for found in recordings.values() for r in found) == forms


@pytest.mark.data
def test_the_refinement_chains_load(data_dir: Path) -> None:
    recordings = load_recordings(data_dir / "generations" / "refinement_chains.jsonl")
    assert {r.label for found in recordings.values() for r in found} >= {"pass", "fail"}
