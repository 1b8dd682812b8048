"""The examples of the environments run as they stand: programs are really judged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

Load = Callable[[Path], ModuleType]


@pytest.fixture
def examples(repo_dir: Path) -> Path:
    return repo_dir / "examples"


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
    examples: Path, load_module: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    text = load_module(examples / "play_tree.py").main()
    assert "compile_error" in text
    assert "wrong_answer" in text
    assert "solved  best" in text
    assert "print(n * (n + 1) // 2)" in text
    assert "nodes solved; best solved: True" in capsys.readouterr().out


def test_a_third_party_algorithm_collects_every_reward(examples: Path, load_module: Load) -> None:
    rewards = load_module(examples / "third_party_loop.py").main(episodes=4)
    assert len(rewards) == 4
    assert all(reward in (0.0, 0.25, 0.5, 0.75, 1.0) for reward in rewards)


def test_the_search_is_timed_beside_treequest(
    examples: Path, load_module: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("treequest")
    load_module(examples / "time_tree_search.py").main(
        ["--nodes", "4", "8", "--seeds", "1", "--treequest-nodes", "4"]
    )
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith(("| node first", "| agent first"))]
    assert len(rows) == 2 * 2 * (2 + 1), "both orders, both priors: two sizes and the growth"
    assert sum(line.rstrip(" |").endswith("x") for line in rows) == 4, "TreeQuest up to 4 nodes"
    assert sum("bytes at N = 8" in line for line in lines) == 2


def test_the_study_of_refinement_runs_small(
    examples: Path, load_module: Load, tmp_path: Path
) -> None:
    study = load_module(examples / "study_refinement.py")
    figure, record = tmp_path / "refinement.png", tmp_path / "refinement.json"
    arguments = ["--trees", "6", "--processes", "1", "--figure", figure, "--json", record]
    figures = study.main([str(argument) for argument in arguments])
    assert {row["multiplier"] for row in figures["grid"]} == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert {row["n"] for row in figures["grid"]} == {6}
    for row in figures["grid"]:
        low, high = row["coverage"]["interval"]
        assert -100 <= low < high <= 100
        if not row["false_positive"]:
            assert row["coverage"] == row["chosen"]
    assert len(figures["teams"]) == 7
    assert figure.stat().st_size > 10_000
    assert json.loads(record.read_text())["teams"][0]["selector"] == "best_of_n"


def test_a_paired_gain_comes_with_its_published_interval(examples: Path, load_module: Load) -> None:
    # Agresti and Min (2005): half a pair is added to each of the four cells of the table.
    study = load_module(examples / "study_refinement.py")
    after = np.array([True] * 30 + [False] * 10 + [True] * 20 + [False] * 40)
    before = np.array([False] * 30 + [True] * 10 + [True] * 20 + [False] * 40)
    gain, low, high = study.paired_gain(after, before)
    assert gain == pytest.approx(20.0)
    # Won 30.5, lost 10.5, of 102: 0.196 ± 1.96 · √(41 − 400 / 102) / 102.
    assert (low, high) == pytest.approx((7.90, 31.31), abs=0.01)
    assert study.paired_gain(before, before)[1:] == pytest.approx((-1.92, 1.92), abs=0.01)


def test_the_environments_own_share_of_a_turn_can_be_timed(
    examples: Path, load_module: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    results = load_module(examples / "time_tree_env.py").main(
        ["--budgets", "4", "9", "--episodes", "2", "--agents", "3"]
    )
    assert {budget for _, budget in results} == {4, 9}
    assert all(len(times) == 2 and min(times) > 0 for times in results.values())
    table = capsys.readouterr().out
    assert [table.count(form) for form in ("AEC", "Parallel", "Gymnasium")] == [4, 2, 2]


def test_whole_episodes_of_reading_can_be_timed(
    examples: Path, load_module: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    results = load_module(examples / "time_memory_env.py").main(
        ["--tokens", "2000", "8000", "--readers", "3", "--chunk-tokens", "500", "--episodes", "1"]
    )
    assert [timings[0]["chunks"] for timings in results.values()] == [4, 16]
    assert all(timings[0]["right"] for timings in results.values())
    assert "twice the tokens take" in capsys.readouterr().out


@pytest.mark.slow
def test_millions_of_tokens_are_read_rightly_in_little_memory(
    examples: Path, load_module: Load
) -> None:
    results = load_module(examples / "time_memory_env.py").main(
        ["--tokens", "900000", "3600000", "--episodes", "1"]
    )
    small, large = (timings[0] for timings in results.values())
    assert (small["chunks"], large["chunks"]) == (180, 720)
    assert small["right"]
    assert large["right"]
    assert large["megabytes"] < 600


def test_the_exponent_of_a_known_growth_is_found(examples: Path, load_module: Load) -> None:
    exponent = load_module(examples / "time_memory_env.py").exponent
    assert exponent([1, 2, 4, 8], [3 * n**1.5 for n in (1, 2, 4, 8)]) == pytest.approx((1.5, 0.0))
    # By hand, in units of ln 2: x = -1, 0, 1; y = 0, 0, 3; slope 1.5, residuals 1/2, -1, 1/2.
    assert exponent([1, 2, 4], [1, 1, 8]) == pytest.approx((1.5, 0.75**0.5))
