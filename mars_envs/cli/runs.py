"""Run folders: one folder a run, named after what it does, never written over.

A run is finished once it holds `results.json`. A folder remembers its settings in `config.json`, so
that a run can only be resumed with the settings that it was started with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InvalidSetting
from .config import DemoConfig

RUNS = Path("runs")
_NOT_IDENTITY = ("resume", "run_dir", "sandbox", "workers")
"""Settings that do not change what a run computes, so that a resumed run may differ in them."""


def open_run(config: DemoConfig) -> Path:
    """Return the folder of the run that `config` asks for, made or found.

    Raises:
        InvalidSetting: `run_dir` holds another run, or there is nothing to resume.
    """
    if config.resume:
        return _find(config)
    folder = Path(config.run_dir) if config.run_dir else _free_folder(config)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidSetting(
            f"{folder} is not empty; add --resume to go on with the run in it, or choose another "
            "folder with --run-dir"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", dataclasses.asdict(config))
    return folder


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run folder; the kernel lets go when this one dies.

    Raises:
        InvalidSetting: another process works in it.
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidSetting(
                f"another process works in {folder}; wait for it to end, or choose another folder "
                "with --run-dir"
            ) from error
        yield


def write_json(path: Path, content: Any) -> None:
    """Write `content` so that the file is either whole or absent."""
    partial = path.with_suffix(".partial")
    text = json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False)
    partial.write_text(text + "\n")
    os.replace(partial, path)


def _finite(content: Any) -> Any:
    """Replace NaN, which JSON does not know, by None: nothing was measured."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def identity(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that define what a run computes."""
    return {key: value for key, value in settings.items() if key not in _NOT_IDENTITY}


def _find(config: DemoConfig) -> Path:
    wanted = identity(dataclasses.asdict(config))
    if config.run_dir:
        folder = Path(config.run_dir)
        settings = _settings(folder)
        if settings is None:
            raise InvalidSetting(f"{folder} holds no run to resume (it has no config.json)")
        found = identity(settings)
        differing = [key for key in wanted if found.get(key) != wanted[key]]
        if differing:
            details = ", ".join(
                f"--{key.replace('_', '-')} is {found.get(key)} there and {wanted[key]} here"
                for key in differing
            )
            raise InvalidSetting(f"{folder} holds a run with other settings: {details}")
        return folder
    runs = sorted(RUNS.glob("*/config.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in runs:
        settings = _settings(path.parent)
        unfinished = not (path.parent / "results.json").exists()
        if unfinished and settings is not None and identity(settings) == wanted:
            return path.parent
    raise InvalidSetting(
        f"no unfinished run with these settings in {RUNS}/; start one without --resume"
    )


def _settings(folder: Path) -> dict[str, Any] | None:
    try:
        settings = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    return settings if isinstance(settings, dict) else None


def _free_folder(config: DemoConfig) -> Path:
    name = f"demo-{'baseline' if config.baseline else 'tree'}-seed{config.seed}"
    number, folder = 1, RUNS / name
    while folder.exists():
        number += 1
        folder = RUNS / f"{name}-{number}"
    return folder
