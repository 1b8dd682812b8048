"""How different the recorded answers of a team are, whatever a search makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..diversity import describe_diversity
from ..judging.base import Verdict
from ..tree_search.tree import ROOT, SearchTree
from .sheets import mean_with_se


def team_diversity(answers: Mapping[str, Sequence[tuple[str, Verdict]]]) -> dict[str, Any]:
    """Return means over tasks, with their standard errors and the number of tasks.

    Args:
        answers: by task id, all answers of the team, each with its agent.

    Returns:
        `token_distance` and `syntax_distance` of two answers of the team, the latter also
        `within_agents` and `between_agents`; `shapes` and `behaviours`: how many different programs
        there are, by their syntax and by what they did on public tests and probes. What a task has
        none of (pairs, programs that parse) does not count.
    """
    trees = {}
    for task_id, found in answers.items():
        trees[task_id] = SearchTree()
        for agent, verdict in found:
            trees[task_id].add(ROOT, agent, verdict)
    described = describe_diversity(trees, ks=())["trees"].values()

    def mean(*path: str) -> dict[str, Any]:
        return mean_with_se([_at(one, path) for one in described])

    return {
        "token_distance": mean("team", "token_distance", "mean"),
        "syntax_distance": mean("team", "syntax_distance", "mean"),
        "within_agents": mean("within_agents", "syntax_distance", "mean"),
        "between_agents": mean("between_agents", "syntax_distance", "mean"),
        "shapes": mean("team", "shapes", "distinct"),
        "behaviours": mean("team", "behaviours", "distinct"),
    }


def _at(data: Any, path: Sequence[str]) -> float:
    for key in path:
        data = data[key]
    return math.nan if data is None else float(data)
