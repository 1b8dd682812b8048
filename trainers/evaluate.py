"""What rollouts of search trees say about agents, read from the infos alone.

A *node* is a turn whose info has `node_id`, `node_parent_id`, `score` and `solved`. `score` is what
the search may see (public tests), `solved` the truth. All intervals resample tasks.

Of an agent in a *shared* tree the figures describe its own nodes there. For its Pass@1 proper, play
episodes of one node each: in a larger tree, which agent gets how many tries at which task depends
on how the tries before came out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np

from .collect import CollectOptions, Episode, collect_all
from .credit import DEGENERATE_RANGE
from .errors import ConfigError
from .policies.base import Policy
from .rollout import Rollout, Turn
from .statistics import (
    Estimate,
    mean_estimate,
    paired_difference,
    ratio_difference,
    ratio_estimate,
)

Metric = Literal["pass_at_1", "pass_at_1_mcts", "pass_at_n", "node_success"]
METRICS: tuple[Metric, ...] = ("pass_at_1", "pass_at_1_mcts", "pass_at_n", "node_success")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How one agent, or the team, did. Means of each task's mean, except the pooled rates."""

    pass_at_1: Estimate
    """Success of answers to the root prompt."""
    pass_at_1_mcts: Estimate
    """Success of the tree's chosen node: highest score, the latest among equals."""
    pass_at_n: Estimate
    """Share of trees with any solved node."""
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
    trees = _trees(every)
    agents = sorted({turn.agent for tree in trees for turn in tree.nodes})
    degenerate = _by_task(trees, lambda tree: float(_is_degenerate(tree)))
    return Evaluation(
        team=_scores(trees, None),
        agents={agent: _scores(trees, agent) for agent in agents},
        degenerate_share=mean_estimate(list(degenerate.values())),
        trees=len(trees),
        failed=len(every) - len(trees),
    )


def task_values(
    rollouts: Iterable[Rollout], metric: Metric, *, agent: str | None = None
) -> dict[str, float]:
    """Return each task's value of `metric`, for one agent or, without, for the team.

    Tasks for which there is nothing to measure are missing.
    """
    measure = _MEASURES[metric]
    return _by_task(_trees(rollouts), lambda tree: measure(tree.of(agent)))


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


@dataclass(frozen=True, slots=True)
class _Tree:
    """A rollout as its nodes, or as those of one agent; parents are looked up among all nodes."""

    task: str
    nodes: Sequence[Turn]
    every_node: Sequence[Turn]

    def of(self, agent: str | None) -> _Tree:
        if agent is None:
            return self
        own = [turn for turn in self.every_node if turn.agent == agent]
        return _Tree(self.task, own, self.every_node)


def _trees(rollouts: Iterable[Rollout]) -> list[_Tree]:
    trees = []
    for rollout in rollouts:
        if rollout.outcome == "failed":
            continue
        for turn in rollout.turns:
            missing = {"node_id", "node_parent_id", "score", "solved"} - turn.info.keys()
            if missing:
                raise ConfigError(
                    f"{rollout.env_id}: an evaluation of trees needs {sorted(missing)} in the "
                    f"infos, got {sorted(turn.info)}"
                )
        nodes = [turn for turn in rollout.turns if int(turn.info["node_id"]) >= 0]
        trees.append(_Tree(rollout.task_id or rollout.group_id, nodes, nodes))
    return trees


def _by_task(trees: Iterable[_Tree], measure: Callable[[_Tree], float | None]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for tree in trees:
        value = measure(tree)
        if value is not None:
            values[tree.task].append(value)
    return {task: float(np.mean(own)) for task, own in values.items()}


def _scores(trees: Sequence[_Tree], agent: str | None) -> Scores:
    own = [tree.of(agent) for tree in trees]
    means = {
        metric: mean_estimate(list(_by_task(own, measure).values()))
        for metric, measure in _MEASURES.items()
    }
    refine, fresh = _pooled(own, _refinements), _pooled(own, _fresh_tries)
    return Scores(
        **means,
        refine_success=ratio_estimate(*refine),
        fresh_success=ratio_estimate(*fresh),
        refine_gain=ratio_difference(refine, fresh),
        nodes=sum(len(tree.nodes) for tree in own),
    )


def _pooled(
    trees: Sequence[_Tree], choose: Callable[[_Tree], list[Turn]]
) -> tuple[list[float], list[float]]:
    """Return each task's successes and tries among the chosen nodes; all tasks, in one order."""
    sums = dict.fromkeys((tree.task for tree in trees), 0.0)
    counts = dict.fromkeys(sums, 0.0)
    for tree in trees:
        for node in choose(tree):
            sums[tree.task] += _solved(node)
            counts[tree.task] += 1
    return list(sums.values()), list(counts.values())


def _refinements(tree: _Tree) -> list[Turn]:
    failed = {int(n.info["node_id"]) for n in tree.every_node if not _solved(n)}
    return [node for node in tree.nodes if int(node.info["node_parent_id"]) in failed]


def _fresh_tries(tree: _Tree) -> list[Turn]:
    first_failure = min(
        (int(node.info["node_id"]) for node in tree.every_node if not _solved(node)),
        default=None,
    )
    if first_failure is None:
        return []
    return [n for n in tree.nodes if _is_fresh(n) and int(n.info["node_id"]) > first_failure]


def _is_fresh(node: Turn) -> bool:
    return int(node.info["node_parent_id"]) == -1


def _solved(node: Turn) -> bool:
    return bool(node.info["solved"])


def _success(nodes: Sequence[Turn]) -> float | None:
    return float(np.mean([_solved(node) for node in nodes])) if nodes else None


def _root_success(tree: _Tree) -> float | None:
    return _success([node for node in tree.nodes if _is_fresh(node)])


def _chosen_success(tree: _Tree) -> float | None:
    if not tree.nodes:
        return None
    best = max(tree.nodes, key=lambda n: (float(n.info["score"]), int(n.info["node_id"])))
    return float(_solved(best))


def _any_success(tree: _Tree) -> float | None:
    return float(any(_solved(node) for node in tree.nodes)) if tree.nodes else None


def _is_degenerate(tree: _Tree) -> bool:
    rewards = [node.reward for node in tree.nodes]
    return not rewards or max(rewards) - min(rewards) < DEGENERATE_RANGE


_MEASURES: dict[Metric, Callable[[_Tree], float | None]] = {
    "pass_at_1": _root_success,
    "pass_at_1_mcts": _chosen_success,
    "pass_at_n": _any_success,
    "node_success": lambda tree: _success(tree.nodes),
}
