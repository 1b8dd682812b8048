"""One rollout of a search tree, read from its infos, and what it says by itself.

A *node* is a turn whose info has `node_id`, `node_parent_id`, `score` and `solved`. `score` is what
the search may see (public tests), `solved` the truth. No statistics over trees here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .credit import DEGENERATE_RANGE
from .curves import any_by_budget, at_budgets, chosen_by_budget
from .errors import ConfigError
from .rollout import Rollout, Turn

Metric = Literal["pass_at_1", "pass_at_1_mcts", "pass_at_n", "avg_pass1", "node_success"]
METRICS: tuple[Metric, ...] = (
    "pass_at_1", "pass_at_1_mcts", "pass_at_n", "avg_pass1", "node_success",
)  # fmt: skip

_PASSED = 1.0 - 1e-9
"""A public score from here on is a pass of all public tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTree:
    """A rollout as its nodes, or as those of one agent; parents are looked up among all nodes."""

    task: str
    nodes: Sequence[Turn]
    every_node: Sequence[Turn]
    """In order of their ids, which is the order of creation."""
    by_id: Mapping[int, Turn]
    depths: Mapping[int, int]
    """Node id -> depth; 1 below the root."""
    first_failure: int | None
    """The id of the first unsolved node; None where there is none."""
    answer_id: int | None
    """The node that the environment calls its answer; None where it names none."""
    ended_for_good: bool
    """Whether a larger budget of nodes would not have changed the tree."""
    agent: str | None = None
    """Whose nodes these are; None for everybody's."""

    def of(self, agent: str | None) -> RolloutTree:
        """Return the tree as the nodes of `agent`; None: of everybody."""
        if agent is None:
            return self
        own = [turn for turn in self.every_node if turn.agent == agent]
        return replace(self, nodes=own, agent=agent)


def read_trees(rollouts: Iterable[Rollout]) -> list[RolloutTree]:
    """Return the trees of all rollouts that did not fail.

    Raises:
        ConfigError: the infos describe no tree.
    """
    return [read_tree(rollout) for rollout in rollouts if rollout.outcome != "failed"]


def read_tree(rollout: Rollout) -> RolloutTree:
    """Return a rollout's tree.

    Raises:
        ConfigError: the infos describe no tree, or nodes are missing.
    """
    for turn in rollout.turns:
        missing = {"node_id", "node_parent_id", "score", "solved"} - turn.info.keys()
        if missing:
            raise ConfigError(
                f"{rollout.env_id}: an evaluation of trees needs {sorted(missing)} in the infos, "
                f"got {sorted(turn.info)}"
            )
    nodes = sorted((turn for turn in rollout.turns if _id(turn) >= 0), key=_id)
    depths = {-1: 0}
    for node in nodes:
        if _parent(node) not in depths:
            raise ConfigError(
                f"rollout {rollout.rollout_id!r}: node {_id(node)} refines node {_parent(node)}, "
                "which is not there; give every turn of an episode"
            )
        depths[_id(node)] = depths[_parent(node)] + 1
    last = rollout.turns[-1].info if rollout.turns else {}
    answer_id = int(last.get("best_node_id", -2))
    return RolloutTree(
        task=rollout.task_id or rollout.group_id,
        nodes=nodes,
        every_node=nodes,
        by_id={_id(node): node for node in nodes},
        depths=depths,
        first_failure=next((_id(node) for node in nodes if not solved(node)), None),
        answer_id=answer_id if answer_id in depths and answer_id >= 0 else None,
        ended_for_good=last.get("stop_reason", "") not in ("", "nodes"),
    )


def solved(node: Turn) -> bool:
    """Return whether a node passes public and hidden tests."""
    return bool(node.info["solved"])


def is_fresh(node: Turn) -> bool:
    """Return whether a node answers the root prompt."""
    return _parent(node) == -1


def is_degenerate(tree: RolloutTree) -> bool:
    """Return whether all nodes have the same reward, so that the tree teaches nothing."""
    rewards = [node.reward for node in tree.nodes]
    return not rewards or max(rewards) - min(rewards) < DEGENERATE_RANGE


def refined_failure(tree: RolloutTree, node: Turn) -> float | None:
    """Return the success of a node that refines an unsolved one; None for other nodes."""
    parent = tree.by_id.get(_parent(node))
    return None if parent is None or solved(parent) else float(solved(node))


def late_fresh_try(tree: RolloutTree, node: Turn) -> float | None:
    """Return the success of a fresh answer made when a node had failed before; else None."""
    first = tree.first_failure
    late = first is not None and _id(node) > first
    return float(solved(node)) if late and is_fresh(node) else None


def pooled(
    trees: Sequence[RolloutTree], value: Callable[[RolloutTree, Turn], float | None]
) -> tuple[list[float], list[float]]:
    """Return each task's sum and number of node values; of all tasks, in one order.

    Args:
        trees: whose nodes are asked.
        value: of a node; None leaves it out.
    """
    sums = dict.fromkeys((tree.task for tree in trees), 0.0)
    counts = dict.fromkeys(sums, 0.0)
    for tree in trees:
        for node in tree.nodes:
            worth = value(tree, node)
            if worth is not None:
                sums[tree.task] += worth
                counts[tree.task] += 1
    return list(sums.values()), list(counts.values())


def curves(
    tree: RolloutTree, budgets: Sequence[int]
) -> Mapping[Literal["pass_at_1_mcts", "pass_at_n"], NDArray[np.float64]]:
    """Return Pass@1(MCTS) and Pass@N of the tree's first `b` nodes, for each budget `b`.

    Args:
        tree: of one agent's nodes, the figures describe those among the first `b` of the tree.
        budgets: in nodes of the whole tree.

    Returns:
        [len(budgets)] each; NaN where there is no such tree, or no node of the agent in it yet.
    """
    own = [tree.agent in (None, node.agent) for node in tree.every_node]
    so_far = np.cumsum(own, dtype=np.int64)
    truth = [solved(node) for node in tree.nodes]
    scores = [float(node.info["score"]) for node in tree.nodes]

    def at(curve: NDArray[np.float64]) -> NDArray[np.float64]:
        by_node = np.append(curve, np.nan)[so_far - 1]  # place -1: no node yet
        return at_budgets(by_node, budgets, carry=tree.ended_for_good)

    return {
        "pass_at_1_mcts": at(chosen_by_budget(scores, truth)),
        "pass_at_n": at(any_by_budget(truth)),
    }


def _id(node: Turn) -> int:
    return int(node.info["node_id"])


def _parent(node: Turn) -> int:
    return int(node.info["node_parent_id"])


def _share(nodes: Sequence[Turn]) -> float | None:
    return float(np.mean([solved(node) for node in nodes])) if nodes else None


def _chosen(tree: RolloutTree) -> Turn | None:
    if not tree.nodes:
        return None
    if tree.agent is None and tree.answer_id is not None:
        return tree.by_id[tree.answer_id]
    return max(tree.nodes, key=lambda node: (float(node.info["score"]), _id(node)))


def _chosen_success(tree: RolloutTree) -> float | None:
    chosen = _chosen(tree)
    return None if chosen is None else float(solved(chosen))


def _any_success(tree: RolloutTree) -> float | None:
    return float(any(solved(node) for node in tree.nodes)) if tree.nodes else None


def _passing_success(tree: RolloutTree) -> float | None:
    passing = [node for node in tree.nodes if float(node.info["score"]) >= _PASSED]
    return _share(passing) if passing else _chosen_success(tree)


MEASURES: Mapping[Metric, Callable[[RolloutTree], float | None]] = {
    "pass_at_1": lambda tree: _share([node for node in tree.nodes if is_fresh(node)]),
    "pass_at_1_mcts": _chosen_success,
    "pass_at_n": _any_success,
    "avg_pass1": _passing_success,
    "node_success": lambda tree: _share(tree.nodes),
}
"""What one tree, or one agent's nodes in it, says; None where there is nothing to measure."""
