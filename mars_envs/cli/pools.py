"""Judged recordings as pools, for `TreeControl-v0`: its learner chooses among real outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..judging.base import Verdict
from ..tasks.code import CodeTask
from .teams import Team
from .tree_growth import recorded_answers


def write_pools(
    path: Path, team: Team, tasks: Sequence[CodeTask], known: Mapping[tuple[str, str], Verdict]
) -> None:
    """Write what `TreeControlEnv(coders=path)` reads: each task, each agent's judged answers.

    Args:
        path: the file, JSON lines.
        team: of recorded agents.
        tasks: which of theirs.
        known: verdicts by task id and answer; answers without one are left out.
    """
    answers = {agent.label: recorded_answers(agent, tasks) for agent in team.agents}
    lines = []
    for task in tasks:
        pools = {
            label: [
                [verdict.score, verdict.solved]
                for reply in own[task.task_id]
                if (verdict := known.get((task.task_id, reply))) is not None
            ]
            for label, own in answers.items()
        }
        lines.append(json.dumps({"task_id": task.task_id, "pools": pools}, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
