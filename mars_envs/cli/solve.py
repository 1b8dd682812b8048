"""`mars-envs solve`: run the tree search on a file of tasks and report pass rates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ..errors import InvalidSetting, MarsEnvsError
from ..tasks import load_tasks
from ..tasks.code import CodeTask
from ..tree_search.consensus import resolve_score_fn
from ..tree_search.env import TreeSearchEnv
from ..tree_search.presets import resolve_selector
from .agents import Cast, make_cast
from .config import SolveConfig
from .console import console, progress
from .judge import open_judge
from .probes import probed

if TYPE_CHECKING:
    from trainers.evaluate import Metric
    from trainers.rollout import Rollout


class SolveFailed(MarsEnvsError, RuntimeError):
    """Not one tree could be grown."""


def solve(config: SolveConfig) -> int:
    """Grow one tree for each task and print what came out; exit status 1 if any tree failed."""
    try:
        resolve_selector(config.selector, config.agent_mix)
    except (ValueError, ImportError, AttributeError) as error:
        raise InvalidSetting(f"--selector: {error}") from error
    score_fn = None if config.score_fn == "none" else config.score_fn
    try:
        if score_fn is not None:
            resolve_score_fn(score_fn)
    except (ValueError, ImportError, AttributeError) as error:
        raise InvalidSetting(f"--score-fn: {error}") from error
    if config.score_weight < 1 and score_fn is None:
        raise InvalidSetting("--score-weight below 1 needs a --score-fn to blend with")
    if config.out:
        # Opened before the work, which would be lost if it could not be written at the end.
        Path(config.out).open("a").close()
    every = load_tasks(config.tasks, public_tests=config.public_tests)
    cast = make_cast(config.agents, tasks=every, seed=config.seed)
    tasks = cast.tasks(every)[: config.limit]
    if config.probes:
        tasks = probed(tasks, config.probes)
    _announce(cast, every, tasks)
    judge = open_judge(config.sandbox, config.workers, config.extract)
    env_fn = partial(
        TreeSearchEnv,
        tasks=tasks,
        judge=judge,
        agents=list(cast.policies),
        budget=config.budget,
        selector=config.selector,
        agent_mix=config.agent_mix,
        score_fn=score_fn,
        score_weight=config.score_weight,
        feedback_level=config.feedback,
        stop_on_solved=config.stop_on_solved,
        expand_solved=not config.leave_solved,
    )
    rollouts = asyncio.run(_play(config, env_fn, cast, tasks))
    if config.out:
        from trainers.rollout import write_rollouts

        write_rollouts(config.out, rollouts)
        console.print(f"rollouts: {Path(config.out)}", markup=False, soft_wrap=True)
    played = [rollout for rollout in rollouts if rollout.outcome != "failed"]
    if not played:
        reason = rollouts[0].summary.get("failure", "not known") if rollouts else "no task"
        raise SolveFailed(f"all {len(rollouts)} trees failed; the first one because: {reason}")
    console.print(_pass_rates(played, tasks, only_replay=cast.only_replay))
    if cast.recordings:
        console.print(_agreement(played, cast))
    stats = judge.stats
    console.print(
        f"{stats.nodes} nodes judged; {stats.cached_cases} of {stats.cases} tests answered from "
        f"the cache ({stats.hit_rate:.0%})"
    )
    failed = len(rollouts) - len(played)
    if failed:
        first = next(rollout for rollout in rollouts if rollout.outcome == "failed")
        console.print(
            f"{failed} of {len(rollouts)} trees failed and are in no figure above; the first: "
            f"{first.task_id}: {first.summary.get('failure', 'reason not known')}",
            style="red",
            markup=False,
        )
    return 1 if failed else 0


def _announce(cast: Cast, every: Sequence[CodeTask], tasks: Sequence[CodeTask]) -> None:
    which = f"{len(tasks)} of {len(every)} tasks"
    if cast.recordings:
        samples = sum(len(cast.recordings[task.task_id]) for task in tasks)
        which += f", for which {samples} generations are recorded"
    console.print(which)


async def _play(
    config: SolveConfig, env_fn: partial[TreeSearchEnv], cast: Cast, tasks: Sequence[CodeTask]
) -> list[Rollout]:
    """Grow the trees, with a progress bar; return the rollouts in the order of the tasks."""
    from trainers.collect import Episode, collect, request_seed
    from trainers.errors import CollectionFailed
    from trainers.rollout import Sampling

    episodes = [
        Episode(
            episode_id=f"solve/{task.task_id}",
            group_id=task.task_id,
            seed=request_seed(config.seed, task.task_id, 0, "tree") % 2**31,
            options={"task": task.task_id},
        )
        for task in tasks
    ]
    found: dict[str, Rollout] = {}
    solved = 0
    with progress() as bar:
        line = bar.add_task("grow trees", total=len(episodes), note="")
        stream = collect(
            env_fn,
            episodes,
            cast.policies,
            roles={name: name for name in cast.policies},
            concurrency=min(config.concurrency, len(episodes)),
            run_seed=config.seed,
            sampling=Sampling(temperature=config.temperature, max_tokens=config.max_tokens),
        )
        try:
            async for rollout in stream:
                found[rollout.rollout_id] = rollout
                solved += any(bool(turn.info.get("solved")) for turn in rollout.turns)
                bar.update(line, completed=len(found), note=f"{solved} solved")
        except CollectionFailed:
            pass  # reported with its reason by the caller, who has the failed rollouts
    return [found[episode.episode_id] for episode in episodes if episode.episode_id in found]


def _pass_rates(
    rollouts: Sequence[Rollout], tasks: Sequence[CodeTask], *, only_replay: bool
) -> Table:
    """A row for tasks with hidden tests, one for tasks without (`oracle`), one for all."""
    # A replayed generation is an independent sample wherever in the tree it stands.
    single: Metric = "node_success" if only_replay else "pass_at_1"
    table = Table(
        title="Pass rates",
        caption="mean over tasks [95 % bootstrap interval over tasks] right/all; oracle: the tests "
        "that drive the search also decide",
    )
    table.add_column("tasks")
    table.add_column("n", justify="right")
    table.add_column(f"Pass@1 ({'all samples' if only_replay else 'fresh answers'})")
    for column in ("Pass@1(MCTS)", "Pass@N"):
        table.add_column(column)
    oracle = {task.task_id for task in tasks if task.oracle}
    groups = {
        "hidden tests": [r for r in rollouts if r.task_id not in oracle],
        "oracle": [r for r in rollouts if r.task_id in oracle],
        "all, some of them oracle" if oracle else "all": list(rollouts),
    }
    for name, group in groups.items():
        if not group or (name == "hidden tests" and not oracle):
            continue
        nodes = [turn for rollout in group for turn in rollout.turns]
        samples = nodes if only_replay else [n for n in nodes if not n.info["refine"]]
        right = sum(bool(turn.info["solved"]) for turn in samples)
        cells = [_cell(_values(group, single), right, len(samples))]
        metrics: tuple[Metric, ...] = ("pass_at_1_mcts", "pass_at_n")
        for metric in metrics:
            values = _values(group, metric)
            cells.append(_cell(values, round(sum(values)), len(values)))
        table.add_row(name, str(len(group)), *cells)
    return table


def _values(rollouts: Sequence[Rollout], metric: Metric) -> list[float]:
    from trainers.evaluate import task_values

    return list(task_values(rollouts, metric).values())


def _cell(values: Sequence[float], right: int, of: int) -> str:
    from trainers.statistics import mean_estimate

    estimate = mean_estimate(values)
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] {right}/{of}"


def _agreement(rollouts: Sequence[Rollout], cast: Cast) -> Table:
    """Recorded verdict against ours, for every replayed generation that has a recorded one."""
    from trainers.policies.replay import reply_text

    labels: dict[tuple[str, str], str] = {}
    for task_id, recordings in cast.recordings.items():
        for recording in recordings:
            if recording.label:
                text = reply_text(recording, prefix=cast.prefixes.get(task_id))
                labels[task_id, text] = recording.label
    counts: Counter[tuple[str, str]] = Counter()
    for rollout in rollouts:
        for turn in rollout.turns:
            label = labels.get((rollout.task_id, turn.generation.text))
            if label is not None:
                solved = bool(turn.info["solved"])
                counts[label, "accepted" if solved else str(turn.info["status"])] += 1
    statuses = sorted({status for _, status in counts}, key=lambda s: (s != "accepted", s))
    table = Table(title="Recorded verdicts (rows) against ours (columns): replayed generations")
    table.add_column("recorded")
    for status in statuses:
        table.add_column(status.replace("_", " "), justify="right")
    table.add_column("n", justify="right")
    for label in sorted({label for label, _ in counts}):
        row = [counts[label, status] for status in statuses]
        table.add_row(label, *map(str, row), str(sum(row)))
    return table
