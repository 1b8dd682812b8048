"""Trees whose agents are models: played in the environment, by the collector, with a real judge."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..judging.base import Judge
from ..tasks.code import CodeTask
from ..tree_search.env import TreeSearchEnv
from ..tree_search.infos import tree_from_infos
from .grid import Finished, Record
from .tree_curves import curve, pack
from .tree_growth import TreeCell, agent_order, episode_id, tree_seed

if TYPE_CHECKING:
    from trainers.policies import Policy
    from trainers.rollout import Generation, Request, Rollout, Sampling


@dataclass(slots=True, kw_only=True)
class Seat:
    """One place in the environment, taken by another agent in every tree (see `agent_order`)."""

    name: str
    number: int
    policies: Mapping[str, Policy]
    """By agent."""
    orders: Mapping[str, Sequence[str]]
    """By episode, the agents in the order of their seats."""
    version: int = 0

    async def generate(self, request: Request) -> Generation:
        """Have the agent answer that sits here in this episode."""
        agent = self.orders[request.episode_id][self.number]
        return await self.policies[agent].generate(request)


def play_trees(
    cells: Mapping[str, TreeCell],
    policies: Mapping[str, Policy],
    keep: Callable[[Finished[TreeCell]], None],
    *,
    tasks: Sequence[CodeTask],
    judge: Judge,
    prompts: str,
    budgets: Sequence[int],
    sampling: Sampling,
    concurrency: int,
) -> None:
    """Grow the trees of some cells, several at once; hand each over as it is finished.

    Args:
        cells: by name, of one team and one selector, with one seed each.
        policies: by agent of the team.
        keep: takes what becomes of a cell.
        tasks: of the grid.
        judge: of the answers.
        prompts: see `TreeSearchEnv`.
        budgets: at which trees are looked at.
        sampling: of the models.
        concurrency: trees at once.
    """
    from trainers.collect import Episode, collect
    from trainers.errors import CollectionFailed

    places = {episode_id(cell.seeds[0], cell.task_id): name for name, cell in cells.items()}
    orders = {
        episode: agent_order(list(policies), cells[name].seeds[0], cells[name].task_id)
        for episode, name in places.items()
    }
    seats = {
        f"coder_{number}": Seat(
            name=f"coder_{number}", number=number, policies=policies, orders=orders
        )
        for number in range(len(policies))
    }
    episodes = [
        Episode(
            episode_id=episode,
            group_id=cells[name].task_id,
            seed=tree_seed(cells[name].seeds[0], cells[name].task_id),
            options={"task": cells[name].task_id},
        )
        for episode, name in places.items()
    ]
    env_fn = partial(
        TreeSearchEnv,
        tasks=tasks,
        judge=judge,
        prompts=prompts,
        agents=list(seats),
        budget=max(budgets),
        selector=next(iter(cells.values())).selector,
    )

    async def play() -> None:
        stream = collect(
            env_fn,
            episodes,
            seats,
            roles={seat: seat for seat in seats},
            concurrency=min(concurrency, len(episodes)),
            sampling=sampling,
        )
        try:
            async for rollout in stream:
                name = places[rollout.rollout_id]
                if rollout.outcome == "failed":
                    reason = str(rollout.summary.get("failure", "reason not known"))
                    keep(Finished(name, None, reason))
                else:
                    keep(Finished(name, _record(rollout, orders[rollout.rollout_id], budgets)))
        except CollectionFailed:
            pass  # every one of them was handed over as failed

    asyncio.run(play())


def _record(rollout: Rollout, order: Sequence[str], budgets: Sequence[int]) -> Record:
    """Return a tree's record, its nodes under the names of the agents that made them."""
    turns = [(turn.agent, turn.generation.text, turn.info) for turn in rollout.turns]
    seats = {f"coder_{number}": agent for number, agent in enumerate(order)}
    nodes = [dataclasses.replace(node, agent=seats[node.agent]) for node in tree_from_infos(turns)]
    answers = [int(info["best_node_id"]) for _, _, info in turns]
    return {"budgets": pack([curve(nodes, answers, budgets)])}
