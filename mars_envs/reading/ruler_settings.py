"""RULER's synthetic tasks: which there are, and the settings that make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ..errors import InvalidSetting
from .haystacks import SecretKind
from .synthetic.settings import (
    LONGEST,
    Order,
    check_choices,
    check_depths,
    check_numbers,
    settings_from,
)

FILE: Final = "file:"
"""Of a haystack that is the lines of a file; its path follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulerSettings:
    """Settings of a generator of RULER's tasks.

    Raises:
        InvalidSetting: one of them has a value that it cannot have.
    """

    tokens: int = 8_000
    """Tokens of a document."""
    n: int = 100
    """Tasks."""
    seed: int = 0
    """Tasks of another seed are other tasks."""
    tokenizer: Any = "words"
    """Whose tokens are counted: exactly those of "words", to 1 % those of any other."""
    haystack: str = "repeat"
    """`repeat`: five short sentences over and over; `needles`: other needles; `grammar`: prose of
    the synthetic tasks, where RULER has essays; `file:PATH`: the lines of a text file."""
    keys: int = 1
    """`niah`: keys in the text."""
    values: int = 1
    """`niah`: values that each key has."""
    queries: int = 1
    """`niah`: keys that are asked for."""
    key_type: SecretKind = "words"
    """`niah`: what keys are."""
    value_type: SecretKind = "numbers"
    """`niah`: what values are."""
    depths: tuple[float, ...] | None = None
    """`niah`, `vt`: where the evidence stands, 0 the start and 1 the end; None: any of 40 places
    (`vt`: anywhere)."""
    hops: int = 4
    """`vt`: copies in a chain; it has one variable more."""
    chains: int = 1
    """`vt`: chains; one is asked for."""
    order: Order = "forward"
    """`vt`: of the chain."""
    alpha: float = 2.0
    """`fwe`: the exponent of the Zipf law; the larger, the easier."""
    words: int = 1_000
    """`fwe`: of the vocabulary."""

    def __post_init__(self) -> None:
        check_numbers(
            self,
            tokens=(64, LONGEST),
            n=(1, None),
            keys=(1, 64),
            values=(1, 16),
            queries=(1, 64),
            hops=(0, 64),
            chains=(1, 16),
            words=(8, 100_000),
        )
        check_choices(self, "key_type", "value_type", "order")
        check_depths(self.depths)
        if self.queries > self.keys:
            raise InvalidSetting(f"{self.queries} queries need as many keys, there are {self.keys}")
        if not 1.1 <= self.alpha <= 8:
            raise InvalidSetting(f"alpha is from 1.1 to 8, got {self.alpha}")
        known = ("repeat", "needles", "grammar")
        if self.haystack not in known and not self.haystack.startswith(FILE):
            raise InvalidSetting(
                f"haystack is {', '.join(known)} or {FILE}PATH, got {self.haystack!r:.80}"
            )


_ESSAY: Final = {"haystack": "grammar"}

RULER_TASKS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "niah": {},
        "niah_single_1": {},
        "niah_single_2": _ESSAY,
        "niah_single_3": {**_ESSAY, "value_type": "uuids"},
        "niah_multikey_1": {**_ESSAY, "keys": 4},
        "niah_multikey_2": {"haystack": "needles"},
        "niah_multikey_3": {"haystack": "needles", "key_type": "uuids", "value_type": "uuids"},
        "niah_multivalue": {**_ESSAY, "values": 4},
        "niah_multiquery": {**_ESSAY, "keys": 4, "queries": 4},
        "vt": {},
        "fwe": {},
    }
)
"""The tasks by name, and the settings that make them."""

_OPTIONS: Final = {
    "niah": ("haystack", "keys", "values", "queries", "key_type", "value_type", "depths"),
    "vt": ("haystack", "hops", "chains", "order", "depths"),
    "fwe": ("alpha", "words"),
}
_COMMON: Final = ("tokens", "n", "seed", "tokenizer")


def ruler_settings(name: str, options: Mapping[str, Any]) -> RulerSettings:
    """Return the settings of a task, with some of them changed.

    Args:
        name: one of `RULER_TASKS`.
        options: those that tasks of its kind have; words, as from a command line, are taken for
            values.

    Raises:
        InvalidSetting: no such task or option, or a value that it cannot have.
    """
    if name not in RULER_TASKS:
        raise InvalidSetting(
            f"no task {name!r:.80} of RULER here; there are {', '.join(RULER_TASKS)}"
        )
    given = settings_from(RulerSettings, options)
    known = (*_COMMON, *_OPTIONS[name.partition("_")[0]])
    for option in given:
        if option not in known:
            raise InvalidSetting(f"{name} has no {option!r:.80}; it has {', '.join(known)}")
    said = {key: value for key, value in given.items() if value is not None}
    return RulerSettings(**{**RULER_TASKS[name], **said})
