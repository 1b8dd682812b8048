"""What each agent of a team adds to a tree, and at which depth solutions stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..tree_search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one agent did in one tree. Means over trees are shares, and Shapley values."""

    nodes: int
    solved_nodes: int
    sole: bool
    """Whether the tree is solved thanks to this agent alone."""
    first: bool
    """Whether the first solved node is this agent's."""
    credit: float
    """Its share of the tree's solution: the Shapley value of the game in which a set of agents
    earns 1 where one of them solved the task. What agents owe each other is not told apart: a
    refinement counts for who wrote it."""


def contributions(tree: SearchTree, agents: Sequence[str] | None = None) -> dict[str, Contribution]:
    """Return what each agent did in a tree.

    Args:
        tree: finished or not.
        agents: the team; None: those who have a node.
    """
    names = list(dict.fromkeys(node.agent for node in tree)) if agents is None else agents
    solved = [node.agent for node in tree if node.solved]
    credit = coverage_shapley([set(solved)], names)
    return {
        name: Contribution(
            nodes=tree.count(name),
            solved_nodes=solved.count(name),
            sole=set(solved) == {name},
            first=bool(solved) and solved[0] == name,
            credit=credit[name],
        )
        for name in names
    }


def coverage_shapley(solvers: Iterable[Collection[str]], agents: Sequence[str]) -> dict[str, float]:
    """Return each agent's Shapley value of coverage; their sum is the share of tasks solved.

    A set of agents is worth the share of tasks that at least one of them solved. For a single task
    the value of each of its s solvers is 1 / s by symmetry, and values add over tasks: so this is
    exact for any number of agents.

    Args:
        solvers: for each task, who solved it.
        agents: the team.

    Raises:
        ValueError: somebody else solved a task.
    """
    tasks = [set(each) for each in solvers]
    strangers = sorted(set().union(*tasks) - set(agents))
    if strangers:
        raise ValueError(f"solved by {', '.join(strangers)}, who is not of {', '.join(agents)}")
    return {
        agent: sum(1 / len(task) for task in tasks if agent in task) / max(1, len(tasks))
        for agent in agents
    }


def solved_by_depth(tree: SearchTree) -> dict[int, tuple[int, int]]:
    """Return (solved nodes, nodes) at each depth that has any; 1: children of the root."""
    found: dict[int, tuple[int, int]] = {}
    for node in tree:
        solved, nodes = found.get(node.depth, (0, 0))
        found[node.depth] = solved + node.solved, nodes + 1
    return dict(sorted(found.items()))
