"""`select="agent"`: the acting agent also chooses the node that it expands.

The search still says whose turn it is, and proposes a parent. The agent may take another one: in
an action `{"parent": row, "text": text}`, where row 0 is the root and row i + 1 is node i, or in
the first line of a bare text, `Parent: 3` or `Parent: root`, as a language model writes it. What
names no parent, or one that the mask forbids, expands the proposal: a bad choice is data.
"""

from __future__ import annotations

import operator
import re
from bisect import insort
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tasks.code import CodeTask
from .feedback_level import FeedbackLevel, parent_view
from .prose_prompts import first_failure, outcome
from .tree import NOTHING, ROOT, Node, SearchTree

LISTED = 40
"""The most candidates that a prompt lists, the best and latest ones; the mask may allow more."""
SHOWN = 4
"""The most candidates whose whole reply a prompt shows."""

_PARENT_LINE = re.compile(r"\s*parent\s*:\s*(root|\d+)[ \t\r]*(?:\n|$)", re.IGNORECASE)


def is_open(tree: SearchTree, node_id: int, *, expand_solved: bool) -> bool:
    """Whether a node of the tree, or the root, may be expanded."""
    if node_id == ROOT:
        return True
    known = 0 <= node_id < len(tree)
    return known and (expand_solved or not tree[node_id].solved_public)


def choice_mask(tree: SearchTree, budget: int, *, expand_solved: bool) -> NDArray[np.int8]:
    """Return which rows may be chosen: int8 of shape [budget + 1]."""
    mask = np.zeros(budget + 1, dtype=np.int8)
    if expand_solved:
        mask[: len(tree) + 1] = 1
    else:
        mask[[0, *(node_id + 1 for node_id in tree.unsolved)]] = 1
    return mask


def no_choice(budget: int) -> NDArray[np.int8]:
    """Return the mask of an agent that is not asked: the root alone.

    Its action is ignored; a mask without any row would make a masked softmax NaN.
    """
    mask = np.zeros(budget + 1, dtype=np.int8)
    mask[0] = 1
    return mask


def read_choice(action: Any, budget: int) -> tuple[str, int | None]:
    """Take an action apart: its text, and the id of the parent that it names, if any.

    Args:
        action: `{"parent": row, "text": text}`, or a text that may begin with a `Parent:` line.
        budget: nodes of a tree.

    Returns:
        The text, without its `Parent:` line, and an id, which need not be open or exist.

    Raises:
        TypeError: the action has neither form.
        ValueError: the row is outside of its space.
    """
    if isinstance(action, str):
        return _read_line(action)
    if not isinstance(action, Mapping) or set(action) != {"parent", "text"}:
        what = f"keys {sorted(action)}" if isinstance(action, Mapping) else type(action).__name__
        raise TypeError(f'an action is {{"parent": row, "text": text}} or a text (str), got {what}')
    text = action["text"]
    if not isinstance(text, str):
        raise TypeError(f'action["text"] is a text (str), got {type(text).__name__}')
    try:
        row = operator.index(action["parent"])
    except TypeError:
        got = type(action["parent"]).__name__
        raise TypeError(f'action["parent"] is a whole number, got {got}') from None
    if not 0 <= row <= budget:
        raise ValueError(
            f'action["parent"] is a row: 0 for the root, i + 1 for node i, at most {budget}; got '
            f"{row}"
        )
    return text, row - 1


def _read_line(text: str) -> tuple[str, int | None]:
    found = _PARENT_LINE.match(text)
    if found is None:
        return text, None
    name, rest = found[1], text[found.end() :]
    if name.lower() == "root":
        return rest, ROOT
    return rest, int(name) if len(name) < 10 else NOTHING


class Shortlist:
    """The nodes that may be expanded, ranked as they come: the best, and of equals the latest.

    Args:
        expand_solved: whether nodes that pass every public test may be.
        by_score: rank by the public score, else by age alone.
    """

    def __init__(self, *, expand_solved: bool, by_score: bool) -> None:
        self._expand_solved = expand_solved
        self._by_score = by_score
        self._ranked: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._ranked)

    def add(self, node: Node) -> None:
        """Enter the node that was made last."""
        if self._expand_solved or not node.solved_public:
            insort(self._ranked, (node.score if self._by_score else 0.0, node.id))

    def best(self, k: int) -> list[int]:
        """Return the ids of the best `k`, oldest first."""
        return sorted(node_id for _, node_id in self._ranked[-k:])


def choice_prompt(
    fresh: str, task: CodeTask, tree: SearchTree, candidates: Shortlist, level: FeedbackLevel
) -> str:
    """Return the prompt of an agent that chooses: how to answer, and what there is to improve.

    Args:
        fresh: the prompt of a fresh answer.
        task: what is answered.
        tree: as it stands.
        candidates: nodes that may be expanded; without any, the prompt is that of a fresh answer.
        level: how much may be told about them.
    """
    if not candidates:
        return fresh
    listed = candidates.best(LISTED)
    parts = [fresh.rstrip(), "Earlier answers (number, what it improved, author, result):"]
    parts += ["\n".join(_line(tree[node_id], level) for node_id in listed)]
    if len(candidates) > len(listed):
        parts.append(f"({len(candidates) - len(listed)} more are not listed.)")
    for node_id in candidates.best(SHOWN):
        view = parent_view(tree[node_id], level)
        parts += [f"Answer {node_id}:", view.reply.strip() or "(an empty reply)"]
        if view.told:
            parts.append(outcome(task, view.feedback))
        if view.feedback.failure is not None and task.show_tests:
            parts.append(first_failure(view.feedback.failure))
    parts.append(
        "Improve one of these answers, or write a fresh one. Begin your reply with a line "
        "`Parent: N`, where N is the number of the answer that you improve, or `Parent: root` for "
        "a fresh one; without such a line one is chosen for you. Then answer in full."
    )
    return "\n\n".join(parts) + "\n"


def _line(node: Node, level: FeedbackLevel) -> str:
    parent = "root" if node.parent_id == ROOT else str(node.parent_id)
    words = [str(node.id), parent, node.agent]
    feedback = parent_view(node, level).feedback
    if level == "verdict":
        words.append("right" if feedback.passed else "wrong")
    elif level != "none":
        words.append(f"{feedback.passed} of {feedback.total} tests, {feedback.status}")
    return "  ".join(words)
