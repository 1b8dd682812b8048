"""The team of the demo: two different tiny coders, warmed up so that learning can start."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import Progress, TaskID

from ..tree_search.warmup import warmup_pairs
from .console import progress

if TYPE_CHECKING:
    from trainers.policies.hf import HFPolicy

ROLES = {"coder_0": "qwen3", "coder_1": "gpt_neox"}
"""Agent -> policy. The policies are named after their architectures."""
SAMPLING_TOKENS = 12
"""Most tokens of a reply; a program has eight."""
WARM_UP_STEPS = 200
WARM_UP_BATCH = 64


def make_team(folder: Path, *, seed: int) -> dict[str, HFPolicy]:
    """Load the warmed-up coders from `folder`, or make them and put them there.

    Args:
        folder: holds one folder for each coder.
        seed: of the initial weights and of the examples.
    """
    from trainers.policies.hf import HFPolicy
    from trainers.tiny_coders import ARCHITECTURES, build_coder, load_coder, save_coder, warm_up

    team: dict[str, HFPolicy] = {}
    for index, name in enumerate(ARCHITECTURES):
        if (folder / name / "config.json").exists():
            model, tokenizer = load_coder(folder / name)
        else:
            model, tokenizer = build_coder(name, seed=2 * seed + index)
            pairs = warmup_pairs(random.Random(2 * seed + index), WARM_UP_STEPS * WARM_UP_BATCH)
            with progress() as bar:
                task = bar.add_task(f"warm up {name}", total=WARM_UP_STEPS, note="")
                show = partial(_show, bar, task)
                warm_up(
                    model,
                    tokenizer,
                    pairs,
                    steps=WARM_UP_STEPS,
                    batch=WARM_UP_BATCH,
                    seed=seed,
                    on_step=show,
                )
            # Saved under another name first: a folder with a config.json is a whole coder.
            unfinished = folder / f"{name}.partial"
            save_coder(model, tokenizer, unfinished)
            unfinished.rename(folder / name)
        team[name] = HFPolicy(name, model, tokenizer)
    return team


def _show(bar: Progress, task: TaskID, step: int, loss: float) -> None:
    bar.update(task, completed=step, note=f"loss {loss:.2f}")
