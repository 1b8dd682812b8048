"""Which episodes a training step plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ConfigError
from .play import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTasks:
    """Draws each step's episodes, as a function of the step alone.

    Call it with a step to get that step's episodes. No task comes again in a step before every
    other one has come.
    """

    count: int
    """Episodes per step."""
    seed: int = 0
    tasks: Sequence[Any] = ()
    """What the environment's `reset` takes as `options[option]`; empty leaves the choice to it."""
    option: str = "task"
    repeats: int = 1
    """Episodes per task, all in one group: for environments without a tree."""

    def __post_init__(self) -> None:
        if self.count < 1 or self.repeats < 1:
            raise ConfigError(
                f"count and repeats must be at least 1, got {self.count} and {self.repeats}"
            )

    def __call__(self, step: int) -> list[Episode]:
        """Return the episodes of `step`, always the same."""
        rng = np.random.default_rng([self.seed, step])
        groups = -(-self.count // self.repeats)
        chosen: list[Any] = [None] * groups
        if self.tasks:
            rounds = -(-groups // len(self.tasks))
            picks = np.concatenate([rng.permutation(len(self.tasks)) for _ in range(rounds)])
            chosen = [self.tasks[int(pick)] for pick in picks[:groups]]
        seeds = rng.integers(2**31, size=groups * self.repeats)
        return [
            Episode(
                episode_id=f"step-{step:06d}/{index:04d}",
                group_id=f"step-{step:06d}/{index // self.repeats:04d}",
                # One group is one task, also where the environment draws it by the seed.
                seed=int(seeds[index // self.repeats * self.repeats]),
                options={self.option: chosen[index // self.repeats]} if self.tasks else None,
            )
            for index in range(self.count)
        ]
