"""Choosing tests and tasks: a split of a single set of tests, and windows of days.

A problem is decided by all of its tests; its public part drives the search and gives feedback.
Where a data set has one set only, both share it, unseen, and results are marked `oracle`. A split
gives up some of these tests to be seen, so that the others stay a judge of their own.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime

from .code import CodeTask


def split_tests(task: CodeTask, public_count: int, *, seed: int | None = None) -> CodeTask:
    """Make some tests of an `oracle` task public and the others hidden.

    Args:
        task: returned as it is where its data set has public tests, or where it has no more than
            `public_count` tests, since one at least has to be hidden.
        public_count: how many tests become public, at least 1.
        seed: None: the first ones, which in most data sets are the examples of the statement;
            a number: drawn at random, for each task in its own way.

    Raises:
        ValueError: `public_count` is below 1.
    """
    if public_count < 1:
        raise ValueError(f"public_count must be at least 1, got {public_count!r}")
    tests = task.public
    if not task.oracle or len(tests) <= public_count:
        return task
    chosen: Collection[int] = range(public_count)
    if seed is not None:
        rng = random.Random(f"split/{seed}/{task.task_id}")
        chosen = set(rng.sample(range(len(tests)), public_count))
    return replace(
        task,
        public=tuple(test for index, test in enumerate(tests) if index in chosen),
        hidden=tuple(test for index, test in enumerate(tests) if index not in chosen),
        oracle=False,
        show_tests=True,
    )


def in_window(
    task: CodeTask, *, start: date | None = None, end: date | None = None, difficulty: str = ""
) -> bool:
    """Whether a task is of a difficulty and from a window of days, both ends included.

    Args:
        task: one without a date (in `meta`, as in 2025-01-31), or with another, is in no window.
        start: the first day; None: any.
        end: the last day; None: any.
        difficulty: in the words of the data set, whatever their case; empty: any.
    """
    if difficulty and task.meta.get("difficulty", "").lower() != difficulty.lower():
        return False
    if start is None and end is None:
        return True
    try:
        day = datetime.fromisoformat(task.meta.get("date", "")).date()
    except ValueError:
        return False
    return (start is None or start <= day) and (end is None or day <= end)
