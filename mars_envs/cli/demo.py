"""`mars-envs demo`: two tiny coders learn to write programs in one shared search tree.

Warm-up, evaluation on held-out tasks, training, the same evaluation again, a report. Every stage
leaves its result in the run folder, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import Progress, TaskID

from ..judging.code import CodeJudge
from ..tasks.tiny_code import tiny_tasks
from ..tree_search.env import TreeSearchEnv
from .config import DemoConfig
from .console import console, progress
from .demo_report import report
from .exam import Exam, take_exam
from .judge import open_judge
from .runs import alone_in, open_run
from .team import ROLES, SAMPLING_TOKENS, make_team

if TYPE_CHECKING:
    from trainers.path_grpo import PathGRPOConfig
    from trainers.policies.hf import HFPolicy


def demo(config: DemoConfig) -> int:
    """Run the demo, or go on with it, and print what the coders learned."""
    import torch
    import transformers

    # One thread: the models are small, and the sandbox needs the other cores.
    torch.set_num_threads(1)
    # Saving a tiny coder is no long work.
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("trainers").setLevel(logging.ERROR)
    judge = open_judge(config.sandbox, config.workers)
    folder = open_run(config)
    console.print(f"run folder: {folder}", markup=False, soft_wrap=True)
    with alone_in(folder):
        team = make_team(folder / "coders", seed=config.seed)
        before = _exam(config, folder / "before.jsonl", team, judge, title="exam before")
        _train(config, folder, team, judge)
        after = _exam(config, folder / "after.jsonl", team, judge, title="exam after")
        report(config, folder, before, after, judge.stats)
    return 0


def training_config(config: DemoConfig) -> PathGRPOConfig:
    """Return the trainer's settings: the recipe that suits coders of 100,000 parameters."""
    from trainers.path_grpo import PathGRPOConfig
    from trainers.rollout import Sampling

    return PathGRPOConfig(
        seed=config.seed,
        steps=config.steps,
        concurrency=config.trees,
        sampling=Sampling(temperature=1.0, max_tokens=SAMPLING_TOKENS),
        checkpoint_every=config.checkpoint_every,
    )


def _train(
    config: DemoConfig, folder: Path, team: Mapping[str, HFPolicy], judge: CodeJudge
) -> None:
    from trainers.episodes import RandomTasks
    from trainers.path_grpo import PathGRPOTrainer

    tasks = tiny_tasks("train")
    env_fn = partial(
        TreeSearchEnv,
        tasks=tasks,
        judge=judge,
        agents=list(ROLES),
        budget=config.budget,
        selector="best_of_n" if config.baseline else "default",
        agent_mix=config.agent_mix,
        prompts="compact",
    )
    with progress() as bar:
        line = bar.add_task("train", total=config.steps, note="")
        trainer = PathGRPOTrainer(
            training_config(config),
            env_fn=env_fn,
            policies=team,
            roles=ROLES,
            episodes=RandomTasks(
                count=config.trees, seed=config.seed, tasks=[task.task_id for task in tasks]
            ),
            run_dir=folder,
            fingerprint={"baseline": config.baseline, "budget": config.budget},
            on_step=partial(_show, bar, line),
        )
        if any((folder / "checkpoints").glob("*")):
            done = trainer.resume()
            bar.update(line, completed=done)
            bar.console.print(f"going on after step {done}")
        trainer.train()


def _show(
    bar: Progress, line: TaskID, step: int, metrics: Mapping[str, int | float | None]
) -> None:
    rewards = [metrics.get(f"agents/{agent}/reward") for agent in ROLES]
    shown = " ".join("–" if reward is None else f"{reward:.2f}" for reward in rewards)
    bar.update(line, completed=step, note=f"reward {shown}")


def _exam(
    config: DemoConfig,
    path: Path,
    team: Mapping[str, HFPolicy],
    judge: CodeJudge,
    *,
    title: str,
) -> Exam:
    """Take an exam, or read the one that was taken before the run was stopped."""
    if path.exists():
        return Exam.read(path)
    tasks = tiny_tasks("held_out", size=config.eval_tasks)
    exam = take_exam(team, tasks, judge=judge, config=config, title=title)
    exam.write(path)
    return exam
