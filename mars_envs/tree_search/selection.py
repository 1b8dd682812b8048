"""Which node is expanded next, and by which agent: what a selector is and what it may know.

A selector is frozen configuration. It draws only from the generator that it is handed, and keeps
nothing: what was observed lives in the tree and in the `Statistics` that it asks for.
"""

from __future__ import annotations

import re
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


_WHOLE = (int, np.integer)


def checked_choice(choice: object, view: SearchView) -> Choice:
    """Return what a selector chose, if it may be chosen.

    Raises:
        ValueError: it is no choice, or one of an agent or a node that may not be chosen.
    """
    if not (isinstance(choice, tuple) and len(choice) == 2):
        raise ValueError(f"a selector returns Choice(parent_id, agent), got {choice!r}")
    parent_id, agent = choice
    if agent not in view.agents:
        raise ValueError(
            f"the selector chose the agent {agent!r}; of view.agents it may choose "
            f"{', '.join(view.agents)}"
        )
    if parent_id != ROOT:
        if not (isinstance(parent_id, _WHOLE) and 0 <= parent_id < len(view.tree)):
            raise ValueError(
                f"the selector chose the parent {parent_id!r}; there are the root ({ROOT}) and "
                f"{len(view.tree)} nodes, counted from 0"
            )
        if not view.may_expand(int(parent_id)):
            raise ValueError(
                f"the selector chose to refine node {parent_id}, which is solved, and "
                "expand_solved is off; ask view.may_expand first"
            )
    if type(choice) is Choice and type(parent_id) is int:
        return choice
    return Choice(int(parent_id), agent)


def selector_text(selector: Selector) -> str:
    """Return what tells a selector from others, and is the same in every process: its `repr`.

    Addresses of objects are left out, so that a class without a `__repr__` is known by its name;
    its settings are not.
    """
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(selector))
