"""Agents by name on the command line: `replay:FILE`, `models:FILE`, `hf:FOLDER`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidSetting
from ..tasks.code import CodeTask

if TYPE_CHECKING:
    from trainers.policies import Policy
    from trainers.policies.recordings import Recording

KINDS = (
    "replay:FILE (recorded generations; replay:FILE#MODEL: those of one model, or of the models "
    "that match, as in #gpt-4*|starcoder), models:FILE (one such agent for each model in it), "
    "hf:FOLDER (a Hugging Face model)"
)

# A comma may belong to a model's name, unless the next agent begins behind it.
_NEXT_AGENT = re.compile(r",(?=\s*(?:[a-z]+:|,|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of a team, as it was asked for."""

    label: str
    """Unlike that of every other agent of the team."""
    kind: str
    """`replay` or `hf`."""
    place: str
    """The file or folder."""
    recordings: Mapping[str, Sequence[Recording]] = field(default_factory=dict)
    """By task id, what a replay agent can say."""


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
        return recorded_tasks(tasks, [self.recordings] if self.recordings else [])


def recorded_tasks(
    tasks: Sequence[CodeTask], recordings: Iterable[Mapping[str, Sequence[Recording]]]
) -> list[CodeTask]:
    """Return the tasks for which all of `recordings` have something.

    Raises:
        InvalidSetting: there is none.
    """
    found = list(tasks)
    for own in recordings:
        found = [task for task in found if task.task_id in own]
        if not found:
            raise InvalidSetting(
                "the recordings and the tasks have no task in common: recordings are for "
                f"{_some(own)}, tasks are {_some(task.task_id for task in tasks)}"
            )
    return found


def read_team(specs: str) -> list[Agent]:
    """Read who is in a team and what its replay agents can say.

    Args:
        specs: comma-separated, e.g. "models:humaneval.jsonl,hf:models/coder".

    Raises:
        InvalidSetting: an empty list or an unknown kind.
        TrainersError: a file of recordings that cannot be read, or has nothing by that model.
    """
    parts = [part.strip() for part in _NEXT_AGENT.split(specs) if part.strip()]
    if not parts:
        raise InvalidSetting(f"--agents is empty; name at least one of {KINDS}")
    team: list[Agent] = []
    for part in parts:
        kind, _, place = part.partition(":")
        if kind not in ("replay", "models", "hf") or not place:
            raise InvalidSetting(f"unknown agent {part!r}; expected one of {KINDS}")
        for agent in _agents(kind, place):
            team.append(replace(agent, label=_unlike(agent.label, [one.label for one in team])))
    return team


def make_cast(specs: str, *, tasks: Sequence[CodeTask], seed: int) -> Cast:
    """Make the policies of a team.

    Args:
        specs: see `read_team`; the agents become `coder_0` and so on.
        tasks: whose statements recorded completions continue.
        seed: of the order in which recordings are drawn.

    Raises:
        InvalidSetting: an empty list or an unknown kind.
        TrainersError: a file of recordings or a model that cannot be read.
    """
    team = read_team(specs)
    prefixes = prompts_of(tasks)
    policies = {
        f"coder_{index}": make_policy(agent, name=f"coder_{index}", prefixes=prefixes, seed=seed)
        for index, agent in enumerate(team)
    }
    recordings: dict[str, list[Recording]] = {}
    for agent in team:
        for task_id, found in agent.recordings.items():
            recordings.setdefault(task_id, []).extend(found)
    return Cast(
        policies=policies,
        recordings=recordings,
        prefixes=prefixes,
        only_replay=all(agent.kind == "replay" for agent in team),
    )


def make_policy(agent: Agent, *, name: str, prefixes: Mapping[str, str], seed: int) -> Policy:
    """Make the policy that speaks for one agent.

    Args:
        agent: who.
        name: stamped on what it says.
        prefixes: see `prompts_of`.
        seed: of the order in which recordings are drawn.

    Raises:
        TrainersError: a model that cannot be read.
    """
    if agent.kind == "replay":
        from trainers.policies.replay import ReplayPolicy

        return ReplayPolicy(agent.recordings, prefixes=prefixes, seed=seed, name=name)
    from trainers.policies.hf import HFPolicy

    policy = HFPolicy.from_pretrained(Path(agent.place), name=name)
    policy.chat = bool(getattr(policy.tokenizer, "chat_template", None))
    return policy


def prompts_of(tasks: Iterable[CodeTask]) -> dict[str, str]:
    """Return, by task id, the prompt that recorded completions continue."""
    return {task.task_id: task.helpers for task in tasks if task.helpers}


def _agents(kind: str, place: str) -> list[Agent]:
    if kind == "hf":
        return [Agent(label=Path(place).name or place, kind=kind, place=place)]
    from trainers.policies.recordings import load_recordings

    file, model = _split(place)
    recordings = load_recordings(file, source=model)
    if kind == "replay":
        label = model or Path(file).stem
        return [Agent(label=label, kind=kind, place=file, recordings=recordings)]
    names = dict.fromkeys(one.source for found in recordings.values() for one in found)
    by_model: dict[str, dict[str, list[Recording]]] = {name: {} for name in names}
    for task_id, found in recordings.items():
        for one in found:
            by_model[one.source].setdefault(task_id, []).append(one)
    return [
        Agent(label=name or Path(file).stem, kind="replay", place=file, recordings=own)
        for name, own in by_model.items()
    ]


def _split(place: str) -> tuple[str, str | None]:
    """Split FILE#MODEL, but for a file that has a # in its name."""
    file, mark, model = place.partition("#")
    return (place, None) if not mark or os.path.exists(place) else (file, model)


def _unlike(label: str, others: Sequence[str]) -> str:
    found, number = label, 1
    while found in others:
        number += 1
        found = f"{label} ({number})"
    return found


def _some(ids: Iterable[str]) -> str:
    listed = list(ids)
    return ", ".join(listed[:3]) + (" ..." if len(listed) > 3 else "")
