"""`mars-envs bench memory`: lengths × methods × agents × seeds over questions about long documents.

Every episode is one cell of a grid, and what is finished is kept in the run folder, so that a run
that was killed goes on where it was, and ends with the results of an uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import MarsEnvsError
from .bench_memory_config import BenchMemoryConfig
from .bench_run import GridRun, leave_report
from .console import console
from .grid import Finished, Record, run_grid, tell_failures
from .memory_figure import draw
from .memory_live import play_models
from .memory_plan import MemoryCell, MemoryPlan, inputs_of, make_plan
from .memory_play import Episodes
from .memory_results import (
    SCHEMA,
    SCHEMA_VERSION,
    compare_methods,
    gather,
    is_whole,
    points_table,
)
from .memory_tables import sheets
from .reading_models import open_model
from .runs import alone_in, identity, open_run, provenance, write_json


class NothingRead(MarsEnvsError, RuntimeError):
    """Not one episode could be played to its end."""


def bench_memory(config: BenchMemoryConfig) -> int:
    """Run the grid, or go on with it; exit status 1 if any episode failed."""
    plan = make_plan(config)
    inputs = inputs_of(plan)
    folder = open_run(config, option="out", inputs=inputs)
    console.print(f"run folder: {folder}", markup=False, soft_wrap=True)
    with alone_in(folder, option="out"):
        records, failures = _play(config, plan, folder)
        if not records:
            reason = next(iter(failures.values()), "not known")
            raise NothingRead(f"no episode came to its end; the first one because: {reason}")
        with console.status("work out intervals and paired tests"):
            results = make_results(config, plan, inputs, records, failures)
        write_json(folder / "results.json", results)
        leave_report(sheets(results), folder, partial(draw, results))
    return tell_failures(failures, len(records), folder)


def _play(
    config: BenchMemoryConfig, plan: MemoryPlan, folder: Path
) -> tuple[dict[str, Record], dict[str, str]]:
    """Play the episodes that the folder does not hold; return records and failures by name."""
    run = GridRun(
        plan.cells(),
        folder / "episodes.jsonl",
        is_whole=lambda _, record: is_whole(record, plan.machines),
        what="episodes",
        again="played",
    )
    with run.keeping("read") as keep:
        _play_all(config, plan, run.missing, keep)
    return run.records, run.failures


def _play_all(
    config: BenchMemoryConfig,
    plan: MemoryPlan,
    cells: Mapping[str, MemoryCell],
    keep: Callable[[Finished[MemoryCell]], None],
) -> None:
    models = [label for label, agent in plan.agents.items() if agent.kind == "model"]
    scripted = {name: cell for name, cell in cells.items() if cell.agent not in models}
    workers = config.workers or os.cpu_count() or 1
    for finished in run_grid(scripted, Episodes(plan=plan), workers=workers):
        keep(finished)
    for label in models:
        address, _, name = plan.agents[label].place.partition("#")
        for seed in range(plan.seeds):
            own = {
                key: cell
                for key, cell in cells.items()
                if cell.agent == label and cell.seed == seed
            }
            if own:
                model = open_model(
                    address, name=name or None, temperature=config.temperature, seed=seed
                )
                play_models(own, plan, keep, model=model, concurrency=config.concurrency)


def make_results(
    config: BenchMemoryConfig,
    plan: MemoryPlan,
    inputs: Mapping[str, str],
    records: Mapping[str, Record],
    failures: Mapping[str, str],
) -> dict[str, Any]:
    """Return the contents of `results.json`. Only `provenance` says where and when it was made."""
    cells = plan.cells()
    values = gather(
        ((cells[name], record) for name, record in records.items()),
        (cells[name] for name in cells if name in failures),
    )
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance(),
        "settings": identity(dataclasses.asdict(config)),
        "inputs": dict(inputs),
        "baseline": plan.baseline,
        "methods": {
            label: {
                "method": method.method,
                "settings": dataclasses.asdict(method.settings),
                "options": dict(method.options),
            }
            for label, method in plan.methods.items()
        },
        "machines": {name: dataclasses.asdict(found) for name, found in plan.machines.items()},
        "points": points_table(values),
        "comparisons": compare_methods(values, plan.baseline),
        "failed_episodes": len(failures),
        "complete": not failures,
    }
