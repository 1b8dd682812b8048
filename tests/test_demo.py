"""The demo as a user runs it: it reports, and it survives being killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SETTINGS = ["--steps", "6", "--trees", "8", "--eval-tasks", "6", "--checkpoint-every", "2"]
ARTEFACTS = {
    "config.json",
    "metrics.jsonl",
    "rollouts.jsonl",
    "learning_curve.png",
    "results.json",
    "checkpoints",
}


def command(folder: Path, *more: str) -> list[str]:
    start = [sys.executable, "-W", "error", "-c", "from mars_envs.cli import main; exit(main())"]
    return [*start, "demo", "--run-dir", str(folder), *SETTINGS, *more]


def run(folder: Path, *more: str) -> str:
    done = subprocess.run(command(folder, *more), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_until_killed(folder: Path, *more: str, steps: int) -> int:
    """Kill the demo, not its workers, once it has logged so many steps; return its process id."""
    with (folder.parent / "killed.log").open("w") as log:
        process = subprocess.Popen(command(folder, *more), stdout=log, stderr=log)
    deadline = time.monotonic() + 200
    while len(metrics(folder)) < steps:
        assert process.poll() is None, (folder.parent / "killed.log").read_text()
        assert time.monotonic() < deadline, "the demo did not get there in time"
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / "results.json").exists(), "it ended before it could be killed"
    return process.pid


def containers_of(pid: int) -> list[str]:
    """Owner labels (host:pid:start time) of the containers that a process has left."""
    shown = subprocess.run(
        ["docker", "ps", "--all", "--format", '{{.Label "sbx.owner"}}'],
        capture_output=True,
        text=True,
        check=True,
    )
    return [owner for owner in shown.stdout.split() if owner.split(":")[1] == str(pid)]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """All metrics but timings."""
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return [{k: v for k, v in record.items() if not k.endswith("_s")} for record in records]


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo") / "whole"
    return folder, run(folder, "--sandbox", "bubblewrap")


@pytest.fixture
def warmed_up(whole_run: tuple[Path, str], tmp_path: Path) -> Path:
    """A run that was stopped after its first exam: the same coders, no step done."""
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copytree(whole_run[0] / "coders", folder / "coders")
    for name in ("config.json", "before.jsonl"):
        shutil.copy(whole_run[0] / name, folder / name)
    return folder


def test_the_demo_writes_a_run_folder_and_prints_what_was_learned(
    whole_run: tuple[Path, str],
) -> None:
    folder, shown = whole_run
    assert {path.name for path in folder.iterdir()} >= ARTEFACTS
    results = json.loads((folder / "results.json").read_text())
    assert set(results["held_out"]) == {"coder_0", "coder_1", "team"}
    gain = results["held_out"]["team"]["Pass@1(MCTS)"]["gain"]
    assert gain["n"] == 6
    assert gain["low"] <= gain["mean"] <= gain["high"]
    for words in ("Pass@1(MCTS)", "degenerate trees", "nodes judged", "a solved tree of the team"):
        assert words in shown
    assert len(metrics(folder)) == 6


def test_a_killed_demo_goes_on_as_if_nothing_had_happened(
    whole_run: tuple[Path, str], warmed_up: Path
) -> None:
    run_until_killed(warmed_up, "--sandbox", "bubblewrap", "--resume", steps=3)
    assert "going on after step" in run(warmed_up, "--sandbox", "bubblewrap", "--resume")
    assert metrics(warmed_up) == metrics(whole_run[0])


@pytest.mark.docker
def test_a_demo_killed_in_docker_leaves_no_container_after_reap_and_goes_on(
    docker_engine: str, whole_run: tuple[Path, str], warmed_up: Path
) -> None:
    from sandbox.reaper import reap

    pid = run_until_killed(warmed_up, "--sandbox", "docker", "--resume", steps=3)
    reap()
    assert containers_of(pid) == []
    run(warmed_up, "--sandbox", "docker", "--resume")
    # Verdicts do not depend on the backend, so neither does a single metric.
    assert metrics(warmed_up) == metrics(whole_run[0])
