"""When does a search tree beat independent samples, and when does it lose?

Simulated coders answer right from scratch with a chance `p` and repair a wrong answer with
`multiplier * p`; refining a right answer keeps it right with 0.9. For each selector, budget and
chance the study reports what the tree gains over best-of-N with the same budget, in points:

    coverage    some node is right (Pass@N)
    chosen      the node handed in is right (Pass@1(MCTS)); the same, unless public tests err

Search and best-of-N meet the same tasks and the same fresh answers, in the same order, so gains are
differences of pairs. Intervals are 95 % (Agresti and Min's for paired proportions). `fitted` is
FreshOrRefine, told what 50 earlier trees of 8 nodes by the default selector saw; each twentieth of
the trees has a fit of its own (with few trees: every forty).

    python examples/study_refinement.py                  # seconds
    python examples/study_refinement.py --full           # about ten minutes of CPU
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from mars_envs.tree_search import FreshOrRefine, Selector
from mars_envs.tree_search.simulated import Coder, SimulatedTasks, grow

MULTIPLIERS = (0.0, 0.5, 1.0, 1.5, 2.0)
FITS = 20
EARLIER_TREES = 50
EARLIER = 10**9
"""Seeds of earlier trees start here."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The tasks of a cell, all but the multiplier, and the budget."""

    budget: int
    fresh: float
    false_positive: float = 0.0
    ease: tuple[float, float] | None = None
    """Beta of the tasks' ease; `fresh` is then the mean chance."""

    def source(self, multiplier: float) -> SimulatedTasks:
        """Return the tasks, for one coder."""
        # The mean of Beta(a, b) is a / (a + b), and a skill is the chance at an ease of 1.
        scale = 1.0 if self.ease is None else sum(self.ease) / self.ease[0]
        coder = Coder(
            fresh=min(1.0, scale * self.fresh),
            refine=min(1.0, scale * self.fresh * multiplier),
            false_positive=self.false_positive,
        )
        return SimulatedTasks({"coder": coder}, ease=self.ease)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A way to search."""

    label: str
    selector: str
    """A preset, or "fitted"."""
    batch: int = 1
    expand_solved: bool = True
    fitted_at: float | None = None
    """The multiplier of the earlier trees, where it differs from that of the tasks."""


BEST_OF_N = Row(label="best of N", selector="best_of_n")
DEFAULT = Row(label="`default` (Beta)", selector="default")
GAUSSIAN = Row(label="`marti_code` (Gaussian)", selector="marti_code")
OURS = Row(label="`fresh_or_refine`", selector="fresh_or_refine")
FITTED = Row(label="fitted", selector="fitted")
EXACT_ROWS = (
    DEFAULT,
    Row(label="`default`, batch 4", selector="default", batch=4),
    GAUSSIAN,
    Row(label="`marti_code`, batch 4", selector="marti_code", batch=4),
    Row(label="`paper`", selector="paper"),
    Row(label="`t_plus`", selector="t_plus"),
    Row(label="`mcts`", selector="mcts"),
    Row(label="`chain`", selector="chain"),
    OURS,
    FITTED,
    Row(label="fitted, batch 4", selector="fitted", batch=4),
    Row(label="fitted where refinement is at 2 p", selector="fitted", fitted_at=2.0),
)
NOISY_ROWS = (
    DEFAULT,
    Row(label="`default`, what passes is left alone", selector="default", expand_solved=False),
    GAUSSIAN,
    Row(label="`mcts`", selector="mcts"),
    OURS,
    FITTED,
)
VARIED_ROWS = (DEFAULT, GAUSSIAN, OURS, FITTED)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One search on one kind of task."""

    setting: Setting
    row: Row
    multiplier: float
    trees: int


def grow_cell(cell: Cell) -> tuple[Flags, Flags]:
    """Return for every tree whether a node is right, and whether the chosen one is."""
    source = cell.setting.source(cell.multiplier)
    covered, chosen = np.zeros(cell.trees, dtype=bool), np.zeros(cell.trees, dtype=bool)
    fits = max(1, min(FITS, cell.trees // 40)) if cell.row.selector == "fitted" else 1
    blocks = np.array_split(np.arange(cell.trees), fits)
    for number, block in enumerate(blocks):
        selector: str | Selector = cell.row.selector
        if selector == "fitted":
            selector = fit(cell, number)
        for seed in block.tolist():
            tree = grow(
                source,
                selector,
                cell.setting.budget,
                seed,
                batch=cell.row.batch,
                expand_solved=cell.row.expand_solved,
            )
            covered[seed] = any(node.solved for node in tree)
            chosen[seed] = tree.best is not None and tree.best.solved
    return covered, chosen


def fit(cell: Cell, number: int) -> FreshOrRefine:
    """Fit to earlier trees of the same kind of task, or of another multiplier."""
    at = cell.multiplier if cell.row.fitted_at is None else cell.row.fitted_at
    first = EARLIER + number * EARLIER_TREES
    source = cell.setting.source(at)
    return FreshOrRefine.fitted(
        grow(source, "default", 8, seed) for seed in range(first, first + EARLIER_TREES)
    )


def paired_gain(after: Flags, before: Flags) -> tuple[float, float, float]:
    """Return the gain in points and its 95 % interval: Agresti and Min (2005)."""
    count = len(after) + 2
    won, lost = int((after & ~before).sum()) + 0.5, int((before & ~after).sum()) + 0.5
    middle = (won - lost) / count
    width = 1.96 * math.sqrt(won + lost - (won - lost) ** 2 / count) / count
    gain = float(after.mean() - before.mean())
    return 100 * gain, 100 * (middle - width), 100 * (middle + width)


def study(full: bool, trees: int | None, processes: int) -> list[dict[str, Any]]:
    """Grow all cells and return one record for each."""
    plan: list[tuple[Setting, tuple[Row, ...]]] = [
        (Setting(budget=budget, fresh=fresh), EXACT_ROWS)
        for budget in ((8, 60) if full else (8,))
        for fresh in ((0.05, 0.3, 0.7) if full else (0.3,))
    ]
    plan += [
        (Setting(budget=budget, fresh=fresh, false_positive=0.2), NOISY_ROWS)
        for budget in ((8, 60) if full else (8,))
        for fresh in ((0.05, 0.3, 0.7) if full else (0.3,))
    ]
    plan += [(Setting(budget=8, fresh=0.3, ease=(1, 1)), VARIED_ROWS)]
    cells = [
        Cell(
            setting=setting,
            row=row,
            multiplier=multiplier,
            trees=trees or {(8, True): 1000, (60, True): 150}.get((setting.budget, full), 40),
        )
        for setting, rows in plan
        # Best of N refines nothing: any multiplier will do.
        for row, multipliers in [(BEST_OF_N, (1.0,)), *((row, MULTIPLIERS) for row in rows)]
        for multiplier in multipliers
    ]
    results = zip(cells, _map(cells, processes), strict=True)
    records: list[dict[str, Any]] = []
    baseline: tuple[Flags, Flags]
    for cell, outcome in track(results, "growing trees", total=len(cells)):
        if cell.row is BEST_OF_N:
            baseline = outcome
            continue
        record: dict[str, Any] = {**asdict(cell.setting), **asdict(cell.row)}
        record |= {"multiplier": cell.multiplier, "n": cell.trees}
        for name, after, before in zip(("coverage", "chosen"), outcome, baseline, strict=True):
            gain, low, high = paired_gain(after, before)
            record[name] = {"best_of_n": 100 * before.mean(), "gain": gain, "interval": (low, high)}
        records.append(record)
    return records


def _map(cells: Sequence[Cell], processes: int) -> Iterable[tuple[Flags, Flags]]:
    if processes == 1:
        yield from map(grow_cell, cells)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(grow_cell, cells)


STARTER = Coder(fresh=0.2, refine=0.05, partial=0.7)
REPAIRER = Coder(fresh=0.05, refine=0.05, closeness=0.8)
TEAMS = {
    "starter": {"a": STARTER},
    "repairer": {"b": REPAIRER},
    "both": {"a": STARTER, "b": REPAIRER},
}


def team_study(trees: int) -> list[dict[str, Any]]:
    """Return the coverage of each coder alone and of both, and what both gain over the better."""
    records = []
    selectors = ("best_of_n", "default", "marti_code", "round_robin", "paper", "fresh_or_refine")
    for selector in track((*selectors, "fitted"), "growing trees of teams"):
        covered = {}
        for team, coders in TEAMS.items():
            source = SimulatedTasks(coders, public_tests=5)
            chosen: str | Selector = selector
            if selector == "fitted":
                earlier = range(EARLIER, EARLIER + EARLIER_TREES)
                chosen = FreshOrRefine.fitted(grow(source, "default", 8, seed) for seed in earlier)
            grown = (grow(source, chosen, 8, seed) for seed in range(trees))
            covered[team] = np.array([any(node.solved for node in tree) for tree in grown])
        better = max(("starter", "repairer"), key=lambda team: covered[team].mean())
        gain, low, high = paired_gain(covered["both"], covered[better])
        record: dict[str, Any] = {"selector": selector, "n": trees}
        record |= {team: 100 * float(flags.mean()) for team, flags in covered.items()}
        records.append(record | {"gain": gain, "interval": (low, high)})
    return records


def gain_table(records: Sequence[dict[str, Any]], figure: str) -> str:
    """Return a Markdown table: a row per setting and selector, a column per multiplier."""
    lines = [
        "| N | p | best of N | trees | selector | "
        + " | ".join(f"refine at {multiplier:g} p" for multiplier in MULTIPLIERS)
        + " |",
        "|" + " --- |" * (5 + len(MULTIPLIERS)),
    ]
    for start in range(0, len(records), len(MULTIPLIERS)):
        row = records[start : start + len(MULTIPLIERS)]
        first = row[0]
        lines.append(
            f"| {first['budget']} | {first['fresh']:g} | {first[figure]['best_of_n']:.1f} "
            f"| {first['n']:,} | {first['label']} | "
            + " | ".join(_gain(record[figure]) for record in row)
            + " |"
        )
    return "\n".join(lines)


def team_table(records: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of the team."""
    lines = [
        "| selector | trees | starter alone | repairer alone | both | both − the better alone |",
        "|" + " --- |" * 6,
    ]
    lines += [
        f"| {record['selector']} | {record['n']:,} | {record['starter']:.1f} "
        f"| {record['repairer']:.1f} | {record['both']:.1f} | {_gain(record)} |"
        for record in records
    ]
    return "\n".join(lines)


def _gain(record: dict[str, Any]) -> str:
    low, high = record["interval"]
    return f"{record['gain']:+.1f} ±{(high - low) / 2:.1f}".replace("-", "−")


def draw(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw gains against the quality of refinement, and what a gain costs."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = [r for r in records if (r["budget"], r["fresh"]) == (8, 0.3) and not r["ease"]]
    exact = [r for r in shown if not r["false_positive"]]
    plot, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for row in (DEFAULT, GAUSSIAN, OURS, FITTED):
        gains = [r["coverage"] for r in exact if r["label"] == row.label]
        left.errorbar(
            MULTIPLIERS,
            [gain["gain"] for gain in gains],
            yerr=[(gain["interval"][1] - gain["interval"][0]) / 2 for gain in gains],
            label=row.label.replace("`", ""),
            capsize=3,
        )
    left.axhline(0, color="grey", linewidth=0.8)
    left.set(
        xlabel="chance of a refinement / chance of a fresh answer", ylabel="points of coverage"
    )
    left.set_title("gain over best of N (N = 8, p = 0.3)")
    left.legend()

    fresh = np.arange(1, 9)
    failing = 0.7**fresh
    base = exact[0]["coverage"]["best_of_n"] / 100  # as measured: gains are relative to it
    lost, won = 100 * (1 - failing - base), 100 * (1 - failing * 0.4 ** (8 - fresh) - base)
    right.plot(lost, won, color="grey", marker="|", label="a fixed number of fresh answers: 1 to 8")
    for row in EXACT_ROWS:
        if row.fitted_at is not None or row.label == "fitted, batch 4":
            continue
        gain = {r["multiplier"]: r["coverage"] for r in exact if r["label"] == row.label}
        x, y = gain[0.0], gain[2.0]
        right.errorbar(
            x["gain"],
            y["gain"],
            xerr=(x["interval"][1] - x["interval"][0]) / 2,
            yerr=(y["interval"][1] - y["interval"][0]) / 2,
            label=row.label.replace("`", ""),
            marker="o",
            linestyle="none",
            color="black" if row.label == FITTED.label else None,
        )
    right.set(xlabel="gain where refinement never helps", ylabel="gain where it is at 2 p")
    right.set_title("what each selector wins and loses (N = 8, p = 0.3)")
    right.legend(fontsize=7, loc="lower left")
    plot.savefig(path, dpi=110)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the study; return what `--json` writes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the grid of docs/mars2.md")
    parser.add_argument("--trees", type=int, help="trees of each cell")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--figure", type=Path, help="write a picture here")
    options = parser.parse_args(argv)
    records = study(options.full, options.trees, options.processes)
    teams = team_study(options.trees or (1000 if options.full else 40))
    exact = [r for r in records if not r["false_positive"] and not r["ease"]]
    noisy = [r for r in records if r["false_positive"]]
    varied = [r for r in records if r["ease"]]
    print("\nCoverage (= chosen), exact public tests\n", gain_table(exact, "coverage"), sep="\n")
    for figure in ("coverage", "chosen"):
        print(f"\n{figure.capitalize()}, 20 % of wrong answers pass the public tests\n")
        print(gain_table(noisy, figure))
    print(
        "\nCoverage, tasks of uniform ease, mean chance p\n",
        gain_table(varied, "coverage"),
        sep="\n",
    )
    print("\nA team, N = 8, coverage\n", team_table(teams), sep="\n")
    figures = {"grid": records, "teams": teams}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    if options.figure:
        draw(records, options.figure)
    return figures


if __name__ == "__main__":
    main()
