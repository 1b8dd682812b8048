"""Tasks on disk, however many and however long: a folder of shards that is written as a stream.

    plan.json                what is being written; kept
    00000.jsonl, ...         shards of tasks, in the format of `records`
    documents/00000/3.txt    long documents, in files of their own, and 3.parts.json beside them
    pool.jsonl               the passages that long contexts are made of, once for all tasks
    manifest.json            written last: the ids of all tasks

At no time is more than one task in memory (long contexts: and the pool). A shard appears under its
name when it is whole, so a run that was stopped goes on behind the last one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, overload

from ..errors import InvalidSetting, InvalidTask
from ..tasks.records import Record
from .chunking import blocks
from .document import Document
from .joined import JoinedDocument, Passage
from .records import Pools, part_to_json, passage_to_json, task_from_record, task_to_json
from .task import ReadingTask

MANIFEST: Final = "manifest.json"
PLAN: Final = "plan.json"

_FORMAT: Final = "mars_envs.reading"
_VERSION: Final = 1
_POOL: Final = "pool.jsonl"
_UNFINISHED: Final = re.compile(
    r"plan\.json|pool\.jsonl|(plan\.json|pool\.jsonl|\d{5,}\.jsonl)\.partial"
    r"|documents/\d{5,}/\d+\.(txt|parts\.json)"
)
"""Files that a run leaves which has not finished a shard."""


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What `write_shards` has done."""

    folder: Path
    tasks: int
    """In the folder."""
    shards: int
    """Likewise."""
    written: int
    """Tasks that were written now; the others were there."""


def write_shards(
    tasks: Sequence[ReadingTask],
    folder: str | os.PathLike[str],
    *,
    shard_size: int = 64,
    inline: int = 1 << 20,
    identity: Mapping[str, Any] | None = None,
    resume: bool = False,
    progress: Callable[[int], object] | None = None,
) -> ShardReport:
    """Write tasks to a folder that `load_reading_tasks` reads.

    Args:
        tasks: may make each task on demand; each is asked for once.
        folder: is made.
        shard_size: tasks of a file.
        inline: characters up to which a document stands in the line of its task.
        identity: plain data that says what the tasks are: their source and its options. A folder
            is gone on with only for the same.
        resume: go on with a folder that was begun; a finished one stays as it is. A folder in
            which no shard was finished has nothing to go on with: it is begun anew, with any
            settings.
        progress: is told after each task how many there are.

    Raises:
        InvalidSetting: the folder holds something else, or finished shards of other settings, or
            finished shards and `resume` is not set.
        OSError: it cannot be written.
    """
    if shard_size < 1:
        raise InvalidSetting(f"shard_size must be at least 1, got {shard_size}")
    folder = Path(folder)
    plan = {
        "format": _FORMAT,
        "version": _VERSION,
        "tasks": len(tasks),
        "shard_size": shard_size,
        "inline": inline,
        "identity": dict(identity or {}),
    }
    _begin(folder, json.loads(json.dumps(plan)), resume)
    passages = getattr(tasks, "passages", None)
    if passages is not None and not (folder / _POOL).exists():
        _write_lines(folder / _POOL, map(passage_to_json, passages))
    count = -(-len(tasks) // shard_size)
    written = 0
    for shard in range(count):
        places = range(shard * shard_size, min(len(tasks), (shard + 1) * shard_size))
        path = folder / _name(shard)
        if not path.exists():
            _write_lines(path, _lines(tasks, places, shard, folder, passages, inline, progress))
            written += len(places)
        elif progress is not None:
            progress(places.stop)
    if not (folder / MANIFEST).exists():
        ids = [data["task_id"] for data in _all_lines(folder, count)]
        if len(set(ids)) < len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise InvalidSetting(f"the task id {twice!r} comes twice; give each task its own")
        _write_json(folder / MANIFEST, {**plan, "shards": count, "ids": ids})
    return ShardReport(folder, len(tasks), count, written)


class ShardedTasks(Sequence[ReadingTask]):
    """The tasks of a folder of shards; each is read when it is asked for.

    Args:
        folder: that `write_shards` has finished.
        places: which of its tasks; None: all.

    Raises:
        InvalidTask: it is no such folder.
    """

    def __init__(self, folder: Path, places: range | None = None) -> None:
        self.folder = folder.absolute()
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            ids, self._size = tuple(manifest["ids"]), int(manifest["shard_size"])
            found = manifest["format"], manifest["version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidTask(
                f"{folder / MANIFEST}: expected what write_shards writes, got something that "
                f"cannot be read ({error}); write the tasks again"
            ) from error
        if found != (_FORMAT, _VERSION):
            raise InvalidTask(
                f"{folder / MANIFEST}: expected format {_FORMAT!r}, version {_VERSION}, got "
                f"{found[0]!r}, version {found[1]!r}; write the tasks again"
            )
        self._places = range(len(ids)) if places is None else places
        self.ids = tuple(ids[place] for place in self._places)
        self._offsets: dict[int, list[int]] = {}

    @cached_property
    def _pools(self) -> Pools:
        return Pools()

    @property
    def passages(self) -> tuple[Passage, ...] | None:
        """The pool that long contexts are made of; None: there is none."""
        path = self.folder / _POOL
        return self._pools[path] if path.exists() else None

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> ShardedTasks: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | ShardedTasks:
        if isinstance(index, slice):
            return ShardedTasks(self.folder, self._places[index])
        shard, line = divmod(self._places[index], self._size)
        path = self.folder / _name(shard)
        try:
            if shard not in self._offsets:
                self._offsets[shard] = _line_starts(path)
            with path.open("rb") as file:
                file.seek(self._offsets[shard][line])
                data = json.loads(file.readline())
        except (OSError, ValueError, IndexError) as error:
            raise InvalidTask(
                f"{path}, line {line + 1}: expected a task as write_shards writes it ({error}); "
                "write the tasks again"
            ) from error
        record = Record(file=str(path), line=line + 1, data=data)
        return task_from_record(record, self._pools)

    def __getstate__(self) -> dict[str, Any]:
        # Each process reads the pool for itself: it may be large, and the file is there.
        return {name: value for name, value in self.__dict__.items() if name != "_pools"}

    def __repr__(self) -> str:
        return f"ShardedTasks({str(self.folder)!r}, {len(self)} tasks)"


def _begin(folder: Path, plan: Mapping[str, Any], resume: bool) -> None:
    found = _plan(folder)
    if found == plan and resume:
        return
    left = _unfinished(folder, found is not None)
    if left:  # a first attempt failed, or was stopped, before its first shard was whole
        for path in left:
            path.unlink()
        shutil.rmtree(folder / "documents", ignore_errors=True)
    elif found is not None and not resume:
        raise InvalidSetting(
            f"{folder} holds tasks already; give another folder, delete this one, or go on with "
            "it: resume=True (--resume)"
        )
    elif found is not None:
        changed = [name for name in plan if found.get(name) != plan[name]]
        told = "; ".join(f"{n} was {found.get(n)!r}, is {plan[n]!r}" for n in changed)
        raise InvalidSetting(
            f"{folder} was begun with other settings: {told}; go on with those, give another "
            "folder, or delete this one"
        )
    elif folder.exists() and any(folder.iterdir()):
        raise InvalidSetting(f"{folder} is not empty, and no folder of tasks; give another one")
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / PLAN, plan)


def _unfinished(folder: Path, begun: bool) -> list[Path]:
    """Return the files of a folder that holds no finished shard; empty: it holds something else."""
    if not begun:
        found = list(folder.iterdir()) if folder.exists() else []
        return found if [path.name for path in found] == [f"{PLAN}.partial"] else []
    found = [path for path in folder.rglob("*") if not path.is_dir()]
    names = (path.relative_to(folder).as_posix() for path in found)
    return found if all(map(_UNFINISHED.fullmatch, names)) else []


def _plan(folder: Path) -> dict[str, Any] | None:
    """Return what a folder was begun with; None: it is no folder of tasks."""
    try:
        found = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == _FORMAT else None


def _lines(
    tasks: Sequence[ReadingTask],
    places: range,
    shard: int,
    folder: Path,
    passages: Any,
    inline: int,
    progress: Callable[[int], object] | None,
) -> Iterator[Mapping[str, Any]]:
    for place in places:
        task = tasks[place]
        document = task.document
        stored: dict[str, Any] | None = None
        if isinstance(document, JoinedDocument) and document.passages is passages:
            order = document.order.tolist()
            stored = {"pool": _POOL, "order": order, "header": document.header}
        elif len(document) > inline:
            stored = _store(document, folder, f"documents/{shard:05d}/{place - places.start}")
        yield task_to_json(task, stored)
        if progress is not None:
            progress(place + 1)


def _store(document: Document, folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = getattr(document, "texts", None)
    pieces: Iterable[str] = texts() if texts else (text for _, text in blocks(document))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(pieces)
    stored = {"file": f"{name}.txt"}
    if document.parts:
        with (folder / f"{name}.parts.json").open("w", encoding="utf-8") as file:
            for number, part in enumerate(document.parts):
                file.write(("[" if number == 0 else ",\n") + json.dumps(part_to_json(part)))
            file.write("]\n")
        stored["parts"] = f"{name}.parts.json"
    return stored


def _write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    os.replace(partial, path)


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def _all_lines(folder: Path, shards: int) -> Iterator[Mapping[str, Any]]:
    for shard in range(shards):
        with (folder / _name(shard)).open("rb") as file:
            for line in file:
                yield json.loads(line)


def _line_starts(path: Path) -> list[int]:
    starts, position = [], 0
    with path.open("rb") as file:
        for line in file:
            starts.append(position)
            position += len(line)
    return starts


def _name(shard: int) -> str:
    return f"{shard:05d}.jsonl"
