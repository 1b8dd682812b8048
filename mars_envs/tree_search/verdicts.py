"""What a verdict must be before a tree takes it in: judges may be anybody's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..judging.base import Feedback, Verdict


def check_verdict(verdict: Any, agent: str) -> None:
    """Refuse a verdict that infos, prompts or statistics could not be made of.

    Args:
        verdict: what the judge said.
        agent: whose text it was about.

    Raises:
        ValueError: it is no verdict, or a part of it is out of range or of another type.
    """
    if not isinstance(verdict, Verdict):
        raise ValueError(f"a judge must give a Verdict, got {verdict!r:.200} for {agent}")
    score = verdict.score
    if not (isinstance(score, int | float | np.number) and 0.0 <= float(score) <= 1.0):
        raise ValueError(f"a judge must give scores in [0, 1], got {score!r} for {agent}")
    if not isinstance(verdict.solved, bool | np.bool_):
        raise ValueError(f"`solved` of a verdict is a bool, got {verdict.solved!r} for {agent}")
    passed, total = verdict.public_passed, verdict.public_total
    counts = isinstance(passed, int | np.integer) and isinstance(total, int | np.integer)
    if not (counts and 0 <= passed <= total):
        raise ValueError(
            "`public_passed` of a verdict is a number of tests, at most `public_total`, got "
            f"{passed!r} of {total!r} for {agent}"
        )
    if not isinstance(verdict.status, str):
        raise ValueError(f"`status` of a verdict is a word, got {verdict.status!r} for {agent}")
    if not isinstance(verdict.feedback, Feedback):
        raise ValueError(
            f"`feedback` of a verdict is a Feedback, got {verdict.feedback!r:.200} for {agent}"
        )
