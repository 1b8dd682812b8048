"""What recordings say of agents and teams without any search."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..judging.base import Verdict
from .judged import Verdicts
from .tree_diversity import team_diversity
from .tree_growth import recorded_answers
from .tree_plan import Plan


def recorded_figures(plan: Plan, verdicts: Verdicts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of each recorded agent, and of each team, without any search."""
    from trainers.statistics import mean_estimate

    agents: dict[str, Any] = {}
    diversity: dict[str, Any] = {}
    for team in plan.teams:
        answers: dict[str, list[tuple[str, Verdict]]] = {task.task_id: [] for task in plan.tasks}
        for agent in team.agents if team.only_replay else ():
            said = recorded_answers(agent, plan.tasks)
            solved: list[float] = []
            public: list[float] = []
            for task in plan.tasks:
                keys = [(task.task_id, reply) for reply in said[task.task_id]]
                own = [verdicts.known[key] for key in keys if key in verdicts.known]
                answers[task.task_id] += [(agent.label, verdict) for verdict in own]
                if own:
                    solved.append(sum(verdict.solved for verdict in own) / len(own))
                    public.append(sum(verdict.score >= 1 for verdict in own) / len(own))
            samples = [len(agent.recordings[task.task_id]) for task in plan.tasks]
            agents[agent.label] = {
                "samples": sum(samples) / len(samples),
                "pass_at_1": dataclasses.asdict(mean_estimate(solved)),
                "public": dataclasses.asdict(mean_estimate(public)),
            }
        if team.only_replay:
            diversity[team.name] = team_diversity(answers)
    return agents, diversity
