"""The examples of the environments run as they stand: programs are really judged."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def examples(repo_dir: Path) -> Path:
    return repo_dir / "examples"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gym_make_needs_no_set_up(examples: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(examples / "gym_make.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert [line.split(":")[0] for line in answer.stdout.splitlines() if "reward" in line] == [
        "node 0",
        "node 1",
        "node 2",
        "node 3",
    ]


def test_play_tree_shows_a_tree_that_refinement_solved(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = load(examples / "play_tree.py").main()
    assert "compile_error" in text
    assert "wrong_answer" in text
    assert "solved  best" in text
    assert "print(n * (n + 1) // 2)" in text
    assert "nodes solved; best solved: True" in capsys.readouterr().out


def test_a_third_party_algorithm_collects_every_reward(examples: Path) -> None:
    rewards = load(examples / "third_party_loop.py").main(episodes=4)
    assert len(rewards) == 4
    assert all(reward in (0.0, 0.25, 0.5, 0.75, 1.0) for reward in rewards)


def test_the_search_is_timed_beside_treequest(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("treequest")
    load(examples / "time_tree_search.py").main(
        ["--nodes", "4", "8", "--seeds", "1", "--treequest-nodes", "4"]
    )
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith(("| node first", "| agent first"))]
    assert len(rows) == 2 * 2 * (2 + 1), "both orders, both priors: two sizes and the growth"
    assert sum(line.rstrip(" |").endswith("x") for line in rows) == 4, "TreeQuest up to 4 nodes"
    assert sum("bytes at N = 8" in line for line in lines) == 2
