"""Tables and the figure: accuracy with intervals, paired differences, and where it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.table import Table

from trainers.comparisons import format_p, holm, mcnemar
from trainers.statistics import Estimate, mean_estimate

from .study import METHODS, Cell, Plan
from .trials import Trial, yes_rates

Results = Mapping[Cell, Sequence[Sequence[Trial]]]
"""Of each cell, the trials of each training; the items are those of every other cell."""
_COLOURS = dict(zip(METHODS, ("C0", "C3", "C1"), strict=True))


def nested_estimate(values: ArrayLike, *, resamples: int = 4999, seed: int = 0) -> Estimate:
    """Estimate a mean over trainings and, of each, the items that it alone was tried on.

    The interval (percentile bootstrap) resamples trainings, and items within each: what to expect
    of another training on other questions. With as few trainings as here it is a rough guide.
    Where all values are equal there is nothing to resample, and the bounds are NaN.

    Args:
        values: [seeds, items].
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        The estimate; `n` counts items of all trainings.
    """
    matrix = np.asarray(values, np.float64)
    if np.ptp(matrix) == 0:
        return Estimate(float(matrix.flat[0]), math.nan, math.nan, matrix.size)
    seeds, items = matrix.shape
    rng = np.random.default_rng(seed)
    rows = rng.integers(seeds, size=(resamples, seeds, 1))
    draws = matrix[rows, rng.integers(items, size=(resamples, seeds, items))].mean((1, 2))
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(float(matrix.mean()), float(low), float(high), matrix.size, float(draws.std()))


def accuracy(runs: Sequence[Sequence[Trial]]) -> Estimate:
    """Return how often the answer was right."""
    matrix = correct(runs)
    if np.ptp(matrix) == 0:
        return mean_estimate(matrix.ravel())  # ten out of ten are no certainty
    return nested_estimate(matrix)


def correct(runs: Sequence[Sequence[Trial]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what was answered right: [seeds, items]."""
    return np.array([[trial.correct for trial in trials] for trials in runs])


def accuracy_table(plan: Plan, results: Results, ceilings: Results) -> Table:
    """Return accuracy by length, and in pairs what PI-Mem gains over each recurrent reader."""
    seeds = len(next(iter(results.values())))
    table = Table(
        title=f"Exact match: {seeds} trainings × {plan.items} held-out questions, 95 % intervals; "
        "p-values of McNemar's exact test with Holm's correction"
    )
    for heading in ("family", "chunks", "method", "exact match", "oracle", "PI-Mem minus this", ""):
        table.add_column(heading)
    compared = [cell for cell in results if cell.method != "pi_mem"]
    p_values = [
        mcnemar(correct(results[_rival(cell)]).ravel(), correct(results[cell]).ravel()).p_value
        for cell in compared
    ]
    adjusted = dict(zip(compared, holm(p_values), strict=True)) if compared else {}
    for cell in results:
        ours = correct(results[cell])
        row = [cell.family, str(cell.length), _named(plan, cell), short(accuracy(results[cell]))]
        row.append(f"{correct(ceilings[cell]).mean():.2f}")
        if cell in adjusted:
            gain = nested_estimate(correct(results[_rival(cell)]) - ours)
            row += [short(gain, sign="+"), format_p(float(adjusted[cell]))]
        table.add_row(*row)
    return table


def errors_table(plan: Plan, results: Results) -> Table:
    """Return how reading went, and where wrong answers come from.

    The rates of yes are of turn 1, 2, 3 (or pass); of a memorizer, a changed memory counts as yes.
    """
    table = Table(title="Where it goes wrong (all trainings together)")
    headings = ("family", "chunks", "method", "turns", "calls", "prompt tokens", "memory tokens")
    outcomes = ("missed", "lost", "misread")
    for heading in (*headings, "yes % gold", "yes % other", *outcomes):
        table.add_column(heading)
    for cell, runs in results.items():
        trials = [trial for run in runs for trial in run]
        means = [
            np.mean([getattr(trial, field) for trial in trials])
            for field in ("turns", "calls", "prompt_tokens", "memory_tokens")
        ]
        table.add_row(
            cell.family,
            str(cell.length),
            _named(plan, cell),
            f"{means[0]:.2f}",
            *(f"{mean:,.0f}" for mean in means[1:]),
            *(
                " ".join(f"{100 * rate:.1f}" for rate in yes_rates(trials, gold=gold))
                for gold in (True, False)
            ),
            *(f"{np.mean([trial.outcome == one for trial in trials]):.3f}" for one in outcomes),
        )
    return table


def as_data(plan: Plan, results: Results, facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures as plain data."""
    rows = []
    for cell, runs in results.items():
        figure = accuracy(runs)
        trials = [trial for run in runs for trial in run]
        rows.append(
            {
                "family": cell.family,
                "chunks": cell.length,
                "method": cell.method,
                "memory_tokens": cell.memory_tokens,
                "exact_match": figure.mean,
                "low": figure.low,
                "high": figure.high,
                "by_seed": correct(runs).mean(1).tolist(),
                "gold_yes_rates": yes_rates(trials, gold=True),
                "other_yes_rates": yes_rates(trials, gold=False),
            }
        )
    return {"training": list(facts), "cells": rows}


def draw(plan: Plan, results: Results, ceilings: Results, path: Path) -> None:
    """Draw accuracy over length, a panel for each family; what the oracle reaches is dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(plan.families), figsize=(5.2 * len(plan.families), 3.8), layout="constrained"
    )
    for family, axis in zip(plan.families, np.atleast_1d(axes), strict=True):
        for method in METHODS:
            line = [
                (
                    cell.length,
                    accuracy(runs),
                    correct(runs).mean(1),
                    correct(ceilings[cell]).mean(),
                )
                for cell, runs in results.items()
                if (cell.family, cell.method) == (family, method)
                and cell.memory_tokens == plan.memory_tokens
            ]
            lengths, figures, by_seed, oracle = zip(*line, strict=True)
            colour = _COLOURS[method]
            axis.plot(lengths, [one.mean for one in figures], "o-", color=colour, label=method)
            axis.fill_between(
                lengths,
                [one.low for one in figures],
                [one.high for one in figures],
                color=colour,
                alpha=0.15,
            )
            axis.plot(lengths, by_seed, ".", color=colour, alpha=0.4, ms=4)
            axis.plot(lengths, oracle, "--", color=colour, lw=1)
        axis.axvspan(lengths[0], max(plan.trained_on), color="grey", alpha=0.1)
        axis.set_xscale("log", base=2)
        axis.set_xticks(lengths, [str(length) for length in lengths])
        axis.set(
            title=f"{family} (grey: lengths of training; dashed: oracle)",
            xlabel=f"chunks of {plan.chunk_tokens} tokens",
            ylabel="exact match, held-out names",
            ylim=(-0.03, 1.03),
        )
    np.atleast_1d(axes)[0].legend(loc="lower left", fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def short(figure: Estimate, sign: str = "") -> str:
    """Return a figure with its interval."""
    if math.isnan(figure.low):
        return f"{figure.mean:{sign}.2f}"
    return f"{figure.mean:{sign}.2f} [{figure.low:{sign}.2f}, {figure.high:{sign}.2f}]"


def _rival(cell: Cell) -> Cell:
    return Cell(
        family=cell.family, length=cell.length, method="pi_mem", memory_tokens=cell.memory_tokens
    )


def _named(plan: Plan, cell: Cell) -> str:
    same = cell.memory_tokens == plan.memory_tokens
    return cell.method if same else f"{cell.method} (memory of {cell.memory_tokens})"
