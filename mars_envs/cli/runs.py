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
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ..errors import InvalidSetting

RUNS = Path("runs")
_NOT_IDENTITY = ("resume", "run_dir", "out", "verdicts", "sandbox", "workers", "concurrency")
"""Settings that do not change what a run computes, so that a resumed run may differ in them."""


class RunConfig(Protocol):
    """Settings of a command that works in a run folder: a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def resume(self) -> bool:
        """Whether to go on with a run."""
        ...

    @property
    def run_name(self) -> str:
        """What a new run folder is called."""
        ...


def open_run(
    config: RunConfig, *, option: str = "run_dir", inputs: Mapping[str, str] | None = None
) -> Path:
    """Return the folder of the run that `config` asks for, made or found.

    Args:
        config: the settings.
        option: which of them names the folder.
        inputs: what else the run depends on (the contents of files, say); a run is resumed only
            with the same.

    Raises:
        InvalidSetting: the folder holds another run, or there is nothing to resume.
        OSError: the folder cannot be written.
    """
    settings = dataclasses.asdict(config)
    if inputs is not None:
        settings["inputs"] = dict(inputs)
    chosen = settings[option]
    if config.resume:
        return _find(settings, option)
    folder = Path(chosen) if chosen else _free_folder(config.run_name)
    if folder.exists() and not folder.is_dir():
        raise InvalidSetting(f"{_flag(option)} {folder}: expected a folder, got a file")
    # A run that ended while it wrote its settings has done nothing yet.
    if folder.exists() and any(path.name != "config.partial" for path in folder.iterdir()):
        raise InvalidSetting(
            f"{folder} is not empty; add --resume to go on with the run in it, or choose another "
            f"folder with {_flag(option)}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", settings)
    return folder


@contextlib.contextmanager
def alone_in(folder: Path, *, option: str = "run_dir") -> Iterator[None]:
    """Keep other processes out of a run folder; the kernel lets go when this one dies.

    Args:
        folder: of a run.
        option: the setting that names it.

    Raises:
        InvalidSetting: another process works in it.
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidSetting(
                f"another process works in {folder}; wait for it to end, or choose another folder "
                f"with {_flag(option)}"
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
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def provenance() -> dict[str, str]:
    """Return what says where results are from, and no more: the command, and versions."""
    return {
        "command": shlex.join(["mars-envs", *sys.argv[1:]]),
        "mars_envs": version("mars-envs"),
        "numpy": version("numpy"),
        "python": platform.python_version(),
    }


def identity(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that define what a run computes."""
    return {key: value for key, value in settings.items() if key not in _NOT_IDENTITY}


def _find(wanted: dict[str, Any], option: str) -> Path:
    chosen = wanted[option]
    if chosen:
        folder = Path(chosen)
        found = _settings(folder)
        if found is None:
            raise InvalidSetting(f"{folder} holds no run to resume (it has no config.json)")
        details = ", ".join(_differences(found, wanted))
        if details:
            raise InvalidSetting(f"{folder} holds a run with other settings: {details}")
        return folder
    runs = sorted(RUNS.glob("*/config.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in runs:
        found = _settings(path.parent)
        unfinished = not (path.parent / "results.json").exists()
        if unfinished and found is not None and identity(found) == identity(wanted):
            return path.parent
    raise InvalidSetting(
        f"no unfinished run with these settings in {RUNS}/; start one without --resume"
    )


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for key, value in identity(wanted).items():
        before = found.get(key)
        if key == "inputs" and isinstance(before, dict):
            for name in sorted(before.keys() | value.keys()):
                if before.get(name) != value.get(name):
                    yield f"{name} has changed since"
        elif before != value:
            yield f"{_flag(key)} is {before} there and {value} here"


def _settings(folder: Path) -> dict[str, Any] | None:
    try:
        settings = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    return settings if isinstance(settings, dict) else None


def _free_folder(name: str) -> Path:
    number, folder = 1, RUNS / name
    while folder.exists():
        number += 1
        folder = RUNS / f"{name}-{number}"
    return folder


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")
