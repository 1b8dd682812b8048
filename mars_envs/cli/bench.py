"""`mars-envs sandbox bench`: what judging costs here, ours beside what others do."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from ..errors import InvalidSetting
from .config import BenchConfig
from .console import console, progress

if TYPE_CHECKING:
    from sandbox.bench.measure import Measurement
    from sandbox.bench.report import Range, Row


def bench(config: BenchConfig) -> int:
    """Measure, print the table, and write all figures to `--output` if asked to."""
    if config.docker_host:
        os.environ["DOCKER_HOST"] = config.docker_host
    result = _uptime(config) if config.uptime is not None else _compare(config)
    if config.output is not None:
        Path(config.output).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        console.print(f"all figures: {config.output}")
    return 0


def _compare(config: BenchConfig) -> dict[str, object]:
    from sandbox.bench import report
    from sandbox.bench.measure import Settings, measure
    from sandbox.bench.modes import MODES

    names = tuple(name.strip() for name in config.modes.split(",") if name.strip())
    try:
        settings = Settings(
            modes=tuple(MODES) if names == ("all",) else names,
            rounds=config.rounds,
            programs=config.programs,
            tests=config.tests,
            clients=config.clients,
        )
    except ValueError as error:
        raise InvalidSetting(f"--modes: {error}") from error
    with progress() as bar:
        task = bar.add_task("starting engine and workers", total=None, note="")

        def tell(name: str, done: int, total: int) -> None:
            bar.update(task, description="measuring", completed=done, total=total, note=MODES[name])

        measurement = measure(settings, progress=tell)
        bar.remove_task(task)
    table = report.rows(measurement)
    _print_machine(measurement)
    if table:
        console.print(_figures(table, config))
        console.print(_ratios(table))
    if config.markdown:
        console.print(report.markdown(table), markup=False, soft_wrap=True)
    if config.profile:
        console.print(_profile(report.profile(measurement)))
    for name, reason in measurement.left_out.items():
        console.print(f"left out: {MODES[name]}: {reason}")
    for note in measurement.notes:
        console.print(note)
    for goal in report.goals(table):
        mark = "[green]reached[/]" if goal.met else "[yellow]missed[/]"
        console.print(f"{mark} {goal.text}: {goal.measured:.2f}")
    return report.as_json(measurement, shlex.join(["mars-envs", *sys.argv[1:]]))


def _uptime(config: BenchConfig) -> dict[str, object]:
    from sandbox.bench.uptime import uptime

    assert config.uptime is not None
    with progress() as bar:
        task = bar.add_task("tests in one pool", total=config.uptime, note="")
        result = uptime(
            config.sandbox,
            tests=config.uptime,
            tests_per_program=config.tests,
            progress=lambda done: bar.update(task, completed=done),
        )
        bar.remove_task(task)
    first, last = result.blocks[0], result.blocks[-1]
    table = _table(
        f"{result.tests} tests in one pool of {result.backend}",
        (f"first {first.tests}", f"last {last.tests}", "last / first"),
    )
    for label, before, after in (
        ("CPU ms per test", first.cpu_ms, last.cpu_ms),
        ("RSS of this process, MB", first.host_rss_mb, last.host_rss_mb),
        ("RSS of the guests, MB", first.guest_rss_mb, last.guest_rss_mb),
    ):
        if before is None or after is None:
            table.add_row(label, "-", "-", "-")
        else:
            table.add_row(label, f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}")
    console.print(table)
    return result.as_json(shlex.join(["mars-envs", *sys.argv[1:]]))


def _print_machine(measurement: Measurement) -> None:
    found = measurement.machine
    engine = f", Docker engine {found.engine}" if found.engine else ""
    console.print(
        f"{found.cores} cores ({found.cpu}), Linux {found.kernel}, {found.python}{engine}; "
        f"load {measurement.load_before:.1f} before, {measurement.load_after:.1f} after; "
        f"fork, exit and wait of a bare process: {found.fork_cpu_ms:.2f} ms of CPU"
    )


def _figures(table: list[Row], config: BenchConfig) -> Table:
    title = f"{config.rounds} rounds of {config.programs} programs with {config.tests} tests, "
    figures = _table(
        title + f"{config.clients} clients: median, least-most",
        ("programs/s", "CPU ms/test", "p50 ms", "p95 ms"),
    )
    for row in table:
        cells = (row.programs_per_s, row.cpu_ms, row.p50_ms, row.p95_ms)
        figures.add_row(_name(row.mode), *map(_text, cells))
    return figures


def _ratios(table: list[Row]) -> Table:
    ratios = _table(
        "how many times better than the host subprocess and `docker run`",
        ("host: CPU", "programs/s", "run: CPU", "programs/s"),
    )
    for row in table:
        cells = (row.host_cpu, row.host_wall, row.run_cpu, row.run_wall)
        ratios.add_row(_name(row.mode), *map(_text, cells))
    return ratios


def _profile(parts: dict[str, dict[str, float]]) -> Table:
    table = _table("CPU ms per test by kind of process, median", ("ms",))
    for mode, roles in parts.items():
        for role, cpu_ms in roles.items():
            if abs(cpu_ms) >= 0.005:
                table.add_row(f"{_name(mode)}: {role}", f"{cpu_ms:.2f}")
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), title_justify="left")
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _name(mode: str) -> str:
    from sandbox.bench.modes import MODES

    return MODES[mode]


def _text(found: Range | None) -> str:
    if found is None:
        return "-"
    digits = 2 if found.median < 10 else 1 if found.median < 100 else 0
    low, median, high = (f"{value:.{digits}f}" for value in dataclasses.astuple(found))
    return f"{median}\n[dim]{low}-{high}[/]"
