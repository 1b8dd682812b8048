"""Where evidence and decoys stand among the distractors.

Positions are tokens of the finished document. A layout is drawn and then checked against what was
asked for; where documents are long and chunks short, it takes a few tries.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from ...wording import counted
from .settings import Order, Placement

_TRIES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document to be placed."""

    tokens: int
    hop: int | None
    """Of the evidence in it."""
    passage: tuple[int, int] = (0, 0)
    """Tokens of the document before the evidence and up to its end."""
    after: int | None = None
    """It stands behind the evidence of this hop."""
    before: int | None = None
    """It stands in front of the evidence of this hop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where evidence should stand; see `SyntheticSettings`."""

    placement: Placement
    order: Order
    chunk: int | None
    """Tokens of a chunk."""
    depths: tuple[float, ...] | None
    within: float = 1.0
    """Without `depths`, the share of the document, from its start, that evidence begins in."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An item in its place."""

    item: int
    """Its number."""
    slot: int
    """It stands before the distractor of this number, counted from 0."""
    start: int
    """Tokens before it."""


def place(
    items: Sequence[Item], filler: NDArray[np.int64], wish: Wish, draw: random.Random
) -> list[Placed]:
    """Place items among distractors.

    Args:
        items: with their hops counted from 0.
        filler: tokens before each distractor, and of all of them, `[distractors + 1]`.
        wish: where the evidence should stand.
        draw: decides.

    Returns:
        All items, in the order in which they stand.

    Raises:
        InvalidSetting: the wish cannot be granted.
    """
    hops = [i for _, i in sorted((it.hop, i) for i, it in enumerate(items) if it.hop is not None)]
    if wish.depths is not None and len(wish.depths) != len(hops):
        raise InvalidSetting(
            f"depths gives {len(wish.depths)} places for {len(hops)} passages of evidence"
        )
    total = int(filler[-1]) + sum(item.tokens for item in items)
    longest = int(np.diff(filler).max(initial=0))
    for _ in range(_TRIES):
        targets = _targets(items, hops, total, longest, wish, draw)
        placed = _settle(items, filler, targets)
        if _granted(items, placed, wish):
            return placed
    raise InvalidSetting(
        f"no layout puts {len(hops)} passages of evidence into {wish.placement} chunks of "
        f"{wish.chunk} tokens, in a document of {total}; give larger chunks, or fewer `sentences`, "
        "`decoys` or passages"
    )


def _targets(
    items: Sequence[Item],
    hops: Sequence[int],
    total: int,
    longest: int,
    wish: Wish,
    draw: random.Random,
) -> list[int]:
    """Draw the token at which each item should start."""
    room = max(0, total - max((item.tokens for item in items), default=0))
    targets = [0] * len(items)
    if wish.depths is not None:
        places = [round(depth * room) for depth in wish.depths]
    else:
        places = _positions([items[i].tokens for i in hops], total, longest, wish, draw)
        if wish.order == "reverse":
            places.reverse()
        elif wish.order == "random":
            draw.shuffle(places)
    for number, position in zip(hops, places, strict=True):
        targets[number] = position
    for number, item in enumerate(items):
        if item.hop is not None:
            continue
        if item.before is not None:
            # In front of evidence at 0 is -1: it starts the document, and the evidence follows.
            last = places[item.before] - 1
            targets[number] = draw.randint(min(0, last), last)
        else:
            first = 0 if item.after is None else places[item.after] + 1
            targets[number] = draw.randint(min(first, room), max(first, room))
    return targets


def _positions(
    tokens: Sequence[int], total: int, longest: int, wish: Wish, draw: random.Random
) -> list[int]:
    """Draw rising positions of evidence, one for each length."""
    count, size = len(tokens), max(tokens, default=0)
    room = max(0, min(total - size, int(total * wish.within)))
    if wish.placement == "any" or count == 0:
        return sorted(draw.randint(0, room) for _ in range(count))
    if wish.chunk is None:
        return [int((nth + draw.random()) / count * room) for nth in range(count)]
    chunk = wish.chunk
    whole = total // chunk
    early = min(whole, max(count, math.ceil(whole * wish.within)))
    if wish.placement == "same":
        start = draw.randrange(max(1, early)) * chunk
        return [start + draw.randint(0, max(0, chunk - sum(tokens) - longest))] * count
    if whole < count:
        raise InvalidSetting(
            f"{counted(count, 'passage')} of evidence need{'s' * (count == 1)} "
            f"{counted(count, 'chunk')}, but {total} tokens make {whole} of {chunk}; give more "
            "tokens, smaller chunks, or placement=any"
        )
    chosen = sorted(draw.sample(range(early), count))
    # Rising offsets: neighbours are then more than a chunk apart, however chunks are cut.
    slack = max(0, chunk - longest - size)
    offsets = sorted(draw.randint(0, slack) for _ in range(count))
    return [number * chunk + offset for number, offset in zip(chosen, offsets, strict=True)]


def _settle(
    items: Sequence[Item], filler: NDArray[np.int64], targets: Sequence[int]
) -> list[Placed]:
    """Put each item before the first distractor that starts no earlier than it should."""
    placed: list[Placed] = []
    before, slot = 0, 0
    for number in sorted(range(len(items)), key=lambda i: (targets[i], items[i].hop or 0)):
        wanted = int(np.searchsorted(filler, targets[number] - before))
        slot = max(slot, min(wanted, len(filler) - 1))
        placed.append(Placed(number, slot, int(filler[slot]) + before))
        before += items[number].tokens
    return placed


def _granted(items: Sequence[Item], placed: Sequence[Placed], wish: Wish) -> bool:
    """Whether the evidence stands as it should."""
    if wish.chunk is None or wish.depths is not None:
        return True
    chunk = wish.chunk
    spans = []
    for place in placed:
        item = items[place.item]
        if item.hop is not None:
            first, last = (place.start + offset for offset in item.passage)
            if first // chunk != (last - 1) // chunk:
                return False
            spans.append((first, last))
    if wish.placement == "different":
        return all(b[1] - a[0] > chunk for a, b in itertools.pairwise(spans))
    if wish.placement == "same":
        return len({first // chunk for first, _ in spans}) <= 1
    return True
