"""Playing episodes in the real environments, many at once, and keeping what they say of themselves.

Text in, text out: the network is given observations and gives replies, and everything that is
reported comes out of `infos`. Episodes are independent; those that run side by side only share the
passes through the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from mars_envs.reading.task import ReadingTask

Panel = Callable[[Sequence[ReadingTask], Sequence[Mapping[str, Any]]], Sequence[str]]
"""Replies to observations. The task of each stands beside it, for speakers who know the truth."""


Outcome = Literal["right", "misread", "lost", "missed"]
"""Right; wrong although all evidence was in the memory; wrong since evidence that had been in the
memory was lost again; wrong since some of it never came into the memory."""


class MemoryEnv(Protocol):
    """What is used of a `ParallelMemoryEnv` or a `ParallelRecurrentMemoryEnv`."""

    agents: list[str]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode."""
        ...

    def step(self, actions: dict[str, str]) -> Any:
        """Take the replies of all active agents."""
        ...


@dataclass
class Trial:
    """An episode, as plain numbers."""

    correct: float = 0.0
    """Exact match, normalised as in SQuAD."""
    turns: int = 0
    productive: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    memory_tokens: int = 0
    """At the end."""
    evidence: int = 0
    """Passages that the answer takes."""
    reached: int = 0
    """Of these, passages that stood in the memory at any time."""
    kept: int = 0
    """Of these, passages that stood in it when the answer was asked for."""
    cut: bool = False
    """Whether a memory was over its budget at any time."""
    exit_reason: str = ""
    reads: list[list[int]] = field(default_factory=list)
    """Of each turn: gold chunks read, and found in; other chunks read, and found in."""

    def note_call(self, info: Mapping[str, Any]) -> None:
        """Take down what became of a call."""
        self.prompt_tokens += info["prompt_tokens"]
        self.output_tokens += info["output_tokens"]
        if info["chunk_index"] < 0:
            return
        while len(self.reads) < info["turn"]:
            self.reads.append([0, 0, 0, 0])
        kind = 0 if info["chunk_gold"] == 1 else 2
        row = self.reads[info["turn"] - 1]
        row[kind] += 1
        row[kind + 1] += bool(info["found"])

    def note_end(self, info: Mapping[str, Any]) -> None:
        """Take down what the episode came to."""
        self.correct = max(0.0, float(info["exact_match"]))
        self.turns, self.productive = info["turns_used"], info["turns_productive"]
        self.calls, self.memory_tokens = info["n_calls"], info["memory_tokens"]
        self.cut, self.exit_reason = bool(info["memory_truncated"]), info["exit_reason"]

    @property
    def outcome(self) -> Outcome:
        """What became of it, and where it went wrong if it did."""
        if self.correct:
            return "right"
        if self.kept == self.evidence:
            return "misread"
        return "lost" if self.reached == self.evidence else "missed"


class _Running:
    """An environment in the middle of an episode."""

    def __init__(self, env: MemoryEnv, task: ReadingTask) -> None:
        self.env, self.task = env, task
        # Without the full stop, which a span may leave out.
        self._evidence = [_line(passage.text).rstrip(".") for passage in task.evidence]
        self._reached: set[str] = set()
        self.trial = Trial(evidence=len(self._evidence))
        self.seen, self.infos = env.reset(seed=0, options={"task": task.task_id})

    def asked(self) -> list[str]:
        """Return who is to speak, having looked into the memory that they are shown."""
        active = [agent for agent in self.env.agents if self.infos[agent]["active"]]
        memory = _line(self.seen[active[0]]["memory"])
        held = {text for text in self._evidence if text in memory}
        self._reached |= held
        self.trial.reached, self.trial.kept = len(self._reached), len(held)
        return active

    def act(self, actions: dict[str, str]) -> None:
        self.seen, _, _, _, self.infos = self.env.step(actions)
        for agent in actions:
            self.trial.note_call(self.infos[agent])
        if not self.env.agents:
            self.trial.note_end(self.infos["answerer_0"])


def _line(text: str) -> str:
    return " ".join(text.split())


def play_all(
    make_env: Callable[[Sequence[ReadingTask]], MemoryEnv],
    tasks: Sequence[ReadingTask],
    panel: Panel,
    *,
    at_once: int = 16,
    on_episode: Callable[[], None] | None = None,
) -> list[Trial]:
    """Play an episode of each task.

    Args:
        make_env: an environment of these tasks.
        tasks: one episode each.
        panel: who speaks.
        at_once: episodes side by side.
        on_episode: called after each episode.
    """
    trials: list[Trial] = []
    for start in range(0, len(tasks), at_once):
        group = tasks[start : start + at_once]
        running = [_Running(make_env([task]), task) for task in group]
        while playing := [one for one in running if one.env.agents]:
            asked = [(one, agent) for one in playing for agent in one.asked()]
            replies = panel(
                [one.task for one, _ in asked], [one.seen[agent] for one, agent in asked]
            )
            actions: dict[int, dict[str, str]] = {}
            for (one, agent), reply in zip(asked, replies, strict=True):
                actions.setdefault(id(one), {})[agent] = reply
            for one in playing:
                one.act(actions[id(one)])
                if not one.env.agents and on_episode:
                    on_episode()
        trials += [one.trial for one in running]
    return trials


def yes_rates(trials: Sequence[Trial], *, gold: bool) -> list[float]:
    """Return the share of reads that found something, over all episodes, for each turn.

    Args:
        trials: the episodes.
        gold: of the chunks that hold evidence, or else of the others.
    """
    turns = max((len(trial.reads) for trial in trials), default=0)
    table = np.zeros((turns, 4))
    for trial in trials:
        table[: len(trial.reads)] += np.reshape(trial.reads, (-1, 4))
    read, found = (table[:, 0], table[:, 1]) if gold else (table[:, 2], table[:, 3])
    return [float(f / r) if r else float("nan") for f, r in zip(found, read, strict=True)]
