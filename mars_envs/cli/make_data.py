"""`mars-envs make-data reading`: write reading tasks of any length to a folder of shards.

Tasks are built one after the other and written as they come, so memory does not grow with the
length of a document, and an interrupted run goes on where it stopped, to the same bytes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, overload

from ..errors import InvalidSetting
from ..reading.load import RULER_PREFIX, load_reading_tasks
from ..reading.shards import MANIFEST, write_shards
from ..reading.synthetic import FAMILIES, SyntheticTasks, check_evidence
from ..reading.task import ReadingTask
from .console import console, progress
from .reading_config import MakeReadingConfig
from .sheets import Sheet

SUMS: Final = "SHA256SUMS"
"""What `sha256sum --check` reads."""

_LENGTHENED: Final = ("hotpotqa", "musique")
_SHARD_TOKENS: Final = 4_000_000  # about: what an interruption loses at most
_LARGEST_SHARD: Final = 64
_SAMPLE: Final = 2_000


def make_reading(config: MakeReadingConfig) -> int:
    """Write the tasks and print what there is now."""
    tasks, identity = _tasks(config)
    folder = Path(config.out)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder), progress() as bar:
        row = bar.add_task(config.family, total=len(tasks), note="")
        report = write_shards(
            _Checked(tasks) if config.check else tasks,
            folder,
            shard_size=config.shard_size or _shard_size(config),
            identity=identity,
            resume=config.resume,
            progress=lambda count: bar.update(row, completed=count),
        )
        bar.update(row, note="checksums")
        sums = _write_sums(folder)
        bar.update(row, note="")
    console.print(_sheet(config, folder, report.written).to_rich())
    console.print(f"sha256 of {folder / SUMS}: {sums}", markup=False, soft_wrap=True)
    name = f"./{config.out}" if config.out in FAMILIES else config.out  # not the family
    console.print(f"read it with load_reading_tasks({name!r})", markup=False, soft_wrap=True)
    return 0


def _tasks(config: MakeReadingConfig) -> tuple[Sequence[ReadingTask], dict[str, Any]]:
    """Return the tasks, and plain data that says what they are."""
    options = _options(config)
    if config.family in _LENGTHENED:
        if config.source is None:
            raise InvalidSetting(f"--family {config.family} needs --source, a file with its items")
        source = config.source
    elif config.family in FAMILIES or config.family.startswith(RULER_PREFIX):
        source = config.family
    else:
        raise InvalidSetting(
            f"no family {config.family!r}; there are {', '.join(FAMILIES)}, {RULER_PREFIX}TASK "
            f"and, with --source, {', '.join(_LENGTHENED)}"
        )
    try:
        tasks = load_reading_tasks(source, **options)
    except (TypeError, ValueError) as error:
        raise InvalidSetting(str(error)) from error
    if config.check and config.family not in FAMILIES:
        raise InvalidSetting("--check is for synthetic families, which have a solver")
    identity = {"family": config.family, **options}
    if isinstance(tasks, SyntheticTasks):
        # Another version of the grammar writes other texts: they are not to be mixed.
        identity["sample"] = tasks.recipe.sample(_SAMPLE).document.digest
    else:
        for name in ("source", "pool"):
            path = getattr(config, name)
            if path is not None:
                identity[name] = _content(Path(path))
    return tasks, identity


def _options(config: MakeReadingConfig) -> dict[str, Any]:
    """Return what `load_reading_tasks` is told.

    Raises:
        InvalidSetting: an option is given that the family does not have.
    """
    lengthened = config.family in _LENGTHENED
    generated = ("split", "chunk_tokens", "placement", "order")
    for name in generated if lengthened else ("documents", "source", "pool"):
        if getattr(config, name) is not None:
            option = name.replace("_", "-")
            raise InvalidSetting(f"--family {config.family} has no --{option}")
    options: dict[str, Any] = {"seed": config.seed, "tokenizer": config.tokenizer}
    if lengthened:
        if config.tokens is None and config.documents is None:
            raise InvalidSetting(f"--family {config.family} needs --tokens or --documents")
        options |= {"format": config.family, "fill": config.fill}
        options |= _given(config, "tokens", "documents", "pool")
        options |= {"limit": config.n} if config.n is not None else {}
    else:
        options |= _given(config, "tokens", "n", *generated)
    for word in config.options:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidSetting(f"--options takes NAME=VALUE, got {word!r}")
        if name in options:
            raise InvalidSetting(f"{name} is set twice, once in --options")
        options[name] = value
    return options


def _given(config: MakeReadingConfig, *names: str) -> dict[str, Any]:
    values = {name: getattr(config, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _shard_size(config: MakeReadingConfig) -> int:
    """Return how many tasks a file has: it is written again if it is interrupted."""
    if config.tokens is None:
        return _LARGEST_SHARD
    return max(1, min(_LARGEST_SHARD, _SHARD_TOKENS // config.tokens))


class _Checked(Sequence[ReadingTask]):
    """Tasks whose evidence is checked when they are built."""

    def __init__(self, tasks: Sequence[ReadingTask]) -> None:
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ReadingTask]: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | Sequence[ReadingTask]:
        if isinstance(index, slice):
            return _Checked(self._tasks[index])
        task = self._tasks[index]
        check_evidence(task)
        return task


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a folder; the kernel lets go when this one dies."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise InvalidSetting(
            f"another process writes to {folder}; wait for it to end, or choose another --out"
        ) from error
    finally:
        os.close(lock)


def _write_sums(folder: Path) -> str:
    """Write the checksum of every file, once all are there, and return that of the checksums."""
    path = folder / SUMS
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        lines = [f"{_sha256(file)}  {file.relative_to(folder).as_posix()}\n" for file in files]
        partial.write_text("".join(lines), encoding="utf-8")
        os.replace(partial, path)
    return _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content(path: Path) -> str:
    """Return a checksum of a file or of all files of a folder."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return hashlib.sha256("".join(map(_sha256, files)).encode()).hexdigest()


def _sheet(config: MakeReadingConfig, folder: Path, written: int) -> Sheet:
    """Say what stands in a folder, from its files."""
    evidence, hops, answers = [], [], []
    for path in sorted(folder.glob("[0-9]*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for line in file:
                task = json.loads(line)
                evidence.append(len(task["evidence"]))
                hops.append(task["hops"])
                answers.append(len(task["answers"]))
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    length = f"{config.documents:,} passages" if config.documents else f"{config.tokens or 8000:,}"
    return Sheet(
        title=f"{config.family}: {folder}",
        columns=("tasks", "written now", "tokens", "hops", "evidence", "answers", "shards", "MB"),
        rows=[
            (
                f"{len(hops):,}",
                f"{written:,}",
                length,
                _range(hops),
                _range(evidence),
                _range(answers),
                f"{manifest['shards']:,}",
                f"{size / 1e6:,.1f}",
            )
        ],
    )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low}-{high}"
