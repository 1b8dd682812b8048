"""The tables of `mars-envs bench tree`, for the console and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .sheets import Sheet, percent, plain, points, rate

COMPARED = ("pass_at_1_mcts", "pass_at_n")
METRIC_NAMES = {"pass_at_1": "Pass@1", "pass_at_1_mcts": "Pass@1(MCTS)", "pass_at_n": "Pass@N"}

Rows = Sequence[Mapping[str, Any]]
"""Some of the `cells` of `results.json`."""


def sheets(results: Mapping[str, Any]) -> list[Sheet]:
    """Return the tables that `results.json` is read from."""
    found = [_recorded(results), _diversity(results)] if results["recorded"] else []
    for team in results["teams"]:
        rows = [cell for cell in results["cells"] if cell["team"] == team]
        if not rows:
            continue
        if results["teams"][team]["same_for_all_selectors"]:
            rows = [row for row in rows if row["selector"] == rows[0]["selector"]]
        found += [_curves(results, team, metric, rows) for metric in COMPARED]
        compared = _compared(results, team, rows)
        found += [] if compared is None else [compared, _shapes(results, team, rows)]
    if any(row["of"] == "choice" for row in results["comparisons"]):
        found.append(_choices(results))
    baseline = results["baseline"]
    if any(r["of"] == "team" and r["selector"] == baseline for r in results["comparisons"]):
        found.append(_teams(results))
    return found


def _recorded(results: Mapping[str, Any]) -> Sheet:
    rows = [
        [label, f"{entry['samples']:g}", percent(entry["pass_at_1"]), percent(entry["public"])]
        for label, entry in results["recorded"].items()
    ]
    return Sheet(
        title="Recorded answers, each judged once",
        columns=("agent", "per task", "Pass@1, %", "pass public tests, %"),
        rows=rows,
        note=f"mean over {len(results['tasks'])} tasks [95 % bootstrap interval over tasks]",
    )


def _diversity(results: Mapping[str, Any]) -> Sheet:
    names = ("token_distance", "syntax_distance", "within_agents", "between_agents", "shapes")
    return Sheet(
        title="How different the recorded answers of a task are",
        columns=("team", "by tokens", "by syntax", "within", "between agents", "different shapes"),
        rows=[
            [team, *(plain(found[name]) for name in names)]
            for team, found in results["diversity"].items()
        ],
        note="mean distance of two answers, 0 to 1, ± standard error over tasks; within and "
        "between agents by syntax",
    )


def _curves(results: Mapping[str, Any], team: str, metric: str, rows: Rows) -> Sheet:
    budgets = sorted({cell["budget"] for cell in rows})
    at = {(cell["selector"], cell["budget"]): cell for cell in rows}
    selectors = dict.fromkeys(cell["selector"] for cell in rows)
    return Sheet(
        title=f"{team}: {METRIC_NAMES[metric]} by number of nodes, %",
        columns=("selector", *map(str, budgets)),
        rows=[
            [_selector(results, team, selector)]
            + [rate(at[selector, budget][metric]) for budget in budgets]
            for selector in selectors
        ],
        note=f"mean ± standard error over {rows[0]['tasks']} tasks × {results['seeds']} seeds",
    )


def _compared(results: Mapping[str, Any], team: str, rows: Rows) -> Sheet | None:
    """All selectors against the baseline, at the largest budget where both metrics can differ."""
    from trainers.comparisons import format_p

    against = {
        (row["metric"], row["selector"], row["budget"]): row
        for row in results["comparisons"]
        if row["of"] == "selector" and row["team"] == team
    }
    budgets = {budget for metric, _, budget in against if metric == "pass_at_n"}
    if not budgets:
        return None
    budget = max(budgets)
    lines = []
    for metric in COMPARED:
        for cell in rows:
            if cell["budget"] == budget:
                row = against.get((metric, cell["selector"], budget))
                line = [f"{METRIC_NAMES[metric]}, {cell['selector']}", percent(cell[metric])]
                line += ["", ""] if row is None else [points(row), format_p(row["p_holm"])]
                lines.append(line)
    family = next(row["family"] for row in against.values())
    return Sheet(
        title=f"{team}: against {results['baseline']} at {budget} nodes",
        columns=("", "%", "difference, points", "Holm"),
        rows=lines,
        note=f"[95 % interval over {rows[0]['tasks']} tasks]; each metric's p-values, over all "
        f"budgets, are corrected together ({family})",
    )


def _shapes(results: Mapping[str, Any], team: str, rows: Rows) -> Sheet:
    budget = max(cell["budget"] for cell in rows)
    return Sheet(
        title=f"{team}: trees of {budget} nodes",
        columns=("selector", "depth", "root children", "refinements, %", "degenerate, %"),
        rows=[
            [
                cell["selector"],
                *(plain(cell[name]) for name in ("mean_depth", "root_children")),
                *(rate(cell[name]) for name in ("refine_share", "degenerate")),
            ]
            for cell in rows
            if cell["budget"] == budget
        ],
        note="mean ± standard error over tasks; degenerate: all nodes have the same reward",
    )


def _choices(results: Mapping[str, Any]) -> Sheet:
    """The reward model's choice against the released one, at each team's largest budget."""
    from trainers.comparisons import format_p

    rows = [row for row in results["comparisons"] if row["of"] == "choice"]
    largest = {
        team: max(row["budget"] for row in rows if row["team"] == team)
        for team in dict.fromkeys(row["team"] for row in rows)
    }
    at = {(cell["team"], cell["selector"], cell["budget"]): cell for cell in results["cells"]}
    return Sheet(
        title=f"Answers chosen by {results['score_fn']} against the latest of the best",
        columns=("trees", "nodes", "latest, %", f"{results['score_fn']}, %", "points", "Holm"),
        rows=[
            [
                f"{row['team']}, {_selector(results, row['team'], row['selector'])}",
                str(row["budget"]),
                *(
                    rate(at[row["team"], row["selector"], row["budget"]][metric])
                    for metric in ("pass_at_1_mcts", "pass_at_1_scored")
                ),
                points(row),
                format_p(row["p_holm"]),
            ]
            for row in rows
            if row["budget"] == largest[row["team"]]
        ],
        note=f"[95 % interval over {rows[0]['difference']['n']} tasks]; p-values of all budgets "
        f"are corrected together ({rows[0]['family']})",
    )


def _teams(results: Mapping[str, Any]) -> Sheet:
    """All teams against the first, with the baseline's selector."""
    from trainers.comparisons import format_p

    rows = [
        row
        for row in results["comparisons"]
        if row["of"] == "team" and row["selector"] == results["baseline"]
    ]
    return Sheet(
        title=f"Teams against {rows[0]['against']}, at equal budget, selector "
        f"{results['baseline']}",
        columns=("team", "nodes", "metric", "difference, points", "Holm"),
        rows=[
            [
                row["team"],
                str(row["budget"]),
                METRIC_NAMES[row["metric"]],
                points(row),
                format_p(row["p_holm"]),
            ]
            for row in rows
        ],
        note=f"[95 % interval over {rows[0]['difference']['n']} tasks]; each metric's p-values are "
        f"corrected together ({rows[0]['family']})",
    )


def _selector(results: Mapping[str, Any], team: str, selector: str) -> str:
    return "any selector" if results["teams"][team]["same_for_all_selectors"] else selector
