"""How a document is read, as one frozen record, with presets."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal, get_args

from ..errors import InvalidSetting
from ..wording import did_you_mean

MergeKind = Literal["hierarchical", "flat"]
Order = Literal["question_chunk_memory", "chunk_question_memory", "reference"]
Style = Literal["default", "evidence_only"]
Grammar = Literal["tagged", "released"]
Numbering = Literal["chunk", "kept"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "merge": get_args(MergeKind),
    "order": get_args(Order),
    "style": get_args(Style),
    "grammar": get_args(Grammar),
    "numbering": get_args(Numbering),
}
_LEAST: Mapping[str, int] = {
    "max_turns": 1,
    "memory_tokens": 1,
    "reply_tokens": 1,
    "answer_tokens": 1,
    "window": 1,
    "max_notes": 1,
    "retries": 0,
    "max_failures": 0,
}
_OPTIONAL: Final = {"window", "max_notes", "max_failures"}


def is_number(value: object) -> bool:
    """Return whether a setting is a real number, which True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a value that is a whole number (NumPy's, too) of at least `least`.

    Raises:
        InvalidSetting: it is not.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        optional = " (or None)" if name in _OPTIONAL else ""
        raise InvalidSetting(
            f"{name} must be a whole number of at least {least}{optional}, got {value!r:.80}"
        )
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """How a document is read. Tokens are those of the chunks' tokenizer.

    Raises:
        InvalidSetting: a value that cannot work.
    """

    max_turns: int = 3
    """K: the most times that every chunk is read."""
    memory_tokens: int = 1024
    """B_m: the most that a memory, or an intermediate note of a merge, has."""
    reply_tokens: int = 1024
    """The most that a reader's reply has."""
    answer_tokens: int = 1024
    """The most that an answerer's reply should have; a longer one is flagged, not cut."""
    window: int | None = None
    """Tokens that a model takes, prompt and reply together: the size of a merge, and what chunks
    have to fit in. They are those of the chunks' tokenizer, so give one that is the model's. None:
    no bound, so every merge is one call."""
    merge: MergeKind = "hierarchical"
    """"hierarchical": what does not fit in the window is merged in levels. "flat": always in one
    call, as released."""
    order: Order = "question_chunk_memory"
    """Of the parts of a reading prompt. By default all that comes before the memory stays the same
    over turns and rollouts, so a prefix cache holds it. "chunk_question_memory" shares the chunk
    between questions, too. "reference": question, memory, chunk, as released."""
    style: Style = "default"
    """"evidence_only": readers collect without judging, for multiple choice."""
    grammar: Grammar = "tagged"
    """How replies are read. "released": a reader says no iff `<check>no</check>` occurs anywhere in
    its reply, and whatever else it says goes to the merger whole; see `replies`."""
    strict: bool = False
    """Whether a reader's reply without a tag counts as no. Else it counts as yes, with all of it;
    either way it is flagged."""
    numbering: Numbering = "chunk"
    """How notes are labelled in a merge: by their chunk (`3/64`), or by counting those kept, as
    released, which loses where they are from."""
    budgets: bool = True
    """Whether notes and memory are cut to their budgets. Released code leaves that to the server's
    cap on new tokens."""
    check: bool = True
    """False is the ablation `no_check`: each reader writes a summary, everything is merged, and
    reading ends after `max_turns`."""
    merging: bool = True
    """False is the ablation `no_merge`: notes are put behind the memory as they are."""
    early_exit: bool = True
    """Whether reading ends once no reader finds anything new; False reads `max_turns` times."""
    max_notes: int | None = None
    """The most notes that a turn merges, by their likeness to question and memory (BM25); what is
    left out is counted. None: all."""
    alternate: bool = False
    """Whether every second turn asks for the chunks from the last to the first. A prefix cache that
    is smaller than the document then has the end of it left from the turn before. The outcome is
    the same."""
    retries: int = 2
    """How often a failed call is asked again within its turn before it is given up."""
    max_failures: int | None = None
    """The most reads of an episode that may be given up; one more ends it as `backend_error`. So
    does any other call that is given up: nothing can stand for a merge or an answer. None: half as
    many as there are chunks, and at least 8."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InvalidSetting(f"{name} is one of {choices}, got {getattr(self, name)!r:.80}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            object.__setattr__(self, name, whole_number(name, value, least))
        for field in dataclasses.fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise InvalidSetting(
                    f"{field.name} is True or False, got {getattr(self, field.name)!r:.80}"
                )
        if self.window is not None and self.merge == "hierarchical" and not self.budgets:
            raise InvalidSetting(
                'a window with merge="hierarchical" needs budgets=True: a memory without a budget '
                "may not fit in any window"
            )
        if self.strict and self.grammar == "released":
            raise InvalidSetting(
                'strict=True needs grammar="tagged": released code takes a reply without a tag for '
                "a yes"
            )


MEMORY_PRESETS: Mapping[str, MemorySettings] = {
    "default": MemorySettings(),
    "reference": MemorySettings(
        merge="flat",
        order="reference",
        grammar="released",
        numbering="kept",
        budgets=False,
        retries=0,
        max_failures=0,
    ),
}
"""By name. "reference": what the released workflow does while it trains the 7B: one merge call
whatever it takes, replies read as there, and any failed call ends the episode."""


def memory_settings(preset: str = "default", **changes: Any) -> MemorySettings:
    """Return a preset, with some fields changed.

    Raises:
        InvalidSetting: no such preset or field, or a value that cannot work.

    Example:
        >>> memory_settings("reference", max_turns=1).grammar
        'released'
    """
    if preset not in MEMORY_PRESETS:
        raise InvalidSetting(f"expected a preset of {sorted(MEMORY_PRESETS)}, got {preset!r:.80}")
    known = {field.name for field in dataclasses.fields(MemorySettings)}
    if unknown := sorted(set(changes) - known):
        meant = did_you_mean(unknown, known)
        raise InvalidSetting(f"unknown settings {unknown}{meant}; expected some of {sorted(known)}")
    return dataclasses.replace(MEMORY_PRESETS[preset], **changes)
