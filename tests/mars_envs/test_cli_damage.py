"""What a damaged run folder says: which file, what is wrong, what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mars_envs.cli import main
from mars_envs.cli.exam import Exam
from mars_envs.cli.runs import write_json
from mars_envs.errors import InvalidSetting


def test_an_exam_without_all_its_parts_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "before.jsonl").write_text("")
    with pytest.raises(InvalidSetting, match=r"before\.jsonl is no whole exam; delete it"):
        Exam.read(tmp_path / "before.jsonl")


def test_results_are_json_also_where_nothing_was_measured(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", {"a": {"low": float("nan"), "n": 0}})
    text = (tmp_path / "results.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"a": {"low": None, "n": 0}}


def test_settings_that_are_no_text_end_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo.yaml").write_bytes(b"seed: \xff\xfe1")
    assert main(["demo", "--config", str(tmp_path / "demo.yaml")]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_an_address_that_is_none_is_a_missing_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "http://x:y:z")
    assert main(["sandbox", "build"]) == 2
    assert "no Docker engine answers at http://x:y:z" in capsys.readouterr().err
