"""Generated tasks as a lazy sequence: each is built when it is asked for, the same every time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, overload

from ..task import ReadingTask
from ..tokenizers import Tokenizer, WordTokenizer, resolve_tokenizer
from .calibrate import build_to_length, tokens_per_word


class Recipe(Protocol):
    """How tasks are built; plain data, so that it can go to another process."""

    @property
    def tokens(self) -> int:
        """Of every document."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Counts them; see `resolve_tokenizer`."""
        ...

    def task_id(self, index: int) -> str:
        """Return the name of a task."""
        ...

    def build(self, index: int, words: int, ratio: float) -> ReadingTask:
        """Build a task.

        Args:
            index: which.
            words: tokens of its document, of the tokenizer "words".
            ratio: how many tokens of `tokenizer` a word has.
        """
        ...

    def sample(self, words: int) -> ReadingTask:
        """Build a task to measure how many tokens its words have; evidence may stand anywhere."""
        ...


class SyntheticTasks(Sequence[ReadingTask]):
    """Generated tasks.

    Args:
        recipe: how they are built.
        indices: which.
    """

    def __init__(self, recipe: Recipe, indices: range) -> None:
        self.recipe = recipe
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> SyntheticTasks: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | SyntheticTasks:
        if isinstance(index, slice):
            return SyntheticTasks(self.recipe, self._indices[index])
        number = self._indices[index]
        if isinstance(self._tokenizer, WordTokenizer):
            return self.recipe.build(number, self.recipe.tokens, 1.0)
        build = functools.partial(self.recipe.build, number, ratio=self._ratio)
        return build_to_length(build, self.recipe.tokens, self._tokenizer, self._ratio)

    @property
    def ids(self) -> Sequence[str]:
        """Of the tasks, in order; none of them is built for it."""
        return [self.recipe.task_id(number) for number in self._indices]

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return resolve_tokenizer(self.recipe.tokenizer)

    @cached_property
    def _ratio(self) -> float:
        """Tokens of a word."""
        return tokens_per_word(self.recipe.sample, self._tokenizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return SyntheticTasks, (self.recipe, self._indices)

    def __repr__(self) -> str:
        first = self.recipe.task_id(self._indices[0]) if self._indices else "none"
        return f"SyntheticTasks({len(self)} of {self.recipe.tokens} tokens, from {first})"
