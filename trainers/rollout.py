"""The schema that joins environments, policies and trainers: who said what, for what reward.

One `Rollout` is one episode; it holds one `Turn` for every action of every agent, in the order in
which the actions were taken. On disk a rollout is one line of JSON. Training uses the sampled token
ids, never text that was tokenised again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA_VERSION = 1

Scalar = int | float | str | bool
Outcome = Literal["terminated", "truncated", "failed"]
FinishReason = Literal["stop", "length", "scripted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a policy draws tokens. Log-probs refer to the distribution after temperature."""

    temperature: float = 1.0
    """0 means greedy."""
    max_tokens: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a policy is asked. Scripted and replayed agents need more than the prompt."""

    prompt: str
    agent: str
    env_id: str
    task_id: str
    observation: Mapping[str, Any]
    info: Mapping[str, Scalar]
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    episode_id: str = ""
    """Names the episode: the same for all its requests, another for every other live episode.

    A policy that keeps state per episode (a replay draws without replacement) keys it by this, and
    seeds that state from it, so it must be reproducible: e.g. `f"{run_seed}/{episode_index}"`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What a policy answered. `T` tokens were sampled; policies without tokens leave them empty."""

    text: str
    prompt_ids: Sequence[int] = ()  # [P]
    completion_ids: Sequence[int] = ()  # [T], with the end token if it was sampled
    logprobs: Sequence[float] = ()  # [T], natural logarithms under the sampling distribution
    finish_reason: FinishReason = "scripted"
    policy: str = ""
    policy_version: int = 0

    def __post_init__(self) -> None:
        if len(self.logprobs) != len(self.completion_ids):
            raise ValueError(
                f"a Generation needs one log-prob per sampled token: got {len(self.logprobs)} "
                f"log-probs for {len(self.completion_ids)} tokens"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One action of one agent."""

    agent: str
    prompt: str
    generation: Generation
    reward: float
    """What the agent received from this action until its next one."""
    info: Mapping[str, Scalar]
    """The agent's info after the action: in a tree it describes the node just made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One episode."""

    rollout_id: str
    group_id: str
    env_id: str
    task_id: str
    seed: int
    prompt_hash: str
    """Hash of the episode's first prompt: episodes of one task can be told apart by it."""
    turns: tuple[Turn, ...]
    outcome: Outcome
    episode_reward: float
    """The reward of the episode, a shared team reward counted once."""
    summary: Mapping[str, Scalar]
    """The scalar infos of the last step, e.g. `best_node_id`."""
    schema_version: int = SCHEMA_VERSION
