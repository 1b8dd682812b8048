"""What was served, and what it took: latency and work, kept apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One call that was served. Times are seconds from the beginning."""

    job: int
    """Which of the jobs, from 0."""
    role: str
    turn: int
    begin: float
    """Its prompt began to be read."""
    end: float
    """Its reply was there."""
    prompt_tokens: int
    cached_tokens: int
    """Of the prompt; they were not read again."""
    chunk_tokens: int
    cached_chunk_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What serving jobs took on a machine. Latency and work are two things: report both."""

    machine: Machine
    served: tuple[Served, ...]
    """In the order in which they began."""
    makespan_s: float
    """Until the last reply."""
    latencies_s: tuple[float, ...]
    """Of each job, from when it was let in until its last reply: the critical path."""

    @property
    def latency_s(self) -> float:
        """The mean latency of a job."""
        return math.fsum(self.latencies_s) / len(self.latencies_s)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(call.prompt_tokens for call in self.served)

    @property
    def cached_tokens(self) -> int:
        """Tokens of prompts that were not read again."""
        return sum(call.cached_tokens for call in self.served)

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(call.output_tokens for call in self.served)

    @property
    def prefill_s(self) -> float:
        """Work of reading what was not cached."""
        return (self.prompt_tokens - self.cached_tokens) / self.machine.prefill_rate

    @property
    def decode_s(self) -> float:
        """Work of decoding, were all slots always taken."""
        return self.output_tokens / self.machine.decode_rate

    @property
    def work_s(self) -> float:
        """Total work: what the machine is busy for when questions keep all slots taken."""
        return self.prefill_s + self.decode_s

    def hit_rate(self, turn: int | None = None) -> float:
        """Return the share of chunk tokens found in the cache, h_t; NaN where no chunk was read.

        Args:
            turn: only this one.
        """
        reads = [call for call in self.served if turn is None or call.turn == turn]
        tokens = sum(call.chunk_tokens for call in reads)
        return sum(call.cached_chunk_tokens for call in reads) / tokens if tokens else math.nan

    def of_role(self, roles: Iterable[str]) -> tuple[Served, ...]:
        """Return the calls of some roles."""
        wanted = frozenset(roles)
        return tuple(call for call in self.served if call.role in wanted)
