"""The machine that serves a model: rates, request slots and a prefix cache."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from ...errors import InvalidSetting

Batching = Literal["static", "continuous", "overlapped"]
"""How requests share the machine.

`static`: as many as there are slots begin together and the next wait for the last of them (the
closed form of latency). `continuous`: a free slot is filled at once, and reading a prompt
holds up those that decode. `overlapped`: the same, but reading a prompt and decoding do not hold
each other up: the best that chunked prefill can do.
"""
BATCHINGS: tuple[Batching, ...] = ("static", "continuous", "overlapped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A model server.

    Raises:
        InvalidSetting: a number that cannot be.
    """

    name: str = "machine"
    prefill_rate: float
    """Prompt tokens read a second, of all requests together."""
    decode_seconds: tuple[tuple[int, float], ...]
    """(requests that decode together, seconds per token of each), by number; straight lines between
    them, the last one goes on. One pair: the same at any number."""
    slots: int
    """Requests served at once."""
    cache_tokens: int | None = 0
    """Tokens that the prefix cache holds beside what is being served; None: no end of them."""
    block_tokens: int = 16
    """Tokens of a block of the cache; only whole blocks are found again."""
    batching: Batching = "continuous"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.prefill_rate) and self.prefill_rate > 0):
            raise InvalidSetting(f"prefill_rate is tokens a second, got {self.prefill_rate!r:.80}")
        sizes = [size for size, _ in self.decode_seconds]
        times = [seconds for _, seconds in self.decode_seconds]
        if not sizes or sizes[0] < 1 or any(a >= b for a, b in itertools.pairwise(sizes)):
            raise InvalidSetting(
                f"decode_seconds is pairs (requests, seconds) by rising requests from 1, "
                f"got {self.decode_seconds!r:.80}"
            )
        if times[0] < 0 or any(a > b for a, b in itertools.pairwise(times)):
            raise InvalidSetting(
                f"decode_seconds: more requests decode no faster each, got "
                f"{self.decode_seconds!r:.80}"
            )
        if self.slots < 1:
            raise InvalidSetting(f"slots is 1 or more, got {self.slots!r:.80}")
        if self.block_tokens < 1:
            raise InvalidSetting(f"block_tokens is 1 or more, got {self.block_tokens!r:.80}")
        if self.cache_tokens is not None and self.cache_tokens < 0:
            raise InvalidSetting(
                f"cache_tokens is 0 or more, or None, got {self.cache_tokens!r:.80}"
            )
        if self.batching not in BATCHINGS:
            raise InvalidSetting(f"batching is one of {BATCHINGS}, got {self.batching!r:.80}")

    @property
    def cache_blocks(self) -> int | None:
        """Blocks that the prefix cache holds; None: no end of them."""
        return None if self.cache_tokens is None else self.cache_tokens // self.block_tokens

    def token_seconds(self, requests: int) -> float:
        """Return tau(b), the seconds that each of `requests` takes per token."""
        points = self.decode_seconds
        at = min(bisect_left(points, (requests, -math.inf)), len(points) - 1)
        if at == 0:
            return points[0][1]
        (left, before), (right, after) = points[at - 1], points[at]
        return before + (after - before) * (requests - left) / (right - left)

    @property
    def decode_rate(self) -> float:
        """Tokens decoded a second by all slots together, when all are taken."""
        seconds = self.token_seconds(self.slots)
        return self.slots / seconds if seconds else math.inf


MACHINES = {
    "7b": Machine(
        name="7b",
        prefill_rate=40_000,
        decode_seconds=((1, 0.012), (128, 128 / 3_000)),
        slots=128,
        cache_tokens=2_000_000,
    ),
    "35b-moe": Machine(
        name="35b-moe",
        prefill_rate=120_000,
        decode_seconds=((1, 0.012), (128, 128 / 2_500)),
        slots=128,
        cache_tokens=0,
    ),
}
"""Examples with assumed rates, not measurements: 12 ms a token alone; 3,000 and 2,500 tokens a
second with 128 requests. `7b`: Qwen2.5-7B takes 57,344 bytes a token, so that about 110 GiB beside
the weights hold 2M tokens. `35b-moe`: a hybrid model, where prefixes are hardly found again."""


def machine(name: str) -> Machine:
    """Return a machine of `MACHINES`.

    Raises:
        InvalidSetting: there is none of this name.
    """
    if name not in MACHINES:
        raise InvalidSetting(f"no machine {name!r:.80}; there are: {', '.join(MACHINES)}")
    return MACHINES[name]
