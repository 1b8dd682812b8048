"""Answers judged once each, and kept: trees that replay them need no sandbox any more."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from ..errors import JudgeUnavailable
from ..judging.base import Judge, Verdict
from ..tasks.code import CodeTask
from ..tree_search.tree import verdict_from_json
from .console import progress
from .grid import CellLog

_FIELDS = [field.name for field in dataclasses.fields(Verdict)]
"""What a verdict says; one from before something was added to it is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What is known of a set of answers."""

    known: Mapping[tuple[str, str], Verdict]
    """By task id and reply."""
    failures: Mapping[tuple[str, str], str]
    """Why those that have no verdict have none."""
    reused: int
    """How many were known before."""


def judge_all(
    replies: Iterable[tuple[CodeTask, str]],
    judge: Judge,
    *,
    log: Path,
    workers: int | None = None,
) -> Verdicts:
    """Judge every reply that the log does not know, several at once, and add it to the log.

    Args:
        replies: each with its task; the same one twice is judged once.
        judge: is called from several threads.
        log: a file of verdicts. They hold for the task as it is: when its tests change, they are
            not used.
        workers: how many are judged at once; default: one per core.
    """
    wanted = {_key(task, reply): (task, reply) for task, reply in replies}
    file = CellLog(log)
    records, _ = file.resume(wanted.keys())
    verdicts: dict[str, Verdict] = {}
    for key, record in records.items():
        with contextlib.suppress(TypeError, KeyError, ValueError):  # damaged: judged again
            verdicts[key] = verdict_from_json(record)
    reused = len(verdicts)
    failures: dict[str, str] = {}
    missing = [key for key in wanted if key not in verdicts]
    if missing:
        threads = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="judge")
        with progress() as bar:
            line = bar.add_task("judge answers", total=len(missing), note="")
            try:
                futures = {threads.submit(judge.judge, *wanted[key]): key for key in missing}
                for future in as_completed(futures):
                    key = futures[future]
                    try:
                        verdict = dataclasses.replace(future.result(), cached=False)
                    except JudgeUnavailable as failure:
                        failures[key] = str(failure)
                    else:
                        verdicts[key] = verdict
                        file.append(key, dataclasses.asdict(verdict))
                    note = f"{len(failures)} failed" if failures else ""
                    bar.update(line, advance=1, note=note)
            finally:
                threads.shutdown(cancel_futures=True)
    return Verdicts(
        known={_place(wanted[key]): verdict for key, verdict in verdicts.items()},
        failures={_place(wanted[key]): reason for key, reason in failures.items()},
        reused=reused,
    )


def _place(item: tuple[CodeTask, str]) -> tuple[str, str]:
    return item[0].task_id, item[1]


def _key(task: CodeTask, reply: str) -> str:
    text = repr((task, reply, _FIELDS))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
