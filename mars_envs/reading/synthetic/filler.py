"""Distractors: documents of the same grammar about subjects that no question is about.

They come in blocks. A block is a function of the seed and its number, so it is made when it is read
and forgotten afterwards; how long its documents are is known without writing them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .grammar import Style, Template, Topic
from .names import FIRST_YEAR, LENGTH, YEARS, Free, Names, Numbers

BLOCK: Final = 128
"""Documents of a block."""


@dataclass(frozen=True)
class Layout:
    """How facts become documents."""

    topic: Topic
    style: Style
    held_out: bool
    sentences: int

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The sentences that are used."""
        return self.topic.templates(self.style, held_out=self.held_out)

    @property
    def titled(self) -> bool:
        """Whether a document starts with a line that names its subject."""
        return self.style == "prose" and not self.topic.own_subjects

    def write(self, title: str, sentences: Sequence[str]) -> str:
        """Return a document."""
        body = " ".join(sentences)
        return f"{title}\n{body}\n\n" if self.titled else f"{body}\n"


@dataclass(frozen=True, eq=False)
class Filler:
    """Distractors without end, numbered from 0.

    Args:
        seed: of all of them.
        layout: their form.
        names: of subjects and values.
        numbers: of values.
        taken_names: what they must not name.
        taken_numbers: likewise.
        values: names that alone are values; None: any.
    """

    seed: str
    layout: Layout
    names: Names
    numbers: Numbers
    taken_names: tuple[int, ...]
    taken_numbers: tuple[int, ...]
    values: tuple[int, ...] | None = None

    def lengths(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens and the characters of a block's documents, `[BLOCK]` each."""
        columns = _columns(self, block)
        tokens = self._tokens[columns.templates].sum(axis=1)
        characters = self._characters[columns.templates, columns.attributes].sum(axis=1)
        gaps = self.layout.sentences - 1
        if self.layout.titled:
            return tokens + 1, characters + gaps + LENGTH + 3
        return tokens, characters + gaps + 1

    def render(self, block: int, first: int, last: int) -> list[str]:
        """Write the documents from `first` up to `last` of a block."""
        columns = _columns(self, block)
        rows = slice(first, last)
        subjects = self.names.words(columns.subjects[rows].ravel())
        values = self._values(columns, rows)
        years = columns.years[rows].ravel().tolist()
        attributes = self.layout.topic.attributes
        formats = [template.text.format for template in self.layout.templates]
        written = [
            formats[t](s=s, a=attributes[a], v=v, y=y)
            for t, s, a, v, y in zip(
                columns.templates[rows].ravel().tolist(),
                subjects,
                columns.attributes[rows].ravel().tolist(),
                values,
                years,
                strict=True,
            )
        ]
        size = self.layout.sentences
        return [
            self.layout.write(subjects[start], written[start : start + size])
            for start in range(0, len(written), size)
        ]

    def titles(self, block: int) -> list[str]:
        """Return the titles of a block's documents, empty where they have none."""
        if not self.layout.titled:
            return [""] * BLOCK
        return self.names.words(self.subjects(np.arange(block * BLOCK, (block + 1) * BLOCK)))

    def _values(self, columns: _Columns, rows: slice) -> list[str]:
        raw = columns.values[rows].ravel()
        numbers = self._free_numbers.pick(raw)
        if self.values is None:
            names = self._free_names.pick(raw)
        else:
            names = np.array(self.values, np.int64)[raw % len(self.values)]
        kinds = np.array([template.value == "name" for template in self.layout.templates])
        is_name = kinds[columns.templates[rows].ravel()]
        values = self.numbers.values(numbers).astype(str).astype(object)
        values[is_name] = self.names.words(names[is_name])
        result: list[str] = values.tolist()
        return result

    def subjects(self, nth: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return subjects in an order of this seed, each once before any comes again."""
        count = self._free_names.count
        step, start = self._walk
        return self._free_names.pick((nth % count * step + start) % count)

    @cached_property
    def _walk(self) -> tuple[int, int]:
        digest = hashlib.sha256(f"{self.seed}|subjects".encode()).digest()
        count = self._free_names.count
        step = int.from_bytes(digest[:8]) % count
        while np.gcd(step, count) != 1:
            step = (step + 1) % count
        return step, int.from_bytes(digest[8:16]) % count

    @cached_property
    def _free_names(self) -> Free:
        return Free(self.names.size, self.taken_names)

    @cached_property
    def _free_numbers(self) -> Free:
        return Free(self.numbers.size, self.taken_numbers)

    @cached_property
    def _tokens(self) -> NDArray[np.int64]:
        return np.array([template.tokens for template in self.layout.templates])

    @cached_property
    def _characters(self) -> NDArray[np.int64]:
        attributes = self.layout.topic.attributes
        return np.array([[t.characters(a) for a in attributes] for t in self.layout.templates])


@dataclass(frozen=True, slots=True)
class _Columns:
    """Facts of a block, `[BLOCK, sentences]` each."""

    templates: NDArray[np.int64]
    attributes: NDArray[np.int64]
    subjects: NDArray[np.int64]
    values: NDArray[np.int64]
    years: NDArray[np.int64]


@lru_cache(32)  # a block is asked for its lengths and for its text
def _columns(filler: Filler, block: int) -> _Columns:
    digest = hashlib.sha256(f"{filler.seed}|{block}".encode()).digest()
    # Raw bits: what NumPy makes of them may change between its versions, they do not.
    bits = np.random.PCG64(int.from_bytes(digest[:16]))
    size, topic = filler.layout.sentences, filler.layout.topic
    shape = (BLOCK, size)
    draw = bits.random_raw(3 * BLOCK * size).reshape(3, *shape)
    draw = (draw >> np.uint64(1)).astype(np.int64)
    if topic.own_subjects or len(topic.attributes) < size:
        attributes = np.zeros(shape, np.int64)
    else:
        keys = bits.random_raw(BLOCK * len(topic.attributes)).reshape(BLOCK, -1)
        attributes = np.argsort(keys, axis=1, kind="stable")[:, :size]
    documents = np.arange(block * BLOCK, (block + 1) * BLOCK)
    if topic.own_subjects:
        subjects = filler.subjects(np.arange(documents[0] * size, (documents[-1] + 1) * size))
        subjects = subjects.reshape(shape)
    else:
        subjects = np.repeat(filler.subjects(documents)[:, None], size, axis=1)
    return _Columns(
        templates=draw[0] % len(filler.layout.templates),
        attributes=attributes,
        subjects=subjects,
        values=draw[1],
        years=FIRST_YEAR + draw[2] % YEARS,
    )
