"""A grid of independent cells: worked through by several processes, every finished one kept.

A cell has a name and is described by plain data; its record is plain data, too, and a function of
that description alone, so that neither the number of processes nor an interruption changes what
comes out. What a cell computes is no business of this module.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import MarsEnvsError
from .console import console

Cell = TypeVar("Cell")
Record = dict[str, Any]
"""Plain data for `json.dumps`."""


class CellFailed(MarsEnvsError, RuntimeError):
    """Infrastructure failed in one cell: it has no record, and the others go on."""


class WorkerLost(MarsEnvsError, RuntimeError):
    """A process that worked on the grid was killed."""


@dataclass(frozen=True, slots=True)
class Finished(Generic[Cell]):
    """What became of one cell: a record, or the reason why there is none."""

    name: str
    record: Record | None
    failure: str = ""


class CellLog:
    """The records of a grid on disk, one line each, written as cells end.

    A process may be killed at any moment, so a line can be torn, and so may whatever stood behind
    the end of the file when a machine went down. Such lines hold no record: their cells are worked
    through again.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def resume(self, wanted: Set[str]) -> tuple[dict[str, Record], int]:
        """Return the records of the wanted cells that are there, and the number of damaged lines.

        Damaged lines are gone from the file afterwards, and its last line has an end.

        Raises:
            OSError: it cannot be read or written.
        """
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        found: dict[str, Record] = {}
        damaged = 0
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                found[entry[0]] = entry[1]
            elif line:
                damaged += 1
        if damaged or lines[-1]:  # a line without an end would swallow the next one
            partial = self.path.with_suffix(".partial")
            partial.write_text("".join(_line(*item) for item in found.items()), encoding="utf-8")
            os.replace(partial, self.path)
        return {name: record for name, record in found.items() if name in wanted}, damaged

    def append(self, name: str, record: Record) -> None:
        """Add one record; when this returns, it outlives this process."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(name, record))


def run_grid(
    cells: Mapping[str, Cell], work: Callable[[Cell], Record], *, workers: int
) -> Iterator[Finished[Cell]]:
    """Work through all cells and yield what becomes of them, in no particular order.

    Args:
        cells: by name.
        work: makes a cell's record. With several workers it goes to each of them once, so it and
            the cells have to pickle.
        workers: processes; 1 works in this one.

    Raises:
        WorkerLost: a process was killed; what was yielded before stands.
    """
    if workers == 1:
        for name, cell in cells.items():
            yield _finish(name, work, cell)
        return
    with ProcessPoolExecutor(
        min(workers, len(cells) or 1),
        # A fork would copy the locks of threads that do not exist in the child.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(work,),
    ) as pool:
        try:
            futures: list[Future[Finished[Cell]]] = [
                pool.submit(_in_worker, name, cell) for name, cell in cells.items()
            ]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise WorkerLost(
                "a worker process was killed (out of memory?); what is finished is kept: go on "
                "with --resume, perhaps with fewer --workers"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def tell_failures(failures: Mapping[str, str], finished: int, folder: Path) -> int:
    """Say on the console which cells failed, and how to try them again; return the exit status.

    Args:
        failures: by name of the cell, why.
        finished: cells that did not fail.
        folder: of the run.
    """
    if not failures:
        return 0
    name, reason = next(iter(failures.items()))
    console.print(
        f"{len(failures)} of {len(failures) + finished} cells failed and are in no figure above; "
        f"the first: {name}: {reason}\ntry them again with: --resume --out {folder}",
        style="red",
        markup=False,
        soft_wrap=True,
    )
    return 1


_work: Callable[[Any], Record] | None = None
"""What this worker process was started for."""


def _start_worker(work: Callable[[Any], Record]) -> None:
    global _work
    _work = work
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """End this process when its parent is gone: a pool's worker would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(name: str, cell: Any) -> Finished[Any]:
    assert _work is not None
    return _finish(name, _work, cell)


def _finish(name: str, work: Callable[[Any], Record], cell: Any) -> Finished[Any]:
    try:
        return Finished(name, work(cell))
    except CellFailed as failure:
        return Finished(name, None, str(failure))


def _line(name: str, record: Record) -> str:
    return json.dumps({"cell": name, "record": record}) + "\n"


def _entry(line: bytes) -> tuple[str, Record] | None:
    try:
        data = json.loads(line)
        name, record = data["cell"], data["record"]
    except (ValueError, TypeError, KeyError):
        return None
    return (name, record) if isinstance(name, str) and isinstance(record, dict) else None
