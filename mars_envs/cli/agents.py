"""Agents by name on the command line: `replay:FILE`, `hf:FOLDER`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidSetting
from ..tasks.code import CodeTask

if TYPE_CHECKING:
    from trainers.policies import Policy
    from trainers.policies.recordings import Recording

KINDS = "replay:FILE (recorded generations), hf:FOLDER (a Hugging Face model)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who plays: policies by agent name."""

    policies: Mapping[str, Policy]
    recordings: Mapping[str, Sequence[Recording]] = field(default_factory=dict)
    """By task id, all that the replay agents can say."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """By task id, the prompt that recorded completions without one of their own continue."""
    only_replay: bool = False

    def tasks(self, tasks: Sequence[CodeTask]) -> list[CodeTask]:
        """Return the tasks that this cast can play: with replay agents, the recorded ones.

        Raises:
            InvalidSetting: there is none.
        """
        if not self.recordings:
            return list(tasks)
        found = [task for task in tasks if task.task_id in self.recordings]
        if not found:
            raise InvalidSetting(
                "the recordings and the tasks have no task in common: recordings are for "
                f"{_some(self.recordings)}, tasks are {_some(task.task_id for task in tasks)}"
            )
        return found


def make_cast(specs: str, *, tasks: Sequence[CodeTask], seed: int) -> Cast:
    """Make the policies that a comma-separated list of specifications asks for.

    Args:
        specs: e.g. "replay:pool.jsonl,hf:models/coder"; one agent each, `coder_0` and so on.
        tasks: whose statements recorded completions continue.
        seed: of the order in which recordings are drawn.

    Raises:
        InvalidSetting: an empty list or an unknown kind.
        TrainersError: a file of recordings or a model that cannot be read.
    """
    parts = [part.strip() for part in specs.split(",") if part.strip()]
    if not parts:
        raise InvalidSetting(f"--agents is empty; name at least one of {KINDS}")
    policies: dict[str, Policy] = {}
    recordings: dict[str, list[Recording]] = {}
    prefixes = {task.task_id: task.helpers for task in tasks if task.helpers}
    for index, part in enumerate(parts):
        kind, _, place = part.partition(":")
        name = f"coder_{index}"
        if kind == "replay" and place:
            policies[name] = _replay(
                name, place, prefixes=prefixes, seed=seed, recordings=recordings
            )
        elif kind == "hf" and place:
            policies[name] = _hugging_face(name, place)
        else:
            raise InvalidSetting(f"unknown agent {part!r}; expected one of {KINDS}")
    only_replay = all(part.startswith("replay:") for part in parts)
    return Cast(
        policies=policies, recordings=recordings, prefixes=prefixes, only_replay=only_replay
    )


def _replay(
    name: str,
    place: str,
    *,
    prefixes: Mapping[str, str],
    seed: int,
    recordings: dict[str, list[Recording]],
) -> Policy:
    from trainers.policies.recordings import load_recordings
    from trainers.policies.replay import ReplayPolicy

    own = load_recordings(place)
    for task_id, found in own.items():
        recordings.setdefault(task_id, []).extend(found)
    return ReplayPolicy(own, prefixes=prefixes, seed=seed, name=name)


def _hugging_face(name: str, place: str) -> Policy:
    from trainers.policies.hf import HFPolicy

    policy = HFPolicy.from_pretrained(Path(place), name=name)
    policy.chat = bool(getattr(policy.tokenizer, "chat_template", None))
    return policy


def _some(ids: Iterable[str]) -> str:
    listed = list(ids)
    return ", ".join(listed[:3]) + (" ..." if len(listed) > 3 else "")
