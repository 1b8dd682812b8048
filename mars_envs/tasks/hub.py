"""Records of a data set on a Hugging Face hub, named `hf:ORG/NAME[/FILE][:CONFIG][@REV][#SPLIT]`.

Without FILE the library `datasets` reads it, a row at a time. With FILE (which may have wildcards)
the files themselves are downloaded and read as local ones are; that is the way to data sets whose
repository holds a loading script, which is never run. A folder in the hub's layout may stand in the
place of ORG/NAME.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidTask
from .files import jsonable, read_records
from .records import Record

PREFIX = "hf:"

_NAME = re.compile(
    r"(?P<repo>(?:[./~][^:@#?]*)|[\w.-]+(?:/[\w.-]+)?)"
    r"(?:/(?P<file>[^:@#?]+))?(?::(?P<config>[^:@#]+))?(?:@(?P<revision>[^:@#]+))?(?:#(?P<split>[^#]+))?"
)
_OFFLINE = (
    "to work without a network, load it once with one (it is then in the cache below HF_HOME), set "
    "HF_HUB_OFFLINE=1 so that nothing waits for the hub, or download its files and name their "
    "folder"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubName:
    """A data set on a hub."""

    repo: str
    """`ORG/NAME`, or a local folder in the hub's layout."""
    file: str | None = None
    """A file of the repository, or a pattern of files, in place of a config and a split."""
    config: str | None = None
    revision: str | None = None
    split: str | None = None

    def __str__(self) -> str:
        parts = (("/", self.file), (":", self.config), ("@", self.revision), ("#", self.split))
        return f"{PREFIX}{self.repo}" + "".join(f"{mark}{text}" for mark, text in parts if text)


def parse_name(
    text: str, *, name: str | None = None, revision: str | None = None, split: str | None = None
) -> HubName:
    """Read the name of a data set.

    Args:
        text: with the prefix.
        name: the config, where `text` names none.
        revision: likewise.
        split: likewise.

    Raises:
        InvalidTask: it is no such name, or says something else than the keywords.
    """
    match = _NAME.fullmatch(text.removeprefix(PREFIX))
    if match is None:
        raise InvalidTask(
            "expected a data set as hf:ORG/NAME, perhaps with /FILE, :CONFIG, @REVISION and "
            f"#SPLIT in this order, got {text!r}; e.g. hf:openai/openai_humaneval#test"
        )
    found = match.groupdict()
    for field, value in (("config", name), ("revision", revision), ("split", split)):
        if value is not None and found[field] not in (None, value):
            raise InvalidTask(
                f"{text} names the {field} {found[field]!r}, the keyword {value!r}; say it once"
            )
        found[field] = found[field] or value
    if found["file"] and (found["config"] or found["split"]):
        raise InvalidTask(
            f"{text}: a file of a repository has neither a config nor a split; leave out what "
            "stands behind it, or the file"
        )
    return HubName(**found)


def read_hub(source: HubName, *, language: str = "en") -> Iterator[Record | InvalidTask]:
    """Yield the records of a data set.

    Args:
        source: its name.
        language: of the statements of packages among its files.

    Raises:
        InvalidTask: the library is missing, the hub cannot be reached and nothing is cached, or
            there is no such data set, config, split or file.
    """
    if source.file is not None:
        yield from _read_files(source, language)
        return
    split = source.split
    origin = source.repo.rstrip("/").rpartition("/")[2]
    for number, row in enumerate(_rows(source), start=1):
        yield Record(
            file=str(source),
            line=number,
            data=jsonable(row),
            origin=f"{origin}/{split}" if split else origin,
            unit="row",
        )


def _library(source: HubName) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise InvalidTask(
            f"{source}: data sets of a hub need the library `datasets`, which cannot be imported "
            f"({error}); pip install 'mars-envs[hub]', or download the data set's files and name "
            "their folder"
        ) from error
    return datasets


def _rows(source: HubName) -> Iterable[Any]:
    datasets = _library(source)
    repo = os.path.expanduser(source.repo) if source.repo[0] in "./~" else source.repo
    try:
        try:
            found = _load(datasets, repo, source, streaming=True)
        except (ConnectionError, FileNotFoundError) as error:
            if isinstance(error, datasets.exceptions.DatasetNotFoundError):
                raise
            # A stream needs the hub; what an earlier run has prepared does not.
            found = _load(datasets, repo, source, streaming=False)
    except Exception as error:
        raise _explained(source, error, datasets) from error
    if isinstance(found, dict):
        if len(found) > 1:
            raise InvalidTask(
                f"{source}: expected a split, since there are several; write one of "
                f"{', '.join(f'{source}#{name}' for name in found)}"
            )
        found = next(iter(found.values()))
    rows: Iterable[Any] = found
    return rows


def _load(datasets: Any, repo: str, source: HubName, *, streaming: bool) -> Any:
    bar = datasets.utils.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(
            repo,
            source.config,
            split=source.split,
            revision=source.revision,
            streaming=streaming,
        )
    finally:
        if bar:
            datasets.enable_progress_bars()


def _explained(source: HubName, error: Exception, datasets: Any) -> InvalidTask:
    """Say what went wrong and how to mend it, by what the library says."""
    text = " ".join(str(error).split())[:300]
    if "scripts are no longer supported" in text or "trust_remote_code" in text:
        return InvalidTask(
            f"{source}: its repository holds a loading script, and code from a hub is never run "
            f"here ({text}); name its data files instead, e.g. {PREFIX}{source.repo}/test*.jsonl"
        )
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        return InvalidTask(
            f"{source}: expected a data set on the hub, found none that can be read ({text}); "
            "check the name, and log in (`hf auth login`) where it is private or gated"
        )
    if isinstance(error, ConnectionError):
        return InvalidTask(
            f"{source}: the hub {_endpoint()} cannot be reached, and the data set is not in the "
            f"cache ({text}); {_OFFLINE}"
        )
    return InvalidTask(
        f"{source}: cannot be read as a data set ({type(error).__name__}: {text}); check its "
        "config (:CONFIG), revision (@REVISION) and split (#SPLIT)"
    )


def _read_files(source: HubName, language: str) -> Iterator[Record | InvalidTask]:
    for name, path in _download(source):
        for record in read_records(path, language=language):
            if isinstance(record, Record):
                yield record.moved(f"{PREFIX}{source.repo}/{name}")
            else:
                yield record


def _download(source: HubName) -> Iterator[tuple[str, Path]]:
    """Yield the files that are named, downloaded one at a time, as they are read."""
    _library(source)
    import huggingface_hub as hub

    assert source.file is not None
    names = [source.file]
    where: dict[str, Any] = {"repo_type": "dataset", "revision": source.revision}
    try:
        if any(mark in source.file for mark in "*?["):
            every = hub.HfApi().list_repo_files(source.repo, **where)
            names = sorted(fnmatch.filter(every, source.file), key=_natural)
            if not names:
                raise InvalidTask(
                    f"{source}: no file of the repository is called so; it has "
                    f"{', '.join(every[:20])}"
                )
        for name in names:
            yield name, Path(hub.hf_hub_download(source.repo, name, **where))
    except (hub.errors.RepositoryNotFoundError, hub.errors.RevisionNotFoundError) as error:
        raise InvalidTask(
            f"{source}: no such data set or revision on the hub; check the name, and log in (`hf "
            "auth login`) where it is private or gated"
        ) from error
    except hub.errors.LocalEntryNotFoundError as error:
        raise InvalidTask(
            f"{source}: the hub {_endpoint()} cannot be reached, and the file is not in the cache; "
            f"{_OFFLINE}"
        ) from error
    except hub.errors.EntryNotFoundError as error:
        raise InvalidTask(
            f"{source}: the repository has no file {source.file!r}; check the name (its page on "
            "the hub lists the files)"
        ) from error
    except (OSError, hub.errors.HfHubHTTPError, hub.errors.OfflineModeIsEnabled) as error:
        text = " ".join(str(error).split())[:300]
        raise InvalidTask(
            f"{source}: the hub {_endpoint()} cannot be reached ({text}); {_OFFLINE}"
        ) from error


def _natural(name: str) -> tuple[Any, ...]:
    """Sort test2 before test10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")
