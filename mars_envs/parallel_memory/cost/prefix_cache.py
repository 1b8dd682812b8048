"""A prefix cache of blocks, as model servers keep it: a chain of hashes, the least recent leave.

A block is found again if it and *all* tokens before it are the same, so reuse ends at the first
token that differs. Blocks that were longest not used leave first, of one prompt the last ones.

Blocks are not held one by one: those that stand between the same two ends of segments are used and
leave together, from the back, so a count for each such run is exact, and a document of 4M tokens
costs hundreds of steps instead of hundreds of thousands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple


class Segment(NamedTuple):
    """A stretch of a prompt.

    Two are the same text if they are equal; else they are taken to differ from their first token.
    """

    name: Hashable
    tokens: int


class PrefixCache:
    """Which prompts' beginnings are known.

    Args:
        block_tokens: tokens of a block.
        blocks: the most that are held; None: no end of them.

    Example:
        >>> cache = PrefixCache(16, None)
        >>> prompt = [Segment("question", 20), Segment("chunk 1", 100), Segment("memory 0", 10)]
        >>> cache.find(prompt), cache.add(prompt)
        (0, None)
        >>> cache.find([*prompt[:2], Segment("memory 1", 30)])
        112
    """

    def __init__(self, block_tokens: int, blocks: int | None) -> None:
        self._block = block_tokens
        self._room = blocks
        self._held: OrderedDict[int, int] = OrderedDict()  # blocks by run, least recent first
        self._size = 0
        self._names: dict[tuple[int, Segment], int] = {}

    def __len__(self) -> int:
        """Blocks held."""
        return self._size

    def find(self, prompt: Sequence[Segment]) -> int:
        """Return how many tokens at the beginning of `prompt` need not be read again.

        The last token of a prompt is always read: it is what the reply begins from.
        """
        found = 0
        for run, blocks in self._runs(prompt):
            held = self._held.get(run, 0)
            found += held
            if held < blocks:
                break
        last = max(0, sum(segment.tokens for segment in prompt) - 1) // self._block
        return min(found, last) * self._block

    def add(self, prompt: Sequence[Segment]) -> None:
        """Hold all whole blocks of `prompt`, as the most recently used."""
        # From the back, so that the front is the most recent: what is behind it is useless alone.
        for run, blocks in reversed(list(self._runs(prompt))):
            self._size += blocks - self._held.get(run, 0)
            self._held[run] = blocks
            self._held.move_to_end(run)
        while self._room is not None and self._size > self._room:
            run = next(iter(self._held))
            leaving = min(self._held[run], self._size - self._room)
            self._size -= leaving
            self._held[run] -= leaving
            if not self._held[run]:
                del self._held[run]

    def _runs(self, prompt: Sequence[Segment]) -> Iterator[tuple[int, int]]:
        """Yield (name, blocks) of the runs that end with each segment, leaving empty ones out."""
        name, tokens = -1, 0
        for segment in prompt:
            if not segment.tokens:
                continue  # it is no part of the text
            name = self._names.setdefault((name, segment), len(self._names))
            blocks = (tokens + segment.tokens) // self._block - tokens // self._block
            tokens += segment.tokens
            if blocks:
                yield name, blocks
