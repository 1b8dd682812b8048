"""Run folders are never written over and are resumed only with their own settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mars_envs.cli.config import DemoConfig
from mars_envs.cli.runs import alone_in, open_run
from mars_envs.errors import InvalidSetting


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_each_run_gets_a_folder_of_its_own() -> None:
    names = [open_run(DemoConfig(seed=3)).name for _ in range(2)]
    assert names == ["demo-tree-seed3", "demo-tree-seed3-2"]
    assert open_run(DemoConfig(baseline=True)).name == "demo-baseline-seed0"


def test_a_folder_with_a_run_in_it_is_not_written_over() -> None:
    open_run(DemoConfig(run_dir="mine"))
    with pytest.raises(InvalidSetting, match="mine is not empty; add --resume"):
        open_run(DemoConfig(run_dir="mine"))


def test_resume_finds_the_newest_unfinished_run_with_these_settings() -> None:
    finished, other, wanted = (
        open_run(config) for config in (DemoConfig(), DemoConfig(steps=7), DemoConfig())
    )
    (finished / "results.json").write_text("{}")
    assert open_run(DemoConfig(resume=True)) == wanted
    assert open_run(DemoConfig(resume=True, steps=7)) == other


def test_resume_may_change_where_programs_run() -> None:
    folder = open_run(DemoConfig(sandbox="docker"))
    assert open_run(DemoConfig(sandbox="bubblewrap", workers=1, resume=True)) == folder


def test_resume_without_a_run_says_so() -> None:
    with pytest.raises(InvalidSetting, match="no unfinished run with these settings"):
        open_run(DemoConfig(resume=True))
    with pytest.raises(InvalidSetting, match="nowhere holds no run to resume"):
        open_run(DemoConfig(resume=True, run_dir="nowhere"))


def test_a_run_with_other_settings_is_not_resumed() -> None:
    config = DemoConfig(run_dir="mine", seed=1)
    open_run(config)
    with pytest.raises(InvalidSetting, match="--seed is 1 there and 2 here"):
        open_run(dataclasses.replace(config, seed=2, resume=True))


def test_a_damaged_config_is_no_run() -> None:
    folder = open_run(DemoConfig(run_dir="mine"))
    (folder / "config.json").write_text('{"seed": ')
    with pytest.raises(InvalidSetting, match="holds no run to resume"):
        open_run(DemoConfig(run_dir="mine", resume=True))


def test_two_processes_do_not_work_in_one_folder() -> None:
    folder = open_run(DemoConfig(run_dir="mine"))
    with alone_in(folder), pytest.raises(InvalidSetting, match="another process works in mine"):
        alone_in(folder).__enter__()
    with alone_in(folder):
        pass  # free again


def test_a_run_that_was_killed_while_it_wrote_its_settings_can_be_started_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.partial").write_text('{"seed')
    folder = open_run(DemoConfig(run_dir="mine"))
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    assert open_run(DemoConfig(run_dir="mine", resume=True)) == folder
