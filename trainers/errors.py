"""The exception tree of `trainers`.

TrainersError
├── ConfigError             a setting that cannot work; the message shows the arithmetic
├── RolloutFormatError      a stored rollout that cannot be read; says file, line and why
├── CollectionFailed        not one episode of a collection could be played
├── CheckpointError         a checkpoint that is damaged or of another configuration
├── ModelNotFound           a model name or folder that leads nowhere
└── GenerationFailed        (policies.base) a request that will not be answered
    └── PolicyExhausted     (policies.base) nothing is left to say in this episode
"""

from __future__ import annotations


class TrainersError(Exception):
    """Base of every error that `trainers` raises on purpose."""


class ConfigError(TrainersError, ValueError):
    """A configuration that cannot work."""


class RolloutFormatError(TrainersError, ValueError):
    """A stored rollout could not be read."""


class CollectionFailed(TrainersError):
    """Not one episode of a collection could be played."""


class CheckpointError(TrainersError):
    """A checkpoint is damaged, incomplete or belongs to another configuration."""


class ModelNotFound(TrainersError):
    """A model could not be found."""
