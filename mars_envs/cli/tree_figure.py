"""The figure of `mars-envs bench tree`: pass rates against the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .tree_tables import METRIC_NAMES

_METRICS = ("pass_at_1_mcts", "pass_at_n")
_MOST_TEAMS = 6
_STYLES = ("-", "--", ":", "-.")
_MARKERS = "os^vDPX*+x"


def draw(results: Sequence[Mapping[str, Any]], path: Path, *, titles: Sequence[str] = ()) -> None:
    """Draw the curves of one benchmark, or of several side by side.

    A column for each benchmark, a row for each metric; a colour for each of the first few teams, a
    marker for each selector. The band is the 95 % interval over tasks with the baseline selector.

    Args:
        results: contents of `results.json`.
        path: of the image.
        titles: of the columns.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(results) + 0.8, 7.0), layout="constrained")
    grid = figure.subplots(len(_METRICS), len(results), squeeze=False)
    for column, found in enumerate(results):
        for row, metric in enumerate(_METRICS):
            axes = grid[row][column]
            _curves(axes, found, metric)
            axes.set_xlabel("nodes")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
            if not column:
                axes.set_ylabel(f"{METRIC_NAMES[metric]}, %")
        top, bottom = grid[0][column], grid[-1][column]
        if titles:
            top.set_title(titles[column], fontsize="medium")
        small: dict[str, Any] = {"fontsize": "x-small", "loc": "lower right"}
        top.legend(handles=_team_handles(found), **small)
        if not column or found["selectors"] != results[column - 1]["selectors"]:
            bottom.legend(handles=_selector_handles(found), **small)
    figure.savefig(path, dpi=120)


def _curves(axes: Any, results: Mapping[str, Any], metric: str) -> None:
    at: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell in results["cells"]:
        at.setdefault((cell["team"], cell["selector"]), []).append(cell)
    for number, team in enumerate(_teams(results)):
        same = results["teams"][team]["same_for_all_selectors"]
        for selector in [results["baseline"]] if same else results["selectors"]:
            cells = sorted(at.get((team, selector), []), key=lambda cell: int(cell["budget"]))
            budgets = [cell["budget"] for cell in cells]
            mean, low, high = (
                [100 * cell[metric][part] for cell in cells] for part in ("mean", "low", "high")
            )
            axes.plot(budgets, mean, **_style(results, selector), color=f"C{number}")
            if selector == results["baseline"]:
                axes.fill_between(budgets, low, high, color=f"C{number}", alpha=0.1, linewidth=0)


def _teams(results: Mapping[str, Any]) -> list[str]:
    return list(results["teams"])[:_MOST_TEAMS]


def _style(results: Mapping[str, Any], selector: str) -> dict[str, Any]:
    number = results["selectors"].index(selector)
    main = selector == results["baseline"]
    return {
        "linestyle": "-" if main else _STYLES[number % len(_STYLES)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 3.5,
        "linewidth": 2.0 if main else 0.9,
    }


def _team_handles(results: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=f"C{number}", label=team)
        for number, team in enumerate(_teams(results))
    ]


def _selector_handles(results: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], **_style(results, selector), color="0.3", label=selector)
        for selector in results["selectors"]
    ]
