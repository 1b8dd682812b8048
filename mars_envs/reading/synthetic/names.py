"""Names that nobody has: pronounceable, all of one length, each with a number.

A name is three syllables and a final consonant ("Bamodun"), seven letters. As all are equally long,
none is a part of another, so looking for one in a text never finds a different one. Names are split
by a rule over their syllables: both splits have all syllables, and no name is in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting

NameSplit = Literal["train", "held_out"]

LENGTH: Final = 7
"""Letters of every name."""
FIRST_YEAR: Final = 1200
YEARS: Final = 800
"""As many from the first one on."""
CONSONANTS: Final = "bdfghjklmnprstvz"
VOWELS: Final = "aeiou"
FINALS: Final = "lmnrsx"

_SYLLABLES: Final = tuple(c + v for c in CONSONANTS for v in VOWELS)
_HEADS: Final = tuple((a + b).capitalize() for a in _SYLLABLES for b in _SYLLABLES)
_TAILS: Final = tuple(s + f for s in _SYLLABLES for f in FINALS)
_CLASSES: Final = 5  # a name is held out if head and tail add up to a multiple of this
_SPREAD: Final = 1_000_003  # a prime: small vocabularies take their names from all over

REAL: Final = (
    *("Bolivar", "Demeter", "Genesis", "Jupiter", "Lebanon", "Magadan", "Matador", "Nemesis"),
    *("Paradox", "Pokemon", "Ramadan", "Salomon", "Senegal", "Seminar", "Solomon", "Taliban"),
)
"""Some of the names of this form that mean something; these are never used."""


@dataclass(frozen=True)
class Names:
    """The names of a split, numbered from 0.

    Args:
        split: which.
        limit: only so many of them: a closed vocabulary. None: all, half a million and more.

    Raises:
        InvalidSetting: fewer than 16 or more than there are.

    Example:
        >>> Names("train").word(0)
        'Bababam'
    """

    split: NameSplit
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and not 16 <= self.limit <= self._all:
            raise InvalidSetting(
                f"a closed vocabulary has 16 to {self._all:,} names, got {self.limit}"
            )

    @property
    def _all(self) -> int:
        share = 1 if self.split == "held_out" else _CLASSES - 1
        return len(_HEADS) * len(_TAILS) // _CLASSES * share

    @cached_property
    def size(self) -> int:
        """How many there are."""
        return self._all if self.limit is None else self.limit

    def word(self, index: int) -> str:
        """Return a name by its number."""
        return self.words([index])[0]

    def words(self, indices: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Return names by their numbers."""
        heads, tails = self._parts(np.asarray(indices, np.int64))
        return [_HEADS[h] + _TAILS[t] for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]

    def near(self, index: int) -> list[int]:
        """Return the names of the split that differ from one in a single letter.

        None in a closed vocabulary: whether one is there is up to chance.
        """
        if self.limit is not None:
            return []
        word = self.word(index).lower()
        kinds = (CONSONANTS, VOWELS) * 3 + (FINALS,)
        changed = [
            word[:place] + letter + word[place + 1 :]
            for place, kind in enumerate(kinds)
            for letter in kind
            if letter != word[place]
        ]
        found = [self._index(other) for other in changed if other.capitalize() not in REAL]
        return [number for number in found if number is not None]

    @cached_property
    def barred(self) -> tuple[int, ...]:
        """Those that are never used, as they mean something."""
        if self.limit is None:
            found = [self._index(word.lower()) for word in REAL]
            return tuple(number for number in found if number is not None)
        return tuple(i for i, word in enumerate(self.words(range(self.limit))) if word in REAL)

    def _parts(self, indices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the heads and tails of names."""
        if self.limit is not None:
            indices = indices * _SPREAD % self._all
        if self.split == "held_out":
            heads, nth = np.divmod(indices, len(_TAILS) // _CLASSES)
            return heads, nth * _CLASSES + -heads % _CLASSES
        heads, nth = np.divmod(indices, len(_TAILS) // _CLASSES * (_CLASSES - 1))
        group, kind = np.divmod(nth, _CLASSES - 1)
        return heads, group * _CLASSES + (kind + 1 - heads) % _CLASSES

    def _index(self, word: str) -> int | None:
        """Return the number of a name of lower-case letters, if it is of this split."""
        head = _HEAD_NUMBER[word[:4].capitalize()]
        group, kind = divmod(_TAIL_NUMBER[word[4:]], _CLASSES)
        place = (kind + head) % _CLASSES
        if (place == 0) != (self.split == "held_out"):
            return None
        if self.split == "held_out":
            return head * (len(_TAILS) // _CLASSES) + group
        return (head * (len(_TAILS) // _CLASSES) + group) * (_CLASSES - 1) + place - 1


_HEAD_NUMBER: Final = {head: number for number, head in enumerate(_HEADS)}
_TAIL_NUMBER: Final = {tail: number for number, tail in enumerate(_TAILS)}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Five-digit numbers, numbered from 0.

    Args:
        limit: only so many of them.
    """

    limit: int | None = None

    @property
    def size(self) -> int:
        """How many there are."""
        return 90_000 if self.limit is None else min(self.limit, 90_000)

    def value(self, index: int) -> int:
        """Return one of them; they rise."""
        return 10_000 + index * (90_000 // self.size)

    def values(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return several."""
        return 10_000 + indices * (90_000 // self.size)


@dataclass(frozen=True)
class Free:
    """Numbers below `size` without some that are taken, counted through without gaps.

    Example:
        >>> Free(10, (0, 2)).pick(np.arange(3)).tolist()
        [1, 3, 4]
    """

    size: int
    taken: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.taken)) >= self.size:
            raise InvalidSetting(
                f"the vocabulary of {self.size} is used up by the question; give a larger one"
            )

    @cached_property
    def count(self) -> int:
        """How many are left."""
        return self.size - len(self._sorted)

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        return np.array(sorted(set(self.taken)), np.int64)

    def pick(self, nth: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nth ones that are left, counted from 0 and round again at the end."""
        nth = nth % self.count
        before = self._sorted - np.arange(len(self._sorted))
        return nth + np.searchsorted(before, nth, side="right")
