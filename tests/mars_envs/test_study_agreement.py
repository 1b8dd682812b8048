"""The study of test-output agreement: its exact chances, and a run on recorded programs."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from mars_envs.tasks import CodeTask, ExpectedCase
from mars_envs.tree_search import ROOT, SearchTree, final_answer
from mars_envs.tree_search.consensus import agreement
from mars_envs.tree_search.tree import verdict_of_score


@pytest.fixture(scope="module")
def study(repo_dir: Path, load_module: Callable[[Path], ModuleType]) -> ModuleType:
    return load_module(repo_dir / "examples" / "study_agreement.py")


def test_chances_are_the_means_over_all_orders(study: ModuleType) -> None:
    task = CodeTask(
        task_id="t", statement="?", public=(ExpectedCase(name="p", input="", expected=""),)
    )
    rows = [(1, True, "a"), (1, False, "b"), (1, True, "a"), (0, False, "c"), (1, False, "b")]
    for count in (3, 5):
        verdicts = [
            replace(verdict_of_score(score), solved=solved, signature=("public", behaviour))
            for score, solved, behaviour in rows[:count]
        ]
        found = study.chances(study.ProbedTask(task=task, plus=1), verdicts)
        handed_in: dict[str, list[bool]] = {"latest": [], "agreement": []}
        for order in itertools.permutations(verdicts):
            tree = SearchTree()
            for verdict in order:
                tree.add(ROOT, "a", verdict)
            for rule, score_fn in (("latest", None), ("agreement", agreement)):
                answer = final_answer(tree, score_fn)
                assert answer is not None
                handed_in[rule].append(answer.solved)
        assert found.latest == pytest.approx(statistics.fmean(handed_in["latest"]))
        assert found.agreement["and HumanEval+ inputs"] == pytest.approx(
            statistics.fmean(handed_in["agreement"])
        )
        assert found.agreement["public tests only"] == pytest.approx(found.latest)


@pytest.mark.slow
@pytest.mark.data
def test_the_study_runs_on_recorded_programs(
    study: ModuleType, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", str(data_dir), "--recordings", "codegen16b_pool", "--tasks", "1"]
    [outcomes] = study.main([*arguments, "--probes", "1", "--sandbox", "bubblewrap"])
    assert [outcome.task_id for outcome in outcomes] == ["HumanEval/13"]
    shown = capsys.readouterr().out
    assert "codegen16b_pool: 1 tasks" in shown
    assert shown.count("gain +") == 3
