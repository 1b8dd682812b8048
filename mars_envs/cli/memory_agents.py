"""Who reads in `mars-envs bench memory`: scripted agents, or models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidSetting
from ..parallel_memory.scripted import lexical, oracle
from ..parallel_memory.workflow import Speaker
from ..reading.task import ReadingTask

Kind = Literal["oracle", "noisy", "lexical", "model"]

_EXPECTED = (
    "expected `oracle`, `noisy:MISS,FALSE_YES`, `lexical`, `hf:MODEL_DIR` or the address of an "
    "OpenAI-compatible server"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingAgent:
    """One who plays every role of every method."""

    label: str
    kind: Kind
    miss: float = 0.0
    false_yes: float = 0.0
    place: str = ""
    """Of a model: its folder, or the address of a server."""

    @property
    def draws(self) -> bool:
        """Whether another seed gives another episode."""
        return self.kind in ("noisy", "model")

    def speaker(self, task: ReadingTask, seed: int) -> Speaker:
        """Return the one who speaks for a scripted agent in an episode."""
        if self.kind == "lexical":
            return lexical()
        return oracle(task, miss=self.miss, false_yes=self.false_yes, seed=seed)


def read_agents(specs: Sequence[str]) -> list[ReadingAgent]:
    """Read agents from the command line.

    Raises:
        InvalidSetting: none, one that is no agent, or one that is named twice.
    """
    agents = [_agent(spec.strip()) for spec in specs if spec.strip()]
    if not agents:
        raise InvalidSetting(f"--agents is empty; {_EXPECTED}")
    labels = [agent.label for agent in agents]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise InvalidSetting(f"--agents: {', '.join(twice)} is given twice")
    return agents


def _agent(spec: str) -> ReadingAgent:
    if spec in ("oracle", "lexical"):
        return ReadingAgent(label=spec, kind="oracle" if spec == "oracle" else "lexical")
    name, _, behind = spec.partition(":")
    if name == "noisy":
        try:
            miss, false_yes = (float(part) for part in behind.split(","))
        except ValueError as error:
            raise InvalidSetting(
                f"--agents: expected noisy:MISS,FALSE_YES with two chances, got {spec!r}"
            ) from error
        if not (0 <= miss <= 1 and 0 <= false_yes <= 1):
            raise InvalidSetting(f"--agents: {spec}: chances are from 0 to 1")
        return ReadingAgent(label=spec, kind="noisy", miss=miss, false_yes=false_yes)
    if (name == "hf" and behind) or name in ("http", "https"):
        return ReadingAgent(label=spec, kind="model", place=spec)
    raise InvalidSetting(f"--agents: {_EXPECTED}, got {spec!r}")
