"""What a grading says: agreement per set and recorded verdict, and every difference by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions

from rich.markup import escape
from rich.table import Table

from .console import console
from .grading import NOT_GRADED, Graded

NOTHING = "(none)"
_NO_MODULE = re.compile(r"No module named '(\w+)")


@dataclass(slots=True)
class Row:
    """One row of a table: verdicts that were recorded alike, and what became of them here."""

    set: str
    recorded: str
    n: int = 0
    agree: int = 0
    not_graded: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> str:
        """How often each status was given, the most frequent first."""
        words = sorted(self.statuses.items(), key=lambda pair: (-pair[1], pair[0]))
        return ", ".join(f"{status.replace('_', ' ')} {count}" for status, count in words)

    def add(self, status: str, agrees: bool | None) -> None:
        """Count one verdict."""
        self.n += 1
        self.agree += bool(agrees)
        self.not_graded += status in NOT_GRADED
        self.statuses[status] += 1


def submission_rows(results: Iterable[Graded]) -> list[Row]:
    """Count submissions by set and recorded verdict; those without a verdict are counted, too."""
    rows: dict[tuple[str, str], Row] = {}
    for result in results:
        place = (result.set, result.recorded or NOTHING)
        rows.setdefault(place, Row(*place)).add(result.status, result.agrees)
    return _sorted(rows.values())


def test_rows(results: Iterable[Graded]) -> list[Row]:
    """Count single tests for which a verdict was recorded."""
    rows: dict[tuple[str, str], Row] = {}
    for result in results:
        for test in result.tests:
            if test.recorded is not None:
                place = (result.set, test.recorded)
                rows.setdefault(place, Row(*place)).add(test.status, test.agrees)
    return _sorted(rows.values())


def print_report(results: Sequence[Graded], *, backend: str, wall_s: float) -> None:
    """Print the tables, then what differs and what could not be graded."""
    console.print(_table("Submissions: recorded verdict and ours", submission_rows(results)))
    tests = test_rows(results)
    if tests:
        console.print(_table("Single tests: recorded verdict and ours", tests))
    _print_differences(results)
    _print_not_graded(results)
    _print_missing_packages(results)
    cpu = sum(test.cpu_s for result in results for test in result.tests)
    runs = sum(len(result.tests) for result in results)
    recorded = [result for result in results if result.agrees is not None]
    agree = sum(bool(result.agrees) for result in recorded)
    console.print(
        f"{counted(len(results), 'submission')}, {counted(runs, 'test')} run in {backend}, "
        f"{cpu:.1f} s of CPU time in programs, {wall_s:.1f} s on the clock"
    )
    if recorded:
        console.print(
            f"{agree} of {len(recorded)} recorded verdicts reproduced ({agree / len(recorded):.2%})"
        )


def _sorted(rows: Iterable[Row]) -> list[Row]:
    """Sort rows within their sets, which stay in the order of their files."""
    ordered = list(rows)
    sets = {row.set: None for row in ordered}
    return sorted(ordered, key=lambda row: (list(sets).index(row.set), -row.n, row.recorded))


def _table(title: str, rows: Sequence[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("set", overflow="fold")
    table.add_column("recorded")
    table.add_column("n", justify="right")
    table.add_column("agree", justify="right")
    if any(row.not_graded for row in rows):
        table.add_column("not graded", justify="right")
    table.add_column("here", overflow="fold")
    last = ""
    for row in rows:
        known = row.recorded != NOTHING
        differ = known and row.agree < row.n - row.not_graded
        cells = [
            escape(row.set) if row.set != last else "",
            escape(row.recorded),
            str(row.n),
            str(row.agree) if known else "",
            row.counts,
        ]
        if any(each.not_graded for each in rows):
            cells.insert(4, str(row.not_graded or ""))
        table.add_row(*cells, style="red" if differ else "yellow" if row.not_graded else "")
        last = row.set
    return table


def _print_differences(results: Sequence[Graded]) -> None:
    differing = [result for result in results if result.differs]
    if not differing:
        return
    what = counted(len(differing), "submission")
    console.print(f"{what} got another verdict than the recorded one:")
    for result in differing:
        _say(f"- {result.set}: {result.name} ({result.task_id})")
        if result.agrees is False:
            _say(f"    recorded {result.recorded}, here {result.status}; {result.message}")
        for test in result.tests:
            if test.agrees is False:
                _say(
                    f"    {test.name}: recorded {test.recorded}, here {test.status} after "
                    f"{test.cpu_s:.2f} s of CPU time; {test.message}"
                )


def _print_not_graded(results: Sequence[Graded]) -> None:
    reasons = (
        "since the tests of the task are not supported",
        "since the task's checker is broken (a fault of the data set)",
        "since the sandbox failed (grade again)",
    )
    for kind, reason in zip(NOT_GRADED, reasons, strict=True):
        found = [result for result in results if result.status == kind]
        if found:
            verb = "has" if len(found) == 1 else "have"
            what = counted(len(found), "submission")
            console.print(f"{what} {verb} no verdict, {reason}:", style="red", markup=False)
        for result in found:
            _say(f"- {result.set}: {result.name} ({result.task_id}): {result.message}")


def _print_missing_packages(results: Iterable[Graded]) -> None:
    """Tell of packages that programs missed although they are installed here."""
    missed: Counter[str] = Counter()
    for result in results:
        failed = (test.message for test in result.tests if test.status == "runtime_error")
        missed.update({name for message in failed for name in _NO_MODULE.findall(message)})
    if not missed:
        return
    installed = packages_distributions()
    for name, count in sorted(missed.items()):
        if name in installed:
            what = counted(count, "submission")
            _say(
                f"{what} missed the module {name}, which is installed here; give it to programs "
                f"with --packages {installed[name][0]}"
            )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _say(text: str) -> None:
    console.print(text.rstrip("; "), markup=False, soft_wrap=False)
