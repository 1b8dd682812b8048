"""The figure of `mars-envs bench tree`: pass rates against the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .tree_tables import METRIC_NAMES

_METRICS = ("pass_at_1_mcts", "pass_at_n")
_MOST_TEAMS = 6


def draw(results: Sequence[Mapping[str, Any]], path: Path, *, titles: Sequence[str] = ()) -> None:
    """Draw the curves of one benchmark or of several side by side.

    A column for each benchmark, a row for each metric. Where a team's selectors can differ each of
    them has a line; the band is the 95 % interval of the baseline's. Teams beyond the first few
    are left out.

    Args:
        results: contents of `results.json`.
        path: of the image.
        titles: of the columns; default: none.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(results) + 0.6, 6.4), layout="constrained")
    grid = figure.subplots(len(_METRICS), len(results), sharey="row", squeeze=False)
    for column, found in enumerate(results):
        for row, metric in enumerate(_METRICS):
            axes = grid[row][column]
            _curves(axes, found, metric)
            axes.set_xlabel("nodes")
            axes.grid(alpha=0.3)
            if not row and titles:
                axes.set_title(titles[column])
            if not column:
                axes.set_ylabel(f"{METRIC_NAMES[metric]}, %")
        grid[-1][column].legend(fontsize="x-small", loc="lower right")
    figure.savefig(path, dpi=120)


def _curves(axes: Any, results: Mapping[str, Any], metric: str) -> None:
    for number, team in enumerate(list(results["teams"])[:_MOST_TEAMS]):
        same = results["teams"][team]["same_for_all_selectors"]
        selectors = [results["baseline"]] if same else results["selectors"]
        for style, selector in enumerate(selectors):
            cells = sorted(
                (
                    cell
                    for cell in results["cells"]
                    if cell["team"] == team and cell["selector"] == selector
                ),
                key=lambda cell: int(cell["budget"]),
            )
            if not cells:
                continue
            budgets = [cell["budget"] for cell in cells]
            color = f"C{number % 10}"
            line = axes.plot(
                budgets,
                [100 * cell[metric]["mean"] for cell in cells],
                color=color,
                linestyle=("-", "--", ":", "-.")[style % 4],
                marker="os^vDPX*+x"[style % 10],
                markersize=3.5,
                linewidth=1.2,
                label=team if same else f"{team}, {selector}",
            )
            if selector == results["baseline"] and len(budgets) > 1:
                axes.fill_between(
                    budgets,
                    [100 * cell[metric]["low"] for cell in cells],
                    [100 * cell[metric]["high"] for cell in cells],
                    color=line[0].get_color(),
                    alpha=0.12,
                    linewidth=0,
                )
