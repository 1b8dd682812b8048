"""What a family of tasks is: how its tasks are drawn, and how their answers are worked out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .grammar import Fact, Topic
from .plan import Draw, Plan

UNKNOWN: Final = "unknown"
"""What to answer where the text does not say."""

Answers = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of tasks."""

    name: str
    summary: str
    """What it tests, in a few words."""
    topic: Topic
    """What its documents are about."""
    plan: Callable[[Draw], Plan]
    """Draws a task."""
    solve: Callable[[str, Sequence[Fact]], Answers | None]
    """Works out the answers to a question from facts; None: they do not determine it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings that only some families have, and other defaults than the usual ones."""
