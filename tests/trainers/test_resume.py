"""A run that was killed goes on as if nothing had happened."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trainers import Sampling
from trainers.credit import CreditSettings
from trainers.episodes import RandomTasks
from trainers.errors import CheckpointError
from trainers.path_grpo import PathGRPOConfig, PathGRPOTrainer

PROGRAM = Path(__file__).with_name("resumable_run.py")


@pytest.fixture
def run(toy: ModuleType, load_module: Callable[[Path], ModuleType]) -> Callable[..., None]:
    """The program's run, in this process."""
    program = load_module(PROGRAM)

    def run(folder: Path, steps: int, every: int, *, resume: bool = False) -> None:
        program.run(toy, folder, steps=steps, every=every, resume=resume)

    return run


def run_and_die(folder: Path, steps: int, every: int, die_at: int) -> int:
    """The same in a process of its own, which is killed in step `die_at`."""
    command = [sys.executable, PROGRAM, folder, *map(str, (steps, every, die_at))]
    return subprocess.run(command, timeout=200, check=False).returncode


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if not key.endswith("_s")}
        for line in lines
    ]


def compare_whole_with_killed(
    run: Callable[..., None], folder: Path, *, steps: int, every: int, die_at: int
) -> None:
    whole, killed = folder / "whole", folder / "killed"
    run(whole, steps, every)
    assert run_and_die(killed, steps, every, die_at) == -signal.SIGKILL
    assert len(metrics(killed)) == die_at  # more than the checkpoint knows: to be cut back
    run(killed, steps, every, resume=True)
    assert metrics(killed) == metrics(whole)
    assert (killed / "rollouts.jsonl").read_bytes() == (whole / "rollouts.jsonl").read_bytes()
    last = metrics(whole)[-1]
    assert last["policies/a/version"] > 0
    assert last["policies/b/version"] > 0


def test_killed_and_resumed_is_the_same_as_never_killed(
    run: Callable[..., None], tmp_path: Path
) -> None:
    compare_whole_with_killed(run, tmp_path, steps=6, every=3, die_at=5)


@pytest.mark.slow
def test_killed_and_resumed_is_the_same_as_never_killed_over_twenty_steps(
    run: Callable[..., None], tmp_path: Path
) -> None:
    compare_whole_with_killed(run, tmp_path, steps=20, every=5, die_at=13)


def make_trainer(toy: ModuleType, folder: Path, **options: Any) -> PathGRPOTrainer:
    settings = {"steps": 4, "learning_rate": 1e-2, "minibatch": 8, "buffer_rows": 8}
    changes = options.pop("settings", {})
    defaults: dict[str, Any] = {
        "env_fn": toy.ToyTree,
        "policies": {"a": toy.ToyPolicy("a", 1), "b": toy.ToyPolicy("b", 2)},
        "roles": {"coder_0": "a", "coder_1": "b"},
        "episodes": RandomTasks(count=4),
        "run_dir": folder,
    }
    return PathGRPOTrainer(
        PathGRPOConfig(
            **{
                **settings,
                "sampling": Sampling(max_tokens=1),
                "checkpoint_every": 2,
                "concurrency": 2,
                **changes,
            }
        ),
        **{**defaults, **options},
    )


def test_a_run_killed_before_its_first_checkpoint_starts_over(
    toy: ModuleType, tmp_path: Path
) -> None:
    def die(step: int, metrics: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_trainer(toy, tmp_path, on_step=die).train()
    trainer = make_trainer(toy, tmp_path)
    assert trainer.resume() == 0
    assert [step["step"] for step in trainer.train()] == [1, 2, 3, 4]
    assert len(metrics(tmp_path)) == 4


def test_a_finished_run_can_be_made_longer(toy: ModuleType, tmp_path: Path) -> None:
    make_trainer(toy, tmp_path).train()
    trainer = make_trainer(toy, tmp_path, settings={"steps": 6})
    assert trainer.resume() == 4
    assert [step["step"] for step in trainer.train()] == [5, 6]
    assert [step["step"] for step in metrics(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_a_damaged_checkpoint_costs_its_steps_only(toy: ModuleType, tmp_path: Path) -> None:
    make_trainer(toy, tmp_path).train()
    before = metrics(tmp_path)
    (tmp_path / "checkpoints" / "step-000004.pt").write_bytes(b"")
    trainer = make_trainer(toy, tmp_path)
    assert trainer.resume() == 2
    trainer.train()
    assert metrics(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"settings": {"credit": CreditSettings(gamma=0.5)}}, "credit.gamma: 0.3 there, 0.5 here"),
        (
            {"settings": {"sampling": Sampling(max_tokens=2)}},
            "(sampling.max_tokens: 1 there, 2 here)",
        ),
        ({"roles": {"coder_0": "b", "coder_1": "a"}}, "roles: {'coder_0': 'a'"),
        ({"fingerprint": {"sandbox": "docker"}}, "fingerprint.sandbox: '(nothing)' there"),
    ],
)
def test_a_checkpoint_of_another_configuration_is_refused(
    toy: ModuleType, tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    make_trainer(toy, tmp_path, settings={"steps": 1}).train()
    with pytest.raises(CheckpointError) as caught:
        make_trainer(toy, tmp_path, **options).resume()
    assert "belongs to another configuration" in str(caught.value)
    assert field in str(caught.value)


def test_a_checkpoint_of_another_model_is_refused(toy: ModuleType, tmp_path: Path) -> None:
    make_trainer(toy, tmp_path, settings={"steps": 1}).train()
    other = toy.ToyPolicy("a", 1)
    del other.model.head
    trainer = make_trainer(toy, tmp_path, policies={"a": other, "b": toy.ToyPolicy("b", 2)})
    with pytest.raises(CheckpointError, match="step 1 does not fit policy 'a'"):
        trainer.resume()


def test_logs_that_were_shortened_are_noticed(toy: ModuleType, tmp_path: Path) -> None:
    make_trainer(toy, tmp_path, settings={"steps": 2}).train()
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl has 0 bytes, but had"):
        make_trainer(toy, tmp_path, settings={"steps": 2}).resume()


def test_an_empty_folder_cannot_be_resumed(toy: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        make_trainer(toy, tmp_path).resume()
