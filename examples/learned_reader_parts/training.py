"""Training the network on lessons: which of them a step takes, and the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from .encoding import ROLES
from .lessons import Lesson
from .model import Batch, Reader

SHARES: Mapping[str, float] = {
    "read yes": 0.18,
    "read no": 0.3,
    "merge yes": 0.1,
    "merge no": 0.02,
    "answer yes": 0.05,
    "answer no": 0.05,
    "update new": 0.15,
    "update kept": 0.1,
    "update no": 0.05,
}
"""What a batch is made of, by `Lesson.kind`. Episodes themselves are nearly all reads that find
nothing and updates that change nothing, and most of those are easy."""
_TOGETHER: Final = 16
"""Lessons that go through the network together."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train."""

    steps: int = 900
    batch: int = 64
    rate: float = 4e-3
    last_rate: float = 1e-4
    warm: int = 40
    """Steps over which the learning rate rises."""
    decay: float = 0.01
    shares: Mapping[str, float] = field(default_factory=lambda: SHARES)


def train(
    model: Reader,
    lessons: Sequence[Lesson],
    recipe: Recipe,
    *,
    seed: int,
    on_step: Callable[[int, float], None] | None = None,
) -> None:
    """Train a network in place.

    Args:
        model: the network.
        lessons: to draw from, with replacement.
        recipe: how.
        seed: of the draws.
        on_step: called after each step with its number, from 1, and its loss.
    """
    rng = np.random.default_rng(seed)
    pools = _pools(lessons, recipe.shares)
    sizes = rng.multinomial(recipe.batch, [share for _, share in pools], size=recipe.steps)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.rate, weight_decay=recipe.decay, betas=(0.9, 0.98)
    )
    model.train()
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe)
        drawn = [
            pool[place]
            for (pool, _), size in zip(pools, sizes[step], strict=True)
            for place in rng.integers(len(pool), size=size)
        ]
        drawn.sort(key=lambda one: len(one.prompt))
        optimizer.zero_grad()
        value = 0.0
        for start in range(0, len(drawn), _TOGETHER):  # of like length, which spares padding
            part = drawn[start : start + _TOGETHER]
            share = loss(model, part) * len(part) / len(drawn)
            share.backward()
            value += share.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if on_step:
            on_step(step + 1, value)
    model.eval()


def rate_at(step: int, recipe: Recipe) -> float:
    """Return the learning rate of a step: a linear rise, then half a cosine down."""
    if step < recipe.warm:
        return recipe.rate * (step + 1) / recipe.warm
    done = (step - recipe.warm) / max(1, recipe.steps - recipe.warm)
    return recipe.last_rate + (recipe.rate - recipe.last_rate) * (1 + np.cos(np.pi * done)) / 2


def loss(model: Reader, lessons: Sequence[Lesson]) -> Tensor:
    """Return the mean loss: of the verdict in nats, and of copying in nats per eight tokens.

    A sum over tokens, since a single wrong one spoils a reply. What a reader would have copied
    had it said yes is not judged.
    """
    batch = Batch.of([one.prompt for one in lessons])
    yes, copy = model(batch)
    verdict = torch.tensor([float(one.yes) for one in lessons])
    target, judged = torch.zeros_like(copy), torch.zeros_like(copy)
    for row, one in enumerate(lessons):
        size = len(one.prompt)
        target[row, :size] = torch.from_numpy(one.copy)
        if one.yes or ROLES[one.prompt.role] in ("merge", "update"):
            judged[row, :size] = torch.from_numpy(one.prompt.copied.astype(np.float32))
    copying = (cross_entropy(copy, target, reduction="none") * judged).sum(1).mean() / 8
    return cross_entropy(yes, verdict) + copying


def _pools(
    lessons: Sequence[Lesson], shares: Mapping[str, float]
) -> list[tuple[list[Lesson], float]]:
    """Return lessons by kind, with the share of each in a batch; kinds without any are left out."""
    kinds: dict[str, list[Lesson]] = {}
    for one in lessons:
        kinds.setdefault(one.kind, []).append(one)
    total = sum(shares[kind] for kind in kinds)
    return [(pool, shares[kind] / total) for kind, pool in kinds.items()]
