"""Path-advantage GRPO: several policies learn in shared trees, each from its own nodes.

One step: play a batch of trees, credit every node within its tree, hand each policy the rows of the
agents that it speaks for, let every policy that has gathered enough rows train. Policies share
nothing but the trees: each has its own optimizer, buffer and version.

A run is a function of its configuration and seed: everything random is seeded from (seed, step) and
nothing is carried over but what a checkpoint holds. So a run that was killed goes on from its last
checkpoint as if nothing had happened, as far as its policies sample reproducibly.

Sources: MARS² (arXiv 2604.14564), with DAPO's token mean and asymmetric clip (arXiv 2503.14476).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch

from .checkpoint import CheckpointStore
from .collect import Patience, collect_all
from .credit import CreditSettings
from .errors import CheckpointError, ConfigError
from .learner import Learner, TrainablePolicy, UpdateRules
from .play import Episode, assigned, request_seed
from .policies.base import Policy
from .rollout import Rollout, Sampling, Scalar
from .rows import Row, make_rows, trainable
from .run_log import Metrics, RunLog
from .step_metrics import collection_metrics

OnStep: TypeAlias = Callable[[int, Mapping[str, int | float | None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathGRPOConfig:
    """The settings of a run. The defaults suit coders of a hundred thousand parameters."""

    seed: int = 0
    steps: int = 80
    concurrency: int = 32
    """Trees that are alive at a time."""
    deterministic: bool = True
    """Fix what is batched together while generating, so that a run can be repeated exactly; see
    `collect`. Without it no tree waits for another."""
    sampling: Sampling = field(default_factory=Sampling)
    """How all trained and partner policies sample."""

    credit: CreditSettings = field(default_factory=CreditSettings)
    """How rewards become advantages; `credit_settings` has presets."""

    learning_rate: float = 5e-4
    warmup_updates: int = 5
    """Updates over which the learning rate rises linearly."""
    epochs: int = 2
    """Passes over the rows of an update."""
    minibatch: int = 64
    """Rows of one optimizer step."""
    microbatch: int = 32
    """Rows in memory at a time; a minibatch is worked off in such pieces, sorted by length."""
    buffer_rows: int = 64
    """A policy updates once it has gathered this many rows. It uses full minibatches only, oldest
    rows first, and keeps the remainder."""
    max_lag: int = 1
    """Rows sampled by weights more than this many updates old are dropped and counted."""
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_beta: float = 0.0
    """Weight of the k3 divergence from each policy's own initial weights."""
    max_grad_norm: float = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's. The authors of MARS² use (0.9, 0.95) with models of billions of parameters."""
    weight_decay: float = 0.0

    checkpoint_every: int = 10
    """Steps between checkpoints; there is one at the start and one at the end as well."""
    keep_checkpoints: int = 2

    def __post_init__(self) -> None:
        for name in (
            "concurrency", "epochs", "minibatch", "microbatch", "checkpoint_every",
            "keep_checkpoints",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in (
            "steps", "learning_rate", "warmup_updates", "max_lag", "clip_low", "clip_high",
            "kl_beta", "max_grad_norm", "weight_decay",
        ):  # fmt: skip
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.sampling.temperature <= 0:
            raise ConfigError(
                "training needs a sampling temperature above 0, got "
                f"{self.sampling.temperature}: a greedy policy explores nothing"
            )
        if self.buffer_rows < self.minibatch:
            raise ConfigError(
                f"buffer_rows ({self.buffer_rows}) must be at least minibatch ({self.minibatch}): "
                "an update uses full minibatches only"
            )


_MAY_DIFFER = frozenset({"steps", "checkpoint_every", "keep_checkpoints"})
"""What may change when a run goes on: nothing that a step's outcome depends on."""


class PathGRPOTrainer:
    """Trains several policies at once.

    Args:
        config: the settings.
        env_fn: makes an environment; see `collect`.
        policies: policy name -> policy to train. Its weights are changed in place.
        roles: agent, or glob, -> policy name.
        episodes: step (from 1) -> the episodes of that step, the same whenever it is asked.
        run_dir: where `metrics.jsonl`, `rollouts.jsonl` and `checkpoints/` go.
        partners: policy name -> policy that plays but is not trained.
        fingerprint: what else defines the run (environment, data, models); a checkpoint of a run
            with another fingerprint is refused.
        on_step: called with the step and its metrics after each step.
        patience: with failing episodes; see `collect`.

    Raises:
        ConfigError: a role without its policy, or a name that is both trained and a partner.
    """

    def __init__(
        self,
        config: PathGRPOConfig,
        *,
        env_fn: Callable[[], Any],
        policies: Mapping[str, TrainablePolicy],
        roles: Mapping[str, str],
        episodes: Callable[[int], Sequence[Episode]],
        run_dir: str | Path,
        partners: Mapping[str, Policy] | None = None,
        fingerprint: Mapping[str, Scalar] | None = None,
        on_step: OnStep | None = None,
        patience: Patience | None = None,
    ) -> None:
        partners = dict(partners or {})
        _check(policies, partners, roles)
        self.config = config
        self.step = 0
        """Steps done."""
        self.log = RunLog(run_dir)
        self._env_fn = env_fn
        self._players: dict[str, Policy] = {**partners, **policies}
        self._roles = dict(roles)
        self._episodes = episodes
        self._on_step = on_step
        self._patience = patience
        self._learners = {
            name: Learner(policy, _update_rules(config)) for name, policy in policies.items()
        }
        self._checkpoints = CheckpointStore(
            self.log.folder / "checkpoints", keep=config.keep_checkpoints
        )
        settings = dataclasses.asdict(config)
        nested = {name: settings.pop(name) for name in ("credit", "sampling")}
        self._identity = {
            **settings,
            **{f"{name}.{key}": v for name, fields in nested.items() for key, v in fields.items()},
            "roles": self._roles,
            "trained": sorted(policies),
            **{f"fingerprint.{key}": value for key, value in (fingerprint or {}).items()},
        }
        self._started = False

    def resume(self) -> int:
        """Go on from the newest whole checkpoint in the run folder.

        The logs are cut back to it. Everything is then as it was when the checkpoint was made.

        Returns:
            The number of steps done.

        Raises:
            CheckpointError: there is no checkpoint, or it belongs to another configuration.
        """
        step, state = self._checkpoints.load(identity=self._identity, may_differ=_MAY_DIFFER)
        for name, learner in self._learners.items():
            try:
                learner.load_state(state["learners"][name])
            except (RuntimeError, ValueError, KeyError) as error:
                raise CheckpointError(
                    f"the checkpoint of step {step} does not fit policy {name!r}: {error}"
                ) from error
        torch.set_rng_state(state["torch_rng"])
        self.log.cut_back(state["log_sizes"])
        self.step = step
        self._started = True
        return step

    def train(self) -> list[Metrics]:
        """Run until `config.steps` steps are done; return the metrics of the steps run now.

        Raises:
            ConfigError: the run folder holds a run and `resume` was not called.
            CollectionFailed: not one tree of a step could be played.
        """
        if not self._started:
            self.log.require_empty()
            self._started = True
            self.save()
        done = []
        while self.step < self.config.steps:
            done.append(self.run_step())
            if self.step % self.config.checkpoint_every == 0 or self.step == self.config.steps:
                self.save()
        return done

    def run_step(self) -> Metrics:
        """Run one step, log it and return its metrics."""
        started = time.perf_counter()
        step = self.step + 1
        config = self.config
        rollouts = collect_all(
            self._env_fn,
            self._episodes(step),
            self._players,
            roles=self._roles,
            concurrency=config.concurrency,
            run_seed=config.seed,
            sampling=config.sampling,
            deterministic=config.deterministic,
            patience=self._patience,
        )
        collected = time.perf_counter()
        rows = make_rows(rollouts, config.credit, max_tokens=config.sampling.max_tokens)
        metrics: Metrics = {
            "step": step,
            **collection_metrics(rollouts, rows),
            "filtered_share": _filtered_share(rollouts, config.credit),
        }
        for name, learner in self._learners.items():
            learner.add(self._rows_of(name, rows))
            update = learner.update(seed=request_seed(config.seed, "update", step, name))
            books = dataclasses.asdict(learner.books)
            figures = {**update, **books, "kept": learner.kept, "version": learner.policy.version}
            metrics.update({f"policies/{name}/{key}": value for key, value in figures.items()})
        finished = time.perf_counter()
        metrics["collect_s"] = collected - started
        metrics["update_s"] = finished - collected
        self.log.write_rollouts(rollouts)
        self.log.write_metrics(metrics)
        self.step = step
        if self._on_step is not None:
            self._on_step(step, metrics)
        return metrics

    def save(self) -> Path:
        """Write a checkpoint of the run as it is now; return its file."""
        state = {
            "learners": {name: learner.state() for name, learner in self._learners.items()},
            # For policies that draw from the global generator instead of the requests' seeds.
            "torch_rng": torch.get_rng_state(),
            "log_sizes": self.log.sizes(),
        }
        return self._checkpoints.save(self.step, state, identity=self._identity)

    def _rows_of(self, policy: str, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if assigned(self._roles, row.agent) == policy]


def _check(
    policies: Mapping[str, TrainablePolicy],
    partners: Mapping[str, Policy],
    roles: Mapping[str, str],
) -> None:
    both = sorted(set(policies) & set(partners))
    if both:
        raise ConfigError(f"policies {both} are given both as policies to train and as partners")
    for name, policy in policies.items():
        if not isinstance(policy, TrainablePolicy):
            raise ConfigError(
                f"policy {name!r} cannot be trained: expected `model` and `pad_id` on a "
                f"{type(policy).__name__}; give it in partners= to let it play only"
            )
        if name not in roles.values():
            raise ConfigError(f"policy {name!r} has no role, so it would never be trained")
    known = {*policies, *partners}
    for agent, name in roles.items():
        if name not in known:
            raise ConfigError(
                f"role {agent!r} is given to policy {name!r}, which does not exist; known: "
                f"{sorted(known)}"
            )


def _filtered_share(rollouts: Sequence[Rollout], settings: CreditSettings) -> float | None:
    """Return the share of played rollouts that the filter left out; None where none was played."""
    played = sum(rollout.outcome != "failed" for rollout in rollouts)
    return 1 - len(trainable(rollouts, settings)) / played if played else None


def _update_rules(config: PathGRPOConfig) -> UpdateRules:
    shared = {rule.name for rule in dataclasses.fields(UpdateRules)} - {"temperature"}
    return UpdateRules(
        temperature=config.sampling.temperature,
        **{name: getattr(config, name) for name in shared},
    )
