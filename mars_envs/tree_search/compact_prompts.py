"""Prompts for models of a hundred thousand parameters: a few dozen characters, no prose.

A root prompt is the short statement; a refinement continues it with the parent's reply as it stood
and one line of feedback, so that the tokens of the root's context stay a prefix:

    mul 3, add ?            (the prompt ends here at the root)
    n=int(input())
    print((n*3)+4)
    in 0 want 7 got 4

The feedback is the first failing public case, else the status, else `ok`.
"""

from __future__ import annotations

from typing import Final

from ..judging.base import Feedback
from ..tasks.code import CodeTask
from ..tasks.tiny_code import BOILERPLATE
from .prompts import ParentView

_TAIL_CHARS: Final = 12
"""Kept of a reply beyond the boilerplate; a program of the family has 7."""
_STRAY_CHARS: Final = 20
"""Kept of a reply that does not start with the boilerplate: there each character is a token."""
_VALUE_CHARS: Final = 6
"""Kept of an input or output; the family's have at most 4."""


def root(task: CodeTask, agent: str) -> str:
    """Ask for a fresh solution; every agent is asked alike."""
    return f"{task.meta.get('compact', task.statement)}\n"


def refine(task: CodeTask, parent: ParentView, agent: str) -> str:
    """Ask for a better version of `parent`."""
    feedback = f"{_feedback_line(parent.feedback)}\n" if parent.told else ""
    return f"{root(task, agent)}{_cut_reply(parent.reply)}\n{feedback}"


def _cut_reply(reply: str) -> str:
    """The reply as it stood, cut where no program of the family reaches."""
    if reply.startswith(BOILERPLATE):
        return reply[: len(BOILERPLATE) + _TAIL_CHARS]
    return reply[:_STRAY_CHARS]


def _feedback_line(feedback: Feedback) -> str:
    failure = feedback.failure
    if failure is None:
        return "ok" if feedback.passed == feedback.total else feedback.status
    if failure.status != "wrong_answer" or not failure.expected:
        return failure.status
    given, wanted, got = (
        text.strip()[:_VALUE_CHARS] for text in (failure.input, failure.expected, failure.actual)
    )
    return f"in {given} want {wanted} got {got}"
