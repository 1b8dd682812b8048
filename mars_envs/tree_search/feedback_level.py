"""How much a refinement is told about the answer that it refines.

    none     that there is an earlier answer, and nothing about how it did
    verdict  whether it passes every public test: what the released MARS² code shows
    summary  how many public tests it passes, and how it failed
    full     also the first public test that fails, with input, outputs and error (MARS²-T+)

Hidden tests are in none of them. Fresh answers are told nothing at any level, so that they differ.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from ..judging.base import Feedback
from .prompts import ParentView
from .tree import Node

FeedbackLevel = Literal["none", "verdict", "summary", "full"]
LEVELS: tuple[FeedbackLevel, ...] = get_args(FeedbackLevel)


def check_level(level: str) -> FeedbackLevel:
    """Return `level` if it is one.

    Raises:
        ValueError: it is none.
    """
    for known in LEVELS:
        if level == known:
            return known
    raise ValueError(f"feedback_level must be one of {', '.join(LEVELS)}, got {level!r}")


def reduce_feedback(feedback: Feedback, level: FeedbackLevel) -> Feedback:
    """Return what of `feedback` may be known at a level.

    Example:
        >>> feedback = Feedback(passed=1, total=3, status="runtime_error")
        >>> reduce_feedback(feedback, "verdict")
        Feedback(passed=0, total=1, status='wrong_answer', failure=None)
        >>> reduce_feedback(feedback, "none")
        Feedback(passed=0, total=0, status='', failure=None)
    """
    if level == "full":
        return feedback
    if level == "summary":
        return dataclasses.replace(feedback, failure=None)
    if level == "none":
        return Feedback(passed=0, total=0, status="")
    # One "test" that stands for all of them, as in the released code.
    right = feedback.passed >= feedback.total
    return Feedback(
        passed=int(right), total=1, status="accepted" if right else "wrong_answer", failure=None
    )


def parent_view(node: Node, level: FeedbackLevel) -> ParentView:
    """Return all that the prompt of a refinement may draw on."""
    return ParentView(
        reply=node.reply,
        program=node.verdict.program,
        feedback=reduce_feedback(node.verdict.feedback, level),
        solved_public=node.solved_public and level != "none",
        told=level != "none",
    )
