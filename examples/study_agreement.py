"""Does test-output agreement choose better among programs that pass the public tests?

Every recorded generation of a HumanEval task is judged once, on public tests, hidden tests and
probes: inputs of HumanEval+ without expected outputs, and inputs made from the public tests. The
recordings of a task are then the nodes of one tree in random order, and two ways to hand one of
them in are compared:

    latest      of the nodes with the highest public score, the latest (the released rule)
    agreement   of these, one of the largest group that behaves alike, of equals the latest

Both are averaged over all orders exactly, so the only uncertainty left is that over tasks. Replay
tells about choice, not about refinement.

    python examples/study_agreement.py --data ../shared/data
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import track

from mars_envs.judging import CodeJudge, Verdict
from mars_envs.tasks import CodeTask, load_probes, load_tasks, mutated_probes
from mars_envs.tree_search import ROOT, SearchTree
from mars_envs.tree_search.consensus import clusters
from trainers.comparisons import format_p, sign_flip_test
from trainers.policies import load_recordings
from trainers.policies.replay import reply_text
from trainers.statistics import Estimate, mean_estimate, paired_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Chances that the node handed in is solved, for one task."""

    task_id: str
    latest: float
    agreement: Mapping[str, float]
    """By what behaviour is told from."""
    any_solved: bool
    open: bool
    """Whether some, not all, nodes of the highest public score are solved: the choice counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedTask:
    """A task with its public tests, then probes from HumanEval+, then probes of our own making."""

    task: CodeTask
    plus: int
    """How many of its probes are from HumanEval+."""

    def parts(self, signature: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return what of a signature each way to tell behaviour looks at."""
        public = len(self.task.public)
        ours = public + self.plus
        return {
            "public tests only": signature[:public],
            "and HumanEval+ inputs": signature[:ours],
            "and mutated inputs": signature[:public] + signature[ours:],
        }


def probed_tasks(data: Path, count: int) -> list[ProbedTask]:
    """Return the HumanEval tasks that have public tests, with `count` probes of each kind."""
    plus = load_probes(data / "functions/humaneval_plus_mini.jsonl")
    tasks = load_tasks(
        data / "functions/humaneval.jsonl",
        public_tests=data / "functions/humanevalpack_bugs.jsonl",
    )
    found: list[ProbedTask] = []
    for task in tasks:
        if not task.oracle:
            given = plus.get(task.task_id, ())[:count]
            probes = (*given, *mutated_probes(task, count))
            found.append(ProbedTask(task=replace(task, probes=probes), plus=len(given)))
    return found


def chances(probed: ProbedTask, verdicts: Sequence[Verdict]) -> Outcome:
    """Return the chances of each rule over all orders of `verdicts`."""
    trees: defaultdict[str, SearchTree] = defaultdict(SearchTree)
    for verdict in verdicts:
        for way, signature in probed.parts(verdict.signature).items():
            trees[way].add(ROOT, "recorded", replace(verdict, signature=signature))
    top = max(verdict.score for verdict in verdicts)
    candidates = [verdict.solved for verdict in verdicts if verdict.score == top]
    return Outcome(
        task_id=probed.task.task_id,
        latest=_share(candidates),
        agreement={way: _of_largest(tree, top, candidates) for way, tree in trees.items()},
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


def study(
    data: Path, recordings: str, *, tasks: int | None, probes: int, sandbox: str
) -> list[Outcome]:
    """Judge the recordings of one file and return what each rule would have handed in.

    Args:
        data: the folder of recorded data.
        recordings: name of a file below `generations`, without its ending.
        tasks: only the first so many.
        probes: of each kind.
        sandbox: where programs run.
    """
    judge = CodeJudge(sandbox, probes=2 * probes)
    recorded = load_recordings(data / "generations" / f"{recordings}.jsonl")
    known = [each for each in probed_tasks(data, probes) if each.task.task_id in recorded][:tasks]
    outcomes: list[Outcome] = []
    for each in track(known, description=recordings):
        task = each.task
        replies = [reply_text(one, prefix=task.statement) for one in recorded[task.task_id]]
        outcomes.append(chances(each, [judge.judge(task, reply) for reply in replies]))
    return outcomes


def report(recordings: str, outcomes: Sequence[Outcome]) -> str:
    """Return the figures as lines of text."""
    latest = [outcome.latest for outcome in outcomes]
    lines = [
        f"{recordings}: {len(outcomes)} tasks, {sum(o.open for o in outcomes)} of them with an "
        "open choice; mean over tasks [95 % bootstrap interval], p of a sign-flip test",
        f"  {'latest':<34} {_shown(mean_estimate(latest))}",
    ]
    for way in outcomes[0].agreement:
        values = [outcome.agreement[way] for outcome in outcomes]
        gain = _shown(paired_difference(values, latest), signed=True)
        p_value = format_p(sign_flip_test(values, latest))
        lines.append(
            f"  {'agreement: ' + way:<34} {_shown(mean_estimate(values))}   gain {gain} {p_value}"
        )
    solved = [float(outcome.any_solved) for outcome in outcomes]
    lines.append(f"  {'any node solved (Pass@N)':<34} {_shown(mean_estimate(solved))}")
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
    parser.add_argument("--probes", type=int, default=16, help="of each kind (default: 16)")
    parser.add_argument("--sandbox", default="auto", help="where programs run (default: auto)")
    options = parser.parse_args(arguments)
    found: list[list[Outcome]] = []
    for recordings in options.recordings:
        outcomes = study(
            options.data,
            recordings,
            tasks=options.tasks,
            probes=options.probes,
            sandbox=options.sandbox,
        )
        print(report(recordings, outcomes), flush=True)
        found.append(outcomes)
    return found


if __name__ == "__main__":
    main()
