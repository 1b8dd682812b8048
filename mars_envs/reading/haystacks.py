"""Haystacks: running text without end, line by line, to hide something in.

They are what `SyntheticDocument` fills a document up with: blocks of lines, each block a function
of a seed and its number, with lengths that are known without writing it.
"""

from __future__ import annotations

import hashlib
import random
import string
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting
from .synthetic.filler import BLOCK, Filler, Layout
from .synthetic.names import Free, Names, Numbers
from .synthetic.text import Distractors
from .synthetic.topics import RELATIONS
from .words import count_words

SecretKind = Literal["words", "numbers", "uuids"]

NOISE: Final = (
    "The river is wide.",
    "The hills are far away.",
    "The wind is mild today.",
    "We walk on.",
    "Then we come home.",
)
"""Five short sentences that say nothing, said over and over."""

NUMBER_DIGITS: Final = 7
_LETTERS: Final = 6  # of a coded word

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Lines:
    """A haystack of the same lines again and again.

    Args:
        lines: in order; each a line of text.
    """

    lines: tuple[str, ...]

    def lengths(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens and the characters of a block's lines, `[BLOCK]` each."""
        which = self._which(block)
        return self._tokens[which], self._characters[which]

    def render(self, block: int, first: int, last: int) -> list[str]:
        """Write the lines from `first` up to `last` of a block."""
        return [f"{self.lines[i]}\n" for i in self._which(block)[first:last].tolist()]

    def titles(self, block: int) -> list[str]:
        """Return no titles."""
        return [""] * BLOCK

    def _which(self, block: int) -> NDArray[np.int64]:
        return np.arange(block * BLOCK, (block + 1) * BLOCK) % len(self.lines)

    @cached_property
    def _tokens(self) -> NDArray[np.int64]:
        return np.array([count_words(line) for line in self.lines])

    @cached_property
    def _characters(self) -> NDArray[np.int64]:
        return np.array([len(line) + 1 for line in self.lines])


@dataclass(frozen=True, eq=False)
class Generated:
    """A haystack of lines that are made from raw bits, all of one length.

    Args:
        seed: of all of them.
        write: writes lines, each from a row of numbers below 2**64, `[lines, bits]`.
        bits: numbers that a line takes.
    """

    seed: str
    write: Callable[[NDArray[np.uint64]], list[str]]
    bits: int

    def lengths(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens and the characters of a block's lines, `[BLOCK]` each."""
        tokens, characters = self._length
        return np.full(BLOCK, tokens), np.full(BLOCK, characters)

    def render(self, block: int, first: int, last: int) -> list[str]:
        """Write the lines from `first` up to `last` of a block."""
        return [f"{line}\n" for line in self.write(_bits(self, block)[first:last])]

    def titles(self, block: int) -> list[str]:
        """Return no titles."""
        return [""] * BLOCK

    def bits_of(self, block: int) -> NDArray[np.uint64]:
        """Return what a block's lines are made from, `[BLOCK, bits]`."""
        return _bits(self, block)

    @cached_property
    def _length(self) -> tuple[int, int]:
        (line,) = self.render(0, 0, 1)
        return count_words(line), len(line)


@lru_cache(32)
def _bits(haystack: Generated, block: int) -> NDArray[np.uint64]:
    return random_bits(f"{haystack.seed}|{block}", BLOCK * haystack.bits).reshape(BLOCK, -1)


def random_bits(seed: str, count: int) -> NDArray[np.uint64]:
    """Return numbers below 2**64 that only depend on a text."""
    digest = hashlib.sha256(seed.encode()).digest()
    # Raw bits: what NumPy makes of them may change between its versions, they do not.
    raw: NDArray[np.uint64] = np.random.PCG64(int.from_bytes(digest[:16])).random_raw(count)
    return raw


@dataclass(frozen=True)
class Secrets:
    """Words, numbers of seven digits, or UUIDs, drawn by their number.

    Args:
        kind: which.
        taken: numbers that are not drawn.
    """

    kind: SecretKind
    taken: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many there are (of UUIDs: as many as need to be told apart)."""
        if self.kind == "words":
            return _NAMES.size
        return 9 * 10 ** (NUMBER_DIGITS - 1) if self.kind == "numbers" else 1 << 62

    def drawn(self, bits: NDArray[np.uint64]) -> list[str]:
        """Return one for each number below 2**64."""
        raw = (bits >> np.uint64(1)).astype(np.int64)
        return self.words(self._free.pick(raw))

    def words(self, numbers: NDArray[np.int64]) -> list[str]:
        """Return them by their numbers."""
        if self.kind == "words":
            return _NAMES.words(numbers)
        if self.kind == "numbers":
            return [str(10 ** (NUMBER_DIGITS - 1) + number) for number in numbers.tolist()]
        return [_uuid(number) for number in numbers.tolist()]

    @property
    def barred(self) -> tuple[int, ...]:
        """Numbers of those that are never used."""
        return _NAMES.barred if self.kind == "words" else ()

    @cached_property
    def _free(self) -> Free:
        return Free(self.size, (*self.taken, *self.barred))


_NAMES: Final = Names("train")


def _uuid(number: int) -> str:
    digest = hashlib.sha256(str(number).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


@dataclass(frozen=True)
class CodedWords:
    """Words without meaning, the k-th of them as frequent as k ** -alpha.

    Args:
        seed: of the vocabulary.
        size: of it.
        alpha: see there.
    """

    seed: str
    size: int
    alpha: float

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Words of six letters, from the most frequent one."""
        draw = seeded(f"{self.seed}|vocabulary")
        letters = string.ascii_lowercase
        return tuple(distinct(self.size, lambda: "".join(draw.choices(letters, k=_LETTERS))))

    def ids(self, bits: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of a word for each number below 2**64."""
        shares = (bits >> np.uint64(11)) / np.float64(1 << 53)
        found = np.searchsorted(self._rising, shares, side="right")
        return np.minimum(found, self.size - 1).astype(np.int64)

    def lines(self, bits: NDArray[np.uint64]) -> list[str]:
        """Return lines of words, one for each row of bits."""
        return [" ".join([self.vocabulary[i] for i in row]) for row in self.ids(bits).tolist()]

    @cached_property
    def _rising(self) -> NDArray[np.float64]:
        weights = np.arange(1, self.size + 1, dtype=np.float64) ** -self.alpha
        rising: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
        return rising


@dataclass(frozen=True)
class Needles:
    """Writes other needles.

    Args:
        keys: what they are about.
        values: what they say of it.
        kind: what values are.
    """

    keys: Secrets
    values: Secrets
    kind: SecretKind

    def lines(self, bits: NDArray[np.uint64]) -> list[str]:
        """Return a needle for each row of two numbers."""
        names, values = self.keys.drawn(bits[:, 0]), self.values.drawn(bits[:, 1])
        return [needle(self.kind, n, v) for n, v in zip(names, values, strict=True)]


def needle(kind: SecretKind, key: str, value: str) -> str:
    """Return the sentence that hides a value."""
    return f"One of the special magic {kind} for {key} is: {value}."


def distinct(count: int, make: Callable[[], Item], barred: Sequence[Item] = ()) -> list[Item]:
    """Return so many different things."""
    found: dict[Item, None] = {}
    while len(found) < count:
        one = make()
        if one not in barred:
            found[one] = None
    return list(found)


def seeded(seed: str) -> random.Random:
    """Return a generator that depends on a text alone."""
    return random.Random(hashlib.sha256(seed.encode()).digest())


def grammar_text(seed: str) -> Distractors:
    """Return prose of the synthetic tasks' grammar: sentences about who is who to whom."""
    names = Names("train")
    return Filler(
        seed=f"{seed}|grammar",
        layout=Layout(RELATIONS, "prose", held_out=False, sentences=4),
        names=names,
        numbers=Numbers(),
        taken_names=names.barred,
        taken_numbers=(),
    )


def file_text(path: str) -> Distractors:
    """Return the lines of a UTF-8 file, blank ones left out, over and over.

    Raises:
        InvalidSetting: it cannot be read, or has no text.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"cannot read the haystack {path}: {error}") from error
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise InvalidSetting(f"the haystack {path} has no text")
    return Lines(lines)
