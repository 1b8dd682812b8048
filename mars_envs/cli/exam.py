"""What coders can do on held-out tasks: alone, from the root; alone, in a tree; as a team.

Both exams of a run ask the same tasks with the same seeds, so that differences are paired by task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidSetting
from ..judging.base import Judge
from ..tasks.code import CodeTask
from ..tree_search.env import TreeSearchEnv
from .config import DemoConfig
from .console import progress
from .team import ROLES, SAMPLING_TOKENS

if TYPE_CHECKING:
    from trainers.policies.hf import HFPolicy
    from trainers.rollout import Rollout

TEAM = "team"
_SEED = 1_000_003  # of the exam's trees and samples, whatever the run's seed


@dataclass(frozen=True, slots=True)
class Exam:
    """The rollouts of one exam; `who` is an agent or `TEAM`."""

    fresh: Mapping[str, Sequence[Rollout]]
    """By agent: trees of independent answers to the root prompt."""
    trees: Mapping[str, Sequence[Rollout]]
    """By agent, and `TEAM`: search trees."""

    def fresh_of(self, who: str) -> list[Rollout]:
        """Return the independent answers of an agent or, pooled, of the team."""
        if who != TEAM:
            return list(self.fresh[who])
        return [rollout for rollouts in self.fresh.values() for rollout in rollouts]

    def write(self, path: Path) -> None:
        """Write the exam so that the file is either whole or absent."""
        from trainers.rollout import write_rollouts

        everything = [*self.fresh.values(), *self.trees.values()]
        partial_path = path.with_suffix(".partial")
        write_rollouts(partial_path, [rollout for part in everything for rollout in part])
        partial_path.replace(path)

    @classmethod
    def read(cls, path: Path) -> Exam:
        """Read an exam that `write` wrote.

        Raises:
            RolloutFormatError: the file is damaged.
            InvalidSetting: a part of the exam is missing.
        """
        from trainers.rollout import read_rollouts

        parts: dict[tuple[str, str], list[Rollout]] = {
            **{("fresh", agent): [] for agent in ROLES},
            **{("tree", who): [] for who in (*ROLES, TEAM)},
        }
        for rollout in read_rollouts(path):
            kind, _, rest = rollout.rollout_id.partition("/")
            parts.setdefault((kind, rest.partition("/")[0]), []).append(rollout)
        if len(parts) != 2 * len(ROLES) + 1 or not all(parts.values()):
            raise InvalidSetting(
                f"{path} is no whole exam; delete it to take the exam again, or start a new run"
            )
        return cls(
            {agent: parts["fresh", agent] for agent in ROLES},
            {who: parts["tree", who] for who in (*ROLES, TEAM)},
        )


def take_exam(
    team: Mapping[str, HFPolicy],
    tasks: Sequence[CodeTask],
    *,
    judge: Judge,
    config: DemoConfig,
    title: str,
) -> Exam:
    """Ask every task of each agent alone, fresh and in a tree, and of the team in a tree."""
    from trainers.collect import Episode, collect_all, request_seed
    from trainers.rollout import Sampling

    fresh: dict[str, Sequence[Rollout]] = {}
    trees: dict[str, Sequence[Rollout]] = {}
    rounds: list[tuple[str, str, list[str]]] = [("fresh", agent, [agent]) for agent in ROLES]
    rounds += [("tree", agent, [agent]) for agent in ROLES]
    rounds.append(("tree", TEAM, list(ROLES)))
    with progress() as bar:
        line = bar.add_task(title, total=len(rounds), note="")
        for kind, who, agents in rounds:
            bar.update(line, note=f"{who}, {kind}")
            env_fn = partial(
                TreeSearchEnv,
                tasks=tasks,
                judge=judge,
                agents=agents,
                budget=config.budget,
                selector="best_of_n" if kind == "fresh" else "default",
                agent_mix=config.agent_mix if len(agents) > 1 else 0.0,
                prompts="compact",
            )
            episodes = [
                Episode(
                    episode_id=f"{kind}/{who}/{task.task_id}",
                    group_id=task.task_id,
                    seed=request_seed(_SEED, task.task_id, 0, who) % 2**31,
                    options={"task": task.task_id},
                )
                for task in tasks
            ]
            rollouts = collect_all(
                env_fn,
                episodes,
                team,
                roles={agent: ROLES[agent] for agent in agents},
                concurrency=config.trees,
                run_seed=_SEED,
                sampling=Sampling(temperature=1.0, max_tokens=SAMPLING_TOKENS),
                deterministic=True,
            )
            (fresh if kind == "fresh" else trees)[who] = rollouts
            bar.advance(line)
        bar.update(line, note="")
    return Exam(fresh, trees)


def is_hidden_constant(rollout: Rollout) -> bool:
    """Whether the rollout's task hides a constant, so that feedback is needed to find it."""
    return rollout.task_id.startswith("tiny/hidden/")
