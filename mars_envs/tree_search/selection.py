"""Which node is expanded next, and by which agent: what a selector is and what it may know.

A selector is frozen configuration. It draws only from the generator that it is handed, and keeps
nothing: what was observed lives in the tree and in the `Statistics` that it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from .statistics import Statistics
from .tree import ROOT, SearchTree


class Choice(NamedTuple):
    """Expand `parent_id` (`ROOT`: answer afresh) with `agent`."""

    parent_id: int
    agent: str


class Expansion(NamedTuple):
    """One request: `agent` is to expand `parent_id` (-1: the root, answer afresh)."""

    id: int
    parent_id: int
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """All that a selector may know. Nothing here depends on hidden tests."""

    tree: SearchTree
    statistics: Statistics
    """Of this tree; every pending expansion counts as a value at the mean of its arms.

    Unless the search takes no pseudo-observations: then pending expansions count for nothing here.
    """
    agents: tuple[str, ...]
    """The agents that may be chosen; never empty."""
    pending: Sequence[Expansion] = ()
    """The expansions that wait for an answer, oldest first."""
    expand_solved: bool = True
    """Whether a node that passes every public test may be refined."""

    def may_expand(self, node_id: int) -> bool:
        """Whether a node may be refined; the root always may."""
        return node_id == ROOT or self.expand_solved or not self.tree[node_id].solved_public


class Selector(Protocol):
    """Chooses the next expansion."""

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return the empty statistics of a new tree, with the arms that `select` will look at."""
        ...

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Choose a node and an agent, drawing only from `rng`."""
        ...
