"""Tables for the console and as Markdown, and how figures stand in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich import box
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table, not yet laid out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = field(default_factory=list)
    note: str = ""

    def to_rich(self) -> Table:
        """Return it for the console; where that is narrow, cells take several lines."""
        table = Table(
            title=self.title,
            caption=self.note or None,
            box=box.SIMPLE_HEAD,
            title_justify="left",
            caption_justify="left",
            collapse_padding=True,
            pad_edge=False,
        )
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="right" if index else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def to_markdown(self) -> str:
        """Return it as a paragraph of Markdown."""
        lines = [
            f"**{self.title}**" + (f" ({self.note})" if self.note else ""),
            "",
            "| " + " | ".join(self.columns) + " |",
            "|" + " --- |" + " ---: |" * (len(self.columns) - 1),
            *(
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                for row in self.rows
            ),
        ]
        return "\n".join(lines) + "\n"


def mean_with_se(column: Sequence[float]) -> dict[str, Any]:
    """Return mean, standard error over tasks, and number of tasks."""
    known = [value for value in column if not math.isnan(value)]
    count = len(known)
    mean = float(np.mean(known)) if known else math.nan
    se = float(np.std(known, ddof=1) / math.sqrt(count)) if count > 1 else math.nan
    return {"mean": mean, "se": se, "n": count}


def percent(estimate: Mapping[str, Any]) -> str:
    """Return a rate with its 95 % interval, in per cent."""
    mean, low, high = (estimate[key] for key in ("mean", "low", "high"))
    if missing(mean):
        return "–"
    if missing(low):
        return f"{100 * mean:.1f}"
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def points(comparison: Mapping[str, Any]) -> str:
    """Return a difference of rates in percentage points, with its 95 % interval."""
    difference = comparison["difference"]
    mean, low, high = (difference[key] for key in ("mean", "low", "high"))
    bounds = "" if missing(low) else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * mean:+.1f}{bounds}"


def rate(estimate: Mapping[str, Any]) -> str:
    """Return a rate with its standard error, in per cent."""
    mean, se = estimate["mean"], estimate["se"]
    return f"{100 * mean:.1f}" + ("" if missing(se) else f"±{100 * se:.1f}")


def plain(estimate: Mapping[str, Any]) -> str:
    """Return a mean with its standard error."""
    mean, se = estimate["mean"], estimate["se"]
    if missing(mean):
        return "–"
    return f"{mean:.2f}" + ("" if missing(se) else f"±{se:.2f}")


def missing(value: float | None) -> bool:
    """Whether a figure is none: NaN, or what JSON has for it."""
    return value is None or math.isnan(value)
