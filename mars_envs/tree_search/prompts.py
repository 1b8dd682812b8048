"""What a coder is told. A set of prompts is any object, or module, with these two functions.

Shared text comes first (the statement, then the parent's reply as it stood, then the feedback), so
that siblings share prefixes in the server's cache and in trie-packed training batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

from ..importing import import_object, is_importable
from ..judging.base import Feedback
from ..tasks.code import CodeTask

PROMPT_SETS = {
    "prose": "mars_envs.tree_search.prose_prompts",
    "compact": "mars_envs.tree_search.compact_prompts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentView:
    """What a refinement may know of the node that it refines (see `feedback_level`)."""

    reply: str
    """The parent's reply exactly as its author gave it."""
    program: str
    """The program as executed; empty where the reply held none."""
    feedback: Feedback
    """Reduced to what may be told; empty, with 0 of 0 tests, where `told` is false."""
    solved_public: bool
    """Whether every public test passed; false where `told` is false."""
    told: bool = True
    """Whether anything may be told about how the parent did."""


class Prompts(Protocol):
    """A set of prompt templates."""

    def root(self, task: CodeTask, agent: str) -> str:
        """Ask for a fresh solution."""
        ...

    def refine(self, task: CodeTask, parent: ParentView, agent: str) -> str:
        """Ask for a better version of `parent`."""
        ...


def resolve_prompts(prompts: str | Prompts) -> Prompts:
    """Return the set of prompts that is named or given.

    Args:
        prompts: "prose" (for chat models), "compact" (for tiny models), an importable
            "module:name", the dotted name of a module, or an object with `root` and `refine`.

    Raises:
        ValueError: an unknown name, or an object without these two functions.
    """
    found: Any = prompts
    if isinstance(prompts, str):
        if prompts in PROMPT_SETS:
            found = _module(PROMPT_SETS[prompts])
        elif is_importable(prompts):
            found = import_object(prompts)
        elif "." in prompts:
            found = _module(prompts)
        else:
            raise ValueError(
                f"unknown prompts {prompts!r}; expected one of {', '.join(PROMPT_SETS)}, a module "
                "with `root` and `refine`, or 'module:name'"
            )
    if isinstance(found, type):
        found = found()
    missing = [name for name in ("root", "refine") if not callable(getattr(found, name, None))]
    if missing:
        raise ValueError(f"{prompts!r} is no set of prompts: it lacks {', '.join(missing)}")
    return cast(Prompts, found)


def _module(name: str) -> Any:
    import importlib

    return importlib.import_module(name)
