"""A generated document: it knows how long it is and writes itself when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ..document import Part
from ..pieces import PiecedDocument

_KEPT: Final = 32  # stretches of text that a document keeps
_CACHES: Final = ("_text", "_parts_of")


class Distractors(Protocol):
    """Distractors without end, in blocks of `BLOCK` documents; each the same whenever asked for."""

    def lengths(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens and the characters of a block's documents, `[BLOCK]` each."""
        ...

    def render(self, block: int, first: int, last: int) -> list[str]:
        """Write the documents from `first` up to `last` of a block."""
        ...

    def titles(self, block: int) -> list[str]:
        """Return the titles of a block's documents, empty where they have none."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A stretch that is a document of its own, kept as text."""

    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of distractors of one block."""

    block: int
    first: int
    last: int
    """One beyond the last document of the block that is in it."""


Stretch = Whole | Run


class SyntheticDocument(PiecedDocument):
    """A document that is made of stretches; it holds seeds and lengths, not its text.

    Args:
        filler: where its distractors are from.
        stretches: in order.
        tokens: of all of it, by the tokenizer "words".
    """

    def __init__(self, filler: Distractors, stretches: Sequence[Stretch], *, tokens: int) -> None:
        self.tokens = tokens
        self._filler = filler
        self._stretches = tuple(stretches)
        lengths = self._lengths()
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        counts = [1 if isinstance(s, Whole) else s.last - s.first for s in self._stretches]
        self._firsts = np.concatenate([[0], np.cumsum(np.array(counts, np.int64))])

    @property
    def parts(self) -> Sequence[Part]:
        """Its documents; each is made when it is asked for."""
        return _Parts(self)

    @property
    def _bounds(self) -> NDArray[np.int64]:
        return self._starts

    def _join(self, first: int, last: int) -> str:
        return "".join(self._text(number) for number in range(first, last))

    def texts(self) -> Iterator[str]:
        """Yield all of it, a stretch at a time, and keep none of them."""
        return (self._write(stretch) for stretch in self._stretches)

    def __repr__(self) -> str:
        return f"SyntheticDocument({self.tokens} tokens, {len(self.parts)} parts)"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in _CACHES}

    @cached_property
    def _text(self) -> Any:
        return lru_cache(_KEPT)(lambda number: self._write(self._stretches[number]))

    def _write(self, stretch: Stretch) -> str:
        if isinstance(stretch, Whole):
            return stretch.text
        return "".join(self._filler.render(stretch.block, stretch.first, stretch.last))

    def _lengths(self) -> NDArray[np.int64]:
        return np.array(
            [
                len(s.text)
                if isinstance(s, Whole)
                else int(self._filler.lengths(s.block)[1][s.first : s.last].sum())
                for s in self._stretches
            ],
            np.int64,
        )

    def start_of(self, stretch: int) -> int:
        """Return where a stretch starts, in characters."""
        return int(self._starts[stretch])

    def doc_id_of(self, stretch: int) -> str:
        """Return the name of a stretch's first part."""
        return f"d{self._firsts[stretch]}"

    def part(self, number: int) -> Part:
        """Return a part by its number."""
        place = int(np.searchsorted(self._firsts, number, side="right")) - 1
        part: Part = self._parts_of(place)[number - int(self._firsts[place])]
        return part

    def iter_parts(self) -> Iterator[Part]:
        """Return all parts in order."""
        for place in range(len(self._stretches)):
            yield from self._make_parts(place)

    def count_parts(self) -> int:
        """Return how many parts there are."""
        return int(self._firsts[-1])

    @cached_property
    def _parts_of(self) -> Any:
        return lru_cache(_KEPT)(self._make_parts)

    def _make_parts(self, place: int) -> list[Part]:
        stretch, start = self._stretches[place], int(self._starts[place])
        first = int(self._firsts[place])
        if isinstance(stretch, Whole):
            return [_part(first, start, len(stretch.text), stretch.title)]
        lengths = self._filler.lengths(stretch.block)[1][stretch.first : stretch.last]
        starts = start + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        titles = self._filler.titles(stretch.block)[stretch.first : stretch.last]
        return [
            _part(first + nth, begin, length, title)
            for nth, (begin, length, title) in enumerate(
                zip(starts.tolist(), lengths.tolist(), titles, strict=True)
            )
        ]


class _Parts(Sequence[Part]):
    """The parts of a synthetic document."""

    def __init__(self, document: SyntheticDocument) -> None:
        self._document = document

    def __len__(self) -> int:
        return self._document.count_parts()

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Part]: ...
    def __getitem__(self, index: int | slice) -> Part | Sequence[Part]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"part {index} of {len(self)}")
        return self._document.part(index % len(self))

    def __iter__(self) -> Iterator[Part]:
        return self._document.iter_parts()


def _part(number: int, start: int, length: int, title: str) -> Part:
    return Part(doc_id=f"d{number}", start=start, end=start + length, title=title)
