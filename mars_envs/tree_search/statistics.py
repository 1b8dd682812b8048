"""What every arm of a tree has earned: running sums, in one row per node.

Every node u (and the root) has two virtual arms, GEN ("make a new child of u") and CONT ("descend
into a child of u"), and one arm per child. Values are credited without discount: a
child's arm pools its own value and those of all its descendants, GEN those of the direct children,
CONT those of all deeper nodes. A node's own value therefore never enters its parent's CONT.

A posterior needs nothing of the values but their number, sum and sum of squares, so that is all
that is kept: three numbers per arm, in one flat array. An observation costs the depth of its node;
a pending expansion is supposed by adding one observation per arm and forgotten by putting the very
same numbers back, so nothing drifts.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..errors import ProtocolError
from .posteriors import Beta, Posterior
from .tree import ROOT, Node

JEFFREYS = Beta(0.5, 0.5)
FEW = 10
"""Up to so many arms are drawn one by one, which is cheaper than NumPy's overhead per call."""

Credit = Literal["shared", "own", "agents"]
"""Whose arms a node has.

`shared`: GEN and CONT belong to all agents; each agent has one arm for the whole tree, with the
values of its own nodes. `own`: every pair of node and agent has its own GEN, CONT and agent arm,
and a deeper value is credited to the agent that wrote the child on the path. `agents`: nodes have
no arms, agents have theirs; for selectors that need no more.
"""


class Sums(NamedTuple):
    """What an arm has earned."""

    n: float
    """How many values; pending expansions count."""
    total: float
    squares: float
    """Sum of the squared values."""


class Statistics:
    """The sums of all arms of one growing tree.

    Args:
        agents: the names of the agents.
        credit: which arms there are.
        prior: of every arm.
        prior_means: what is expected of an agent before it has answered, by name; moves the prior
            of its agent arms.

    Raises:
        ValueError: a prior mean for an unknown agent.
    """

    def __init__(
        self,
        agents: Sequence[str],
        credit: Credit = "agents",
        prior: Posterior = JEFFREYS,
        prior_means: Mapping[str, float] | None = None,
    ) -> None:
        means = dict(prior_means or {})
        if unknown := means.keys() - set(agents):
            raise ValueError(
                f"prior_means names {', '.join(sorted(unknown))}; the agents are "
                f"{', '.join(agents)}"
            )
        self.credit = credit
        self._prior = prior
        self._agent_priors = [
            prior.centred(means[agent]) if agent in means else prior for agent in agents
        ]
        self._index = {agent: index for index, agent in enumerate(agents)}
        self._own = credit == "own"
        # A row is [child arm, GEN, CONT], or [child arm, then GEN, CONT and agent arm of each
        # agent]; shared agent arms come before the first row.
        m = len(agents)
        self._stride = {"shared": 9, "own": 3 + 9 * m, "agents": 0}[credit]
        self._base = 0 if self._own else 3 * m
        self._sums = array("d", bytes(8 * (self._base + self._stride)))
        self._blank = bytes(8 * self._stride)
        self._parents = array("i")
        self._authors = array("i")
        self._open: dict[int, array[int]] = {}
        self.supposed = 0
        """How many pending expansions are counted."""
        self._saved: list[tuple[int, array[float]]] = []

    def observe(self, node: Node, *, opened: bool = True) -> None:
        """Credit a new node's value to every arm that earns it.

        Args:
            node: the node that was added to the tree last.
            opened: whether it may be expanded. A node that may not is never drawn.

        Raises:
            ProtocolError: something is supposed; `restore` would take this value back as well.
        """
        if self.supposed:
            raise ProtocolError("call restore() before observe()")
        author = self._index[node.agent]
        sums, value, square = self._sums, node.value, node.value * node.value
        for arm in self._credited(node.parent_id, author):
            sums[arm] += 1.0
            sums[arm + 1] += value
            sums[arm + 2] += square
        if not self._stride:
            return
        self._parents.append(node.parent_id)
        self._authors.append(author)
        own = len(sums)
        sums.frombytes(self._blank)
        sums[own] = 1.0
        sums[own + 1] = value
        sums[own + 2] = square
        if opened:
            group = self._group(node.parent_id, author)
            if group not in self._open:
                self._open[group] = array("q")
            self._open[group].append(node.id)

    def suppose(self, parent_id: int, agent: str) -> None:
        """Count a pending expansion as one value at the mean of each of its arms ("constant liar").

        It stays until `restore`, which must come before the next `observe`.
        """
        sums = self._sums
        for arm in self._credited(parent_id, self._index[agent]):
            before = sums[arm : arm + 3]
            self._saved.append((arm, before))
            value = min(1.0, max(0.0, self._prior_of(arm).expected(*before)))
            sums[arm] += 1.0
            sums[arm + 1] += value
            sums[arm + 2] += value * value
        self.supposed += 1

    def restore(self) -> None:
        """Forget all that was supposed: every number is again what it was, to the last bit."""
        for arm, before in reversed(self._saved):
            self._sums[arm : arm + 3] = before
        self._saved.clear()
        self.supposed = 0

    # Reading ----------------------------------------------------------------------------------

    def gen(self, node_id: int, agent: str = "") -> Sums:
        """Return the sums of GEN at a node; of one agent's GEN where agents have their own."""
        return self._read(self._gen(node_id, agent))

    def cont(self, node_id: int, agent: str = "") -> Sums:
        """Return the sums of CONT at a node; of one agent's CONT where agents have their own."""
        return self._read(self._gen(node_id, agent) + 3)

    def child(self, node_id: int) -> Sums:
        """Return the sums of a node's arm at its parent: its own value, and those below it."""
        return self._read(self._row(node_id))

    def agent(self, agent: str, node_id: int = ROOT) -> Sums:
        """Return the sums of an agent's arm: at a node where credit is `own`, else overall."""
        return self._read(self._agent(node_id, self._index[agent]))

    def open_children(self, node_id: int, agent: str = "") -> Sequence[int]:
        """Return the ids of the children that may be drawn, oldest first.

        Where agents have arms of their own, those of one agent.
        """
        return self._open.get(self._group(node_id, self._index.get(agent, 0)), ())

    # Drawing ----------------------------------------------------------------------------------

    def draw_gen_and_cont(
        self, rng: np.random.Generator, node_id: int, agent: str = ""
    ) -> tuple[float, float]:
        """Draw a plausible mean of GEN, then one of CONT."""
        sums, sample, gen = self._sums, self._prior.sample, self._gen(node_id, agent)
        return (
            sample(sums[gen], sums[gen + 1], sums[gen + 2], rng),
            sample(sums[gen + 3], sums[gen + 4], sums[gen + 5], rng),
        )

    def draw_agent(self, rng: np.random.Generator, agent: str, node_id: int = ROOT) -> float:
        """Draw a plausible mean of an agent's arm."""
        sums, author = self._sums, self._index[agent]
        arm = self._agent(node_id, author)
        prior = self._agent_priors[author]
        return prior.sample(sums[arm], sums[arm + 1], sums[arm + 2], rng)

    def draw_child(self, rng: np.random.Generator, node_id: int, agent: str = "") -> int:
        """Draw from every open child's arm and return the child of the largest draw.

        Raises:
            KeyError: there is no open child.
        """
        children = self._open[self._group(node_id, self._index.get(agent, 0))]
        sums, sample, stride = self._sums, self._prior.sample, self._stride
        first = self._base + stride
        if len(children) > FEW:
            ids = np.array(children)
            # The view lives in this expression only: an array that lends its memory cannot grow.
            arms = np.frombuffer(sums)[first:].reshape(-1, stride)[ids, :3]
            n, total, squares = arms.T
            return int(ids[sample(n, total, squares, rng).argmax()])
        best, highest = children[0], -math.inf
        for child in children:
            arm = first + child * stride
            drawn = sample(sums[arm], sums[arm + 1], sums[arm + 2], rng)
            if drawn > highest:
                best, highest = child, drawn
        return best

    # Where things are -------------------------------------------------------------------------

    def _row(self, node_id: int) -> int:
        return self._base + (node_id + 1) * self._stride

    def _gen(self, node_id: int, agent: str) -> int:
        return self._row(node_id) + 3 + (9 * self._index[agent] if self._own else 0)

    def _agent(self, node_id: int, author: int) -> int:
        return self._row(node_id) + 9 + 9 * author if self._own else 3 * author

    def _prior_of(self, arm: int) -> Posterior:
        if arm < self._base:
            return self._agent_priors[arm // 3]
        place = arm % self._stride
        if self._own and place and place % 9 == 0:
            return self._agent_priors[place // 9 - 1]
        return self._prior

    def _group(self, node_id: int, author: int) -> int:
        """Return the key of a node's open children: per agent where agents have their own."""
        return (node_id + 1) * len(self._index) + author if self._own else node_id

    def _credited(self, parent_id: int, author: int) -> list[int]:
        """Return where the arms are that earn the value of a new child of `parent_id`."""
        if not self._stride:
            return [3 * author]
        own, row = self._own, self._row(parent_id)
        offset = 3 + 9 * author if own else 3
        arms = [row + offset, row + offset + 6 if own else 3 * author]
        node_id = parent_id
        while node_id != ROOT:
            arms.append(row)
            offset = 3 + 9 * self._authors[node_id] if own else 3
            node_id = self._parents[node_id]
            row = self._row(node_id)
            arms.append(row + offset + 3)
            if own:
                arms.append(row + offset + 6)
        return arms

    def _read(self, arm: int) -> Sums:
        return Sums(*self._sums[arm : arm + 3])
