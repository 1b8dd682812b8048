"""Synthetic tasks: a lazy sequence of them, by the name of a family and its settings."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

from ...errors import InvalidSetting
from ..task import ReadingTask
from ..tokenizers import Tokenizer, WordTokenizer, resolve_tokenizer
from .build import build_task, task_id
from .calibrate import build_to_length, tokens_per_word
from .families import FAMILIES
from .family import Family
from .settings import SyntheticSettings, settings_from

_SPECIAL = ("hops", "queries", "values", "matches", "revisions")
"""Options that only some families have."""


class SyntheticTasks(Sequence[ReadingTask]):
    """Tasks of one family; each is built when it is asked for, and the same every time.

    Args:
        family: of all of them.
        settings: likewise.
        indices: which.
    """

    def __init__(self, family: Family, settings: SyntheticSettings, indices: range) -> None:
        self.family = family
        self.settings = settings
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> SyntheticTasks: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | SyntheticTasks:
        if isinstance(index, slice):
            return SyntheticTasks(self.family, self.settings, self._indices[index])
        build = functools.partial(self._build, self._indices[index])
        if isinstance(self._tokenizer, WordTokenizer):
            return build(self.settings.tokens)
        return build_to_length(build, self.settings.tokens, self._tokenizer, self._ratio)

    @property
    def ids(self) -> Sequence[str]:
        """Of the tasks, in order; none of them is built for it."""
        return [task_id(self.family, self.settings, number) for number in self._indices]

    def _build(self, number: int, words: int) -> ReadingTask:
        return build_task(self.family, self._in_words, number, words)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return resolve_tokenizer(self.settings.tokenizer)

    @cached_property
    def _ratio(self) -> float:
        """Tokens of a word."""
        if isinstance(self._tokenizer, WordTokenizer):
            return 1.0
        anywhere = dataclasses.replace(self.settings, chunk_tokens=None, placement="any")
        return tokens_per_word(
            functools.partial(build_task, self.family, anywhere, 0), self._tokenizer
        )

    @cached_property
    def _in_words(self) -> SyntheticSettings:
        """The settings with words for tokens."""
        chunk = self.settings.chunk_tokens
        if chunk is None:
            return self.settings
        return dataclasses.replace(self.settings, chunk_tokens=max(16, round(chunk / self._ratio)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.family.name, self.settings, self._indices)

    def __repr__(self) -> str:
        return f"SyntheticTasks({self.family.name}, {len(self)} of {self.settings.tokens} tokens)"


def synthetic_tasks(family: str, **options: Any) -> SyntheticTasks:
    """Return the tasks of a family.

    Args:
        family: one of `FAMILIES`: kv, vt, kg2, kg3, compare, count, set, overwrite, none.
        options: see `SyntheticSettings`; words, as from a command line, are taken for values.

    Raises:
        InvalidSetting: no such family or option, or a value that it cannot have.

    Example:
        >>> task = synthetic_tasks("kg2", tokens=1000, n=1)[0]
        >>> task.hops, len(task.evidence), task.document.tokens
        (2, 2, 1000)
    """
    if family not in FAMILIES:
        raise InvalidSetting(f"no synthetic family {family!r}; there are {', '.join(FAMILIES)}")
    found = FAMILIES[family]
    given = settings_from(options)
    for name in _SPECIAL:
        if given.get(name) is not None and name not in found.options:
            having = [f.name for f in FAMILIES.values() if name in f.options]
            raise InvalidSetting(
                f"{family} has no {name!r}; it is an option of {', '.join(having)}"
            )
    # What is set to None is as if it were not said.
    said = {name: value for name, value in given.items() if value is not None}
    settings = SyntheticSettings(**{**found.options, **said})
    return SyntheticTasks(found, settings, range(settings.n))


def _rebuild(family: str, settings: SyntheticSettings, indices: range) -> SyntheticTasks:
    return SyntheticTasks(FAMILIES[family], settings, indices)
