"""Sampling a batch of completions with a key-value cache, each row from its own random stream."""

from __future__ import annotations

import inspect
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One completion to sample."""

    prompt_ids: Sequence[int]
    max_tokens: int
    temperature: float
    """0 takes the most likely token."""
    seed: int
    """Any integer; it alone decides the row's random numbers."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled for a row, `T` tokens."""

    ids: tuple[int, ...]  # [T]
    logprobs: tuple[float, ...]  # [T]
    stopped: bool
    """Whether the last token is a stop token; else the row ran out of tokens."""


@torch.no_grad()
def decode_batch(
    model: Any,
    rows: Sequence[Row],
    *,
    stop_ids: Set[int],
    pad_id: int,
    device: torch.device | str = "cpu",
) -> list[Completion]:
    """Sample a completion for every row.

    Prompts are padded on the left, positions count real tokens only, and rows leave the batch when
    half of it has finished. Tokens are drawn by inversion from float32 log-probs: token k where the
    cumulated probability first exceeds the row's uniform of this step.

    Args:
        model: a causal LM; left in the mode (train or eval) in which it was found.
        rows: B rows, with at least one prompt token and one token to sample each.
        stop_ids: ids that end a completion (and belong to it).
        pad_id: any id; padding is masked.
        device: the model's device.
    """
    was_training = model.training
    model.eval()
    try:
        return _decode(model, rows, stop_ids, pad_id, torch.device(device))
    finally:
        model.train(was_training)


def _decode(
    model: Any, rows: Sequence[Row], stop_ids: Set[int], pad_id: int, device: torch.device
) -> list[Completion]:
    steps = max(row.max_tokens for row in rows)
    uniforms = torch.from_numpy(np.stack([_uniforms(row.seed, steps) for row in rows])).to(device)
    temperatures = torch.tensor([row.temperature for row in rows], device=device)
    tokens, mask = _left_pad([row.prompt_ids for row in rows], pad_id, device)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    cache_name = _cache_argument(model)
    ids: list[list[int]] = [[] for _ in rows]
    logprobs: list[list[float]] = [[] for _ in rows]
    stopped = [False] * len(rows)
    alive = list(range(len(rows)))  # the rows still in the tensors, in order

    for step in range(steps):
        logits = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{cache_name: cache},
        ).logits[:, -1]
        chosen, chosen_logprobs = _draw(logits, temperatures, uniforms[:, step])
        keep = []
        for place, (row, token, logprob) in enumerate(
            zip(alive, chosen.tolist(), chosen_logprobs.tolist(), strict=True)
        ):
            if stopped[row] or len(ids[row]) == rows[row].max_tokens:
                continue
            ids[row].append(token)
            logprobs[row].append(logprob)
            stopped[row] = token in stop_ids
            if not stopped[row] and len(ids[row]) < rows[row].max_tokens:
                keep.append(place)
        if not keep:
            break
        tokens = chosen[:, None]
        mask = torch.cat([mask, mask.new_ones(len(alive), 1)], dim=1)
        positions = positions[:, -1:] + 1
        if len(keep) <= len(alive) // 2:
            index = torch.tensor(keep, device=device)
            cache.batch_select_indices(index)
            tokens, mask, positions = tokens[index], mask[index], positions[index]
            uniforms, temperatures = uniforms[index], temperatures[index]
            alive = [alive[place] for place in keep]
    return [
        Completion(tuple(row_ids), tuple(row_logprobs), row_stopped)
        for row_ids, row_logprobs, row_stopped in zip(ids, logprobs, stopped, strict=True)
    ]


def _draw(
    logits: torch.Tensor, temperatures: torch.Tensor, uniforms: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a token per row: logits [B, V], temperatures [B], uniforms [B] -> ids, log-probs [B]."""
    greedy = temperatures == 0
    scale = torch.where(greedy, torch.ones_like(temperatures), temperatures)
    logps = torch.log_softmax(logits.float() / scale[:, None], dim=-1)
    cumulated = logps.double().exp().cumsum(-1)
    target = uniforms[:, None] * cumulated[:, -1:]
    sampled = torch.searchsorted(cumulated, target, right=True)[:, 0]
    # Rounding may put the target on the total: never go past the last token with any probability.
    last = torch.searchsorted(cumulated, cumulated[:, -1:].contiguous())[:, 0]
    chosen = torch.where(greedy, logps.argmax(-1), torch.minimum(sampled, last))
    return chosen, logps.gather(1, chosen[:, None])[:, 0]


def _uniforms(seed: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The first `n` uniforms in [0, 1) of the stream of `seed`."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(n)


def _left_pad(
    prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompts of different lengths -> ids and 0/1 mask, both [B, P]."""
    width = max(map(len, prompts))
    ids = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _cache_argument(model: Any) -> str:
    """The name under which `forward` takes the cache; transformers renamed it in 5.2x."""
    parameters = inspect.signature(model.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"
