"""Documents in pieces: a stretch is read from the pieces that it touches, and from no others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .document import digest_of


class PiecedDocument(ABC):
    """Base of documents that make or fetch their text a piece at a time."""

    @property
    @abstractmethod
    def _bounds(self) -> NDArray[np.int64]:
        """Where each piece starts, and where the last one ends, in characters: [pieces + 1]."""

    @abstractmethod
    def _join(self, first: int, last: int) -> str:
        """Return the text of the pieces from `first` up to `last`."""

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def read(self, start: int, end: int) -> str:
        """Return the characters from `start` up to `end`."""
        start, end = max(0, start), min(end, len(self))
        if start >= end:
            return ""
        bounds = self._bounds
        first = int(np.searchsorted(bounds, start, side="right")) - 1
        last = int(np.searchsorted(bounds, end, side="left"))
        before = int(bounds[first])
        return self._join(first, last)[start - before : end - before]

    def texts(self) -> Iterator[str]:
        """Yield all of it, a piece at a time: what a writer streams."""
        return (self._join(piece, piece + 1) for piece in range(len(self._bounds) - 1))

    @property
    def digest(self) -> str:
        """A short name of its content, from reading all of it once."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_of(self.texts())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it changes
