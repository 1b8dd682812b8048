"""The growing files of a run folder: `metrics.jsonl` and `rollouts.jsonl`.

Both only grow, except when a run goes on from a checkpoint: then they are cut back to where they
were when it was made, and nothing is in them twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import CheckpointError, ConfigError, RolloutFormatError
from .rollout import Rollout, append_rollouts

Metrics = dict[str, int | float | None]
"""One step's figures under flat names; None where there was nothing to measure."""

METRICS = "metrics.jsonl"
ROLLOUTS = "rollouts.jsonl"


class RunLog:
    """The logs in one run folder, which is made if it does not exist."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def require_empty(self) -> None:
        """Refuse to mix two runs.

        Raises:
            ConfigError: there is something in the logs.
        """
        if any(self.sizes().values()):
            raise ConfigError(
                f"{self.folder} holds a run already; resume it, or choose another folder"
            )

    def write_metrics(self, metrics: Mapping[str, int | float | None]) -> None:
        """Add one line of metrics."""
        with (self.folder / METRICS).open("a", encoding="ascii") as file:
            file.write(json.dumps(metrics) + "\n")

    def read_metrics(self) -> list[Metrics]:
        """Return all metrics so far.

        Raises:
            RolloutFormatError: a line cannot be read.
        """
        path = self.folder / METRICS
        if not path.exists():
            return []
        records = []
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise RolloutFormatError(
                    f"{path}, line {number}: expected one JSON object, got something else "
                    f"({error}); the file is damaged, start a new run"
                ) from error
        return records

    def write_rollouts(self, rollouts: Iterable[Rollout]) -> None:
        """Add rollouts, one line each."""
        append_rollouts(self.folder / ROLLOUTS, rollouts)

    def sizes(self) -> dict[str, int]:
        """The logs' sizes in bytes; files that are not there have 0."""
        paths = {name: self.folder / name for name in (METRICS, ROLLOUTS)}
        return {name: p.stat().st_size if p.exists() else 0 for name, p in paths.items()}

    def cut_back(self, sizes: Mapping[str, int]) -> None:
        """Shorten the logs to what `sizes` once returned.

        Raises:
            CheckpointError: a log is shorter than that: it was edited or belongs to another run.
        """
        now = self.sizes()
        for name, size in sizes.items():
            if now[name] < size:
                raise CheckpointError(
                    f"{self.folder / name} has {now[name]} bytes, but had {size} when the "
                    "checkpoint was made; put the file back, or start a new run"
                )
            if now[name] > size:
                os.truncate(self.folder / name, size)
