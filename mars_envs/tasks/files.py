"""Reading records from files: JSON lines (also gzipped), JSON, parquet, packages, folders of these.

Lines are read one at a time, so a file may be larger than memory; a `.json` file is read whole.
Something that is no record comes out as the error it is, in its place, and the reading goes on.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..errors import InvalidTask
from . import kattis_package
from .records import Record, describe

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet", ".zip", ".kpp")
"""Of the files that a folder is searched for."""

_BATCH = 16
"""Rows of a parquet file in memory at once: one may hold a hundred megabytes of tests."""


def read_records(path: Path, *, language: str = "en") -> Iterator[Record | InvalidTask]:
    """Yield the records of a file or folder, in order; what is no record comes as the error it is.

    Args:
        path: a file in one of `SUFFIXES` (any other is read as JSON lines), a Kattis-style package
            (a folder or an archive), or a folder that holds such.
        language: of the statements of packages, where they have several.

    Raises:
        InvalidTask: there is nothing to read.
    """
    if os.path.isdir(path):  # which says no where `Path.is_dir` may raise
        yield from _read_folder(path, language)
    else:
        yield from _read_file(path, _stem(path), language)


def jsonable(value: Any) -> Any:
    """Return a row's value as JSON data: dates, as parquet files have them, become strings."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    return value


def _stem(path: Path) -> str:
    """Return the name of a file without its suffix, as text that UTF-8 can encode."""
    name = path.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    known = [suffix for suffix in SUFFIXES if name.lower().endswith(suffix)]
    return name.removesuffix(name[-len(max(known, key=len)) :] if known else path.suffix) or name


def _read_folder(folder: Path, language: str) -> Iterator[Record | InvalidTask]:
    if kattis_package.is_package(folder):
        yield from kattis_package.read(folder, folder.resolve().name, language=language)
        return
    found = False
    names: set[str] = set()
    for path in _below(folder):
        found = True
        if isinstance(path, InvalidTask):
            yield path
            continue
        whole = path.relative_to(folder)
        if path.is_dir():
            names.add(whole.as_posix())
            yield from kattis_package.read(path, whole.as_posix(), language=language)
            continue
        name = whole.with_name(_stem(path)).as_posix()
        name = whole.as_posix() if name in names else name  # train.json, train.jsonl
        names.add(name)
        yield from _read_file(path, name, language)
    if not found:
        raise InvalidTask(
            f"{folder}: expected a folder with {', '.join(SUFFIXES)} files or with problem "
            "packages (folders with a problem.yaml), found none; name another folder, or a file"
        )


def _below(folder: Path) -> Iterator[Path | InvalidTask]:
    """Yield packages and data files below a folder, by name, nothing from within a package.

    What cannot be read comes as the error it is: a link that leads nowhere is no reason to stop.
    """
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            if path == folder or (path.is_dir() and not kattis_package.is_package(path)):
                if path == folder or not path.is_symlink():  # which might lead back up
                    waiting += sorted(_shown(path), reverse=True)
            elif path.is_dir():
                yield path
            elif path.name.lower().endswith(SUFFIXES):
                _check_regular(path)
                yield path
        except OSError as error:
            yield _unreadable(path, error)


def _shown(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def _check_regular(path: Path) -> None:
    """Check that a file can be opened; opening a pipe would wait for its writer, for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no regular file")
    path.open("rb").close()


def _read_file(path: Path, origin: str, language: str) -> Iterator[Record | InvalidTask]:
    name = path.name.lower()
    if name.endswith((".zip", ".kpp")):
        return kattis_package.read_archive(path, origin, language=language)
    if name.endswith(".parquet"):
        return _read_parquet(path, origin)
    if name.endswith((".json", ".json.gz")):
        return _read_json(path, origin)
    return _read_lines(path, origin)


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    try:
        if path.name.lower().endswith(".gz"):
            return gzip.open(path, "rb")
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _read_lines(path: Path, origin: str) -> Iterator[Record | InvalidTask]:
    number = 0
    with _open(path) as file:
        lines = iter(file)
        while True:
            try:
                raw = next(lines, None)
            except (EOFError, OSError, zlib.error) as error:
                yield _broken(path, number + 1, error)
                return
            if raw is None:
                return
            number += 1
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if raw.strip():
                yield _record_of_line(raw, path, number, origin)


def _record_of_line(raw: bytes, path: Path, number: int, origin: str) -> Record | InvalidTask:
    place = f"{path}, line {number}"
    try:
        data = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        return InvalidTask(
            f"{place}: expected UTF-8 text, got the byte 0x{raw[error.start]:02x}; save the file "
            "as UTF-8"
        )
    except (ValueError, RecursionError) as error:
        return InvalidTask(
            f"{place}: expected one JSON object, got text that is no JSON ({error}); write each "
            "record on a single line"
        )
    if isinstance(data, dict):
        return Record(file=str(path), line=number, data=data, origin=origin)
    return InvalidTask(
        f"{place}: expected one JSON object, got {describe(data)}; write one object per line "
        "(JSONL), not a list of them"
    )


def _read_json(path: Path, origin: str) -> Iterator[Record | InvalidTask]:
    """Read a list of records, an object of records by id, one record, or, after all, lines."""
    try:
        with _open(path) as file:
            text = file.read().decode("utf-8-sig")
    except (EOFError, OSError, zlib.error) as error:
        yield _broken(path, 1, error)
        return
    except UnicodeDecodeError as error:
        yield InvalidTask(f"{path}: expected UTF-8 text ({error.reason}); save the file as UTF-8")
        return
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            yield from _read_lines(path, origin)
        else:
            yield InvalidTask(
                f"{path}: expected a JSON list of records, got text that is no JSON ({error})"
            )
        return
    entries: Iterable[Any] = [data]
    if isinstance(data, list):
        entries = data
    elif isinstance(data, dict) and data and all(isinstance(v, dict) for v in data.values()):
        entries = ({"task_id": key, **value} for key, value in data.items())
    for number, entry in enumerate(entries, start=1):
        if isinstance(entry, dict):
            yield Record(file=str(path), line=number, data=entry, origin=origin, unit="entry")
        else:
            yield InvalidTask(
                f"{path}, entry {number}: expected a JSON object, got {describe(entry)}; write "
                "one object per record"
            )


def _read_parquet(path: Path, origin: str) -> Iterator[Record | InvalidTask]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise InvalidTask(
            f"{path}: parquet files need pyarrow, which is not installed; pip install "
            "'mars-envs[hub]', or convert the file to JSON lines"
        ) from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(
                        file=str(path),
                        line=number,
                        data=jsonable(row),
                        origin=origin,
                        unit="row",
                    )
    except (OSError, pyarrow.ArrowException) as error:
        yield InvalidTask(
            f"{path}, row {number + 1}: expected a parquet file, got one that cannot be read "
            f"({error}); download or write it again"
        )


def _unreadable(path: Path, error: Exception) -> InvalidTask:
    return InvalidTask(
        f"cannot read the task file {path}: {getattr(error, 'strerror', None) or error}; check the "
        "path (it is relative to the current folder)"
    )


def _broken(path: Path, line: int, error: Exception) -> InvalidTask:
    return InvalidTask(
        f"{path}, line {line}: expected a whole file, got one that is cut off or damaged "
        f"({error}); download or compress it again"
    )
