"""What rollouts of search trees say about the team and its agents, read from the infos alone.

All intervals resample tasks; several trees of one task are averaged first. `docs/mars2.md` defines
every figure.

Of an agent in a *shared* tree the figures describe its own nodes there. For its Pass@1 proper, play
episodes of one node each: in a larger tree, which agent gets how many tries at which task depends
on how the tries before came out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .collect import CollectOptions, Episode, collect_all
from .curves import by_task, curve_estimates
from .policies.base import Policy
from .rollout import Rollout
from .statistics import (
    Estimate,
    mean_estimate,
    paired_difference,
    ratio_difference,
    ratio_estimate,
)
from .tree_measures import (
    MEASURES,
    METRICS,
    Metric,
    RolloutTree,
    curves,
    is_degenerate,
    late_fresh_try,
    pooled,
    read_trees,
    refined_failure,
)
from .tree_shape import TreeShape, tree_shape

__all__ = [
    "METRICS",
    "BudgetPoint",
    "Evaluation",
    "Metric",
    "Scores",
    "TreeShape",
    "budget_curve",
    "evaluate",
    "improvement",
    "summarise",
    "task_values",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPoint:
    """What the trees say after their first nodes."""

    pass_at_1_mcts: Estimate
    """Of the node of highest public score so far, of equals the latest."""
    pass_at_n: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How one agent, or the team, did. Means of each task's mean, except the pooled rates."""

    pass_at_1: Estimate
    """Success of answers to the root prompt."""
    pass_at_1_mcts: Estimate
    """Success of the tree's chosen node: for the team the environment's answer, where its infos
    name one, else (and for an agent) the highest score, the latest among equals."""
    pass_at_n: Estimate
    """Share of trees with any solved node."""
    avg_pass1: Estimate
    """Success over the nodes that pass all public tests, or of the chosen node where none does: the
    figure of that name in the released code."""
    node_success: Estimate
    """Success over all nodes."""
    refine_success: Estimate
    """Pooled over tasks: success of refinements of an unsolved node."""
    fresh_success: Estimate
    """Pooled over tasks: success of answers to the root prompt in trees where a node had failed
    before, so that a refinement was possible as well."""
    refine_gain: Estimate
    """`refine_success - fresh_success`, by resampling tasks jointly."""
    nodes: int
    shape: TreeShape
    """Who made the nodes, how deep they lie, and where the solved ones are."""
    curve: Mapping[int, BudgetPoint]
    """Budget in nodes (powers of two and the largest tree) -> what the trees' first nodes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a set of rollouts says."""

    team: Scores
    agents: Mapping[str, Scores]
    degenerate_share: Estimate
    """Share of trees whose nodes all have the same reward."""
    trees: int
    failed: int
    """Rollouts that could not be played to the end; left out everywhere else."""
    failed_generations: int
    """Generations that no policy could give, in all rollouts; no nodes came of them."""


def evaluate(
    env_fn: Callable[[], Any],
    episodes: Sequence[Episode],
    policies: Mapping[str, Policy],
    **options: Unpack[CollectOptions],
) -> Evaluation:
    """Play `episodes` and summarise them. The arguments are those of `collect`.

    Raises:
        ConfigError: see `collect` and `summarise`.
        CollectionFailed: no episode could be played.
    """
    return summarise(collect_all(env_fn, episodes, policies, **options))


def summarise(rollouts: Iterable[Rollout]) -> Evaluation:
    """Summarise rollouts of search trees.

    Raises:
        ConfigError: the infos describe no tree.
    """
    every = list(rollouts)
    trees = read_trees(every)
    agents = sorted({turn.agent for tree in trees for turn in tree.nodes})
    degenerate = _by_task(trees, lambda tree: float(is_degenerate(tree)))
    return Evaluation(
        team=_scores(trees, None),
        agents={agent: _scores(trees, agent) for agent in agents},
        degenerate_share=mean_estimate(list(degenerate.values())),
        trees=len(trees),
        failed=len(every) - len(trees),
        failed_generations=sum(int(r.summary.get("failed_generations", 0)) for r in every),
    )


def task_values(
    rollouts: Iterable[Rollout], metric: Metric, *, agent: str | None = None
) -> dict[str, float]:
    """Return each task's value of `metric`, for one agent or, without, for the team.

    Tasks for which there is nothing to measure are missing.
    """
    measure = MEASURES[metric]
    return _by_task(read_trees(rollouts), lambda tree: measure(tree.of(agent)))


def improvement(
    before: Iterable[Rollout],
    after: Iterable[Rollout],
    metric: Metric,
    *,
    agent: str | None = None,
) -> Estimate:
    """Estimate how far `metric` rose, on the tasks that were measured both times."""
    old = task_values(before, metric, agent=agent)
    new = task_values(after, metric, agent=agent)
    common = sorted(old.keys() & new.keys())
    return paired_difference([new[task] for task in common], [old[task] for task in common])


def budget_curve(
    rollouts: Iterable[Rollout], budgets: Sequence[int], *, agent: str | None = None
) -> dict[int, BudgetPoint]:
    """Return what the trees say after their first nodes, for each budget.

    The first `b` nodes are the tree of budget `b` where nodes were asked for one at a time and
    nothing knows the budget; see `trainers.curves`.

    Args:
        rollouts: trees of search.
        budgets: in nodes of the whole tree, 1 or more each.
        agent: count its own nodes only; without, everybody's.

    Returns:
        Budget -> figures. `n` counts the tasks that have a tree of that size with a node of the
        agent; a tree that ended for another reason than its budget of nodes stays as it ended.
    """
    return _curve([tree.of(agent) for tree in read_trees(rollouts)], budgets)


def _curve(trees: Sequence[RolloutTree], budgets: Sequence[int]) -> dict[int, BudgetPoint]:
    if not trees:
        return {}
    points = [curves(tree, budgets) for tree in trees]
    tasks = [tree.task for tree in trees]
    chosen, some = (
        curve_estimates(by_task([point[metric] for point in points], tasks))
        for metric in ("pass_at_1_mcts", "pass_at_n")
    )
    return {
        budget: BudgetPoint(pass_at_1_mcts=first, pass_at_n=second)
        for budget, first, second in zip(budgets, chosen, some, strict=True)
    }


def _doubling(largest: int) -> list[int]:
    """Return 1, 2, 4, ... below `largest`, and `largest`; nothing where that is 0."""
    powers = [1 << step for step in range(largest.bit_length())]
    return sorted({*(power for power in powers if power < largest), largest} - {0})


def _by_task(
    trees: Iterable[RolloutTree], measure: Callable[[RolloutTree], float | None]
) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for tree in trees:
        value = measure(tree)
        if value is not None:
            values[tree.task].append(value)
    return {task: float(np.mean(own)) for task, own in values.items()}


def _scores(trees: Sequence[RolloutTree], agent: str | None) -> Scores:
    own = [tree.of(agent) for tree in trees]
    means = {
        metric: mean_estimate(list(_by_task(own, measure).values()))
        for metric, measure in MEASURES.items()
    }
    refine, fresh = pooled(own, refined_failure), pooled(own, late_fresh_try)
    largest = max((len(tree.every_node) for tree in trees), default=0)
    return Scores(
        **means,
        refine_success=ratio_estimate(*refine),
        fresh_success=ratio_estimate(*fresh),
        refine_gain=ratio_difference(refine, fresh),
        nodes=sum(len(tree.nodes) for tree in own),
        curve=_curve(own, _doubling(largest)),
        shape=tree_shape(own),
    )
