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

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import InvalidTask
from .kattis import DEFAULT_TIME_LIMIT_S
from .package_files import PackageFiles
from .records import Record, describe
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
    yield _try(PackageFiles(folder, str(folder), folder.resolve()), name, language)


def read_archive(path: Path, name: str, *, language: str = "en") -> Iterator[Record | InvalidTask]:
    """Yield the record of each package in a `.zip` or `.kpp` archive, or what is wrong with it."""
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # zipfile lets any error through that damage leads to
        yield InvalidTask(
            f"{path}: expected a zip archive of problem packages, got one that cannot be read "
            f"({error}); download or pack it again"
        )
        return
    with archive:
        found = list(_packages(zipfile.Path(archive), _DEPTH))
        for place in found:
            inside = place.at.strip("/")
            task_id = name if len(found) == 1 else f"{name}/{inside}"
            where = f"{path}/{inside}".rstrip("/")
            yield _try(PackageFiles(place, where, None), task_id, language)
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


def _try(package: PackageFiles, name: str, language: str) -> Record | InvalidTask:
    try:
        return _record(package, name, language)
    except InvalidTask as problem:
        return problem


def _record(package: PackageFiles, name: str, language: str) -> Record:
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


def _statement(package: PackageFiles, language: str) -> str:
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


def _test(package: PackageFiles, file: str, *, sample: bool) -> dict[str, Any]:
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


def _groups(package: PackageFiles) -> dict[str, Mapping[str, Any]] | None:
    groups = {
        PurePosixPath(file).parent.as_posix().removeprefix("data/"): package.yaml(file)
        for file in package.files("data", "testdata.yaml")
    }
    return {name: dict(group) for name, group in groups.items()} or None


def _checker(package: PackageFiles, settings: Mapping[str, Any]) -> dict[str, Any]:
    flags = _flags(package, settings)
    validation = _words(package, "problem.yaml", settings, "validation").split() or ["default"]
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


def _words(package: PackageFiles, file: str, settings: Mapping[str, Any], key: str) -> str:
    value = settings.get(key) or ""
    if not isinstance(value, str):
        raise package.error(file, f"words as `{key}`, got {describe(value)}", fix="correct it")
    return value


def _flags(package: PackageFiles, settings: Mapping[str, Any]) -> str:
    """Return the validator's flags, which have to be the same for all tests of a task."""
    general = _words(package, "problem.yaml", settings, "validator_flags")
    given = {
        _words(package, file, package.yaml(file), "output_validator_flags") or general
        for file in package.files("data", "testdata.yaml")
    }
    if len(given) > 1:
        raise package.error(
            "data",
            "the same `output_validator_flags` in every testdata.yaml",
            fix=f"a task has one way to compare, these have {sorted(given)}",
        )
    return given.pop() if given else general


def _time_limit(package: PackageFiles, limits: Mapping[str, Any]) -> Any:
    if package.has(".timelimit"):
        text = package.text(".timelimit").strip()
        try:
            return float(text)
        except ValueError as error:
            raise package.error(
                ".timelimit", f"a number of seconds, got {text[:40]!r}", fix="correct it"
            ) from error
    return limits.get("time_limit") or DEFAULT_TIME_LIMIT_S


def _submissions(package: PackageFiles) -> Iterator[dict[str, str]]:
    for file in package.files("submissions", ".py"):
        verdict = PurePosixPath(file).parts[1]
        if verdict in _VERDICTS and len(PurePosixPath(file).parts) == 3:
            name = file.removeprefix("submissions/")
            yield {"id": name, "expected": _VERDICTS[verdict], "source": package.text(file)}
