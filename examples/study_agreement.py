"""Does test-output agreement choose better among programs that pass the public tests?

Every recorded generation of a HumanEval task is judged once, on public tests, hidden tests and
probes (inputs of HumanEval+, without expected outputs). The recordings of a task are then the nodes
of one tree in random order, and two ways to hand one of them in are compared:

    latest      of the nodes with the highest public score, the latest (the released rule)
    agreement   of these, one of the largest group that behaves alike, of equals the latest

Both are averaged over all orders exactly, so the only uncertainty left is that over tasks. Replay
tells about choice, not about refinement.

    python examples/study_agreement.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import track

from mars_envs.judging import CodeJudge, Verdict
from mars_envs.tasks import CodeTask, Probe, load_tasks
from mars_envs.tree_search import ROOT, SearchTree
from mars_envs.tree_search.consensus import clusters
from trainers.policies import load_recordings
from trainers.policies.replay import reply_text
from trainers.statistics import Estimate, mean_estimate, paired_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Chances that the node handed in is solved, for one task."""

    task_id: str
    latest: float
    without_probes: float
    with_probes: float
    any_solved: bool
    open: bool
    """Whether some, not all, nodes of the highest public score are solved: the choice counts."""


def tasks_with_probes(data: Path) -> list[CodeTask]:
    """Return the HumanEval tasks that have public tests, with HumanEval+ inputs as probes."""
    lines = (data / "functions/humaneval_plus_mini.jsonl").read_text(encoding="utf-8").splitlines()
    inputs = {record["task_id"]: record["plus_input"] for record in map(json.loads, lines)}
    tasks = load_tasks(
        data / "functions/humaneval.jsonl",
        public_tests=data / "functions/humanevalpack_bugs.jsonl",
    )
    return [
        replace(
            task,
            probes=tuple(
                Probe(name=f"plus/{number}", input="\n".join(map(json.dumps, arguments)))
                for number, arguments in enumerate(inputs.get(task.task_id, []), start=1)
            ),
        )
        for task in tasks
        if not task.oracle
    ]


def chances(task_id: str, verdicts: Sequence[Verdict]) -> Outcome:
    """Return the chances of each rule over all orders of `verdicts`."""
    tree, public_only = SearchTree(), SearchTree()
    for verdict in verdicts:
        tree.add(ROOT, "recorded", verdict)
        short = verdict.signature[: verdict.public_total]
        public_only.add(ROOT, "recorded", replace(verdict, signature=short))
    top = max(verdict.score for verdict in verdicts)
    candidates = [verdict.solved for verdict in verdicts if verdict.score == top]
    return Outcome(
        task_id=task_id,
        latest=_share(candidates),
        without_probes=_of_largest(public_only, top, candidates),
        with_probes=_of_largest(tree, top, candidates),
        any_solved=any(verdict.solved for verdict in verdicts),
        open=len(set(candidates)) == 2,
    )


def _of_largest(tree: SearchTree, score: float, otherwise: Sequence[bool]) -> float:
    groups = clusters(tree, score=score)
    if not groups:
        return _share(otherwise)
    size = len(groups[0])
    return _share([node.solved for group in groups if len(group) == size for node in group])


def _share(solved: Sequence[bool]) -> float:
    return sum(solved) / len(solved)


def study(data: Path, recordings: str, *, tasks: int | None, judge: CodeJudge) -> list[Outcome]:
    """Judge the recordings of one file and return what each rule would have handed in.

    Args:
        data: the folder of recorded data.
        recordings: name of a file below `generations`, without its ending.
        tasks: only the first so many.
        judge: judges.
    """
    recorded = load_recordings(data / "generations" / f"{recordings}.jsonl")
    known = [task for task in tasks_with_probes(data) if task.task_id in recorded][:tasks]
    outcomes: list[Outcome] = []
    for task in track(known, description=recordings):
        replies = [reply_text(one, prefix=task.statement) for one in recorded[task.task_id]]
        outcomes.append(chances(task.task_id, [judge.judge(task, reply) for reply in replies]))
    return outcomes


def report(recordings: str, outcomes: Sequence[Outcome]) -> str:
    """Return the figures as lines of text."""
    latest = [outcome.latest for outcome in outcomes]
    rules = {
        "agreement, public tests only": [outcome.without_probes for outcome in outcomes],
        "agreement, with probes": [outcome.with_probes for outcome in outcomes],
    }
    lines = [
        f"{recordings}: {len(outcomes)} tasks, {sum(o.open for o in outcomes)} of them with an "
        "open choice; mean over tasks [95 % bootstrap interval]",
        f"  {'latest':<30} {_shown(mean_estimate(latest))}",
    ]
    for name, values in rules.items():
        gain = _shown(paired_difference(values, latest), signed=True)
        lines.append(f"  {name:<30} {_shown(mean_estimate(values))}   gain {gain}")
    solved = [float(outcome.any_solved) for outcome in outcomes]
    lines.append(f"  {'any node solved (Pass@N)':<30} {_shown(mean_estimate(solved))}")
    return "\n".join(lines)


def _shown(estimate: Estimate, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{estimate.mean:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def main(arguments: Sequence[str] | None = None) -> list[list[Outcome]]:
    """Run the study; return its outcomes by file of recordings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the recorded data")
    parser.add_argument(
        "--recordings",
        nargs="+",
        default=["codegen16b_pool", "humaneval"],
        help="files below generations/ (default: %(default)s)",
    )
    parser.add_argument("--tasks", type=int, help="only the first so many tasks of each file")
    parser.add_argument("--sandbox", default="auto", help="where programs run (default: auto)")
    options = parser.parse_args(arguments)
    judge = CodeJudge(options.sandbox)
    found: list[list[Outcome]] = []
    for recordings in options.recordings:
        found.append(study(options.data, recordings, tasks=options.tasks, judge=judge))
        print(report(recordings, found[-1]))
    return found


if __name__ == "__main__":
    main()
