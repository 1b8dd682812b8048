"""How notes are merged: in one call, or level by level where they do not fit in the window.

Everything is a number of tokens. A level's notes are packed in their order into bins; each bin is a
call that makes one intermediate note, and the notes that come of a level are the next one's. The
last call has the memory with it, and no other has, so that what the memory says enters once and is
never digested on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InvalidSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpace:
    """What fits in one merge. Everything in tokens.

    Raises:
        InvalidSetting: a window in which no two notes can be merged; says how large it must be.
    """

    window: int | None
    """Of the model, prompt and reply together; None: no bound."""
    memory_tokens: int
    """B_m: of the reply, and of an intermediate note."""
    overhead: int = 0
    """Of a prompt without memory and notes: template and question."""
    label: int = 0
    """Around each note, and around the memory."""

    def __post_init__(self) -> None:
        least = self.overhead + self.memory_tokens + 3 * self.slot
        if self.window is not None and self.window < least:
            raise InvalidSetting(
                f"window must be at least {least} tokens to merge two notes and the memory of "
                f"{self.memory_tokens} tokens each into as many, beside a prompt of "
                f"{self.overhead}; got {self.window}. Make it larger, or memory_tokens smaller"
            )

    @property
    def slot(self) -> int:
        """What an intermediate note, or a memory, takes at most."""
        return self.memory_tokens + self.label

    @property
    def capacity(self) -> int | None:
        """B_in: what memory and notes may take together."""
        if self.window is None:
            return None
        return self.window - self.memory_tokens - self.overhead

    @property
    def most_memory(self) -> int | None:
        """What a memory may take, so that two intermediate notes still have room; None: all."""
        return None if self.capacity is None else self.capacity - 2 * self.slot

    def room(self, memory: int) -> int | None:
        """Return what the notes of one call may take; the memory's place is always kept."""
        return None if self.capacity is None else self.capacity - memory

    def bins(self, sizes: Sequence[int], memory: int) -> list[range]:
        """Pack a level's notes: one bin is the last call, with the memory.

        Args:
            sizes: of the notes with their labels, none above `room(memory)`.
            memory: with its label; 0 where it is empty.
        """
        room = self.room(memory)
        return [range(len(sizes))] if room is None else pack(sizes, room)


def pack(sizes: Sequence[int], room: int) -> list[range]:
    """Pack neighbours into bins, in order and greedily; a size above `room` has its own.

    Example:
        >>> pack([3, 3, 3, 5, 1], 6)
        [range(0, 2), range(2, 3), range(3, 5)]
    """
    bins: list[range] = []
    start = used = 0
    for place, size in enumerate(sizes):
        if place > start and used + size > room:
            bins.append(range(start, place))
            start, used = place, 0
        used += size
    if sizes:
        bins.append(range(start, len(sizes)))
    return bins
