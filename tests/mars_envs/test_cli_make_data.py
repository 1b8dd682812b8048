"""`mars-envs make-data reading`: data sets of any length, which an interruption does not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mars_envs.cli import main
from mars_envs.cli.make_data import make_reading
from mars_envs.cli.reading_config import MakeReadingConfig
from mars_envs.errors import MarsEnvsError
from mars_envs.reading.load import load_reading_tasks
from mars_envs.reading.synthetic import check_evidence, synthetic_tasks
from mars_envs.reading.words import count_words

COMMAND = ("make-data", "reading")
SMALL = ("--family", "kg2", "--tokens", "2000", "--n", "10", "--shard-size", "4")


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_is_written_is_what_the_family_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "kg2"
    assert main([*COMMAND, *SMALL, "--check", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "kg2" in shown
    assert " 10 " in shown
    tasks = load_reading_tasks(str(out))
    made = synthetic_tasks("kg2", tokens=2000, n=10)
    assert len(tasks) == 10
    for task, other in zip(tasks, made, strict=True):
        text = task.document.read(0, len(task.document))
        assert text == other.document.read(0, len(other.document))
        assert count_words(text) == 2000
        assert (task.question, task.answers, task.evidence, task.hops) == (
            other.question,
            other.answers,
            other.evidence,
            other.hops,
        )
        check_evidence(task)


def test_the_checksums_are_those_of_the_files_and_the_manifest_has_the_settings(
    tmp_path: Path,
) -> None:
    assert main([*COMMAND, *SMALL, "--order", "reverse", "--out", str(tmp_path / "a")]) == 0
    sums = (tmp_path / "a" / "SHA256SUMS").read_text().splitlines()
    listed = {line.split("  ")[1]: line.split("  ")[0] for line in sums}
    found = contents(tmp_path / "a")
    del found["SHA256SUMS"]
    assert listed == found
    assert {"00000.jsonl", "00001.jsonl", "00002.jsonl", "manifest.json"} <= set(listed)
    settings = json.loads((tmp_path / "a" / "manifest.json").read_text())["identity"]
    assert settings["family"] == "kg2"
    assert (settings["order"], settings["tokens"], settings["seed"]) == ("reverse", 2000, 0)


def test_long_documents_are_written_as_files_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "long"
    options = ("--family", "set", "--tokens", "250000", "--n", "2", "--options", "matches=20")
    assert main([*COMMAND, *options, "--out", str(out)]) == 0
    tasks = load_reading_tasks(str(out))
    assert len(tasks[1].document) > 1_000_000
    assert (out / "documents").is_dir()
    check_evidence(tasks[1])
    assert len(tasks[1].evidence) == 20


@pytest.mark.parametrize("family", ["ruler:niah_multikey_3", "ruler:vt", "ruler:fwe", "none"])
def test_every_generator_can_be_written(tmp_path: Path, family: str) -> None:
    options = ("--family", family, "--tokens", "1500", "--n", "3", "--seed", "5")
    assert main([*COMMAND, *options, "--out", str(tmp_path / "made")]) == 0
    tasks = load_reading_tasks(str(tmp_path / "made"))
    assert [count_words(t.document.read(0, len(t.document))) for t in tasks] == [1500] * 3


@pytest.mark.data
def test_hotpotqa_gets_long_contexts(tmp_path: Path, data_dir: Path) -> None:
    out = tmp_path / "hotpot"
    source = str(data_dir / "hotpotqa" / "hotpot_dev_distractor_head.json")
    options = ("--family", "hotpotqa", "--source", source, "--documents", "50", "--n", "6")
    assert main([*COMMAND, *options, "--out", str(out)]) == 0
    tasks = load_reading_tasks(str(out))
    originals = load_reading_tasks(source, limit=6)
    assert [task.question for task in tasks] == [task.question for task in originals]
    for task in tasks:
        assert len(task.document.parts) == 50
        for evidence in task.evidence:
            assert task.document.read(evidence.start, evidence.end) == evidence.text
    settings = json.loads((out / "manifest.json").read_text())["identity"]
    expected = "47ed37a2be844105ea64ca277b82d9620ea5ad4609c362aac55ba32eb1cf43c8"
    assert settings["source"] == hashlib.sha256(expected.encode()).hexdigest()


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(
    tmp_path: Path, kill_command: Callable[[list[str], Callable[[], bool]], int]
) -> None:
    # Documents of 1.1 million characters: in files of their own, some of them torn by the kill.
    options = ("--family", "vt", "--tokens", "250000", "--n", "8", "--shard-size", "2")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    kill_command(
        [*COMMAND, *options, "--out", str(torn)],
        lambda: len(list(torn.glob("[0-9]*.jsonl"))) >= 2,
    )
    assert not (torn / "SHA256SUMS").exists()
    assert main([*COMMAND, *options, "--out", str(torn), "--resume"]) == 0
    assert main([*COMMAND, *options, "--out", str(whole)]) == 0
    assert contents(torn) == contents(whole)
    assert len(list(whole.glob("documents/*/*.txt"))) == 8


def test_a_finished_folder_stays_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "a"
    assert main([*COMMAND, *SMALL, "--out", str(out)]) == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert main([*COMMAND, *SMALL, "--out", str(out), "--resume"]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}


def test_a_folder_may_have_the_name_of_its_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    family = SMALL[SMALL.index("--family") + 1]
    assert main([*COMMAND, *SMALL, "--out", family]) == 0
    assert f"load_reading_tasks('./{family}')" in capsys.readouterr().out
    assert main([*COMMAND, *SMALL, "--out", family, "--resume"]) == 0


BAD: list[tuple[dict[str, Any], str]] = [
    ({"family": "kg9"}, "no family 'kg9'"),
    ({"family": "ruler:cwe"}, "no task 'cwe'"),
    ({"family": "hotpotqa", "tokens": 9}, "needs --source"),
    ({"family": "hotpotqa", "source": "x.json"}, "needs --tokens or --documents"),
    ({"family": "hotpotqa", "source": "x", "chunk_tokens": 9}, "has no --chunk-tokens"),
    ({"family": "kg2", "documents": 50}, "has no --documents"),
    ({"family": "kg2", "options": ["hops=3"]}, "kg2 has no 'hops'"),
    ({"family": "kg2", "options": ["tokens"]}, "takes NAME=VALUE"),
    ({"family": "kg2", "tokens": 2000, "options": ["tokens=3"]}, "tokens is set twice"),
    ({"family": "kg2", "tokens": 70}, "do not hold the evidence"),
    ({"family": "kv", "tokens": 300, "chunk_tokens": 500}, "1 passage of evidence needs 1 chunk,"),
    ({"family": "ruler:vt", "check": True}, "--check is for synthetic families"),
    ({"family": "kg2", "n": 0}, "--n must be at least 1"),
    ({"family": "kg2", "split": "test"}, "split is one of train"),
    ({"family": "hotpotqa", "source": "none.json", "documents": 9}, "none.json"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_what_cannot_be_made_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(MarsEnvsError, match=message):
        make_reading(MakeReadingConfig(out=str(tmp_path / "out"), **settings))


@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_a_folder_without_a_finished_shard_is_begun_anew(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, fresh = tmp_path / "a", tmp_path / "fresh"
    impossible = ("--family", "set", "--tokens", "100", "--n", "2")
    assert main([*COMMAND, *impossible, "--out", str(out)]) == 2
    capsys.readouterr()
    assert {"plan.json", "00000.jsonl.partial"} <= set(contents(out))
    (out / "documents" / "00000").mkdir(parents=True)
    (out / "documents" / "00000" / "3.txt").write_text("left behind")
    assert main([*COMMAND, *SMALL, "--out", str(out), *more]) == 0
    assert main([*COMMAND, *SMALL, "--out", str(fresh)]) == 0
    assert contents(out) == contents(fresh)


@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_a_plan_that_was_not_written_whole_is_written_again(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "plan.json.partial").write_text("{")
    assert main([*COMMAND, *SMALL, "--out", str(tmp_path / "a"), *more]) == 0
    assert len(load_reading_tasks(str(tmp_path / "a"))) == 10


@pytest.mark.parametrize("name", ["plan.json", "documents/00000/3.txt"])
def test_files_of_the_same_names_that_are_somebody_elses_are_left_alone(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a" / name
    path.parent.mkdir(parents=True)
    path.write_text('{"dinner": "at eight"}')
    for more in ([], ["--resume"]):
        assert main([*COMMAND, *SMALL, "--out", str(tmp_path / "a"), *more]) == 2
        assert "not empty, and no folder of tasks" in capsys.readouterr().err
    assert path.read_text() == '{"dinner": "at eight"}'


def test_a_folder_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a"
    assert main([*COMMAND, *SMALL, "--out", str(out)]) == 0
    before = contents(out)
    assert main([*COMMAND, *SMALL, "--out", str(out)]) == 2
    assert "holds tasks already" in capsys.readouterr().err
    assert main([*COMMAND, *SMALL, "--seed", "1", "--resume", "--out", str(out)]) == 2
    assert "other settings" in capsys.readouterr().err
    assert contents(out) == before
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "diary.txt").write_text("dear diary")
    assert main([*COMMAND, *SMALL, "--out", str(tmp_path / "b")]) == 2
    assert "not empty" in capsys.readouterr().err
