"""Teach a tiny transformer to read long documents, and compare PI-Mem with recurrent memory.

One network of a hundred thousand parameters reads, merges, memorizes and answers; it is told its
role by the prompt alone. It is taught by the oracle on documents of 2 to 8 chunks and then plays
held-out questions, with names that it has never met, in the real environments on up to 64 chunks.
The same weights play PI-Mem and recurrent memory on the very same questions and documents, so the
differences are paired.

    python examples/learned_reader.py                 a look: one short training, `kv` alone
    python examples/learned_reader.py --full          the tables and figure of docs/pi-mem.md

Whatever is done is kept in --out, and a run that was broken off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from learned_reader_parts.report import Results, accuracy_table, as_data, draw, errors_table
from learned_reader_parts.speaking import Learned
from learned_reader_parts.study import Cell, Plan, Store, cells, learn, try_cell
from learned_reader_parts.trials import Trial
from rich.console import Console
from rich.progress import Progress

LOOK = Plan(
    families=("kv",),
    lengths=(4, 16),
    items=30,
    chunk_tokens=32,
    memory_tokens=32,
    trained_on=(4, 8),
    tasks=60,
    steps=150,
    batch=32,
    layers=2,
)
FULL = Plan()


def learn_with_bar(plan: Plan, seed: int, progress: Progress) -> Any:
    collecting = progress.add_task(
        f"seed {seed}: lessons", total=len(plan.families) * len(plan.trained_on) * plan.tasks
    )
    training = progress.add_task(f"seed {seed}: training", total=plan.steps)
    return learn(
        plan,
        seed,
        on_task=lambda: progress.advance(collecting),
        on_step=lambda step, loss: progress.update(
            training, completed=step, description=f"seed {seed}: training, loss {loss:.3f}"
        ),
    )


def play_cells(
    plan: Plan, seed: int, speaker: Learned | None, store: Store, progress: Progress
) -> dict[Cell, list[Trial]]:
    who = f"seed-{seed}" if speaker else f"oracle-{seed}"
    every = cells(plan)
    bar = progress.add_task(f"{who}: trials", total=len(every) * plan.items)
    found = {}
    for number, cell in enumerate(every, start=1):
        advance = partial(progress.advance, bar)
        found[cell] = store.trials(who, cell, partial(try_cell, plan, cell, seed, speaker, advance))
        progress.update(bar, completed=number * plan.items)
    return found


def study(
    plan: Plan, seeds: int, store: Store, progress: Progress
) -> tuple[Results, Results, list[dict[str, Any]]]:
    """Return the trials of all trainings, the oracle's of the same items, and what it took."""
    learned, ceilings, facts = [], [], []
    for seed in range(seeds):
        ceilings.append(play_cells(plan, seed, None, store, progress))
        speaker, took = store.learned(seed, partial(learn_with_bar, plan, seed, progress))
        learned.append(play_cells(plan, seed, speaker, store, progress))
        facts.append(took)
    return by_cell(learned), by_cell(ceilings), facts


def by_cell(runs: Sequence[dict[Cell, list[Trial]]]) -> Results:
    return {cell: [run[cell] for run in runs] for cell in runs[0]}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="both families, all lengths, 3 seeds")
    parser.add_argument("--seeds", type=int, help="trainings (1; with --full 3)")
    parser.add_argument("--items", type=int, help="held-out questions of a family")
    parser.add_argument("--families", nargs="+", help="synthetic families")
    parser.add_argument("--lengths", nargs="+", type=int, help="chunks of the documents played")
    parser.add_argument(
        "--budgets", nargs="+", type=int, help="more memory budgets, at the longest of the lengths"
    )
    parser.add_argument("--steps", type=int, help="training steps")
    parser.add_argument("--out", type=Path, help="(runs/learned_reader or, with --full, …-full)")
    options = parser.parse_args(arguments)
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name in ("items", "families", "lengths", "budgets", "steps")
        if (value := getattr(options, name)) is not None
    }
    plan = replace(FULL if options.full else LOOK, **given)
    out = options.out or Path("runs/learned_reader-full" if options.full else "runs/learned_reader")
    seeds = options.seeds or (3 if options.full else 1)
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 150)
    with Progress(console=console) as progress:
        results, ceilings, facts = study(plan, seeds, Store(out, plan), progress)
    for table in (accuracy_table(plan, results, ceilings), errors_table(plan, results)):
        console.print(table)
    for seed, took in enumerate(facts):
        console.print(
            f"seed {seed}: {took['parameters']:,} parameters, {took['vocabulary']} words, "
            f"{took['lessons']:,} lessons, {took['cpu_seconds']:.0f} CPU-seconds of training"
        )
    found = as_data(plan, results, facts)
    (out / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(plan, results, ceilings, out / "learned_reader.png")
    console.print(f"wrote {out}/results.json and {out}/learned_reader.png")
    return found


if __name__ == "__main__":
    main()
