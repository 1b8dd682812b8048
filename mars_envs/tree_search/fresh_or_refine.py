"""Fresh or refine: the kind of expansion that most probably passes, after what has failed so far.

Before a first success, a search over right-or-wrong answers learns nothing but how often each kind
of expansion failed. If the chances of a fresh answer and of a refinement are independent a priori,
with one Beta(a, b) each, then n failures leave the next try of that kind the chance
a / (a + b + n), which falls with n. The chance that a whole budget fails is the product of
1 - a / (a + b + n) over the tries made, so that taking the largest chance first minimises it for
every budget at once: no exploration bonus and no random draw helps. That is all this selector
does. What it believes before the first try is its configuration; `FreshOrRefine.fitted` learns it
from trees of earlier tasks, for within one tree good refinement and bad look alike until the first
success (docs/mars2.md, "Refinement").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .agent_rules import check_mix
from .posteriors import Beta
from .selection import Choice, SearchView
from .statistics import JEFFREYS, Statistics
from .tree import ROOT, SearchTree


class Kind(NamedTuple):
    """A kind of expansion: by whom, and whether from scratch or of a node that fails."""

    agent: str
    fresh: bool


class Tries:
    """How often each kind was tried in a tree and how often it passed, up to some moment."""

    def __init__(self) -> None:
        self.count: Counter[Kind] = Counter()
        self.passed: Counter[Kind] = Counter()

    def add(self, kind: Kind, passed: bool) -> None:
        """Count one more."""
        self.count[kind] += 1
        self.passed[kind] += passed


def tries_in(tree: SearchTree) -> Iterator[tuple[Kind, bool]]:
    """Yield the kind of every node and whether it passed. Refining what passes is of no kind."""
    for node in tree:
        fresh = node.parent_id == ROOT
        if fresh or not tree[node.parent_id].solved_public:
            yield Kind(node.agent, fresh), node.solved_public


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """What is believed of one agent before it has tried."""

    fresh: Beta = JEFFREYS
    """Chance that an answer from scratch passes the public tests."""
    refine: Beta = JEFFREYS
    """Chance that the refinement of a failing node does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshOrRefine:
    """Takes the agent and the kind of expansion with the highest expected chance to pass.

    Of equal chances it takes the kind with fewer tries, then the fresh answer, then the earlier
    agent: without knowledge, kinds and agents take turns. A refinement takes the failing node with
    the highest expected value, given its own value and those of its children under Jeffreys'
    prior, so that a high score counts for a node and tries in vain against it; then the
    shallowest, then the latest. A node that passes is never refined. A pending expansion counts as
    failed, since only then does the next one matter. A choice takes time linear in the nodes.
    """

    chances: Chances = Chances()
    of_agent: Mapping[str, Chances] = field(default_factory=dict)
    """Beliefs about single agents, by name, instead of `chances`."""
    agent_mix: float = 0.0
    """Share of choices in which the agent is drawn uniformly instead."""

    def __post_init__(self) -> None:
        check_mix(self.agent_mix)

    @classmethod
    def fitted(cls, trees: Iterable[SearchTree]) -> FreshOrRefine:
        """Learn the beliefs about each agent from trees of earlier tasks, grown by any selector.

        Each Beta is the one, on a grid of means and strengths, under which what came of every try
        was most likely given the tries of its kind before it in its tree (the beta-binomial
        likelihood, to which it is the same how a selector came to make these tries). What was
        never tried keeps Jeffreys' prior.
        """
        seen: dict[Kind, list[tuple[int, int, bool]]] = defaultdict(list)
        for tree in trees:
            so_far = Tries()
            for kind, passed in tries_in(tree):
                seen[kind].append((so_far.count[kind], so_far.passed[kind], passed))
                so_far.add(kind, passed)
        return cls(
            of_agent={
                agent: Chances(
                    fresh=_most_likely(seen[Kind(agent, True)]),
                    refine=_most_likely(seen[Kind(agent, False)]),
                )
                for agent in sorted({kind.agent for kind in seen})
            }
        )

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics that know nothing of nodes: the tree says all that is needed."""
        return Statistics(agents, "agents")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Choose the kind, then the node."""
        agents = view.agents
        if self.agent_mix > 0 and rng.random() < self.agent_mix:
            agents = (agents[int(rng.integers(len(agents)))],)
        tries = Tries()
        for kind, passed in tries_in(view.tree):
            tries.add(kind, passed)
        for pending in view.pending:
            tries.add(Kind(pending.agent, pending.parent_id == ROOT), passed=False)

        def promise(kind: Kind) -> tuple[float, int]:
            believed = self.of_agent.get(kind.agent, self.chances)
            prior = believed.fresh if kind.fresh else believed.refine
            count, passed = tries.count[kind], tries.passed[kind]
            return (prior.a + passed) / (prior.a + prior.b + count), -count

        kinds = [Kind(agent, True) for agent in agents]
        if view.tree.unsolved:
            kinds += [Kind(agent, False) for agent in agents]
        best = max(kinds, key=promise)
        return Choice(ROOT if best.fresh else _most_promising(view), best.agent)


def _most_promising(view: SearchView) -> int:
    """Return the failing node to refine."""
    total = {node_id: view.tree[node_id].value for node_id in view.tree.unsolved}
    count = dict.fromkeys(total, 1)
    for node in view.tree:
        if node.parent_id in total:
            total[node.parent_id] += node.value
            count[node.parent_id] += 1
    for pending in view.pending:
        if pending.parent_id in count:
            count[pending.parent_id] += 1

    def promise(node_id: int) -> tuple[float, int, int]:
        expected = (JEFFREYS.a + total[node_id]) / (JEFFREYS.a + JEFFREYS.b + count[node_id])
        return expected, -view.tree.depth(node_id), node_id

    return max(total, key=promise)


_MEANS = 1 / (1 + np.exp(-np.linspace(-6, 6, 121)))[:, None, None]
_STRENGTHS = np.geomspace(0.5, 1000, 34)[None, :, None]


def _most_likely(seen: Sequence[tuple[int, int, bool]]) -> Beta:
    """Return the Beta that fits best: tries and passes before each try, and what came of it."""
    if not seen:
        return JEFFREYS
    distinct, times = np.unique(np.array(seen, dtype=np.int64), axis=0, return_counts=True)
    count, right, passed = distinct.T
    chance = (_MEANS * _STRENGTHS + right) / (_STRENGTHS + count)
    fit = (np.log(np.where(passed, chance, 1 - chance)) * times).sum(axis=-1)
    i, j = np.unravel_index(fit.argmax(), fit.shape)
    mean, strength = float(_MEANS[i, 0, 0]), float(_STRENGTHS[0, j, 0])
    return Beta(mean * strength, (1 - mean) * strength)
