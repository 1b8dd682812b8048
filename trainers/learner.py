"""One policy in training: its optimizer, its buffer of rows, its books.

Rows come in as they are collected. Once enough have gathered, `update` trains on the oldest full
minibatches and keeps the remainder. A row whose weights are too many versions old is dropped, and
everything is counted: rows produced are always the sum of those consumed, dropped and still kept.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from .errors import TrainersError
from .losses import clipped_objective
from .policies.base import Policy
from .rows import Batch, Row, make_batch, model_logprobs


@runtime_checkable
class TrainablePolicy(Policy, Protocol):
    """A policy whose weights can be trained in place."""

    model: Any
    """A `torch.nn.Module`, called as `model(input_ids=, attention_mask=, position_ids=).logits`."""
    pad_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRules:
    """How a learner trains; `PathGRPOConfig` documents the fields."""

    learning_rate: float
    warmup_updates: int
    epochs: int
    minibatch: int
    microbatch: int
    buffer_rows: int
    max_lag: int
    clip_low: float
    clip_high: float
    kl_beta: float
    max_grad_norm: float
    betas: tuple[float, float]
    weight_decay: float
    temperature: float


@dataclass(slots=True, kw_only=True)
class Books:
    """Where the rows went."""

    produced: int = 0
    consumed: int = 0
    degenerate: int = 0
    """Dropped: their group said nothing."""
    stale: int = 0
    """Dropped: sampled too many versions ago."""


@dataclass(slots=True)
class _Sums:
    """Running sums of one update."""

    tokens: float = 0.0
    ratio: float = 0.0
    clipped: float = 0.0
    kl: float = 0.0
    entropy: float = 0.0
    loss: float = 0.0
    grad_norm: float = 0.0
    optimizer_steps: int = 0
    fresh_gap: float = 0.0
    fresh_tokens: float = 0.0


class Learner:
    """Trains one policy.

    Dropout stays off while training: the sampler's log-probs are the old ones, and they were taken
    without it.
    """

    def __init__(self, policy: TrainablePolicy, rules: UpdateRules) -> None:
        self.policy = policy
        self.rules = rules
        self.books = Books()
        self.updates = 0
        self._buffer: list[Row] = []
        self._parameters = [p for p in policy.model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._parameters,
            lr=rules.learning_rate,
            betas=rules.betas,
            weight_decay=rules.weight_decay,
        )
        self._reference = copy.deepcopy(policy.model).eval() if rules.kl_beta else None

    @property
    def kept(self) -> int:
        """Rows that wait in the buffer."""
        return len(self._buffer)

    def add(self, rows: Iterable[Row]) -> None:
        """Take in rows; those of degenerate groups are counted and dropped."""
        for row in rows:
            self.books.produced += 1
            if row.degenerate:
                self.books.degenerate += 1
            else:
                self._buffer.append(row)

    def update(self, *, seed: int) -> dict[str, float | None]:
        """Train on the buffer if it holds enough; return the update's metrics.

        Args:
            seed: of the order of the rows.

        Returns:
            Means over the tokens of all epochs. All None where there was no update.

        Raises:
            TrainersError: the gradient is not finite.
        """
        rows = self._take()
        if not rows:
            return dict.fromkeys(_MEASURED, None)
        rng = np.random.default_rng(seed)
        model, rules, sums = self.policy.model, self.rules, _Sums()
        model.eval()
        rate = rules.learning_rate * min(1.0, (self.updates + 1) / max(1, rules.warmup_updates))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        for _ in range(rules.epochs):
            order = rng.permutation(len(rows))
            for start in range(0, len(rows), rules.minibatch):
                chosen = [rows[i] for i in order[start : start + rules.minibatch]]
                self._optimizer_step(chosen, sums)
        self.updates += 1
        self.policy.version += 1
        self.books.consumed += len(rows)
        return {
            "advantage_std": float(np.std([row.advantage for row in rows])),
            "loss": sums.loss / sums.optimizer_steps,
            "ratio": sums.ratio / sums.tokens,
            "clip_share": sums.clipped / sums.tokens,
            "entropy": sums.entropy / sums.tokens,
            "kl": sums.kl / sums.tokens,
            "grad_norm": sums.grad_norm / sums.optimizer_steps,
            "learning_rate": rate,
            "logprob_gap": sums.fresh_gap / sums.fresh_tokens if sums.fresh_tokens else None,
            "trained_rows": len(rows),
            "trained_tokens": sum(len(row.completion_ids) for row in rows),
        }

    def state(self) -> dict[str, Any]:
        """Return all that an exact continuation needs, as tensors and plain data."""
        reference = self._reference
        return {
            "model": self.policy.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "reference": None if reference is None else reference.state_dict(),
            "version": self.policy.version,
            "updates": self.updates,
            "books": dataclasses.asdict(self.books),
            "buffer": [dataclasses.asdict(row) for row in self._buffer],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` once returned.

        Raises:
            RuntimeError, ValueError: it is of a model of another shape.
        """
        self.policy.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        if self._reference is not None:
            self._reference.load_state_dict(state["reference"])
        self.policy.version = state["version"]
        self.updates = state["updates"]
        self.books = Books(**state["books"])
        self._buffer = [Row(**row) for row in state["buffer"]]

    def _take(self) -> list[Row]:
        """Drop stale rows, then take the oldest full minibatches if there are rows enough."""
        oldest = self.policy.version - self.rules.max_lag
        fresh = [row for row in self._buffer if row.policy_version >= oldest]
        self.books.stale += len(self._buffer) - len(fresh)
        enough = len(fresh) >= self.rules.buffer_rows
        count = len(fresh) // self.rules.minibatch * self.rules.minibatch if enough else 0
        self._buffer = fresh[count:]
        return fresh[:count]

    def _optimizer_step(self, rows: Sequence[Row], sums: _Sums) -> None:
        """Accumulate one minibatch's gradient piece by piece, then step."""
        rules = self.rules
        tokens = float(sum(len(row.completion_ids) for row in rows))
        first = sums.optimizer_steps == 0
        self._optimizer.zero_grad(set_to_none=True)
        for piece in self._pieces(rows):
            batch = make_batch(piece, pad_id=self.policy.pad_id, device=self._device())
            own = model_logprobs(self.policy.model, batch, temperature=rules.temperature)
            objective = clipped_objective(
                own.logprobs,
                batch.old_logprobs,
                batch.advantages,
                batch.mask,
                clip_low=rules.clip_low,
                clip_high=rules.clip_high,
                reference_logprobs=self._reference_logprobs(batch),
                kl_beta=rules.kl_beta,
                normaliser=tokens,
            )
            objective.loss.backward()  # type: ignore[no-untyped-call]
            sums.loss += objective.loss.item()
            sums.tokens += objective.tokens.item()
            sums.ratio += objective.ratio_sum.item()
            sums.clipped += objective.clipped_sum.item()
            sums.kl += objective.kl_sum.item()
            sums.entropy += own.entropy[batch.mask.bool()].sum().item()
            if first:
                self._compare_with_sampler(piece, batch, own.logprobs.detach(), sums)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, rules.max_grad_norm)
        if not torch.isfinite(norm):
            raise TrainersError(
                f"policy {self.policy.name!r}: the gradient is not finite after {self.updates} "
                "updates; lower learning_rate or max_grad_norm, or look for damaged weights"
            )
        self._optimizer.step()
        sums.grad_norm += norm.item()
        sums.optimizer_steps += 1

    def _pieces(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """Cut a minibatch into pieces of rows of similar length, which saves padding."""
        by_length = sorted(rows, key=lambda row: len(row.prompt_ids) + len(row.completion_ids))
        for start in range(0, len(by_length), self.rules.microbatch):
            yield by_length[start : start + self.rules.microbatch]

    def _reference_logprobs(self, batch: Batch) -> torch.Tensor | None:
        if self._reference is None:
            return None
        with torch.no_grad():
            return model_logprobs(
                self._reference, batch, temperature=self.rules.temperature
            ).logprobs

    def _compare_with_sampler(
        self, rows: Sequence[Row], batch: Batch, logprobs: torch.Tensor, sums: _Sums
    ) -> None:
        """Measure, before the first step, how far sampler and trainer disagree on fresh rows."""
        fresh = [row.policy_version == self.policy.version for row in rows]
        mask = batch.mask * torch.tensor(fresh, device=batch.mask.device).unsqueeze(-1)
        sums.fresh_gap += ((logprobs - batch.old_logprobs).abs() * mask).sum().item()
        sums.fresh_tokens += mask.sum().item()

    def _device(self) -> torch.device:
        device: torch.device = self._parameters[0].device
        return device


_MEASURED = (
    "advantage_std",
    "loss",
    "ratio",
    "clip_share",
    "entropy",
    "kl",
    "grad_norm",
    "learning_rate",
    "logprob_gap",
    "trained_rows",
    "trained_tokens",
)
