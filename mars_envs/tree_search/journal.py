"""A search that survives its process: every change is a line of a file before it is acted upon.

`start_journal` writes a header with the state of the search and from then on one JSON line per
`ask`, `tell`, `fail`, `retire` and `redirect`, in the order in which they happened; nothing is ever
rewritten. `resume` replays the lines: the choices are made again, from the same random stream, and
must come out as they were written, so the search goes on exactly as it would have. A process that
was killed in the middle of a line leaves a torn line without an end; what it was about had not been
returned to the caller, so it is cut off, and a log record says so.
"""

from __future__ import annotations

import io
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidJournal, ProtocolError
from .events import replay
from .final import ScoreFn
from .search import TreeSearch
from .selection import Selector

JOURNAL = "mars_envs.tree_search"
JOURNAL_VERSION = 1

_log = logging.getLogger(__name__)


class JournalFile:
    """Appends lines to a file, each whole or not at all.

    The file is open only while a line is written, so there is nothing to close, and two searches
    that write to one file (a copy, say) are found out at the next line.

    Args:
        path: the file.
        sync: wait for the disk after every line, so that a power failure loses nothing either.
        new: whether there must be no such file yet.

    Raises:
        FileExistsError: there is one.
    """

    def __init__(self, path: Path, *, sync: bool, new: bool = False) -> None:
        if new:
            path.touch(exist_ok=False)
        self.path = path.resolve()
        self._size = path.stat().st_size
        self._sync = sync

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Append one line.

        Raises:
            OSError: the disk is full, say. The file is as it was, and so is the search.
            ProtocolError: something else has written to the file.
        """
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        with open(self.path, "ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size != self._size:
                raise ProtocolError(
                    f"{self.path} has {size:,} bytes where this search left {self._size:,}: "
                    "something else writes to its journal; give every search its own file"
                )
            try:
                _write_all(file, line)
                if self._sync:
                    os.fsync(file.fileno())
            except BaseException:
                os.ftruncate(file.fileno(), size)
                raise
        self._size = size + len(line)


def _write_all(file: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def start_journal(search: TreeSearch, path: str | Path, *, sync: bool = False) -> None:
    """Write every change of a search to a new file from now on.

    Args:
        search: as it stands; what happened before is part of the header.
        path: a file that does not exist yet.
        sync: wait for the disk after every line.

    Raises:
        FileExistsError: there is such a file; `resume` goes on with it.
    """
    journal = JournalFile(Path(path), sync=sync, new=True)
    journal({"journal": JOURNAL, "version": JOURNAL_VERSION, "state": search.save()})
    search.journal = journal


def resume(
    path: str | Path,
    selector: str | Selector = "default",
    *,
    score_fn: ScoreFn | None = None,
    clock: Callable[[], float] = time.monotonic,
    sync: bool = False,
) -> TreeSearch:
    """Rebuild a search from its journal, and go on writing to it.

    Args:
        path: what `start_journal` wrote.
        selector: the one that the search was made with; it is configuration, not state.
        score_fn: likewise. Nodes keep the values that they got.
        clock: likewise; seconds that had passed are known as of the last line.
        sync: wait for the disk after every line.

    Returns:
        The search; what was pending is pending again.

    Raises:
        FileNotFoundError: there is no such file.
        InvalidJournal: it has another version or is damaged, says where, or the selector is not
            the one that it was written with.
    """
    path = Path(path)
    whole, torn = _lines(path)
    if not whole:
        raise InvalidJournal(f"{path} has no complete header; delete it and start anew")
    search = _from_header(path, whole[0], selector, score_fn, clock)
    for number, line in enumerate(whole[1:], start=2):
        try:
            replay(search, _parsed(line))
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise InvalidJournal(f"{path}, line {number}: {error}") from error
    if torn:
        _log.warning(
            "%s ends in a torn line of %d bytes, which is cut off: its process was ended while it "
            "wrote, before anyone acted on it",
            path,
            torn,
        )
        os.truncate(path, path.stat().st_size - torn)
    search.journal = JournalFile(path, sync=sync)
    return search


def _lines(path: Path) -> tuple[list[bytes], int]:
    """Return the complete lines and how many bytes follow them."""
    *whole, rest = path.read_bytes().split(b"\n")
    return whole, len(rest)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected one JSON object, got {line[:60]!r}: {error}") from error
    if not isinstance(event, dict):
        raise ValueError(f"expected one JSON object, got {line[:60]!r}")
    return event


def _from_header(
    path: Path,
    line: bytes,
    selector: str | Selector,
    score_fn: ScoreFn | None,
    clock: Callable[[], float],
) -> TreeSearch:
    try:
        header = _parsed(line)
        if header.get("journal") != JOURNAL or header.get("version") != JOURNAL_VERSION:
            raise ValueError(
                f"expected a journal of {JOURNAL}, version {JOURNAL_VERSION}, got "
                f"{header.get('journal')!r}, version {header.get('version')!r}"
            )
        return TreeSearch.load(header["state"], selector, score_fn=score_fn, clock=clock)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidJournal(f"{path}, line 1: {error}") from error
