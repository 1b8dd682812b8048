"""Who can play `TreeControlEnv` besides a learner, and how everyone is measured.

`SelectorPolicy` lets a rule of `TreeSearch` (Thompson sampling, best-of-N, …) play: it chooses
exactly what the search itself would. `LearnedSelector` is the way back, a learned policy as the
selector of a `TreeSearch` or a `TreeSearchEnv`. `play_control` runs one seeded episode; with one
seed, every policy meets the same task and the same luck, so results compare in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ProtocolError
from .control import Observation, TreeControlEnv
from .rows import observe_tree
from .search import TreeSearch
from .selection import Choice, Expansion, SearchView, Selector
from .statistics import Statistics


class ControlPolicy(Protocol):
    """Chooses the actions of an episode."""

    def begin(self, env: TreeControlEnv, seed: int) -> None:
        """Get ready for an episode of `env`, which has just been reset."""
        ...

    def act(self, observation: Observation, mask: NDArray[np.bool_]) -> int:
        """Return one of the actions that `mask` allows."""
        ...


class UniformPolicy:
    """Draws every possible action alike."""

    def begin(self, env: TreeControlEnv, seed: int) -> None:
        """Seed the draws."""
        self._rng = np.random.default_rng(seed)

    def act(self, observation: Observation, mask: NDArray[np.bool_]) -> int:
        """Return a possible action."""
        return int(self._rng.choice(np.flatnonzero(mask)))


class SelectorPolicy:
    """Lets a selector play, by way of a `TreeSearch` of the same seed, budget and agents.

    It follows the tree of the environment that `begin` was given, since a selector knows scores
    exactly and an observation rounds them.

    Args:
        selector: a preset's name, "module:name" or a selector; see `TreeSearch`.

    Raises:
        ValueError: an unknown selector (at `begin`).
    """

    def __init__(self, selector: str | Selector = "default") -> None:
        self.selector = selector
        self._env: TreeControlEnv | None = None

    def begin(self, env: TreeControlEnv, seed: int) -> None:
        """Begin a search of its own."""
        self._env = env
        self._search = TreeSearch(
            env.agents, self.selector, env.budget, seed, expand_solved=env.expand_solved
        )
        self._asked: Expansion | None = None

    def act(self, observation: Observation, mask: NDArray[np.bool_]) -> int:
        """Tell the search what came of its last choice, and ask for the next."""
        if self._env is None:
            raise ProtocolError("call begin(env, seed) before act()")
        self._tell(self._env)
        allowed = {self._env.choice(int(action)).agent for action in np.flatnonzero(mask)}
        self._asked = self._search.ask(agents=allowed)[0]
        return self._env.action(Choice(self._asked.parent_id, self._asked.agent))

    def _tell(self, env: TreeControlEnv) -> None:
        if self._asked is None:
            return
        known = len(self._search.tree)
        if len(env.tree) == known:
            self._search.fail(self._asked.id, "the environment made no node of it")
        else:
            self._search.tell(self._asked.id, env.tree[known].verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSelector:
    """Lets a learned policy select in a `TreeSearch`, so that it can lead real coders.

    The policy sees what `TreeControlEnv` would show; expansions that are still pending are not in
    it, so ask for one at a time.
    """

    predict: Callable[[Observation, NDArray[np.bool_]], int] = field(repr=False)
    """From an observation and a mask to an action, for instance by `MaskablePPO.predict`. Not in
    the `repr`, by which a saved search knows its selector: a function's changes between runs."""
    agents: tuple[str, ...]
    """The agents of the search in the order of the actions; names need not be those of training."""
    budget: int
    """Of the environment that the policy was trained in; a search may have less, never more."""

    def statistics(self, agents: Sequence[str]) -> Statistics:
        """Return statistics that are not looked at."""
        return Statistics(agents, "agents")

    def select(self, view: SearchView, rng: np.random.Generator) -> Choice:
        """Ask the policy; nothing is drawn from `rng`.

        Raises:
            ValueError: other agents, a tree beyond the budget, or a choice that is not possible.
        """
        if not set(view.agents) <= set(self.agents):
            raise ValueError(f"the policy knows the agents {self.agents}, got {view.agents}")
        if len(view.tree) >= self.budget:
            raise ValueError(
                f"the policy was trained for trees of {self.budget} nodes; give the search a "
                "budget of no more"
            )
        observation = observe_tree(view.tree, self.agents, self.budget)
        live = [agent in view.agents for agent in self.agents]
        mask = np.zeros((self.budget, len(self.agents)), np.bool_)
        for row in range(min(len(view.tree) + 1, self.budget)):
            if view.may_expand(row - 1):
                mask[row] = live
        row, agent = divmod(int(self.predict(observation, mask.ravel())), len(self.agents))
        if not (0 <= row < self.budget and mask[row, agent]):
            raise ValueError(
                f"the policy chose to expand {row - 1} with {self.agents[agent]}, which its mask "
                "forbids; does it use the mask?"
            )
        return Choice(row - 1, self.agents[agent])


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """How one episode ended."""

    seed: int
    answer_solved: bool
    """Whether the answer, the best public score and of equals the latest, is solved."""
    covered: bool
    """Whether any node is solved."""
    best_score: float
    """The answer's public score, in [0, 1]."""
    first_solved: int
    """Expansions up to the first solved node, that one included; 0 if there is none."""
    refinements: int
    """Nodes that refine another."""
    nodes: int
    reward: float
    """Sum of the environment's rewards."""


def play_control(env: TreeControlEnv, policy: ControlPolicy, seed: int) -> ControlResult:
    """Play one episode; `seed` is the environment's and the policy's."""
    observation, _ = env.reset(seed=seed)
    policy.begin(env, seed)
    total, terminated = 0.0, False
    while not terminated:
        action: Any = policy.act(observation, env.action_masks())
        observation, reward, terminated, _, _ = env.step(action)
        total += reward
    best = env.tree.best
    solved = [node.id + 1 for node in env.tree if node.solved]
    return ControlResult(
        seed=seed,
        answer_solved=best is not None and best.solved,
        covered=bool(solved),
        best_score=0.0 if best is None else best.score,
        first_solved=solved[0] if solved else 0,
        refinements=sum(node.depth > 1 for node in env.tree),
        nodes=len(env.tree),
        reward=total,
    )
