"""Test-output agreement: which nodes behave alike, as a reward model that needs no model.

Public tests are few, so many programs pass them all. Of these, programs that are right agree on
every input, while wrong ones are wrong each in its own way; so the behaviour that most nodes share
is the best guess (`score_fn="agreement"`). Behaviour is `Verdict.signature`: public
tests, then the task's probes. Without probes all nodes that pass the public tests look alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from ..importing import import_function
from ..tasks.code import CodeTask
from .final import ScoreFn
from .tree import Node, SearchTree

TaskScoreFn = Callable[[CodeTask, SearchTree, Node], float]
"""A reward model that reads the task, too: how good a node seems, in [0, 1], without `solved`."""


def agreement(tree: SearchTree, node: Node) -> float:
    """Return the share of the other nodes of known behaviour that behave as `node` does.

    0.0 where the node's behaviour is not known, where there is no such other node, and for a node
    that passes no public test: it is known to be wrong, and so is whoever agrees with it.

    Nodes that behave alike have the same public score. So among nodes of equal public score, where
    the final choice asks for it, looking at the whole tree or at these nodes alone gives the same
    order; the whole tree is the steadier measure while the tree is small and `score_weight` blends
    it into the search. `node` need not be part of the tree yet. Takes constant time.

    Example:
        >>> from dataclasses import replace
        >>> from mars_envs.tree_search.tree import verdict_of_score
        >>> tree = SearchTree()
        >>> for behaviour in ("a", "b", "a"):
        ...     _ = tree.add(-1, "coder_0", replace(verdict_of_score(1.0), signature=(behaviour,)))
        >>> [agreement(tree, node) for node in tree]
        [0.5, 0.0, 0.5]
    """
    verdict = node.verdict
    if not verdict.signature or not verdict.public_passed:
        return 0.0
    itself = int(node.id < len(tree))
    others = tree.known_behaviours - itself
    return (tree.alike(verdict) - itself) / others if others else 0.0


def clusters(tree: SearchTree, *, score: float | None = None) -> list[list[Node]]:
    """Return the nodes of known behaviour in groups that behave alike, the largest first.

    Of groups of equal size the one that began earlier comes first; within one, nodes stand by age.

    Args:
        tree: any tree.
        score: only nodes of this public score.
    """
    groups: defaultdict[tuple[str, ...], list[Node]] = defaultdict(list)
    for node in tree:
        if node.verdict.signature and (score is None or node.score == score):
            groups[node.verdict.signature].append(node)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].id))


class ScoreHandle:
    """A reward model by name, or given: it copies and pickles, and its answers are checked.

    Args:
        source: "agreement", "module:name" of a function `(task, tree, node) -> float`, or such a
            function.

    Raises:
        InvalidSetting: nothing of that name, or not callable.
    """

    def __init__(self, source: str | TaskScoreFn) -> None:
        self.source = source
        self._function = _find(source)

    def __call__(self, task: CodeTask, tree: SearchTree, node: Node) -> float:
        """Return what the model says of a node.

        Raises:
            ValueError: that is not a number in [0, 1].
        """
        said: object = self._function(task, tree, node)
        # NumPy's numbers and tensors of one item will do, texts that float() can read will not.
        number = math.nan if said is None or isinstance(said, str | bytes) else _number(said)
        if not 0.0 <= number <= 1.0:
            raise ValueError(
                f"score_fn {self.source!r:.80} must return a number in [0, 1], got {said!r:.60} "
                f"for node {node.id}; map what it measures into that range (and NaN to 0)"
            )
        return number

    def of(self, task: CodeTask) -> ScoreFn:
        """Return the model for one task, as `TreeSearch(score_fn=...)` takes it."""
        return partial(self, task)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[ScoreHandle], tuple[str | TaskScoreFn]]:
        return ScoreHandle, (self.source,)


def resolve_score_fn(source: str | TaskScoreFn | None) -> ScoreHandle | None:
    """Return the reward model that is named or given; None for none (see `ScoreHandle`).

    Raises:
        InvalidSetting: nothing of that name, or not callable.
    """
    return None if source is None else ScoreHandle(source)


def _agreement(task: CodeTask, tree: SearchTree, node: Node) -> float:
    return agreement(tree, node)


def _find(source: str | TaskScoreFn) -> TaskScoreFn:
    if source == "agreement":
        return _agreement
    return import_function(
        source,
        what="score_fn",
        known="'agreement'",
        kind="a function from (task, tree, node) to a number in [0, 1]",
        must="is called with (task, tree, node)",
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
