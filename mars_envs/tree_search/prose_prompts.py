"""Prompts in prose, for chat models: single user messages that restate all that matters."""

from __future__ import annotations

from ..judging.base import CaseFeedback, Feedback
from ..tasks.code import CodeTask
from .prompts import ParentView

INPUT_LIMIT, EXPECTED_LIMIT, ACTUAL_LIMIT, ERROR_LIMIT = 300, 200, 200, 800
"""Longest excerpts, in characters."""

_STATUS = {
    "accepted": "It passes them.",
    "wrong_answer": "Its output is wrong.",
    "memory_limit_exceeded": "It was stopped because it used too much memory.",
    "output_limit_exceeded": "It was stopped because it wrote too much output.",
    "runtime_error": "It failed with a runtime error.",
    "compile_error": "It is not valid Python.",
    "unsupported": "It could not be run here.",
}


def root(task: CodeTask, agent: str) -> str:
    """Ask for a fresh solution: the statement, then the form of the answer."""
    return f"{task.statement.rstrip()}\n\n{_form(task)}\n"


def refine(task: CodeTask, parent: ParentView, agent: str) -> str:
    """Ask for a better version of an earlier answer, with what the public tests said about it."""
    parts = [
        task.statement.rstrip(),
        "An earlier answer was:",
        parent.reply.strip() or "(an empty reply)",
    ]
    if parent.told:
        parts.append(outcome(task, parent.feedback))
    if parent.feedback.failure is not None and task.show_tests:
        parts.append(first_failure(parent.feedback.failure))
    if not parent.told:
        parts.append("Check the earlier answer, and write a better one.")
    elif parent.solved_public:
        parts.append(
            "Solve the task again, deriving the solution independently, and make it robust: tests "
            "that are not shown may be larger or unusual."
        )
    else:
        parts.append("Find out what is wrong with the earlier answer, and write a better one.")
    parts.append(_form(task))
    return "\n\n".join(parts) + "\n"


def excerpt(text: str, limit: int) -> str:
    """Return `text`, or its head and tail around a note of how much was left out.

    Example:
        >>> excerpt("abcdefghij", 4)
        'ab[… 6 characters left out …]ij'
    """
    if len(text) <= limit:
        return text
    head = limit - limit // 2
    tail = limit - head
    note = f"[… {len(text) - limit} characters left out …]"
    return f"{text[:head]}{note}{text[len(text) - tail :]}"


def _form(task: CodeTask) -> str:
    if task.entry_point:
        what = f"a Python 3 program that defines the function `{task.entry_point}`"
    else:
        what = "a Python 3 program that reads standard input and writes standard output"
    return f"Write {what}. Reply with one full program in one ```python fence."


def outcome(task: CodeTask, feedback: Feedback) -> str:
    """Say in one or two sentences how an answer did on the public tests."""
    if feedback.status == "no_code":
        return "No program was found in that reply."
    count = f"It passes {feedback.passed} of {feedback.total} public tests."
    if feedback.passed >= feedback.total:
        return count
    if feedback.status == "time_limit_exceeded":
        return (
            f"{count} It was stopped at the time limit of {task.time_limit_s:g} s of CPU time for "
            "each test."
        )
    return f"{count} {_STATUS.get(feedback.status, feedback.status)}"


def first_failure(failure: CaseFeedback) -> str:
    """Show the first public test that fails, in excerpts."""
    lines = ["The first public test that fails:"]
    for title, text, limit in (
        ("Input", failure.input, INPUT_LIMIT),
        ("Expected output", failure.expected, EXPECTED_LIMIT),
        ("Actual output", failure.actual, ACTUAL_LIMIT),
        ("Error", failure.error, ERROR_LIMIT),
    ):
        # An empty actual output is news where another was expected; other empty parts are not.
        if text or (title == "Actual output" and failure.expected and not failure.error):
            lines += [f"{title}:", excerpt(text.rstrip("\n"), limit) or "(nothing)"]
    return "\n".join(lines)
