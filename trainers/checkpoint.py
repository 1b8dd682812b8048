"""Checkpoints of a run: written whole or not at all, checked before they are believed.

A checkpoint is `step-000012.pt`, and `step-000012.json`, which says what the first must hash to and
which configuration it belongs to. The second is written last, so a checkpoint without it does not
exist. Both are written to a temporary file, flushed to the disk and then renamed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, Any

import torch

from .errors import CheckpointError

FORMAT = 1

_log = logging.getLogger(__name__)


class CheckpointStore:
    """The checkpoints in one folder.

    Args:
        folder: made when the first checkpoint is saved.
        keep: how many checkpoints are kept; the oldest go first.
    """

    def __init__(self, folder: str | Path, *, keep: int = 2) -> None:
        self.folder = Path(folder)
        self.keep = keep

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints, in order."""
        return sorted(int(path.stem.removeprefix("step-")) for path in self._labels())

    def save(self, step: int, state: Mapping[str, Any], *, identity: Mapping[str, Any]) -> Path:
        """Save the state of `step`, then remove what is too old.

        Args:
            step: names the checkpoint; one that is there already is replaced.
            state: tensors and plain data (what `torch.load(weights_only=True)` accepts).
            identity: what defines the run, as JSON data; `load` compares it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        payload = self._path(step, ".pt")
        _write(payload, lambda file: torch.save(dict(state), file))
        label = {
            "format": FORMAT,
            "step": step,
            "sha256": _sha256(payload),
            "identity": identity,
        }
        text = json.dumps(label, indent=1, sort_keys=True)
        _write(self._path(step, ".json"), lambda file: file.write(text.encode()))
        self._prune()
        return payload

    def load(
        self, *, identity: Mapping[str, Any], may_differ: Collection[str] = ()
    ) -> tuple[int, dict[str, Any]]:
        """Load the newest checkpoint that is whole; damaged ones are set aside with a warning.

        Args:
            identity: what defines the run that wants to go on.
            may_differ: entries of it that need not be the same.

        Returns:
            The step and its state, tensors on the CPU.

        Raises:
            CheckpointError: there is none, all are damaged, or it belongs to another configuration.
        """
        wanted = json.loads(json.dumps(identity))
        steps = self.steps()
        if not steps:
            raise CheckpointError(f"there is no checkpoint in {self.folder}; start a new run")
        for step in reversed(steps):
            try:
                label = self._read_label(step)
            except _DamagedError as damage:
                self._set_aside(step, damage)
                continue
            _compare(self._path(step, ".json"), label["identity"], wanted, may_differ)
            try:
                return step, self._read_state(step, label["sha256"])
            except _DamagedError as damage:
                self._set_aside(step, damage)
        raise CheckpointError(
            f"no checkpoint in {self.folder} can be read: those of steps {steps} are damaged; "
            "start a new run"
        )

    def _labels(self) -> list[Path]:
        labels = self.folder.glob("step-*.json")
        return [path for path in labels if path.stem.removeprefix("step-").isdecimal()]

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"step-{step:06d}{suffix}"

    def _read_label(self, step: int) -> dict[str, Any]:
        try:
            label = json.loads(self._path(step, ".json").read_bytes())
            known = {"identity": label["identity"], "sha256": label["sha256"]}
            version = label["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _DamagedError(f"its label cannot be read ({error!r})") from error
        if not isinstance(known["identity"], dict) or not isinstance(known["sha256"], str):
            raise _DamagedError("its label holds something else than was written")
        if version != FORMAT:
            raise CheckpointError(
                f"{self._path(step, '.json')} has format {version}, this release reads {FORMAT}"
            )
        return known

    def _read_state(self, step: int, sha256: str) -> dict[str, Any]:
        path = self._path(step, ".pt")
        try:
            if _sha256(path) != sha256:
                raise _DamagedError("its content is not what was written")
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except OSError as error:
            raise _DamagedError(str(error)) from error
        except pickle.UnpicklingError as error:
            raise _DamagedError("it holds more than tensors and plain data") from error
        return state

    def _set_aside(self, step: int, damage: Exception) -> None:
        # Out of the way, or it would count among the newest when old checkpoints are removed.
        label = self._path(step, ".json")
        label.replace(label.with_suffix(".damaged"))
        _log.warning("checkpoint of step %d is damaged (%s); trying an older one", step, damage)

    def _prune(self) -> None:
        for step in self.steps()[: -self.keep]:
            self._path(step, ".json").unlink()
        kept = {path.stem for path in self._labels()}
        for path in self.folder.glob("step-*"):
            if path.suffix in (".pt", ".tmp") and path.name.split(".")[0] not in kept:
                path.unlink()


class _DamagedError(Exception):
    """A checkpoint that cannot be believed."""


def _compare(
    path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any], may_differ: Collection[str]
) -> None:
    names = sorted((set(stored) | set(wanted)) - set(may_differ))
    missing = "(nothing)"
    differing = [
        f"{name}: {stored.get(name, missing)!r} there, {wanted.get(name, missing)!r} here"
        for name in names
        if stored.get(name, missing) != wanted.get(name, missing)
    ]
    if differing:
        raise CheckpointError(
            f"{path} belongs to another configuration ({'; '.join(differing)}); use the same "
            "settings, or another run folder"
        )


def _write(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
