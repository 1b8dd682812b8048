"""Teams of agents, and what a grid over them can be asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InvalidSetting
from ..tasks.code import CodeTask
from .agents import Agent, read_team, recorded_tasks

USUAL_BUDGETS = (1, 2, 3, 5, 8, 12, 20)
"""The budgets of a curve where none are asked for."""

_NAMED = re.compile(r"\s*([^:=#]+?)\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Agents that grow a tree together."""

    name: str
    agents: tuple[Agent, ...]

    @property
    def only_replay(self) -> bool:
        """Whether all that its agents can say is recorded."""
        return all(agent.kind == "replay" for agent in self.agents)

    @property
    def is_fixed(self) -> bool:
        """Whether its answers come in the same order whatever is selected: one recorded agent."""
        return self.only_replay and len(self.agents) == 1

    def pool(self, tasks: Sequence[CodeTask]) -> int | None:
        """Return how many answers it has for every one of these tasks; None: no end of them."""
        if not self.only_replay:
            return None
        return min(
            sum(len(agent.recordings[task.task_id]) for agent in self.agents) for task in tasks
        )


def read_teams(specs: Sequence[str], *, alone: bool = False) -> list[Team]:
    """Read teams from the command line.

    Args:
        specs: teams as `agents.read_team` has them, each perhaps after `NAME=`; one text may hold
            several, between semicolons.
        alone: whether to add every agent of a larger team as a team of its own.

    Raises:
        InvalidSetting: no team, a team without agents, or two teams of one name.
        TrainersError: recordings that cannot be read.
    """
    teams: list[Team] = []
    for spec in (part for text in specs for part in text.split(";") if part.strip()):
        named = _NAMED.fullmatch(spec)
        agents = tuple(read_team(named[2] if named else spec))
        teams.append(Team(name=named[1] if named else _name(agents), agents=agents))
    if not teams:
        read_team("")  # says what to name
    if alone:
        known = {_identity(team.agents[0]) for team in teams if len(team.agents) == 1}
        for agent in [agent for team in teams if len(team.agents) > 1 for agent in team.agents]:
            if _identity(agent) not in known:
                known.add(_identity(agent))
                teams.append(Team(name=agent.label, agents=(agent,)))
    names = [team.name for team in teams]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidSetting(
            f"--agents: two teams are called {twice!r}; name one of them, as in 'mine=replay:FILE'"
        )
    return teams


def common_tasks(tasks: Sequence[CodeTask], teams: Sequence[Team]) -> list[CodeTask]:
    """Return the tasks that every agent of every team can work on.

    Teams are compared on the same tasks, so one without recordings of a task takes it away from
    all.

    Raises:
        InvalidSetting: there is none.
    """
    return recorded_tasks(
        tasks, [agent.recordings for team in teams for agent in team.agents if agent.recordings]
    )


def budgets_of(text: str, pool: int | None) -> list[int]:
    """Return the budgets at which a team's trees are looked at, in order.

    Args:
        text: the setting; empty for the usual ones, and the whole pool.
        pool: the number of answers that the team has for every task. A larger budget would say
            nothing new, so the curve ends there.

    Raises:
        InvalidSetting: no whole numbers above 0.
    """
    try:
        asked = sorted({int(part) for part in text.split(",") if part.strip()})
    except ValueError:
        asked = [0]
    if (text.strip() and not asked) or (asked and asked[0] < 1):
        raise InvalidSetting(
            f"--budgets: expected numbers of nodes of at least 1, as in 1,4,16, got {text!r}"
        )
    if pool is None:
        return asked or [1, 2, 3, 5, 8]
    if not asked:
        return sorted({*(budget for budget in USUAL_BUDGETS if budget < pool), pool})
    return sorted({min(budget, pool) for budget in asked})


def _identity(agent: Agent) -> tuple[str, str, str]:
    return agent.kind, agent.place, agent.label


def _name(agents: Sequence[Agent]) -> str:
    joined = " + ".join(agent.label for agent in agents)
    return joined if len(joined) <= 40 else f"team of {len(agents)}"
