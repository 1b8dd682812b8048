r"""Kattis-style problem packages (ICPC's, too): a folder or an archive, read into one record each.

The record has the fields that `kattis` and `submissions` read. Of a package are used:

* `problem.yaml`: name, source, license, validation, validator_flags, limits (time and memory);
* `problem_statement/problem.LANGUAGE.tex` or `.md` (also in `statement/`);
* `data/sample/*.in` with its `.ans`, and all those below `data/secret/`;
* `testdata.yaml` in their folders: `accept_score`, `output_validator_flags`;
* `.timelimit`, and `submissions/VERDICT/*.py`;
* `output_validators/`: one program in Python, in a file of its own (see `validators`).
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import InvalidTask
from .kattis import DEFAULT_TIME_LIMIT_S
from .records import Record
from .validators import checker_source

_VERDICTS = {
    "accepted": "AC",
    "wrong_answer": "WA",
    "time_limit_exceeded": "TLE",
    "run_time_error": "RTE",
    "partially_accepted": "PARTIAL",
    "rejected": "NON_AC",
}
_DEPTH = 3
"""How deep in an archive a package may lie."""

Place = Path | zipfile.Path
"""A file or folder of a package, on disk or in an archive."""


def is_package(folder: Path) -> bool:
    """Whether a folder is a problem package."""
    return (folder / "problem.yaml").is_file()


def read(folder: Path, name: str, *, language: str = "en") -> Iterator[Record | InvalidTask]:
    """Yield the record of a package, or what is wrong with it.

    Args:
        folder: the package.
        name: the id of its task.
        language: of the statement; where there is none in it, English, then any.
    """
    yield _try(_Package(folder, str(folder), folder.resolve()), name, language)


def read_archive(path: Path, name: str, *, language: str = "en") -> Iterator[Record | InvalidTask]:
    """Yield the record of each package in a `.zip` or `.kpp` archive, or what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = list(_packages(zipfile.Path(archive), _DEPTH))
            for place in found:
                inside = place.at.strip("/")
                task_id = name if len(found) == 1 else f"{name}/{inside}"
                where = f"{path}/{inside}".rstrip("/")
                yield _try(_Package(place, where, None), task_id, language)
    except (OSError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        yield InvalidTask(
            f"{path}: expected a zip archive of problem packages, got one that cannot be read "
            f"({error}); download or pack it again"
        )
        return
    if not found:
        yield InvalidTask(
            f"{path}: expected an archive with a problem.yaml, found none at the top or up to "
            f"{_DEPTH} folders down; pack the folder of the package itself"
        )


def _packages(place: zipfile.Path, depth: int) -> Iterator[zipfile.Path]:
    if (place / "problem.yaml").is_file():
        yield place
    elif depth:
        for inner in sorted(place.iterdir(), key=lambda entry: entry.name):
            if inner.is_dir():
                yield from _packages(inner, depth - 1)


def _try(package: _Package, name: str, language: str) -> Record | InvalidTask:
    try:
        return _record(package, name, language)
    except InvalidTask as problem:
        return problem


class _Package:
    """The files of a package; complaints name them."""

    def __init__(self, root: Place, where: str, real: Path | None) -> None:
        self.root = root
        self.where = where
        self._real = real  # links of a package on disk may not lead out of it

    def error(self, file: str, expected: str, *, fix: str) -> InvalidTask:
        return InvalidTask(f"{self.where}/{file}: expected {expected}; {fix}")

    def folder(self, *names: str) -> str:
        """Return the first of some names of a folder, as the versions of the format have it."""
        return next((name for name in names if (self.root / name).is_dir()), names[0])

    def files(self, folder: str, *suffixes: str) -> list[str]:
        """Return the files below a folder that end so, in the order of their names."""
        return sorted(self._below(folder, suffixes))

    def _below(self, folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
        place = self.root / folder
        if not place.is_dir():
            return
        for entry in place.iterdir():
            name = f"{folder}/{entry.name}"
            if entry.is_dir() and not (isinstance(entry, Path) and entry.is_symlink()):
                yield from self._below(name, suffixes)
            elif entry.name.endswith(suffixes):
                yield name

    def has(self, file: str) -> bool:
        return (self.root / file).is_file()

    def text(self, file: str) -> str:
        data = self._bytes(file, hops=8)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(file, "UTF-8 text", fix="save the file as UTF-8") from error

    def _bytes(self, file: str, hops: int) -> bytes:
        place = self.root / file
        if isinstance(place, zipfile.Path):
            info = place.root.getinfo(place.at)
            data = place.read_bytes()
            if not stat.S_ISLNK(info.external_attr >> 16):
                return data
            # A link in an archive is a file that holds the path of its target.
            target = _normal(PurePosixPath(file).parent / data.decode("utf-8", "replace"))
            if target is None or not hops or not self.has(target):
                raise self.error(file, "a link to a file of the package", fix="put the file there")
            return self._bytes(target, hops - 1)
        real = place.resolve()
        if self._real is None or not real.is_relative_to(self._real):
            raise self.error(file, "a link to a file of the package", fix="put the file there")
        try:
            return place.read_bytes()
        except OSError as error:
            raise self.error(file, f"a readable file ({error.strerror})", fix="mend it") from error

    def yaml(self, file: str) -> Mapping[str, Any]:
        """Return what a YAML file says; nothing where it is not there."""
        if not self.has(file):
            return {}
        import yaml

        try:
            data = yaml.safe_load(self.text(file))
        except yaml.YAMLError as error:
            text = " ".join(str(error).split())
            raise self.error(file, f"YAML ({text})", fix="correct it") from error
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise self.error(file, "keys with values", fix="write `key: value` in each line")
        return data


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


def _record(package: _Package, name: str, language: str) -> Record:
    settings = package.yaml("problem.yaml")
    tests = [
        *(_test(package, file, sample=True) for file in package.files("data/sample", ".in")),
        *(_test(package, file, sample=False) for file in package.files("data/secret", ".in")),
    ]
    if not tests:
        raise package.error("data", "tests (*.in with *.ans) in sample/ or secret/", fix="add some")
    limits = settings.get("limits")
    limits = limits if isinstance(limits, dict) else {}
    data = {
        "id": name,
        "name": _title(settings.get("name"), language) or name,
        "statement": _statement(package, language),
        "checker": _checker(package, settings),
        "time_limit_s": _time_limit(package, limits),
        "memory_mb": limits.get("memory"),
        "tests": tests,
        "scoring_groups": _groups(package),
        "submissions": list(_submissions(package)),
    }
    for key, field in (("source", "contest"), ("license", "licence"), ("source_url", "origin")):
        value = settings.get(key)
        if isinstance(value, str) and value.strip():
            data[field] = value
    return Record(file=package.where, line=0, data=data, origin=name)


def _title(value: Any, language: str) -> str:
    if isinstance(value, dict):
        value = value.get(language) or value.get("en") or next(iter(value.values()), "")
    return value if isinstance(value, str) else ""


def _statement(package: _Package, language: str) -> str:
    folder = package.folder("problem_statement", "statement")
    found = [
        file
        for file in package.files(folder, ".tex", ".md")
        if PurePosixPath(file).name.startswith("problem.")
    ]
    for wanted in (f"problem.{language}.", "problem.en."):
        for file in found:
            if PurePosixPath(file).name.startswith(wanted):
                return package.text(file)
    bare = [file for file in found if PurePosixPath(file).name.count(".") == 1]
    for file in (*bare, *found):
        return package.text(file)
    raise package.error(folder, "a statement, problem.LANGUAGE.tex or .md", fix="add one")


def _test(package: _Package, file: str, *, sample: bool) -> dict[str, Any]:
    stem = file.removesuffix(".in")
    answer = f"{stem}.ans"
    if not package.has(answer):
        raise package.error(answer, f"the right answer to {file}", fix="add the file")
    return {
        "name": stem.removeprefix("data/"),
        "sample": sample,
        "input": package.text(file),
        "answer": package.text(answer),
    }


def _groups(package: _Package) -> dict[str, Mapping[str, Any]] | None:
    groups = {
        PurePosixPath(file).parent.as_posix().removeprefix("data/"): package.yaml(file)
        for file in package.files("data", "testdata.yaml")
    }
    return {name: dict(group) for name, group in groups.items()} or None


def _checker(package: _Package, settings: Mapping[str, Any]) -> dict[str, Any]:
    flags = _flags(package, settings)
    validation = str(settings.get("validation") or "default").split()
    folder = package.folder("output_validators", "output_validator")
    programs = package.files(folder, "")
    if "interactive" in validation or "score" in validation:
        raise package.error(
            "problem.yaml",
            "validation that compares outputs",
            fix=f"problems with validation `{' '.join(validation)}` cannot be used",
        )
    custom = validation[:1] == ["custom"] or (programs and settings.get("validation") is None)
    if not custom:
        return {"type": "tokens", "flags": flags}
    if len(programs) != 1 or not programs[0].endswith(".py"):
        raise package.error(
            folder,
            f"one output validator in one file of Python, got {programs or 'none'}",
            fix="validators in other languages or of several files cannot be used",
        )
    return {"type": "program", "source": checker_source(package.text(programs[0]), flags.split())}


def _flags(package: _Package, settings: Mapping[str, Any]) -> str:
    """Return the validator's flags, which have to be the same for all tests of a task."""
    general = str(settings.get("validator_flags") or "")
    given = {
        str(package.yaml(file).get("output_validator_flags") or general)
        for file in package.files("data", "testdata.yaml")
    }
    if len(given) > 1:
        raise package.error(
            "data",
            "the same `output_validator_flags` in every testdata.yaml",
            fix=f"a task has one way to compare, these have {sorted(given)}",
        )
    return given.pop() if given else general


def _time_limit(package: _Package, limits: Mapping[str, Any]) -> Any:
    if package.has(".timelimit"):
        text = package.text(".timelimit").strip()
        try:
            return float(text)
        except ValueError as error:
            raise package.error(
                ".timelimit", f"a number of seconds, got {text[:40]!r}", fix="correct it"
            ) from error
    return limits.get("time_limit") or DEFAULT_TIME_LIMIT_S


def _submissions(package: _Package) -> Iterator[dict[str, str]]:
    for file in package.files("submissions", ".py"):
        verdict = PurePosixPath(file).parts[1]
        if verdict in _VERDICTS and len(PurePosixPath(file).parts) == 3:
            name = file.removeprefix("submissions/")
            yield {"id": name, "expected": _VERDICTS[verdict], "source": package.text(file)}
