"""Time what the environments add to a turn: everything but generation and judging.

A turn is: read the observation and the info, step with a text of some 600 characters. The judge is
a stub whose own CPU time is taken off. CPU time, not wall-clock; one row for each form and budget,
with the mean over episodes, their standard deviation and the slowest episode.

    python examples/time_tree_env.py                 # seconds
    python examples/time_tree_env.py --episodes 30   # the table of docs/mars2.md; a minute
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.judging import Verdict
from mars_envs.tasks import CodeTask
from mars_envs.testing import StubJudge, stub_tasks

REPLY = "```python\n" + "".join(f"x{i} = int(input()) + {i}\n" for i in range(24)) + "```\n"


class TimedJudge(StubJudge):
    """Judges by a hash and adds up the CPU seconds that this takes, in whatever thread."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "spent", [])

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Return the verdict that the hash gives."""
        begun = time.thread_time()
        verdict = super().judge(task, completion)
        self.spent.append(time.thread_time() - begun)  # type: ignore[attr-defined]
        return verdict


def play_turns(env: TreeSearchEnv, seed: int) -> int:
    """Play an AEC episode; return its number of turns."""
    env.reset(seed=seed)
    turns = 0
    for agent in env.agent_iter():
        _, _, terminated, truncated, _ = env.last()
        if not (terminated or truncated):
            turns += 1
        env.step(None if terminated or truncated else f"{REPLY}# {agent} {turns}")
    return turns


def play_rounds(env: ParallelTreeSearchEnv, seed: int) -> int:
    """Play a Parallel episode; return its number of turns of all agents."""
    _, infos = env.reset(seed=seed)
    turns = 0
    while env.agents:
        active = [agent for agent in env.agents if infos[agent]["active"]]
        turns += len(active)
        infos = env.step({agent: f"{REPLY}# {agent} {turns}" for agent in active})[4]
    return turns


def play_view(env: gym.Env[Any, Any], seed: int) -> int:
    """Play a Gymnasium episode; return its number of turns."""
    env.reset(seed=seed)
    turns, over = 0, False
    while not over:
        turns += 1
        _, _, terminated, truncated, _ = env.step(f"{REPLY}# {turns}")
        over = terminated or truncated
    return turns


def view(**options: Any) -> gym.Env[Any, Any]:
    """Make the view with all that `gym.make` wraps around it."""
    return gym.make("mars_envs/TreeSearch-v0", **options)


FORMS: dict[str, tuple[Callable[..., Any], Callable[[Any, int], int], dict[str, Any]]] = {
    "AEC": (TreeSearchEnv, play_turns, {}),
    "AEC, agent selects": (TreeSearchEnv, play_turns, {"select": "agent"}),
    "Parallel": (ParallelTreeSearchEnv, play_rounds, {}),
    "Gymnasium": (view, play_view, {}),
}


def time_form(form: str, budget: int, agents: int, episodes: int) -> list[float]:
    """Return the milliseconds of CPU per turn of each episode."""
    make, play, options = FORMS[form]
    judge = TimedJudge()
    spent: list[float] = judge.spent  # type: ignore[attr-defined]
    env = make(tasks=stub_tasks(), judge=judge, budget=budget, agents=agents, **options)
    play(env, 0)  # warm: what is made once is made
    times = []
    for seed in range(episodes):
        spent.clear()
        begun = time.process_time()
        turns = play(env, seed)
        times.append(1e3 * (time.process_time() - begun - sum(spent)) / turns)
    env.close()
    return times


def main(arguments: Sequence[str] | None = None) -> dict[tuple[str, int], list[float]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budgets", type=int, nargs="+", default=[8, 60, 1000], metavar="NODES")
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=5, help="of each row; at least 2")
    options = parser.parse_args(arguments)
    if options.episodes < 2:
        parser.error("--episodes must be at least 2, or there is no spread to report")
    rows = [(form, budget) for form in FORMS for budget in options.budgets]
    results = {
        (form, budget): time_form(form, budget, options.agents, options.episodes)
        for form, budget in track(rows, "Timing", console=Console(stderr=True), transient=True)
    }
    table = Table(title=f"CPU ms per turn beside generation and judging, {options.agents} agents")
    for column in ("form", "budget", "episodes", "mean", "s.d.", "slowest"):
        table.add_column(column, justify="left" if column == "form" else "right")
    for (form, budget), times in results.items():
        figures = [f"{value:.3f}" for value in (mean(times), stdev(times), max(times))]
        table.add_row(form, str(budget), str(len(times)), *figures)
    Console(width=100).print(table)
    return results


if __name__ == "__main__":
    sys.exit(not main())
