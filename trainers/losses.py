"""Token-level policy objectives on sampled ids. Pure tensor functions, on whatever device.

`B` rows, `T` positions, `V` vocabulary. Everything is computed in float32, whatever the precision
of the model. Masks are 1 at sampled tokens and 0 at prompt and padding; the values there never
matter, however large.

Sources: PPO (arXiv 1707.06347) for the clipped objective, DAPO (arXiv 2503.14476) for the
asymmetric clip range and the mean over tokens, Schulman's "Approximating KL divergence" for k3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogProbs:
    """What a model says of given tokens."""

    logprobs: Tensor  # [B, T], of the given ids, natural logarithm
    entropy: Tensor  # [B, T], of the whole distribution, in nats; carries no gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A loss, to be minimised, and sums over tokens that say how it came about (no gradient)."""

    loss: Tensor  # scalar
    tokens: Tensor  # scalar, how many tokens took part
    ratio_sum: Tensor  # scalar
    clipped_sum: Tensor  # scalar, tokens whose gradient the clip removed
    kl_sum: Tensor  # scalar, k3; 0 without reference


def token_logprobs(logits: Tensor, ids: Tensor, *, temperature: float = 1.0) -> TokenLogProbs:
    """Return the log-prob of each id under `softmax(logits / temperature)`.

    Args:
        logits: [B, T, V]; `logits[b, t]` is the prediction *of* `ids[b, t]`: shift before calling.
        ids: [B, T].
        temperature: of the sampling distribution; above 0.
    """
    if temperature <= 0:
        raise ValueError(f"log-probs need a temperature above 0, got {temperature}")
    log_softmax = torch.log_softmax(logits.float() / temperature, dim=-1)
    with torch.no_grad():
        entropy = torch.special.entr(log_softmax.exp()).sum(-1)
    chosen = log_softmax.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    return TokenLogProbs(logprobs=chosen, entropy=entropy)


def clipped_objective(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    reference_logprobs: Tensor | None = None,
    kl_beta: float = 0.0,
    normaliser: float | None = None,
) -> Objective:
    """Return the clipped objective, averaged over tokens.

    Per token: `-min(ratio * A, clip(ratio, 1 - clip_low, 1 + clip_high) * A) + kl_beta * k3`.

    Args:
        logprobs: [B, T], of the model in training.
        old_logprobs: [B, T], under which the tokens were sampled.
        advantages: [B], one for all tokens of a row.
        mask: [B, T], 1 at sampled tokens.
        clip_low: how far the ratio may fall below 1.
        clip_high: how far it may rise above 1.
        reference_logprobs: [B, T], of the model to stay close to.
        kl_beta: weight of the divergence from it.
        normaliser: what the sum over tokens is divided by; their number by default. Pieces of one
            minibatch must all be given the number of tokens of the whole.

    Raises:
        ValueError: `kl_beta` without `reference_logprobs`.
    """
    if kl_beta and reference_logprobs is None:
        raise ValueError("kl_beta needs reference_logprobs")
    chosen = mask.bool()
    # Filled before exp: an overflow at a masked position would turn the gradient into NaN.
    log_ratio = (logprobs - old_logprobs).masked_fill(~chosen, 0.0)
    ratio = log_ratio.exp()
    gain = advantages.float().unsqueeze(-1)
    free, bounded = ratio * gain, ratio.clamp(1 - clip_low, 1 + clip_high) * gain
    per_token = -torch.minimum(free, bounded)
    tokens = chosen.sum()
    kl_sum = torch.zeros((), device=logprobs.device)
    if reference_logprobs is not None:
        kl = k3_divergence(logprobs, reference_logprobs, chosen)
        per_token = per_token + kl_beta * kl
        kl_sum = kl.detach().sum()
    total = per_token.masked_fill(~chosen, 0.0).sum()
    loss = total / (float(tokens.clamp(min=1)) if normaliser is None else normaliser)
    with torch.no_grad():
        return Objective(
            loss=loss,
            tokens=tokens,
            ratio_sum=ratio.masked_fill(~chosen, 0.0).sum(),
            clipped_sum=((bounded < free) & chosen).sum(),
            kl_sum=kl_sum,
        )


def k3_divergence(logprobs: Tensor, reference_logprobs: Tensor, mask: Tensor) -> Tensor:
    """Return k3, an estimate of KL(model || reference) per token: `exp(-d) - 1 + d`, at least 0.

    Args:
        logprobs: [B, T].
        reference_logprobs: [B, T].
        mask: [B, T].

    Returns:
        [B, T], 0 where masked out; bounded by 10, so that one odd token cannot take over.
    """
    difference = (logprobs - reference_logprobs).masked_fill(~mask.bool(), 0.0)
    return (torch.exp(-difference) - 1 + difference).clamp(-10.0, 10.0)
