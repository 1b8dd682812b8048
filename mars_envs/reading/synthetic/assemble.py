"""From texts and distractors to a document: filled up to its length, everything in its place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from ..task import Evidence
from ..words import count_words, word_offsets
from .filler import BLOCK
from .placement import Item, Wish, place
from .text import Distractors, Run, Stretch, SyntheticDocument, Whole


@dataclass(frozen=True, kw_only=True)
class Special:
    """A document that the question is about: it holds evidence, or looks like it."""

    text: str
    title: str = ""
    hop: int | None = None
    """The place of its evidence, from 0; None: it holds none."""
    span: tuple[int, int] = (0, 0)
    """Of the evidence in it, in characters."""
    triggers: tuple[str, ...] = ()
    """See `Evidence.triggers`."""
    after: int | None = None
    """It stands behind the evidence of this hop."""
    before: int | None = None
    """It stands in front of the evidence of this hop."""

    @property
    def evidence(self) -> str:
        """The passage that is evidence."""
        return self.text[slice(*self.span)]

    @cached_property
    def item(self) -> Item:
        """What placing it takes to know."""
        first = count_words(self.text[: self.span[0]])
        return Item(
            tokens=count_words(self.text),
            hop=self.hop,
            passage=(first, first + count_words(self.evidence)),
            after=self.after,
            before=self.before,
        )


def assemble(
    specials: Sequence[Special],
    filler: Distractors,
    tokens: int,
    wish: Wish,
    draw: random.Random,
) -> tuple[SyntheticDocument, tuple[Evidence, ...]]:
    """Return a document of so many tokens, and where its evidence stands.

    Args:
        specials: what it has to hold, with hops counted from 0.
        filler: fills it up; its last document is cut where the tokens end.
        tokens: of all of it, of the tokenizer "words".
        wish: where the evidence should stand.
        draw: decides where everything does.

    Raises:
        InvalidSetting: the settings cannot be met together.
    """
    items = [special.item for special in specials]
    room = tokens - sum(item.tokens for item in items)
    if room < 0:
        raise InvalidSetting(
            f"{tokens} tokens do not hold the evidence and the decoys, which have "
            f"{tokens - room}; ask for more tokens, or fewer passages, `decoys` or `sentences`"
        )
    before = _fill(filler, room)
    stretches: list[Stretch] = []
    where: dict[int, int] = {}
    slot = 0
    for one in place(items, before, wish, draw):
        stretches.extend(_runs(filler, before, slot, one.slot))
        where[one.item] = len(stretches)
        stretches.append(Whole(specials[one.item].text, specials[one.item].title))
        slot = one.slot
    stretches.extend(_runs(filler, before, slot, len(before) - 1))
    document = SyntheticDocument(filler, stretches, tokens=tokens)
    return document, _evidence(specials, document, where)


def _fill(filler: Distractors, room: int) -> NDArray[np.int64]:
    """Return the tokens before each of the distractors that fill the room, and the room itself."""
    lengths = [np.zeros(0, np.int64)]
    total = block = 0
    while total < room:
        lengths.append(filler.lengths(block)[0])
        total += int(lengths[-1].sum())
        block += 1
    ends = np.cumsum(np.concatenate(lengths))
    whole = int(np.searchsorted(ends, room))  # the last one is cut where the room ends
    return np.concatenate([[0], ends[:whole], [room] if room else []]).astype(np.int64)


def _runs(filler: Distractors, before: NDArray[np.int64], first: int, last: int) -> list[Stretch]:
    """Return the distractors from `first` up to `last`, the last of all cut to its tokens."""
    runs: list[Stretch] = []
    end = len(before) - 2  # the last one may be cut
    block = first // BLOCK
    stop = min(last, end)
    while first < stop:
        upto = min(stop, (block + 1) * BLOCK)
        runs.append(Run(block, first - block * BLOCK, upto - block * BLOCK))
        first, block = upto, block + 1
    if first <= end < last and end >= 0:
        nth = end % BLOCK
        (text,) = filler.render(end // BLOCK, nth, nth + 1)
        title = filler.titles(end // BLOCK)[nth]
        runs.append(Whole(_cut(text, int(before[-1] - before[-2])), title))
    return runs


def _cut(text: str, tokens: int) -> str:
    """Return the beginning of a distractor, with the blanks that a document ends in."""
    end = int(word_offsets(text)[tokens - 1, 1])
    return text[:end] + text[len(text.rstrip()) :]


def _evidence(
    specials: Sequence[Special], document: SyntheticDocument, where: dict[int, int]
) -> tuple[Evidence, ...]:
    found = {}
    for number, special in enumerate(specials):
        if special.hop is not None:
            start = document.start_of(where[number])
            found[special.hop] = Evidence(
                start=start + special.span[0],
                end=start + special.span[1],
                text=special.evidence,
                doc_id=document.doc_id_of(where[number]),
                triggers=special.triggers,
            )
    return tuple(found[hop] for hop in sorted(found))
