"""The objective, against a naive loop over tokens."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from trainers.losses import clipped_objective, k3_divergence, token_logprobs


def batch(seed: int = 0, rows: int = 5, tokens: int = 7) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    old = -torch.rand(rows, tokens, generator=generator) * 3
    return {
        "logprobs": old + 0.6 * torch.randn(rows, tokens, generator=generator),
        "old_logprobs": old,
        "advantages": torch.randn(rows, generator=generator),
        "mask": (torch.rand(rows, tokens, generator=generator) < 0.7).long(),
    }


def naive_loss(data: dict[str, Tensor], reference: Tensor | None, beta: float) -> float:
    total, count = 0.0, 0
    for row in range(len(data["advantages"])):
        for token in range(data["mask"].shape[1]):
            if not data["mask"][row, token]:
                continue
            new, old = data["logprobs"][row, token].item(), data["old_logprobs"][row, token].item()
            ratio, gain = math.exp(new - old), data["advantages"][row].item()
            clipped = min(max(ratio, 0.8), 1.28)
            total -= min(ratio * gain, clipped * gain)
            if reference is not None:
                d = new - reference[row, token].item()
                total += beta * (math.exp(-d) - 1 + d)
            count += 1
    return total / count


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_the_loss_is_the_mean_over_tokens_of_the_clipped_objective(seed: int, beta: float) -> None:
    data = batch(seed)
    reference = data["old_logprobs"] + 0.1 if beta else None
    result = clipped_objective(**data, reference_logprobs=reference, kl_beta=beta)
    assert result.loss.item() == pytest.approx(naive_loss(data, reference, beta), rel=1e-5)


def test_the_sums_say_what_happened() -> None:
    data = batch()
    result = clipped_objective(**data)
    chosen = data["mask"].bool()
    ratio = (data["logprobs"] - data["old_logprobs"]).exp()
    gain = data["advantages"].unsqueeze(-1)
    stopped = ((gain > 0) & (ratio > 1.28)) | ((gain < 0) & (ratio < 0.8))
    assert result.tokens == chosen.sum()
    assert result.ratio_sum.item() == pytest.approx(ratio[chosen].sum().item())
    assert result.clipped_sum == (stopped & chosen).sum()
    assert result.clipped_sum > 0
    assert result.kl_sum == 0


@pytest.mark.parametrize(
    ("advantage", "log_ratio", "moves"),
    [
        (1.0, math.log(1.27), True),
        (1.0, math.log(1.29), False),  # far enough up already
        (1.0, math.log(0.5), True),
        (-1.0, math.log(0.81), True),
        (-1.0, math.log(0.79), False),  # far enough down already
        (-1.0, math.log(2.0), True),
    ],
)
def test_the_gradient_stops_where_the_clip_binds(
    advantage: float, log_ratio: float, moves: bool
) -> None:
    new = torch.tensor([[log_ratio]], requires_grad=True)
    result = clipped_objective(new, torch.zeros(1, 1), torch.tensor([advantage]), torch.ones(1, 1))
    result.loss.backward()  # type: ignore[no-untyped-call]
    assert new.grad is not None
    assert (new.grad.item() != 0) == moves
    assert result.clipped_sum.item() == float(not moves)


def test_on_fresh_samples_the_gradient_is_that_of_the_policy_gradient() -> None:
    data = batch()
    new = data["old_logprobs"].clone().requires_grad_()
    clipped_objective(**{**data, "logprobs": new}).loss.backward()  # type: ignore[no-untyped-call]
    expected = -(data["advantages"].unsqueeze(-1) * data["mask"]) / data["mask"].sum()
    assert new.grad is not None
    torch.testing.assert_close(new.grad, expected)


def test_pieces_of_a_minibatch_add_up_to_the_whole() -> None:
    data = batch()
    whole = clipped_objective(**data)
    pieces = [
        clipped_objective(
            **{name: column[part] for name, column in data.items()},
            normaliser=float(data["mask"].sum()),
        )
        for part in (slice(0, 2), slice(2, 5))
    ]
    assert sum(p.loss.item() for p in pieces) == pytest.approx(whole.loss.item(), rel=1e-6)


def test_masked_positions_do_not_matter_however_wild() -> None:
    data = batch()
    hidden = data["mask"] == 0
    wild = data["logprobs"].masked_fill(hidden, 1e30).requires_grad_()
    result = clipped_objective(**{**data, "logprobs": wild})
    result.loss.backward()  # type: ignore[no-untyped-call]
    assert result.loss.item() == pytest.approx(clipped_objective(**data).loss.item())
    assert wild.grad is not None
    assert torch.isfinite(wild.grad).all()
    assert (wild.grad[hidden] == 0).all()


def test_a_batch_without_tokens_has_loss_zero() -> None:
    data = batch()
    result = clipped_objective(**{**data, "mask": torch.zeros_like(data["mask"])})
    assert result.loss.item() == 0


def test_k3_is_never_negative_and_estimates_the_divergence() -> None:
    p, q = torch.tensor([0.7, 0.3]), torch.tensor([0.4, 0.6])
    k3 = k3_divergence(p.log().unsqueeze(0), q.log().unsqueeze(0), torch.ones(1, 2))
    assert (k3 >= 0).all()
    truth = (p * (p / q).log()).sum()
    assert (k3[0] * p).sum().item() == pytest.approx(truth.item(), rel=1e-5)


def test_a_divergence_weight_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="kl_beta needs reference_logprobs"):
        clipped_objective(**batch(), kl_beta=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logprobs_are_those_of_the_tempered_softmax_in_float32(dtype: torch.dtype) -> None:
    logits = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    ids = torch.tensor([[0, 5, 2], [1, 1, 3]])
    result = token_logprobs(logits, ids, temperature=0.7)
    assert result.logprobs.dtype == torch.float32
    for row in range(2):
        for position in range(3):
            values = [value / 0.7 for value in logits[row, position].float().tolist()]
            total = math.fsum(map(math.exp, values))
            chances = [math.exp(value) / total for value in values]
            chosen = chances[int(ids[row, position])]
            assert result.logprobs[row, position].item() == pytest.approx(
                math.log(chosen), rel=1e-4
            )
            entropy = -sum(p * math.log(p) for p in chances)
            assert result.entropy[row, position].item() == pytest.approx(entropy, rel=1e-4)


def test_impossible_tokens_do_not_spoil_the_entropy() -> None:
    logits = torch.tensor([[[0.0, 0.0, -torch.inf]]])
    result = token_logprobs(logits, torch.tensor([[0]]))
    assert result.entropy.item() == pytest.approx(math.log(2))


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="temperature above 0, got 0"):
        token_logprobs(torch.zeros(1, 1, 2), torch.zeros(1, 1, dtype=torch.long), temperature=0)
