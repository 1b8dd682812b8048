"""Reading records from files: JSON lines (also gzipped), JSON, parquet, packages, folders of these.

Lines are read one at a time, so a file may be larger than memory; a `.json` file is read whole.
Something that is no record comes out as the error it is, in its place, and the reading goes on.
"""

from __future__ import annotations

import gzip
import json
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
    if path.is_dir():
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
    return path.name.split(".")[0] or path.name


def _read_folder(folder: Path, language: str) -> Iterator[Record | InvalidTask]:
    if kattis_package.is_package(folder):
        yield from kattis_package.read(folder, folder.resolve().name, language=language)
        return
    found = False
    for path in _below(folder):
        found = True
        origin = path.relative_to(folder).as_posix()
        if path.is_dir():
            yield from kattis_package.read(path, origin, language=language)
        else:
            name = origin[: len(origin) - len(path.name)] + _stem(path)
            yield from _read_file(path, name, language)
    if not found:
        raise InvalidTask(
            f"{folder}: expected a folder with {', '.join(SUFFIXES)} files or with problem "
            "packages (folders with a problem.yaml), found none; name another folder, or a file"
        )


def _below(folder: Path) -> Iterator[Path]:
    """Yield packages and data files below a folder, by name, nothing from within a package."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if kattis_package.is_package(path):
                yield path
            elif not path.is_symlink():  # which might lead back up
                yield from _below(path)
        elif path.name.lower().endswith(SUFFIXES):
            yield path


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
    except OSError as error:
        raise InvalidTask(
            f"cannot read the task file {path}: {error.strerror or error}; check the path (it is "
            "relative to the current folder)"
        ) from error


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


def _broken(path: Path, line: int, error: Exception) -> InvalidTask:
    return InvalidTask(
        f"{path}, line {line}: expected a whole file, got one that is cut off or damaged "
        f"({error}); download or compress it again"
    )
