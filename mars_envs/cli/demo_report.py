"""What the demo shows at its end: tables with intervals, a tree, a picture, `results.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from ..judging.code import JudgeStats
from ..tree_search.infos import tree_from_infos
from ..tree_search.rendering import tree_to_text
from .config import DemoConfig
from .console import console
from .exam import TEAM, Exam, is_hidden_constant
from .runs import write_json
from .team import ROLES

if TYPE_CHECKING:
    from trainers.evaluate import Metric
    from trainers.rollout import Rollout
    from trainers.statistics import Estimate

METRICS: Mapping[str, Metric] = {
    "Pass@1": "pass_at_1",
    "Pass@1(MCTS)": "pass_at_1_mcts",
    "Pass@N": "pass_at_n",
}
WHO = (*ROLES, TEAM)


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after training, and the difference on the same tasks."""

    before: Estimate
    after: Estimate
    gain: Estimate


def report(config: DemoConfig, folder: Path, before: Exam, after: Exam, stats: JudgeStats) -> None:
    """Print the report and write `results.json` and `learning_curve.png` into `folder`."""
    from trainers.evaluate import summarise
    from trainers.report import learning_curve
    from trainers.run_log import RunLog

    changes = {who: changes_of(who, before, after) for who in WHO}
    hidden = [rollout for rollout in after.trees[TEAM] if is_hidden_constant(rollout)]
    repair = summarise(hidden).team
    metrics = RunLog(folder).read_metrics()
    degenerate = _mean([record["degenerate_share"] for record in metrics])
    kind = "Independent samples" if config.baseline else "Trees"
    console.print(_changes_table(f"{kind}: held-out tasks", changes))
    console.print(
        "hidden-constant tasks, team trees after training: refining a failure succeeds "
        f"{repair.refine_success}, a fresh try {repair.fresh_success}; "
        f"difference {repair.refine_gain}"
    )
    console.print(
        f"training: {len(metrics)} steps, "
        f"{sum(int(record['actions'] or 0) for record in metrics)} nodes, degenerate trees "
        f"{degenerate:.1%} (n={len(metrics) * config.trees})"
    )
    console.print(
        f"judge, since this process started: {stats.nodes} nodes judged, {stats.cached_nodes} of "
        f"them from the cache; {stats.cached_cases} of {stats.cases} tests were cache hits "
        f"({stats.hit_rate:.1%})"
    )
    tree = example_tree(after.trees[TEAM])
    if tree is not None:
        console.print("a solved tree of the team:", markup=False)
        console.print(tree, markup=False)
    picture = learning_curve(
        metrics, folder / "learning_curve.png", title=f"{kind}: training tasks"
    )
    write_json(
        folder / "results.json",
        {
            "config": dataclasses.asdict(config),
            "held_out": {
                who: {name: _plain(change) for name, change in rows.items()}
                for who, rows in changes.items()
            },
            "hidden_constant": {
                "refine_success": _plain(repair.refine_success),
                "fresh_success": _plain(repair.fresh_success),
                "refine_gain": _plain(repair.refine_gain),
            },
            "degenerate_share": degenerate,
            "judge": dataclasses.asdict(stats),
        },
    )
    for label, path in (("learning curve", picture), ("results", folder / "results.json")):
        console.print(f"{label}: {path}", markup=False, soft_wrap=True)


def changes_of(who: str, before: Exam, after: Exam) -> dict[str, Change]:
    """Return the change of every metric, by its name, for an agent or the team."""
    from trainers.evaluate import improvement, task_values
    from trainers.statistics import mean_estimate

    changes = {}
    for name, metric in METRICS.items():
        if metric == "pass_at_1":
            old, new = before.fresh_of(who), after.fresh_of(who)
        else:
            old, new = list(before.trees[who]), list(after.trees[who])
        changes[name] = Change(
            before=mean_estimate(list(task_values(old, metric).values())),
            after=mean_estimate(list(task_values(new, metric).values())),
            gain=improvement(old, new, metric),
        )
    return changes


def example_tree(rollouts: Sequence[Rollout]) -> str | None:
    """Return a solved tree as text, by preference one whose solution is a refinement."""

    def interest(rollout: Rollout) -> tuple[bool, bool]:
        repaired = any(
            turn.info["solved"] and turn.info["refine"] and not turn.info["parent_solved"]
            for turn in rollout.turns
        )
        return repaired, is_hidden_constant(rollout)

    solved = [r for r in rollouts if any(turn.info["solved"] for turn in r.turns)]
    if not solved:
        return None
    chosen = max(solved, key=interest)
    turns = [(turn.agent, turn.generation.text, turn.info) for turn in chosen.turns]
    return f"{chosen.task_id}\n{tree_to_text(tree_from_infos(turns), programs=True)}"


def _changes_table(title: str, changes: Mapping[str, Mapping[str, Change]]) -> Table:
    n = max(change.gain.n for rows in changes.values() for change in rows.values())
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=f"{title} (n={n} tasks)",
        caption="means over tasks [95 % bootstrap interval over tasks]; gains are paired by task;\n"
        + ", ".join(f"{agent} is a {policy}" for agent, policy in ROLES.items()),
    )
    for column in ("agent", "figure", "before", "after", "gain"):
        table.add_column(column, no_wrap=True)
    for who, rows in changes.items():
        for figure, change in rows.items():
            cells = [_cell(part) for part in (change.before, change.after, change.gain)]
            table.add_row(who if figure == "Pass@1" else "", figure, *cells)
        table.add_section()
    return table


def _cell(estimate: Estimate) -> str:
    mean, low, high = (_short(value) for value in (estimate.mean, estimate.low, estimate.high))
    return f"{mean} [{low}, {high}]"


def _short(value: float) -> str:
    """Two decimals; no leading zero, so that a row fits a narrow terminal."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"


def _plain(record: Any) -> dict[str, Any]:
    return dataclasses.asdict(record)


def _mean(values: Sequence[float | None]) -> float:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else float("nan")
