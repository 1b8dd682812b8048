"""`mars-envs bench tree`: a grid of selectors, budgets, teams and seeds over a file of tasks.

Recorded answers are judged once each; then trees are grown by the real search with the verdicts
looked up, in several processes. All that is finished is kept in the run folder, so that a run that
was killed goes on where it was, and ends with the results of an uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import MarsEnvsError
from ..judging.code import CodeJudge
from ..tasks.code import CodeTask
from .agents import make_policy, prompts_of
from .bench_run import GridRun, leave_report
from .config import BenchTreeConfig
from .console import console
from .files import check_output
from .grid import Finished, Record, run_grid, tell_failures
from .judge import open_judge
from .judged import Verdicts, judge_all
from .pools import write_pools
from .runs import alone_in, identity, open_run, provenance, write_json
from .teams import Team
from .tree_curves import is_packed
from .tree_figure import draw
from .tree_growth import ReplayedTrees, TreeCell, recorded_answers
from .tree_live import play_trees
from .tree_plan import Plan, inputs_of, make_plan
from .tree_recorded import recorded_figures
from .tree_results import (
    SCHEMA,
    SCHEMA_VERSION,
    cells_table,
    compare_choices,
    compare_selectors,
    compare_teams,
    gather,
)
from .tree_tables import sheets


class BenchFailed(MarsEnvsError, RuntimeError):
    """Not one tree could be grown."""


def bench_tree(config: BenchTreeConfig) -> int:
    """Run the grid, or go on with it; exit status 1 if any tree could not be grown."""
    if config.verdicts:
        check_output(Path(config.verdicts), option="--verdicts")
    plan = make_plan(config)
    folder = open_run(config, option="out", inputs=inputs_of(plan))
    console.print(f"run folder: {folder}", markup=False, soft_wrap=True)
    with alone_in(folder, option="out"):
        started = time.monotonic()
        judge = open_judge(config.sandbox, config.workers)
        verdicts = _judge(config, plan, judge, folder)
        recorded = next((team for team in plan.teams if team.only_replay), None)
        if recorded is not None:
            write_pools(folder / "pools.jsonl", recorded, plan.tasks, verdicts.known)
        judged = time.monotonic()
        records, failures = _grow(config, plan, verdicts, judge, folder)
        if not records:
            reason = next(iter(failures.values()), "not known")
            raise BenchFailed(f"no tree could be grown; the first one because: {reason}")
        with console.status("work out intervals and paired tests"):
            results = make_results(config, plan, verdicts, records, failures)
        grown = time.monotonic()
        write_json(folder / "results.json", results)
        write_json(
            folder / "timings.json", {"judging_s": judged - started, "trees_s": grown - judged}
        )
        leave_report(sheets(results), folder, partial(draw, [results]))
    return tell_failures(failures, len(records), folder)


def _judge(config: BenchTreeConfig, plan: Plan, judge: CodeJudge, folder: Path) -> Verdicts:
    """Judge what the agents of recorded teams can say."""
    replies: dict[tuple[str, str], CodeTask] = {}
    for team in plan.teams:
        for agent in team.agents if team.only_replay else ():
            answers = recorded_answers(agent, plan.tasks)
            for task in plan.tasks:
                replies.update({(task.task_id, reply): task for reply in answers[task.task_id]})
    verdicts = judge_all(
        ((task, reply) for (_, reply), task in replies.items()),
        judge,
        log=Path(config.verdicts) if config.verdicts else folder / "verdicts.jsonl",
        workers=config.workers,
    )
    if replies:
        text = f"{len(replies)} different recorded answers, {verdicts.reused} judged before"
        statuses = Counter(str(verdict.status) for verdict in verdicts.known.values())
        text += "".join(f"; {n} {status.replace('_', ' ')}" for status, n in statuses.items())
        console.print(text, soft_wrap=True)
    if verdicts.failures:
        console.print(
            f"{len(verdicts.failures)} answers could not be judged and will not be replayed; the "
            f"first because: {next(iter(verdicts.failures.values()))}",
            style="red",
            markup=False,
        )
    return verdicts


def _grow(
    config: BenchTreeConfig, plan: Plan, verdicts: Verdicts, judge: CodeJudge, folder: Path
) -> tuple[list[tuple[TreeCell, Record]], dict[str, str]]:
    """Work through the cells that the folder does not hold; return records and failures."""
    run = GridRun(
        plan.cells(),
        folder / "trees.jsonl",
        is_whole=lambda cell, record: is_packed(record, plan.budgets[cell.team], len(cell.seeds)),
        what="cells",
        again="worked out",
    )
    missing = run.missing
    workers = config.workers or os.cpu_count() or 1
    with run.keeping("grow trees") as keep:
        recorded = [team for team in plan.teams if team.only_replay]
        names = {team.name for team in recorded}
        work = ReplayedTrees(
            agents={
                team.name: {agent.label: agent.recordings for agent in team.agents}
                for team in recorded
            },
            prefixes=prompts_of(plan.tasks),
            judged=verdicts.known,
            budgets=plan.budgets,
            tasks={task.task_id: task for task in plan.tasks},
            score_fn=None if config.score_fn == "none" else config.score_fn,
        )
        fast = {name: cell for name, cell in missing.items() if cell.team in names}
        for finished in run_grid(fast, work, workers=workers):
            keep(finished)
        for team in plan.teams:
            own = {name: cell for name, cell in missing.items() if cell.team == team.name}
            if own and not team.only_replay:
                _play(config, plan, team, own, judge, keep)
    return [(run.cells[name], record) for name, record in run.records.items()], run.failures


def _play(
    config: BenchTreeConfig,
    plan: Plan,
    team: Team,
    cells: Mapping[str, TreeCell],
    judge: CodeJudge,
    keep: Callable[[Finished[TreeCell]], None],
) -> None:
    """Grow the trees of a team with models in it."""
    from trainers.rollout import Sampling

    policies = {
        agent.label: make_policy(agent, name=agent.label, prefixes=prompts_of(plan.tasks), seed=0)
        for agent in team.agents
    }
    for selector in plan.selectors:
        own = {name: cell for name, cell in cells.items() if cell.selector == selector}
        if own:
            play_trees(
                own,
                policies,
                keep,
                tasks=plan.tasks,
                judge=judge,
                prompts=config.prompts,
                budgets=plan.budgets[team.name],
                sampling=Sampling(temperature=config.temperature, max_tokens=config.max_tokens),
                concurrency=config.concurrency,
            )


def make_results(
    config: BenchTreeConfig,
    plan: Plan,
    verdicts: Verdicts,
    records: Sequence[tuple[TreeCell, Record]],
    failures: Mapping[str, str],
) -> dict[str, Any]:
    """Return the contents of `results.json`. Only `provenance` says where and when it was made."""
    agents = {team.name: [agent.label for agent in team.agents] for team in plan.teams}
    values = gather(records, [task.task_id for task in plan.tasks], agents)
    pools = {team.name: team.pool(plan.tasks) for team in plan.teams}
    comparisons = compare_selectors(values, plan.baseline, pools=pools)
    comparisons += compare_choices(values)
    if len(plan.teams) > 1:
        comparisons += compare_teams(values, plan.teams[0].name)
    recorded, diversity = recorded_figures(plan, verdicts)
    settings = dataclasses.asdict(config)
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance(),
        "settings": identity(settings),
        "inputs": inputs_of(plan),
        "tasks": [task.task_id for task in plan.tasks],
        "oracle_tasks": sum(task.oracle for task in plan.tasks),
        "seeds": plan.seeds,
        "baseline": plan.baseline,
        "score_fn": config.score_fn,
        "selectors": list(plan.selectors),
        "teams": {
            team.name: {
                "agents": agents[team.name],
                "pool": pools[team.name],
                "budgets": list(plan.budgets[team.name]),
                "same_for_all_selectors": team.is_fixed,
            }
            for team in plan.teams
        },
        "recorded": recorded,
        "diversity": diversity,
        "cells": cells_table(values),
        "comparisons": comparisons,
        "failed_cells": len(failures),
        "complete": not failures,
    }
