"""What may be said of a synthetic task; every family takes these, and some take more."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import InvalidSetting
from .grammar import Style
from .names import NameSplit

Split = Literal["train", "held_out", "held_out_names", "held_out_templates"]
Order = Literal["random", "forward", "reverse"]
Placement = Literal["different", "same", "any"]
Older = Literal["around", "behind"]

LONGEST = 1 << 25
"""Tokens: well beyond what anybody reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSettings:
    """Settings of a family of tasks.

    Raises:
        InvalidSetting: one of them has a value that it cannot have.
    """

    tokens: int = 8_000
    """Tokens of a document."""
    n: int = 100
    """Tasks."""
    seed: int = 0
    """Tasks of another seed are other tasks. Neither `tokens` nor anything about placement changes
    the question: the same questions can be asked at every length."""
    split: Split = "train"
    """By entity vocabulary and by template: `held_out` has names and sentences that `train` never
    has, `held_out_names` and `held_out_templates` one of them."""
    style: Style = "prose"
    """`compact`: one short form of sentence and no titles, for small models."""
    vocabulary: int | None = None
    """So many names and numbers in all: a closed vocabulary. None: an open one."""
    sentences: int = 4
    """Sentences of a document of the grammar: facts about one subject."""
    decoys: int = 3
    """Documents that look like evidence; what that means is up to the family."""
    chunk_tokens: int | None = None
    """Of the chunks that it will be read in: no evidence then crosses the seam between two chunks
    of so many tokens, and `placement` speaks of these."""
    placement: Placement = "different"
    """Of the evidence. `different`: each passage in a chunk of its own, however the document is
    cut into chunks of at most `chunk_tokens`; without it, each in a stretch of its own. `same`:
    all in one chunk of `chunk_tokens`. `any`: anywhere."""
    order: Order = "random"
    """Where hops stand: `forward` has the first hop first, `reverse` last."""
    depths: tuple[float, ...] | None = None
    """Instead: where each passage stands, in the order of the hops, 0 the start and 1 the end."""
    tokenizer: Any = "words"
    """Whose tokens are counted, see `resolve_tokenizer`: exactly those of "words", to 1 % those of
    any other; of another, `chunk_tokens` are about as many, and seams may cut evidence."""
    hops: int | None = None
    """`vt`: assignments in the chain, each of which needs the one before."""
    queries: int | None = None
    """`kv`: keys that are asked for."""
    values: int | None = None
    """`kv`: values that each key has."""
    matches: int | None = None
    """`set`: members to be found; `count`: at most so many, and at least half of it."""
    revisions: int | None = None
    """`overwrite`: older revisions of what is asked for."""
    older: Older = "around"
    """`overwrite`: where they stand. `around`: at least one behind the latest one, which may be
    overwritten, and any number of the others in front: from two on, only the years tell which
    mention is the answer. `behind`: all of them, and the first mention is the answer."""

    def __post_init__(self) -> None:
        check_numbers(
            self,
            tokens=(64, LONGEST),
            n=(1, None),
            sentences=(1, 8),
            decoys=(0, 16),
            chunk_tokens=(16, None),
            hops=(1, 16),
            queries=(1, 16),
            values=(1, 16),
            matches=(1, 256),
            revisions=(0, 16),
        )
        check_choices(self, "split", "style", "placement", "order", "older")
        if self.placement == "same" and self.chunk_tokens is None:
            raise InvalidSetting("placement='same' needs chunk_tokens: the size of that chunk")
        check_depths(self.depths)

    @property
    def name_split(self) -> NameSplit:
        """Which names are used."""
        return "held_out" if self.split in ("held_out", "held_out_names") else "train"

    @property
    def held_out_templates(self) -> bool:
        """Whether the held-out sentences are used."""
        return self.split in ("held_out", "held_out_templates")


def check_numbers(settings: Any, **limits: tuple[int, int | None]) -> None:
    """Make sure that settings are whole numbers within limits, or None.

    Raises:
        InvalidSetting: one is not.
    """
    for name, (least, most) in limits.items():
        value = getattr(settings, name)
        if value is None:
            continue
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            says = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InvalidSetting(f"{name} is a whole number {says}, got {value!r:.80}")


def check_choices(settings: Any, *names: str) -> None:
    """Make sure that settings are among the words of their types.

    Raises:
        InvalidSetting: one is not.
    """
    hints = typing.get_type_hints(type(settings))
    for name in names:
        choices, value = typing.get_args(hints[name]), getattr(settings, name)
        if value not in choices:
            raise InvalidSetting(f"{name} is one of {', '.join(choices)}, got {value!r:.80}")


def check_depths(depths: tuple[float, ...] | None) -> None:
    """Make sure that depths are shares.

    Raises:
        InvalidSetting: one is not.
    """
    if depths is not None and not all(0 <= depth <= 1 for depth in depths):
        raise InvalidSetting(f"depths are from 0 to 1, got {depths}")


def settings_from(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of settings with words, as a command line has them, made values.

    Several numbers are separated by commas.

    Args:
        kind: the dataclass of the settings.
        options: by name.

    Raises:
        InvalidSetting: an option is unknown, or a word is not a value of it.
    """
    hints = typing.get_type_hints(kind)
    result = {}
    for name, value in options.items():
        if name not in hints:
            raise InvalidSetting(f"no option {name!r:.80} here; there are {', '.join(hints)}")
        result[name] = _value(name, value, hints[name]) if isinstance(value, str) else value
    return result


def _value(name: str, word: str, hint: Any) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    try:
        if int in kinds:
            return int(word)
        if float in kinds:
            return float(word)
        if tuple[float, ...] in kinds:
            return tuple(float(part) for part in word.split(","))
    except ValueError as error:
        kind = "numbers with commas between them"
        kind = "a whole number" if int in kinds else "a number" if float in kinds else kind
        raise InvalidSetting(f"{name} needs {kind}, got {word!r:.80}") from error
    return word
