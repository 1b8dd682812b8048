"""The files of a problem package, in a folder or in an archive.

A package may come from anywhere: a link leads to no file outside it, and whatever is damaged in it
is an `InvalidTask` that names the file.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import InvalidTask

Place = Path | zipfile.Path
"""A file or folder of a package, on disk or in an archive."""


class PackageFiles:
    """The files of a package; complaints name them."""

    def __init__(self, root: Place, where: str, real: Path | None) -> None:
        self.root = root
        self.where = where
        self._real = real  # links of a package on disk may not lead out of it

    def error(self, file: str, expected: str, *, fix: str) -> InvalidTask:
        """Say what is wrong with a file; the caller raises it."""
        return InvalidTask(f"{self.where}/{file}: expected {expected}; {fix}")

    def folder(self, *names: str) -> str:
        """Return the first of some names of a folder, as the versions of the format have it."""
        return next((name for name in names if (self.root / name).is_dir()), names[0])

    def files(self, folder: str, *suffixes: str) -> list[str]:
        """Return the files below a folder that end so, in the order of their names."""
        root = self.root
        below = _in_folder(root, folder) if isinstance(root, Path) else _in_archive(root, folder)
        return sorted({name for name in below if name.endswith(suffixes)})

    def has(self, file: str) -> bool:
        """Whether there is a file of that name."""
        return (self.root / file).is_file()

    def text(self, file: str) -> str:
        """Return what a file holds.

        Raises:
            InvalidTask: it cannot be read, is no UTF-8, or is a link that leads out of the package.
        """
        data = self._bytes(file, hops=8)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(file, "UTF-8 text", fix="save the file as UTF-8") from error

    def _bytes(self, file: str, hops: int) -> bytes:
        place = self.root / file
        if isinstance(place, zipfile.Path):
            try:
                info = place.root.getinfo(place.at)
                data = place.read_bytes()
            except Exception as error:  # of encryption, or of whatever unpacks the file
                raise self._unreadable(file, error) from error
            if not stat.S_ISLNK(info.external_attr >> 16):
                return data
            # A link in an archive is a file that holds the path of its target.
            target = _normal(PurePosixPath(file).parent / data.decode("utf-8", "replace"))
            if target is None or not hops or not self.has(target):
                raise self.error(file, "a link to a file of the package", fix="put the file there")
            return self._bytes(target, hops - 1)
        real = Path(os.path.realpath(place))  # `resolve` would raise on a link to itself
        if self._real is None or not real.is_relative_to(self._real):
            raise self.error(file, "a link to a file of the package", fix="put the file there")
        if real.exists() and not real.is_file():
            raise self.error(file, "a regular file", fix="remove it")  # a pipe would block
        try:
            return place.read_bytes()
        except OSError as error:
            raise self._unreadable(file, error) from error

    def _unreadable(self, file: str, error: Exception) -> InvalidTask:
        text = getattr(error, "strerror", None) or error
        return self.error(file, f"a readable file ({text})", fix="download or pack it again")

    def yaml(self, file: str) -> Mapping[str, Any]:
        """Return what a YAML file says; nothing where it is not there.

        Raises:
            InvalidTask: it cannot be read, or holds no keys with values.
        """
        if not self.has(file):
            return {}
        import yaml

        source = self.text(file)
        try:
            data = yaml.safe_load(source)
        except Exception as error:  # PyYAML has no error of its own for a bad date or number
            text = " ".join(str(error).split())
            raise self.error(file, f"YAML ({text})", fix="correct it") from error
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise self.error(file, "keys with values", fix="write `key: value` in each line")
        return data


def _in_folder(root: Path, folder: str) -> Iterator[str]:
    """Yield the files below a folder; links to folders are not followed."""
    waiting = [root / folder] if (root / folder).is_dir() else []
    while waiting:
        for entry in waiting.pop().iterdir():
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            else:
                yield entry.relative_to(root).as_posix()


def _in_archive(root: zipfile.Path, folder: str) -> Iterator[str]:
    """Yield the files below a folder; `iterdir` would read through all names for each folder."""
    start = f"{root.at}{folder}/"
    for name in root.root.namelist():
        if name.startswith(start) and not name.endswith("/"):
            yield name.removeprefix(root.at)


def _normal(path: PurePosixPath) -> str | None:
    """Return a path without `..`; None where it leads out of the package."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return None if path.is_absolute() else "/".join(parts)
