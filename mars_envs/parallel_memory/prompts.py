"""What a model is told. A set of prompts is any object, or module, with functions of these views.

A view says all that a prompt may depend on: no turn, no name of an agent, nothing drawn by chance.
So whatever is told twice is told in the same words, and a prefix cache finds it: what is shared
comes first (question, then chunk, then memory), see `MemorySettings.order`.

A document may hold anything, our own tags included. A set must not let a text close the section
that it stands in: "prose" defuses tags, "compact" puts each text on one line.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidSetting
from ..importing import import_object, is_importable
from .settings import Order, Style

PROMPT_SETS = {
    "prose": "mars_envs.parallel_memory.prose_prompts",
    "compact": "mars_envs.parallel_memory.compact_prompts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadView:
    """A reader's chunk."""

    question: str
    memory: str
    """Empty: nothing is known yet."""
    chunk: str
    label: str
    """Which chunk, of how many: `3/64`."""
    order: Order = "question_chunk_memory"
    style: Style = "default"
    check: bool = True
    """Whether to ask if there is anything new; else for a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeView:
    """What was found, for a merger."""

    question: str
    memory: str
    """To be merged with the notes; empty: nothing is known yet, or a later merge has it."""
    notes: Sequence[str]
    labels: Sequence[str]
    """Where each note is from: `3/64`, of a merged note `3-9/64`."""
    memory_tokens: int
    """The most that the merged memory should have."""
    style: Style = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """What the answerer knows: no chunk is among it."""

    question: str
    memory: str
    style: Style = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateView:
    """A recurrent reader's chunk: it replies with the whole new memory."""

    question: str
    memory: str
    chunk: str
    label: str
    memory_tokens: int
    order: Order = "question_chunk_memory"
    style: Style = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectView:
    """Passages to answer from at once: a whole document, or what was retrieved."""

    question: str
    passages: Sequence[str]
    labels: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBookView:
    """A question, and nothing to look it up in."""

    question: str


def _lacking(view: Any) -> str:
    raise InvalidSetting(
        f"this set of prompts has no function for a {type(view).__name__}; give one that has, or "
        "name it in `needs` of resolve_prompts to learn of it earlier"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """A set of prompts: functions that render views into one user message.

    A set need not have all of them; one that is lacking raises `InvalidSetting` when called.
    """

    read: Callable[[ReadView], str] = _lacking
    merge: Callable[[MergeView], str] = _lacking
    answer: Callable[[AnswerView], str] = _lacking
    update: Callable[[UpdateView], str] = _lacking
    """Of a recurrent reader."""
    gated_update: Callable[[UpdateView], str] = _lacking
    """Of a recurrent reader with gates."""
    direct: Callable[[DirectView], str] = _lacking
    """Answer from passages at once."""
    closed_book: Callable[[ClosedBookView], str] = _lacking
    """Answer from what is known anyway."""


FUNCTIONS = tuple(field.name for field in dataclasses.fields(Prompts))


def resolve_prompts(
    prompts: Any = "prose", *, needs: Sequence[str] = ("read", "merge", "answer")
) -> Prompts:
    """Return the set of prompts that is named or given.

    Args:
        prompts: "prose" (for chat models), "compact" (for tiny models), an importable
            "module:name", the dotted name of a module, or an object with such functions.
        needs: the functions that it must have.

    Raises:
        InvalidSetting: an unknown name, or a set that lacks what is needed.
    """
    found: Any = prompts
    if isinstance(prompts, str):
        name = PROMPT_SETS.get(prompts, prompts)
        try:
            found = import_object(name) if is_importable(name) else importlib.import_module(name)
        # TypeError: "./prompts.py"; RecursionError: a prompt, whose full stops look like packages.
        except (ImportError, ValueError, TypeError, RecursionError) as error:
            raise InvalidSetting(
                f"unknown prompts {prompts!r:.80} ({error!s:.120}); expected one of "
                f"{', '.join(PROMPT_SETS)}, the name of a module (mine for mine.py), or "
                "'module:name'"
            ) from error
    if isinstance(found, Prompts):
        chosen = found
    else:
        if isinstance(found, type):
            found = found()
        functions = {name: getattr(found, name, None) for name in FUNCTIONS}
        chosen = Prompts(**{name: f for name, f in functions.items() if callable(f)})
    missing = [name for name in needs if getattr(chosen, name) is _lacking]
    if missing:
        raise InvalidSetting(f"{prompts!r:.80} is no set of prompts here: it lacks {missing}")
    return chosen
