"""The schema that joins environments, policies and trainers: who said what, for what reward.

One `Rollout` is one episode; it holds one `Turn` for every action of every agent, in the order in
which the actions were taken. On disk a rollout is one line of JSON. Training uses the sampled token
ids, never text that was tokenised again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .errors import RolloutFormatError

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


def to_line(rollout: Rollout) -> str:
    """Return `rollout` as one line of ASCII JSON, without the line end.

    Raises:
        RolloutFormatError: the rollout holds NaN, an infinity or something that is not plain data.
    """
    try:
        return json.dumps(asdict(rollout), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RolloutFormatError(
            f"rollout {rollout.rollout_id!r} cannot be stored: {error}; rewards, log-probs and "
            "infos must be finite numbers, strings or booleans"
        ) from error


def from_line(line: str) -> Rollout:
    """Return the rollout stored as `line`; the exact inverse of `to_line`.

    Raises:
        RolloutFormatError: it is not JSON, not a rollout, or of another schema version.
    """
    try:
        record = json.loads(line)
    except ValueError as error:
        raise RolloutFormatError(f"not JSON ({error})") from error
    if not isinstance(record, dict):
        raise RolloutFormatError(f"expected an object, got {type(record).__name__}")
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise RolloutFormatError(
            f"schema_version is {version!r}, this release reads {SCHEMA_VERSION}"
        )
    try:
        turns = tuple(
            Turn(**{**turn, "generation": _generation(turn["generation"])})
            for turn in record["turns"]
        )
        return Rollout(**{**record, "turns": turns})
    except (KeyError, TypeError, ValueError) as error:
        reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise RolloutFormatError(f"not a rollout: {reason}") from error


def _generation(record: Mapping[str, Any]) -> Generation:
    ids = {key: tuple(record[key]) for key in ("prompt_ids", "completion_ids", "logprobs")}
    return Generation(**{**record, **ids})


def write_rollouts(path: str | Path, rollouts: Iterable[Rollout]) -> int:
    """Write `rollouts` to a new file at `path`, replacing one that is there; return how many."""
    return _write(path, rollouts, mode="w")


def append_rollouts(path: str | Path, rollouts: Iterable[Rollout]) -> int:
    """Add `rollouts` to the end of the file at `path`; return how many."""
    return _write(path, rollouts, mode="a")


def _write(path: str | Path, rollouts: Iterable[Rollout], *, mode: Literal["w", "a"]) -> int:
    count = 0
    with Path(path).open(mode, encoding="ascii", newline="\n") as file:
        for rollout in rollouts:
            file.write(to_line(rollout) + "\n")
            count += 1
    return count


def read_rollouts(
    path: str | Path, *, torn_tail: Literal["raise", "skip"] = "raise"
) -> Iterator[Rollout]:
    """Yield the rollouts stored at `path`, one at a time.

    Args:
        path: a file made by `write_rollouts` or `append_rollouts`.
        torn_tail: what to do with a last line that has no line end, as a killed writer leaves it.

    Raises:
        RolloutFormatError: a line cannot be read; the message says file, line and why.
    """
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                if torn_tail == "skip":
                    return
                raise RolloutFormatError(
                    f"{path}, line {number}: the file ends in the middle of a rollout; it was cut "
                    'off while being written. Read it with torn_tail="skip" to use the rest'
                )
            try:
                yield from_line(line)
            except RolloutFormatError as error:
                raise RolloutFormatError(f"{path}, line {number}: {error}") from error
