"""The plan of `mars-envs bench tree`: which trees are grown, and what that depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidSetting
from ..tasks import load_tasks
from ..tasks.code import CodeTask
from ..tree_search.consensus import resolve_score_fn
from ..tree_search.presets import PRESETS, resolve_selector
from ..tree_search.prompts import resolve_prompts
from ..tree_search.selection import selector_text
from .config import BenchTreeConfig
from .console import console
from .probes import probed
from .teams import Team, budgets_of, common_tasks, read_teams
from .tree_growth import TreeCell

SEEDS_AT_ONCE = 50
"""Trees of one cell at most: what an interruption may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The grid."""

    teams: Sequence[Team]
    selectors: Sequence[str]
    tasks: Sequence[CodeTask]
    budgets: Mapping[str, Sequence[int]]
    """Of each team."""
    baseline: str
    """The selector that the others are compared with."""
    seeds: int

    def selectors_of(self, team: Team) -> Sequence[str]:
        """Return the selectors that a team's trees are grown with.

        The answers of one recorded agent come in the same order whatever is selected, so one
        selector says it all.
        """
        return [self.baseline] if team.is_fixed else self.selectors

    def cells(self) -> dict[str, TreeCell]:
        """Return all cells by name, in an order that does not depend on anything else."""
        found = {}
        for team in self.teams:
            at_once = SEEDS_AT_ONCE if team.only_replay else 1
            for selector in self.selectors_of(team):
                for task in self.tasks:
                    for first in range(0, self.seeds, at_once):
                        cell = TreeCell(
                            team=team.name,
                            selector=selector,
                            task_id=task.task_id,
                            seeds=tuple(range(first, min(first + at_once, self.seeds))),
                        )
                        found[cell.name] = cell
        return found


def make_plan(config: BenchTreeConfig) -> Plan:
    """Work out the grid.

    Raises:
        InvalidSetting: a setting that cannot work.
        InvalidTask: tasks that cannot be read.
        TrainersError: recordings that cannot be read.
    """
    selectors = _selectors(config.preset)
    if config.score_fn != "none":
        resolve_score_fn(config.score_fn)
    try:
        resolve_prompts(config.prompts)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise InvalidSetting(f"--prompts: {error}") from error
    teams = read_teams(config.agents, alone=config.alone)
    budgets_of(config.budgets, None)  # says what is wrong with them before anything is read
    every = load_tasks(config.tasks, public_tests=config.public_tests)
    recorded = common_tasks(every, teams)
    tasks = [task for task in recorded if config.oracle or not task.oracle]
    console.print(
        f"{len(recorded)} of {len(every)} tasks"
        + (" are recorded for every agent" if any(team.only_replay for team in teams) else "")
        + f"; {sum(task.oracle for task in recorded)} of them have no hidden tests "
        + f"({'used' if config.oracle else 'left out'})"
    )
    if not tasks:
        raise InvalidSetting(
            f"all {len(recorded)} tasks have one set of tests only, which would both drive the "
            "search and decide; use them with --oracle, or give --public-tests"
        )
    tasks = tasks[: config.limit]
    if config.probes:
        tasks = probed(tasks, config.probes)
        console.print(f"{sum(bool(task.probes) for task in tasks)} tasks have probes")
    budgets = {}
    for team in teams:
        pool = team.pool(tasks)
        budgets[team.name] = budgets_of(config.budgets, pool)
        clipped = [one for one in budgets_of(config.budgets, None) if pool and one > pool]
        if config.budgets and clipped:
            console.print(
                f"{team.name}: {pool} answers are recorded for each task, so its curve ends at "
                f"{pool} nodes",
                markup=False,
            )
    return Plan(
        teams=teams,
        selectors=selectors,
        tasks=tasks,
        budgets=budgets,
        baseline=_baseline(config.baseline, selectors),
        seeds=config.seeds,
    )


def _baseline(name: str, selectors: Sequence[str]) -> str:
    """Return what the others are compared with: where the usual one is left out, the first one."""
    if name not in selectors and name != BenchTreeConfig.baseline:
        raise InvalidSetting(
            f"--baseline: expected one of the selectors of --preset ({', '.join(selectors)}), got "
            f"{name!r}"
        )
    return name if name in selectors else selectors[0]


def _selectors(text: str) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise InvalidSetting(f"--preset is empty; expected `all`, or some of {', '.join(PRESETS)}")
    if "all" in names:
        names = list(dict.fromkeys([*PRESETS, *(name for name in names if name != "all")]))
    for name in names:
        try:
            resolve_selector(name)
        except (ValueError, ImportError, AttributeError, TypeError) as error:
            raise InvalidSetting(f"--preset: {error}") from error
    return names


def inputs_of(plan: Plan) -> dict[str, str]:
    """Return what the results depend on besides the settings: contents of files, selectors."""
    found = {"the set of tasks": _digest(repr(tuple(plan.tasks)).encode("utf-8", "surrogatepass"))}
    for team in plan.teams:
        for agent in team.agents:
            if Path(agent.place).is_file():
                found[agent.place] = _digest(Path(agent.place).read_bytes())
    return {**found, **{name: selector_text(resolve_selector(name)) for name in plan.selectors}}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
