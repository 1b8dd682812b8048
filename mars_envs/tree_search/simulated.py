"""Simulated coders: success models that stand in for language models where the search is studied.

A `TaskModel` answers an expansion with a verdict at once, from chances (`SimulatedTask`) or from a
recorded pool (`RecordedTask`); a `TaskSource` draws such tasks. `grow` lets a search grow one tree
over them. No text, no judge, no Gym.

Example:
    >>> coders = SimulatedTasks({"a": Coder(fresh=0.3, refine=0.6)})
    >>> tree = grow(coders, "default", budget=8, seed=0)
    >>> len(tree)
    8
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import InvalidSetting, PoolExhausted
from ..judging.base import Feedback, Verdict
from .search import TreeSearch
from .selection import Selector
from .tree import ROOT, SearchTree


class TaskModel(Protocol):
    """One task and what each agent makes of it."""

    def answer(
        self, tree: SearchTree, parent_id: int, agent: str, rng: np.random.Generator
    ) -> Verdict:
        """Return the verdict on a new child of `parent_id` by `agent`, drawing only from `rng`.

        Raises:
            PoolExhausted: this agent has no answer left and has to leave the search.
        """
        ...


class TaskSource(Protocol):
    """Draws tasks for a fixed team."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, each once."""
        ...

    def draw(self, rng: np.random.Generator) -> TaskModel:
        """Draw one task."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Coder:
    """How often one agent succeeds. Chances are those of passing public *and* hidden tests."""

    fresh: float
    """Chance of an answer from scratch."""
    refine: float
    """Chance of refining a node that fails a public test, where its child has depth 2."""
    keep: float = 0.9
    """Chance that refining a node that passes the public tests leaves it as it is, hidden faults
    included; else the child fails."""
    refine_decay: float = 1.0
    """Factor on `refine` for every level below depth 2; the product is capped at 1."""
    closeness: float = 0.0
    """Added to the chance of a refinement, times its parent's public score; capped at 1."""
    partial: float = 0.0
    """Chance with which a failing answer passes each public test on its own."""
    false_positive: float = 0.0
    """Chance that a failing answer passes every public test all the same."""

    def __post_init__(self) -> None:
        for name in ("fresh", "refine", "keep", "closeness", "partial", "false_positive"):
            check_chance(name, getattr(self, name))
        if not (math.isfinite(self.refine_decay) and self.refine_decay >= 0):
            raise InvalidSetting(
                f"refine_decay is a factor of 0 or more, got {self.refine_decay!r}"
            )


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """A task on which each agent succeeds with known chances."""

    coders: Mapping[str, Coder]
    public_tests: int = 1

    def chance(self, tree: SearchTree, parent_id: int, agent: str) -> float:
        """Return the chance that a new child of `parent_id` by `agent` passes every test."""
        coder = self.coders[agent]
        if parent_id == ROOT:
            return coder.fresh
        parent = tree[parent_id]
        if parent.solved_public:
            return coder.keep if parent.solved else 0.0
        decayed = coder.refine * coder.refine_decay ** (parent.depth - 1)
        return min(1.0, decayed + coder.closeness * parent.score)

    def answer(
        self, tree: SearchTree, parent_id: int, agent: str, rng: np.random.Generator
    ) -> Verdict:
        """Draw whether the answer passes, then how many public tests a failing one passes."""
        coder, total = self.coders[agent], self.public_tests
        if parent_id != ROOT and tree[parent_id].solved_public and rng.random() < coder.keep:
            # The feedback shows no fault, so the answer stays as it is, false positives too.
            return simulated_verdict(total, total, solved=tree[parent_id].solved)
        if parent_id == ROOT or not tree[parent_id].solved_public:
            if rng.random() < self.chance(tree, parent_id, agent):
                return simulated_verdict(total, total, solved=True)
            if rng.random() < coder.false_positive:
                return simulated_verdict(total, total, solved=False)
        # A failing answer misses one public test at least, which is not drawn for.
        passed = int(rng.binomial(total - 1, coder.partial)) if coder.partial else 0
        return simulated_verdict(passed, total, solved=False)


@dataclass(frozen=True, slots=True)
class SimulatedTasks:
    """Draws tasks for coders of given skill.

    Without `ease` all tasks are alike. With `ease=(a, b)` each task has an ease drawn from
    Beta(a, b), which multiplies `fresh`, `refine` and `closeness`: a skill is then the chance on
    the easiest task.

    Args:
        coders: each agent's chances, by name.
        public_tests: public tests of a task; scores are multiples of 1 / `public_tests`.
        ease: the two parameters of the Beta distribution, both above 0.
        ease_of_each_agent: draw an ease for every agent of a task on its own, so that they are
            good at different tasks, instead of one for all.

    Raises:
        InvalidSetting: a number that cannot be.
    """

    coders: Mapping[str, Coder]
    public_tests: int = 1
    ease: tuple[float, float] | None = None
    ease_of_each_agent: bool = False

    def __post_init__(self) -> None:
        if not self.coders:
            raise InvalidSetting("expected one coder or more, by name, got none")
        if self.public_tests < 1:
            raise InvalidSetting(f"public_tests must be at least 1, got {self.public_tests!r}")
        if self.public_tests == 1 and any(coder.partial for coder in self.coders.values()):
            raise InvalidSetting(
                "partial success needs public_tests=2 or more: of one test a failing answer "
                "passes none"
            )
        if self.ease is not None and not all(0 < x < math.inf for x in self.ease):
            raise InvalidSetting(
                f"ease is (a, b) of a Beta distribution, both above 0, got {self.ease!r}"
            )
        if self.ease is None and self.ease_of_each_agent:
            raise InvalidSetting("ease_of_each_agent needs ease=(a, b) to draw from")

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents."""
        return tuple(self.coders)

    def draw(self, rng: np.random.Generator) -> SimulatedTask:
        """Draw one task: its ease, where there is one."""
        if self.ease is None:
            return SimulatedTask(self.coders, self.public_tests)
        count = len(self.coders) if self.ease_of_each_agent else 1
        eases = np.broadcast_to(rng.beta(*self.ease, size=count), len(self.coders))
        coders = {
            name: dataclasses.replace(
                coder,
                fresh=coder.fresh * ease,
                refine=coder.refine * ease,
                closeness=coder.closeness * ease,
            )
            for (name, coder), ease in zip(self.coders.items(), eases.tolist(), strict=True)
        }
        return SimulatedTask(coders, self.public_tests)


Outcome = tuple[float, bool]
"""The public score in [0, 1] and whether every test passed."""


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A task with a pool of recorded outcomes for each agent, drawn without replacement.

    The n-th node of an agent gets the n-th outcome of its pool. The parent is ignored: what was
    recorded were answers from scratch, so a replay tests selection, not refinement.
    """

    pools: Mapping[str, Sequence[Outcome]]

    def left(self, tree: SearchTree, agent: str) -> int:
        """Return how many answers an agent has left in a tree."""
        return len(self.pools[agent]) - sum(node.agent == agent for node in tree)

    def answer(
        self, tree: SearchTree, parent_id: int, agent: str, rng: np.random.Generator
    ) -> Verdict:
        """Return the agent's next outcome; `rng` is not used, the pool was shuffled when drawn."""
        pool = self.pools[agent]
        left = self.left(tree, agent)
        if left <= 0:
            raise PoolExhausted(
                f"{agent} has only {len(pool)} recorded answers to this task; retire it, or lower "
                "the budget"
            )
        score, solved = pool[-left]
        return dataclasses.replace(
            simulated_verdict(int(score >= 1.0), 1, solved=solved), score=float(score)
        )


@dataclass(frozen=True, slots=True)
class RecordedTasks:
    """Draws recorded tasks at random, each time with its pools shuffled.

    Args:
        tasks: for every task, each agent's outcomes. All tasks name the same agents.

    Raises:
        InvalidSetting: no task, a task without any answer, tasks of different teams, a score
            outside [0, 1], or an outcome that passes every test with a public score below 1.
    """

    tasks: Sequence[Mapping[str, Sequence[Outcome]]]

    def __post_init__(self) -> None:
        if not self.tasks or not self.tasks[0]:
            raise InvalidSetting("expected one recorded task or more, with one agent or more")
        for index, pools in enumerate(self.tasks):
            if set(pools) != set(self.tasks[0]):
                raise InvalidSetting(
                    f"task {index} has the agents {sorted(pools)}, task 0 has "
                    f"{sorted(self.tasks[0])}; give each agent a pool in every task, if empty"
                )
            for agent, outcomes in pools.items():
                for score, solved in outcomes:
                    if not 0.0 <= score <= 1.0 or (solved and score < 1.0):
                        raise InvalidSetting(
                            f"task {index}, {agent}: expected a public score in [0, 1], and 1.0 "
                            f"where every test passed, got {(score, solved)!r}"
                        )

        for index, pools in enumerate(self.tasks):
            if not any(pools.values()):
                raise InvalidSetting(
                    f"task {index} has no recorded answer by any agent, so nothing can be tried; "
                    "leave it out"
                )

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents, in the order of the first task."""
        return tuple(self.tasks[0])

    def draw(self, rng: np.random.Generator) -> RecordedTask:
        """Draw one of the tasks."""
        return self.task(int(rng.integers(len(self.tasks))), rng)

    def task(self, index: int, rng: np.random.Generator) -> RecordedTask:
        """Return task `index` with freshly shuffled pools.

        Raises:
            IndexError: there is no such task.
            TypeError: the index is no whole number.
        """
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            raise TypeError(f"a task is named by its index, got {index!r}")
        if not 0 <= index < len(self.tasks):
            raise IndexError(f"tasks are numbered 0 to {len(self.tasks) - 1}, got {index}")
        pools = self.tasks[index]
        return RecordedTask(
            {
                agent: [pools[agent][i] for i in rng.permutation(len(pools[agent]))]
                for agent in pools
            }
        )


def grow(
    source: TaskSource,
    selector: str | Selector = "default",
    budget: int = 8,
    seed: int = 0,
    *,
    batch: int = 1,
    expand_solved: bool = True,
) -> SearchTree:
    """Draw a task and let a search grow a tree on it.

    With one seed, the task and the n-th fresh answer of each agent are the same whatever the
    selector, so that searches can be compared in pairs (common random numbers).

    Args:
        source: where the task comes from.
        selector: see `TreeSearch`.
        budget: nodes of the tree. Fewer come about where every agent's pool is exhausted.
        seed: of task, answers and search.
        batch: expansions that are asked for at once, and answered before the next are.
        expand_solved: whether a node that passes every public test may be refined.

    Returns:
        The grown tree.
    """
    of_task, of_growth = np.random.SeedSequence(seed).spawn(2)
    return grow_on(
        source.draw(np.random.default_rng(of_task)),
        source.agents,
        selector,
        budget,
        int(of_growth.generate_state(1, np.uint64)[0]),
        batch=batch,
        expand_solved=expand_solved,
    )


def grow_on(
    task: TaskModel,
    agents: Sequence[str],
    selector: str | Selector = "default",
    budget: int = 8,
    seed: int = 0,
    *,
    batch: int = 1,
    expand_solved: bool = True,
) -> SearchTree:
    """Let a search grow a tree on a given task; see `grow`."""
    if batch < 1:
        raise InvalidSetting(f"batch is a number of expansions and must be at least 1, got {batch}")
    of_search, *of_answers = np.random.SeedSequence(seed).spawn(1 + 2 * len(agents))
    search_seed = int(of_search.generate_state(1, np.uint64)[0])
    search = TreeSearch(agents, selector, budget, search_seed, expand_solved=expand_solved)
    # Fresh answers have a stream of their own: the n-th is the same however many refinements
    # the search puts between.
    kinds = [(agent, fresh) for agent in agents for fresh in (True, False)]
    rngs = {kind: np.random.default_rng(seed) for kind, seed in zip(kinds, of_answers, strict=True)}
    while not search.done:
        for expansion in search.ask(batch):
            parent_id, agent = expansion.parent_id, expansion.agent
            try:
                verdict = task.answer(search.tree, parent_id, agent, rngs[agent, parent_id == ROOT])
            except PoolExhausted as error:
                search.fail(expansion.id, str(error))
                search.retire(agent)
            else:
                search.tell(expansion.id, verdict)
    return search.tree


def simulated_verdict(passed: int, total: int, *, solved: bool) -> Verdict:
    """Return the verdict on an answer that passes `passed` of `total` public tests."""
    status = "accepted" if passed == total else "wrong_answer"
    return Verdict(
        score=passed / total,
        solved=solved,
        status=status,
        public_passed=passed,
        public_total=total,
        feedback=Feedback(passed=passed, total=total, status=status),
    )


def check_chance(name: str, value: float) -> None:
    """Raise `InvalidSetting` unless `value` is a chance."""
    if not 0.0 <= value <= 1.0:
        raise InvalidSetting(f"{name} is a chance and must lie in [0, 1], got {value!r}")
