"""A small training run, also as a program: `python resumable_run.py RUN_DIR STEPS EVERY DIE_AT`.

The program kills itself, as `kill -9` would, in step DIE_AT: after the step's metrics were written
and before its checkpoint is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import torch


def run(
    toy: ModuleType,
    folder: Path,
    *,
    steps: int,
    every: int,
    resume: bool = False,
    die_at: int | None = None,
) -> None:
    from trainers import Sampling
    from trainers.episodes import RandomTasks
    from trainers.path_grpo import PathGRPOConfig, PathGRPOTrainer

    torch.set_num_threads(1)

    def on_step(step: int, metrics: Mapping[str, int | float | None]) -> None:
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    trainer = PathGRPOTrainer(
        PathGRPOConfig(
            seed=7,
            steps=steps,
            concurrency=3,
            sampling=Sampling(max_tokens=1),
            learning_rate=1e-2,
            minibatch=8,
            buffer_rows=16,
            kl_beta=0.01,
            checkpoint_every=every,
        ),
        env_fn=toy.ToyTree,
        policies={"a": toy.ToyPolicy("a", 1), "b": toy.ToyPolicy("b", 2)},
        roles={"coder_0": "a", "coder_1": "b"},
        episodes=RandomTasks(count=8, seed=7),
        run_dir=folder,
        on_step=on_step,
    )
    if resume:
        trainer.resume()
    trainer.train()


if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here.parents[1])]
    import toy as toy_world

    run_dir, *numbers = sys.argv[1:]
    run_steps, run_every, death = map(int, numbers)
    run(toy_world, Path(run_dir), steps=run_steps, every=run_every, die_at=death)
