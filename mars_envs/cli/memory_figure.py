"""The figure of `mars-envs bench memory`: accuracy and cost against the length of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .memory_tables import length_name, source_name

_MARKERS = "os^vDPX*"


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw accuracy, latency and total work against length; one column for each source and agent.

    Accuracy is exact match with its 95 % interval. Latency and work are those of the first of the
    simulated machines, on logarithmic axes.

    Args:
        results: contents of `results.json`.
        path: of the image.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.figure import Figure

    rows = [row for row in results["points"] if row["episodes"]]
    columns = list(dict.fromkeys((row["source"], row["agent"]) for row in rows))
    machine = next(iter(results["machines"]))
    figure = Figure(figsize=(3.4 * len(columns) + 1.0, 8.4), layout="constrained")
    grid = figure.subplots(3, len(columns), squeeze=False)
    for column, (source, agent) in enumerate(columns):
        own = [row for row in rows if (row["source"], row["agent"]) == (source, agent)]
        first, second, third = (grid[line][column] for line in range(3))
        first.set_title(f"{source_name(source)}\n{agent}", fontsize="medium")
        _accuracy(first, own)
        _cost(second, own, machine, "latency_s")
        _cost(third, own, machine, "work_s")
        for axes in (first, second, third):
            axes.grid(alpha=0.3)
            _lengths(axes, own)
        third.set_xlabel("tokens of the document")
    for line, label in enumerate(
        ("exact match, %", f"latency alone, s ({machine})", f"total work, s ({machine})")
    ):
        grid[line][0].set_ylabel(label)
    grid[0][0].legend(fontsize="x-small")
    figure.savefig(path, dpi=110)


def _accuracy(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        own = _of_method(rows, method)
        mean, low, high = (
            [_percent(row["em"][part]) for row in own] for part in ("mean", "low", "high")
        )
        # Side by side, since several methods often have the same figures.
        x = [_place(rows, row) + 0.05 * number for row in own]
        below = [a - b for a, b in zip(mean, low, strict=True)]
        above = [b - a for a, b in zip(mean, high, strict=True)]
        axes.errorbar(x, mean, yerr=[below, above], **_style(number), capsize=2, label=method)
    axes.set_ylim(-4, 104)


def _cost(axes: Any, rows: Sequence[Mapping[str, Any]], machine: str, what: str) -> None:
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        own = _of_method(rows, method)
        values = [row["machines"][machine][what]["mean"] for row in own]
        axes.plot([_place(rows, row) for row in own], values, **_style(number))
    axes.set_yscale("log")


def _lengths(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    axes.set_xticks(range(len(lengths)), [length_name(one) for one in lengths], fontsize="small")


def _place(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int:
    return list(dict.fromkeys(one["length"] for one in rows)).index(row["length"])


def _of_method(rows: Sequence[Mapping[str, Any]], method: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["method"] == method]


def _percent(share: float | None) -> float:
    return float("nan") if share is None else 100 * share


def _style(number: int) -> dict[str, Any]:
    return {
        "color": f"C{number}",
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 4,
        "linewidth": 1.2,
    }
