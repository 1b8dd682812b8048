"""Trees grown from recorded answers that were judged before: a search without model or sandbox.

The search is the real one. Only the two slow parts are looked up: what an agent says next (its
recordings of the task, shuffled anew by every seed) and what the judge says of it. The trees are
those that the environment grows with replay policies and the same seeds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..judging.base import Verdict
from ..spaces import TEXT_LIMIT, replace_surrogates
from ..tasks.code import CodeTask
from ..tree_search.consensus import resolve_score_fn
from ..tree_search.final import ScoreFn, final_answer
from ..tree_search.search import TreeSearch
from ..tree_search.tree import Node, SearchTree
from .agents import Agent, prompts_of
from .grid import CellFailed, Record
from .tree_curves import Curve, curve, pack

Judged = Mapping[tuple[str, str], Verdict]
"""By task id and reply, what the judge said; a failure of infrastructure has no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCell:
    """Trees of one task, one for each seed, grown by one team with one selector."""

    team: str
    selector: str
    task_id: str
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Names the cell in a grid."""
        return f"{self.team} | {self.selector} | {self.task_id} | {self.seeds[0]}-{self.seeds[-1]}"


def agent_order(agents: Sequence[str], seed: int, task_id: str) -> list[str]:
    """Return the agents in the order in which one tree knows them.

    Selectors that take turns, and ties, prefer whoever is named first. Shuffled by seed and task,
    no agent is.
    """
    order = list(agents)
    random.Random(repr((seed, task_id))).shuffle(order)
    return order


def episode_id(seed: int, task_id: str) -> str:
    """Name one tree, the same for all teams and selectors: they draw recordings in one order."""
    return f"{seed}/{task_id}"


def as_action(reply: str) -> str:
    """Return a reply as the environment takes it."""
    return replace_surrogates(reply[:TEXT_LIMIT])


def recorded_answers(agent: Agent, tasks: Sequence[CodeTask]) -> dict[str, list[str]]:
    """Return by task id what a recorded agent can say, in the order of the recordings."""
    from trainers.policies.replay import ReplayPolicy

    policy = ReplayPolicy(agent.recordings, prefixes=prompts_of(tasks), order="recorded")
    return {
        task.task_id: [as_action(reply) for reply in policy.answers(task.task_id)] for task in tasks
    }


def tree_seed(seed: int, task_id: str) -> int:
    """Return the seed of the search in a tree: the same for all teams and selectors."""
    from trainers.collect import request_seed

    return request_seed(seed, task_id, 0, "tree") % 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrees:
    """Works out the cells of a grid with recorded agents.

    It pickles, so that it can be sent to other processes.
    """

    agents: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]
    """By team and agent, the agent's recordings by task id."""
    prefixes: Mapping[str, str]
    """By task id, the prompt that recorded completions continue."""
    judged: Judged
    budgets: Mapping[str, Sequence[int]]
    """By team, the numbers of nodes at which its trees are looked at."""
    tasks: Mapping[str, CodeTask]
    """By task id."""
    score_fn: str | None = None
    """A reward model that chooses answers of the same trees, too."""

    def __call__(self, cell: TreeCell) -> Record:
        """Grow a cell's trees.

        Raises:
            CellFailed: an answer has no verdict.
        """
        return {"budgets": pack([self.grow(cell, seed) for seed in cell.seeds])}

    def grow(self, cell: TreeCell, seed: int) -> Curve:
        """Grow the tree of one seed."""
        from trainers.policies.replay import ReplayPolicy

        said: dict[str, list[str]] = {}
        for name, recordings in self.agents[cell.team].items():
            policy = ReplayPolicy(
                {cell.task_id: recordings[cell.task_id]}, prefixes=self.prefixes, name=name
            )
            replies = policy.answers(cell.task_id, episode_id(seed, cell.task_id))
            said[name] = [as_action(reply) for reply in replies]
        budgets = self.budgets[cell.team]
        search = TreeSearch(
            agent_order(list(said), seed, cell.task_id),
            cell.selector,
            max(budgets),
            tree_seed(seed, cell.task_id),
        )
        answers: list[int] = []
        scored: dict[int, int] = {}
        handle = resolve_score_fn(self.score_fn)
        model = None if handle is None else handle.of(self.tasks[cell.task_id])
        for _ in self._replay(search, cell.task_id, said):
            answers.append(_id(search.answer))
            if model is not None and len(answers) in budgets:
                scored[len(answers)] = self._scored(search.tree, model)
        if model is not None and answers:  # the recordings may have come to an end before
            scored[len(answers)] = self._scored(search.tree, model)
        return curve(list(search.tree), answers, budgets, scored)

    def _scored(self, tree: SearchTree, model: ScoreFn) -> int:
        """Return which node a reward model chooses."""
        try:
            return _id(final_answer(tree, model))
        except Exception as error:  # somebody else's code
            reason = f"{type(error).__name__}: {error}"
            raise CellFailed(f"--score-fn {self.score_fn} failed with {reason}") from error

    def _replay(
        self, search: TreeSearch, task_id: str, said: Mapping[str, Sequence[str]]
    ) -> Iterator[Node]:
        """Play the search to its end; yield each node when it is attached."""
        drawn = dict.fromkeys(said, 0)
        while not search.done:
            (expansion,) = search.ask()
            agent = expansion.agent
            if drawn[agent] >= len(said[agent]):
                search.fail(expansion.id, "exhausted")
                search.retire(agent)
                continue
            reply = said[agent][drawn[agent]]
            drawn[agent] += 1
            verdict = self.judged.get((task_id, reply))
            if verdict is None:
                raise CellFailed(f"an answer to {task_id!r} has no verdict: the judge failed")
            node = search.tell(expansion.id, verdict, reply)
            assert node is not None
            yield node


def _id(node: Node | None) -> int:
    assert node is not None
    return node.id
