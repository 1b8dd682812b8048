"""Trainer, Hugging Face policies and the tree environment together, with a stub for a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mars_envs import TreeSearchEnv
from trainers import Sampling
from trainers.episodes import RandomTasks
from trainers.evaluate import summarise
from trainers.path_grpo import PathGRPOConfig, PathGRPOTrainer
from trainers.policies.hf import HFPolicy
from trainers.rollout import read_rollouts
from trainers.tiny_coders import ARCHITECTURES, build_coder


def make_env() -> TreeSearchEnv:
    return TreeSearchEnv(tasks="tiny_code", judge="mars_envs.testing:StubJudge", prompts="compact")


def make_trainer(folder: Path, *, steps: int) -> PathGRPOTrainer:
    torch.set_num_threads(1)
    policies = {
        name: HFPolicy(name, *build_coder(name, seed=index))
        for index, name in enumerate(ARCHITECTURES)
    }
    return PathGRPOTrainer(
        PathGRPOConfig(
            steps=steps,
            concurrency=4,
            sampling=Sampling(max_tokens=4),
            minibatch=8,
            buffer_rows=8,
            checkpoint_every=2,
        ),
        env_fn=make_env,
        policies=policies,
        roles={"coder_0": ARCHITECTURES[0], "coder_1": ARCHITECTURES[1]},
        episodes=RandomTasks(count=6),
        run_dir=folder,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("run")
    return folder, [dict(step) for step in make_trainer(folder, steps=4).train()]


def test_both_coders_train_on_what_they_sampled(
    run: tuple[Path, list[dict[str, Any]]],
) -> None:
    _, metrics = run
    for name in ARCHITECTURES:
        assert metrics[-1][f"policies/{name}/consumed"] > 0
        gaps = [step[f"policies/{name}/logprob_gap"] for step in metrics]
        measured = [gap for gap in gaps if gap is not None]
        assert measured
        # Sampled with a cache and left padding, trained without and with right padding.
        assert max(measured) < 1e-4


def test_the_rollouts_can_be_evaluated_from_disk(run: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, metrics = run
    evaluation = summarise(read_rollouts(folder / "rollouts.jsonl"))
    assert evaluation.trees == 24
    assert evaluation.team.nodes == 24 * 8 == sum(step["actions"] for step in metrics)
    assert set(evaluation.agents) == {"coder_0", "coder_1"}


@pytest.mark.slow
def test_a_resumed_run_repeats_the_steps_exactly(
    run: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    _, metrics = run
    make_trainer(tmp_path, steps=2).train()
    trainer = make_trainer(tmp_path, steps=4)
    assert trainer.resume() == 2
    again = trainer.train()
    for step, other in zip(metrics[2:], again, strict=True):
        untimed = {key: value for key, value in step.items() if not key.endswith("_s")}
        assert untimed == {key: other[key] for key in untimed}
