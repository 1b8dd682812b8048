"""How search trees grew: who made the nodes, how deep they lie, and where the solved ones are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .rollout import Turn
from .statistics import Estimate, ratio_estimate
from .tree_measures import RolloutTree, is_fresh, pooled, solved


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """Rates pooled over tasks, of all nodes or of one agent's."""

    node_share: Estimate
    """The share of all nodes that are its own; 1 for the team."""
    refine_share: Estimate
    """The share of its nodes that refine another, whichever that is."""
    mean_depth: Estimate
    """1 for answers to the root prompt. In the search's words a node is one GEN after `depth - 1`
    CONT, so there are `mean_depth - 1` CONT to one GEN."""
    depth_share: Mapping[int, Estimate]
    """Depth -> the share of its nodes that lie there."""
    solved_by_depth: Mapping[int, Estimate]
    """Depth -> success of its nodes there; `n` counts the tasks that have any."""


def tree_shape(trees: Sequence[RolloutTree]) -> TreeShape:
    """Describe trees, or one agent's nodes in them."""

    def depth(tree: RolloutTree, node: Turn) -> int:
        return tree.depths[int(node.info["node_id"])]

    def share_at(level: int) -> Estimate:
        return ratio_estimate(*pooled(trees, lambda tree, node: depth(tree, node) == level))

    def solved_at(level: int) -> Estimate:
        def success(tree: RolloutTree, node: Turn) -> float | None:
            return float(solved(node)) if depth(tree, node) == level else None

        return ratio_estimate(*pooled(trees, success))

    own, every = dict[str, int](), dict[str, int]()
    for tree in trees:
        own[tree.task] = own.get(tree.task, 0) + len(tree.nodes)
        every[tree.task] = every.get(tree.task, 0) + len(tree.every_node)
    levels = sorted({depth(tree, node) for tree in trees for node in tree.nodes})
    return TreeShape(
        node_share=ratio_estimate(list(own.values()), list(every.values())),
        refine_share=ratio_estimate(*pooled(trees, lambda _, node: not is_fresh(node))),
        mean_depth=ratio_estimate(*pooled(trees, depth)),
        depth_share={level: share_at(level) for level in levels},
        solved_by_depth={level: solved_at(level) for level in levels},
    )
