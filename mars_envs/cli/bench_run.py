"""What the benchmarks share: going on with a grid where it was, and the report at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Generic

from .console import console, progress
from .grid import Cell, CellLog, Finished, Record
from .sheets import Sheet


class GridRun(Generic[Cell]):
    """The cells of a run: what a folder holds already, what is missing, and what becomes of it.

    Args:
        cells: by name.
        path: of the records.
        is_whole: whether what was read for a cell can be its record.
        what: cells are called, on the console.
        again: what is done to damaged ones, on the console.
    """

    def __init__(
        self,
        cells: Mapping[str, Cell],
        path: Path,
        *,
        is_whole: Callable[[Cell, Record], bool],
        what: str,
        again: str,
    ) -> None:
        self.cells = cells
        self.failures: dict[str, str] = {}
        """Why there is no record, by name."""
        self._log = CellLog(path)
        found, damaged = self._log.resume(cells.keys())
        self._known = {
            name: record for name, record in found.items() if is_whole(cells[name], record)
        }
        damaged += len(found) - len(self._known)
        if self._known or damaged:
            console.print(
                f"{len(self._known)} of {len(cells)} {what} were finished before"
                + (f"; {damaged} damaged lines are {again} again" if damaged else "")
            )

    @property
    def missing(self) -> dict[str, Cell]:
        """The cells that have no record."""
        return {name: cell for name, cell in self.cells.items() if name not in self._known}

    @property
    def records(self) -> dict[str, Record]:
        """The records that there are, by name, in the order of the cells."""
        return {name: self._known[name] for name in self.cells if name in self._known}

    @contextmanager
    def keeping(self, label: str) -> Iterator[Callable[[Finished[Cell]], None]]:
        """Show a progress bar; give what writes down a finished cell."""
        with progress() as bar:
            line = bar.add_task(label, total=len(self.cells), completed=len(self._known), note="")

            def keep(finished: Finished[Cell]) -> None:
                if finished.record is None:
                    self.failures[finished.name] = finished.failure
                else:
                    self._known[finished.name] = finished.record
                    self._log.append(finished.name, finished.record)
                failed = len(self.failures)
                bar.update(line, advance=1, note=f"{failed} failed" if failed else "")

            yield keep


def leave_report(found: Sequence[Sheet], folder: Path, draw: Callable[[Path], None]) -> None:
    """Print tables, write them beside the results, and draw the figure where that is possible.

    Args:
        found: the tables.
        folder: of the run, where `results.json` is already.
        draw: draws the figure to a path; needs matplotlib.
    """
    for sheet in found:
        console.print(sheet.to_rich())
    (folder / "tables.md").write_text("\n".join(map(Sheet.to_markdown, found)), encoding="utf-8")
    console.print(f"results: {folder / 'results.json'}", markup=False, soft_wrap=True)
    console.print(f"tables: {folder / 'tables.md'}", markup=False, soft_wrap=True)
    if find_spec("matplotlib") is not None:
        draw(folder / "curves.png")
        console.print(f"figure: {folder / 'curves.png'}", markup=False, soft_wrap=True)
