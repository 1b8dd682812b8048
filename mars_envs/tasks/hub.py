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
    r"(?P<repo>[./~][^:@#?]*|[\w.-]+/[\w.-]+(?=[/:@#]|$)|[\w.-]+(?=[:@#]|$))"
    r"(?:/(?P<file>[^:@#?]+))?"
    r"(?::(?P<config>[^:@#]+))?(?:@(?P<revision>[^:@#]+))?(?:#(?P<split>[^#]+))?"
)
_TIMEOUT_S = 10.0
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
    number = 0
    rows = iter(_rows(source))
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # of whatever library reads the format
            text = " ".join(str(error).split())[:300]
            yield InvalidTask(
                f"{source}, row {number + 1}: expected a row of data, got an error "
                f"({type(error).__name__}: {text}); name the files themselves as hf:ORG/NAME/FILE"
            )
            return
        if row is None:
            return
        number += 1
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
    repo = source.repo
    if repo[0] in "./~":
        repo = os.path.expanduser(repo)
        if not os.path.isdir(repo):
            raise InvalidTask(
                f"{source}: there is no folder {repo}; check the path (it is relative to the "
                "current folder), or name a data set of the hub as hf:ORG/NAME"
            )
    # A stream needs the hub; what an earlier run has prepared does not.
    streaming = repo != source.repo or repo[0] in "./~" or _is_reachable(source)
    try:
        found = _load(datasets, repo, source, streaming=streaming)
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


def _is_reachable(source: HubName) -> bool:
    """Whether the hub answers, be it that there is no such data set."""
    import huggingface_hub as hub

    try:
        hub.HfApi().dataset_info(source.repo, revision=source.revision, timeout=_TIMEOUT_S)
    except hub.errors.HfHubHTTPError:
        return True
    except Exception:  # of whatever library carries the request
        return False
    return True


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
        if any(mark in source.file for mark in "*["):
            names = _matching(source, where)
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
    except (OSError, hub.errors.HfHubHTTPError) as error:
        text = " ".join(str(error).split())[:300]
        raise InvalidTask(
            f"{source}: the hub {_endpoint()} cannot be reached ({text}); {_OFFLINE}"
        ) from error


def _matching(source: HubName, where: dict[str, Any]) -> list[str]:
    """Return the files of a repository, or of its copy in the cache, that a pattern names."""
    import huggingface_hub as hub

    if _is_reachable(source):
        every = hub.HfApi().list_repo_files(source.repo, **where)
    else:
        copy = Path(hub.snapshot_download(source.repo, local_files_only=True, **where))
        every = [path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()]
    names = sorted(fnmatch.filter(every, source.file or ""), key=_natural)
    if not names:
        raise InvalidTask(
            f"{source}: no file of the repository is called so; it has {', '.join(every[:20])}"
        )
    return names


def _natural(name: str) -> tuple[Any, ...]:
    """Sort test2 before test10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")
