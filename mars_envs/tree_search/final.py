"""The answer of a tree: what is handed in, chosen without hidden tests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from .tree import Node, SearchTree

ScoreFn = Callable[[SearchTree, Node], float]
"""A reward model: how good a node seems, in [0, 1]. It must not look at `solved`.

While the search runs it is asked about each new node before that is part of the tree; for the final
choice it is asked about nodes of the whole tree.
"""


def checked_score(score_fn: ScoreFn, tree: SearchTree, node: Node) -> float:
    """Return what `score_fn` says of a node.

    Raises:
        ValueError: that is not a number in [0, 1].
    """
    score = float(score_fn(tree, node))
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"score_fn must return a number in [0, 1], got {score!r} for {node.id}")
    return score


def blended(score_fn: ScoreFn, weight: float, tree: SearchTree, node: Node) -> Node:
    """Return the node with the value weight * public score + (1 - weight) * `score_fn`.

    Raises:
        ValueError: `score_fn` returns no number in [0, 1].
    """
    judged = checked_score(score_fn, tree, node)
    return dataclasses.replace(node, value=weight * node.score + (1.0 - weight) * judged)


def final_answer(tree: SearchTree, score_fn: ScoreFn | None = None) -> Node | None:
    """Return the node that answers the task; None for an empty tree.

    Without `score_fn` the highest public score, of equals the latest, as released. With it the
    lexicographic choice of MARS²-T+: public score, then `score_fn`, then how many nodes behave
    alike, then the later node.
    """
    best = tree.best
    if best is None or score_fn is None:
        return best
    equals = [node for node in tree if node.score == best.score]
    return max(
        equals,
        key=lambda node: (checked_score(score_fn, tree, node), tree.alike(node.verdict), node.id),
    )
