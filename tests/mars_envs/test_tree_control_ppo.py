"""The study of learned search runs as it stands, learns, and reports what it saw."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def study(repo_dir: Path, load_module: Callable[[Path], ModuleType]) -> ModuleType:
    return load_module(repo_dir / "examples" / "tree_control_ppo.py")


@pytest.mark.slow
def test_a_short_training_searches_better_than_chance(study: ModuleType, tmp_path: Path) -> None:
    elsewhere = ["--also-on", "no_repair"]
    results = study.main(["--episodes", "100", "--out", str(tmp_path), *elsewhere])
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(json.dumps(results))
    assert (tmp_path / "tree_control.png").read_bytes().startswith(b"\x89PNG")
    facts = results["families"]["specialists"]
    assert set(facts["policies"]) == {"uniform", "default", "paper", "best_of_n"}
    # Measured over 120 episodes: a gain of 0.29 over chance, more than five standard errors.
    assert facts["policies"]["uniform"]["learned_minus_this"]["mean"] > 0
    for row in facts["policies"].values():
        difference = facts["MaskablePPO"]["answer"]["mean"] - row["answer"]["mean"]
        assert row["learned_minus_this"]["mean"] == pytest.approx(difference)
        assert {row[key]["n"] for key in ("answer", "coverage", "learned_minus_this")} == {100}
    assert facts["elsewhere"]["no_repair"]["answer"]["n"] == 100


def test_what_it_takes_is_told(study: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        study.main(["--help"])
    assert "--full" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        study.main(["--families", "nobody"])


def test_the_example_of_the_documentation_runs(repo_dir: Path) -> None:
    section = (repo_dir / "docs" / "mars2.md").read_text().split("## Learning to search")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1].replace("20_000", "1_000").replace("range(100)", "range(5)"), names)
    assert len(names["thompson"]) == 5
    assert names["model"].num_timesteps >= 1_000
