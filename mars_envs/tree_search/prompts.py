"""What a coder is told. A set of prompts is any object, or module, with these two functions.

Shared text comes first (the statement, then the parent's reply as it stood, then the feedback), so
that siblings share prefixes in the server's cache and in trie-packed training batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..judging.base import Feedback
from ..tasks.code import CodeTask


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentView:
    """What a refinement may know of the node that it refines."""

    reply: str
    """The parent's reply exactly as its author gave it."""
    program: str
    """The program as executed; empty where the reply held none."""
    feedback: Feedback
    solved_public: bool
    """Whether every public test passed."""


class Prompts(Protocol):
    """A set of prompt templates."""

    def root(self, task: CodeTask, agent: str) -> str:
        """Ask for a fresh solution."""
        ...

    def refine(self, task: CodeTask, parent: ParentView, agent: str) -> str:
        """Ask for a better version of `parent`."""
        ...
