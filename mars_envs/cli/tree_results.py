"""From the records of a grid of trees to figures with their uncertainty: `results.json`.

Tasks are the units: of a task, the mean over its trees counts once. Everything here is a function
of the records, so the same grid gives the same bytes, however it was worked through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .grid import Record
from .sheets import mean_with_se
from .tree_curves import SUMS
from .tree_growth import TreeCell

if TYPE_CHECKING:
    from trainers.comparisons import Comparison
    from trainers.statistics import Estimate

SCHEMA = "mars-envs/bench-tree"
SCHEMA_VERSION = 1

RATES = ("pass_at_1", "pass_at_1_mcts", "pass_at_1_scored", "pass_at_n")
"""Success of the tree's first node, of the answer that it hands in, of the one that a reward model
chooses (nothing without one), of any node."""
SHAPES = ("node_success", "mean_depth", "max_depth", "root_children", "refine_share", "degenerate")
"""What else is said of the trees of a budget."""

_COUNTS = ("trees", "chosen", "scored", "scored_trees", "any", *SUMS)

Point = tuple[str, str, int]
"""Team, selector, budget."""


@dataclass(frozen=True, slots=True)
class Values:
    """What was measured at one point, one value per task, in the order of the tasks."""

    trees: int
    figures: Mapping[str, Sequence[float]]
    """By the names in `RATES` and `SHAPES`."""
    shares: Mapping[str, Sequence[float]]
    """Share of the nodes, by agent."""
    success: Mapping[str, Sequence[float]]
    """Success of an agent's own nodes, by agent; NaN where it has none."""
    credit: Mapping[str, Sequence[float]]
    """An agent's part in Pass@N, by agent: of a solved tree each of its solvers earns as much."""


def gather(
    records: Iterable[tuple[TreeCell, Record]],
    tasks: Sequence[str],
    agents: Mapping[str, Sequence[str]],
) -> dict[Point, Values]:
    """Bring records together: sums over the trees of a task, then means.

    Args:
        records: of cells; a task may have several at a point, with different seeds.
        tasks: ids, in order. Those without a record are left out, at the points where they are
            missing.
        agents: of each team.
    """
    sums: dict[Point, dict[str, dict[str, Any]]] = {}
    for cell, record in records:
        for budget, found in record["budgets"].items():
            point = (cell.team, cell.selector, int(budget))
            total = sums.setdefault(point, {}).setdefault(cell.task_id, _nothing())
            total["trees"] += len(found["chosen"])
            total["chosen"] += found["chosen"].count("1")
            total["scored"] += found["scored"].count("1")
            total["scored_trees"] += len(found["scored"])
            total["any"] += found["any"].count("1")
            for name in SUMS:
                total[name] += found["sums"][name]
            for agent, counts in found["agents"].items():
                own = total["agents"].get(agent, (0, 0, 0))
                total["agents"][agent] = [sum(pair) for pair in zip(own, counts, strict=True)]
    return {
        point: _values([by_task[task] for task in tasks if task in by_task], agents[point[0]])
        for point, by_task in sums.items()
    }


def _nothing() -> dict[str, Any]:
    return {**dict.fromkeys(_COUNTS, 0), "agents": {}}


def _values(totals: Sequence[Mapping[str, Any]], agents: Sequence[str]) -> Values:
    def column(top: str, bottom: str = "trees") -> list[float]:
        return [total[top] / total[bottom] if total[bottom] else 0.0 for total in totals]

    own = {
        agent: [total["agents"].get(agent, (0, 0, 0)) for total in totals]
        for agent in sorted(agents)
    }
    return Values(
        trees=sum(total["trees"] for total in totals),
        figures={
            "pass_at_1": column("first"),
            "pass_at_1_mcts": column("chosen"),
            "pass_at_1_scored": column("scored", "scored_trees")
            if totals[0]["scored_trees"]
            else [],
            "pass_at_n": column("any"),
            "node_success": column("solved", "nodes"),
            "mean_depth": column("depth", "nodes"),
            "max_depth": column("max_depth"),
            "root_children": column("root_children"),
            "refine_share": column("refines", "nodes"),
            "degenerate": column("degenerate"),
        },
        shares={
            agent: [
                nodes / total["nodes"] if total["nodes"] else 0.0
                for (nodes, *_), total in zip(counts, totals, strict=True)
            ]
            for agent, counts in own.items()
        },
        success={
            agent: [solved / nodes if nodes else math.nan for nodes, solved, _ in counts]
            for agent, counts in own.items()
        },
        credit={
            agent: [
                credit / total["trees"] for (*_, credit), total in zip(counts, totals, strict=True)
            ]
            for agent, counts in own.items()
        },
    )


def cells_table(values: Mapping[Point, Values]) -> list[dict[str, Any]]:
    """Return the figures of every point.

    Rates come with a 95 % bootstrap interval over tasks, the others with their standard error.
    """
    from trainers.statistics import mean_estimate

    known: dict[tuple[float, ...], Estimate] = {}

    def interval(column: Sequence[float]) -> dict[str, Any]:
        # Teams of one recorded agent have the same values for every selector.
        key = tuple(column)
        if key not in known:
            known[key] = mean_estimate(column)
        return asdict(known[key])

    return [
        {
            "team": team,
            "selector": selector,
            "budget": budget,
            "tasks": len(found.figures["pass_at_1"]),
            "trees": found.trees,
            **{name: interval(found.figures[name]) for name in RATES},
            **{name: mean_with_se(found.figures[name]) for name in SHAPES},
            "agents": {
                agent: {
                    "share": mean_with_se(share),
                    "success": mean_with_se(found.success[agent]),
                    "credit": mean_with_se(found.credit[agent]),
                }
                for agent, share in found.shares.items()
            },
        }
        for (team, selector, budget), found in values.items()
    ]


def compare_selectors(
    values: Mapping[Point, Values], baseline: str, *, pools: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """Compare every selector with one, per team and metric; these are Holm's families.

    Left out is what cannot differ: whether a pool that is used up holds a right answer.

    Args:
        values: see `gather`.
        baseline: the selector that the others are compared with.
        pools: by team, the number of its answers for every task; None: no end of them.
    """
    found: list[dict[str, Any]] = []
    for team in dict.fromkeys(point[0] for point in values):
        pool = pools[team]
        for metric in ("pass_at_1_mcts", "pass_at_n"):
            pairs = [
                ((team, selector, budget), (team, baseline, budget))
                for _, selector, budget in _of_team(values, team)
                if selector != baseline
                and budget > 1
                and (pool is None or pool > budget or metric != "pass_at_n")
            ]
            found += _family("selector", metric, pairs, values)
    return found


def compare_teams(values: Mapping[Point, Values], baseline: str) -> list[dict[str, Any]]:
    """Compare every team with one at equal budget, per selector and metric (Holm's families)."""
    found: list[dict[str, Any]] = []
    for selector in dict.fromkeys(point[1] for point in values):
        for metric in ("pass_at_1_mcts", "pass_at_n"):
            pairs = [
                ((team, selector, budget), (baseline, selector, budget))
                for team, chosen, budget in values
                if chosen == selector and team != baseline
            ]
            found += _family("team", metric, pairs, values)
    return found


def compare_choices(values: Mapping[Point, Values]) -> list[dict[str, Any]]:
    """Compare a reward model's choice with the released one, on the same trees.

    One family of tests, over all points of more than one node.
    """
    pairs = [
        (point, point)
        for point, found in values.items()
        if point[2] > 1 and found.figures["pass_at_1_scored"]
    ]
    return _family("choice", "pass_at_1_scored", pairs, values, against="pass_at_1_mcts")


def _of_team(values: Iterable[Point], team: str) -> list[Point]:
    return [point for point in values if point[0] == team]


def _family(
    what: str,
    metric: str,
    pairs: Iterable[tuple[Point, Point]],
    values: Mapping[Point, Values],
    against: str = "",
) -> list[dict[str, Any]]:
    """Compare pairs of points, corrected for being many; `against`: another metric."""
    from trainers.comparisons import compare, holm

    compared: list[tuple[Point, Point, Comparison]] = []
    for point, other in pairs:
        if other not in values:
            continue
        new = values[point].figures[metric]
        old = values[other].figures[against or metric]
        if len(new) == len(old):  # after failures, tasks may be missing on one side
            compared.append((point, other, compare({"": new}, old)[""]))
    adjusted = holm([comparison.p_value for *_, comparison in compared])
    return [
        {
            "of": what,
            "metric": metric,
            "team": point[0],
            "selector": point[1],
            "budget": point[2],
            "against": against or (other[0] if what == "team" else other[1]),
            "difference": asdict(comparison.difference),
            "test": comparison.test,
            "p_value": comparison.p_value,
            "p_holm": float(corrected),
            "family": len(compared),
        }
        for (point, other, comparison), corrected in zip(compared, adjusted, strict=True)
    ]
