"""A transformer of about a hundred thousand parameters that replies by pointing at words.

It reads a prompt at once, in both directions, and gives every token a score for being copied, and
the whole prompt a score for yes. That is one pass for a reply of any length, which is what makes
thousands of episodes affordable on one core.

Attention is told two facts that spelling would otherwise have to teach: which tokens are the same
word, and which stand in the same sentence. Each head has a learned weight for either, besides a
learned bias for distance (as in T5, Raffel et al. 2020, section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .encoding import Encoded


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of the network."""

    vocabulary: int
    roles: int = 4
    parts: int = 5
    width: int = 64
    layers: int = 3
    heads: int = 4
    hidden: int = 128
    reach: int = 16
    """Distances beyond this many tokens are one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Prompts of a batch, padded to the longest: [batch, tokens] each."""

    ids: Tensor
    kin: Tensor
    part: Tensor
    sentence: Tensor
    role: Tensor
    """[batch]."""

    @classmethod
    def of(cls, prompts: Sequence[Encoded]) -> Batch:
        """Pad and stack."""
        size = max(map(len, prompts))

        def stack(field: str, fill: int) -> Tensor:
            rows = np.full((len(prompts), size), fill, np.int64)
            for row, prompt in zip(rows, prompts, strict=True):
                row[: len(prompt)] = getattr(prompt, field)
            return torch.from_numpy(rows)

        return cls(
            ids=stack("ids", 0),
            kin=stack("kin", -1),
            part=stack("part", 0),
            sentence=stack("sentence", -1),
            role=torch.tensor([prompt.role for prompt in prompts]),
        )


class Block(nn.Module):
    """Attention and a feed-forward layer, normalised before."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.before_attention = nn.LayerNorm(shape.width)
        self.mix = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.before_hidden = nn.LayerNorm(shape.width)
        self.rise = nn.Linear(shape.width, shape.hidden)
        self.fall = nn.Linear(shape.hidden, shape.width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return [batch, tokens, width]; `bias` [batch, heads, tokens, tokens] adds to scores."""
        batch, tokens, width = x.shape
        mixed = self.mix(self.before_attention(x)).view(batch, tokens, 3, self.heads, -1)
        q, k, v = mixed.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        risen: Tensor = functional.gelu(self.rise(self.before_hidden(x)))
        return x + self.fall(risen)


class Reader(nn.Module):
    """From prompts to scores: yes or no, and which tokens to copy."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.word = nn.Embedding(shape.vocabulary, shape.width)
        self.place = nn.Embedding(shape.roles * shape.parts, shape.width)
        self.distance = nn.Parameter(torch.zeros(shape.heads, 2 * shape.reach + 1))
        # Heads start out with different inclinations, which saves them finding different jobs.
        spread = torch.arange(shape.heads) % 4
        self.same_word = nn.Parameter(torch.where(spread == 0, 4.0, 0.0))
        self.same_sentence = nn.Parameter(torch.where(spread % 2 == 1, 3.0, 0.0))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last = nn.LayerNorm(shape.width)
        self.copy = nn.Linear(shape.width, shape.roles)
        self.yes = nn.Linear(shape.width, 1)
        for weights in (self.word, self.place):
            nn.init.normal_(weights.weight, std=0.3)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the score of yes [batch] and of copying each token [batch, tokens], as logits."""
        place = batch.role[:, None] * self.shape.parts + batch.part
        x = self.word(batch.ids) + self.place(place)
        bias = self.bias(batch)
        for block in self.blocks:
            x = block(x, bias)
        x = self.last(x)
        roles = self.copy(x)
        copy = roles.gather(2, batch.role[:, None, None].expand(*batch.ids.shape, 1)).squeeze(2)
        return self.yes(x[:, 0]).squeeze(1), copy

    def bias(self, batch: Batch) -> Tensor:
        """Return what is added to the scores of attention: [batch, heads, tokens, tokens]."""
        places = torch.arange(batch.ids.shape[1])
        reach = self.shape.reach
        apart = (places[None] - places[:, None]).clamp(-reach, reach) + reach
        same_word = (batch.kin[:, :, None] == batch.kin[:, None]).float()[:, None]
        sentence = (batch.sentence[:, :, None] == batch.sentence[:, None]).float()[:, None]
        padding = torch.where(batch.ids == 0, -1e4, 0.0)[:, None, None]
        return (
            self.distance[:, apart]
            + same_word * self.same_word[:, None, None]
            + sentence * self.same_sentence[:, None, None]
            + padding
        )


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers are learned."""
    return sum(weights.numel() for weights in model.parameters())


def new_reader(vocabulary: int, *, seed: int, **sizes: Any) -> Reader:
    """Make an untrained reader; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Reader(Shape(vocabulary=vocabulary, **sizes))
