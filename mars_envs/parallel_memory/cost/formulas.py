"""The cost model in closed form, for latency and for throughput, beside the simulator.

Symbols: n chunks of c tokens, q + h + m further tokens of a prompt, T turns, yes-rate y_t, replies
of d_no or d_yes tokens, memories of d_m tokens, prefill and decode rates ρ_p and ρ_d, seconds per
token τ(b) at batch b, P slots, share h_t of chunk tokens found in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...errors import InvalidSetting
from .jobs import Reading
from .machine import Machine


def recurrent_latency(reading: Reading, machine: Machine) -> float:
    """Return L_rec = n [ (c+q+h+m)/ρ_p + d_m τ(1) ] + L_ans, in seconds.

    What the simulator says without a cache, too.
    """
    other = reading.head_tokens + reading.memory_tokens
    call = (reading.chunk_tokens + other) / machine.prefill_rate
    call += reading.rewrite_tokens * machine.token_seconds(1)
    return reading.chunks * call + _answer(reading, machine)


def parallel_latency(
    reading: Reading,
    machine: Machine,
    *,
    cached: Sequence[float] = (),
    overlapped: bool = False,
    padded: bool = False,
) -> float:
    """Return L_par: per turn ceil(n/P) rounds and a merge, then the answer, in seconds.

        Σ_t { ceil(n/P) [ P (c(1-h_t)+q+h+m)/ρ_p + max_i d_i τ(P) ] + 1[y_t>0] L_merge } + L_ans

    As it stands here, each round waits for its own longest reply, and the last round is as large as
    it is: what the simulator says with `static` batching.

    Args:
        reading: how much of everything.
        machine: its `batching` does not matter.
        cached: h_t by turn; missing turns: 0.
        overlapped: decoding goes on beside the next rounds' prompts, so that per turn only the
            longest reply of all shows.
        padded: the last round counts as a full one, and every round decodes as slowly as a full one
            (the formula's P).
    """
    slots, n = machine.slots, reading.chunks
    total = 0.0
    for turn, found in enumerate(reading.yes):
        hit = _cached(cached, turn)
        tokens = reading.chunk_tokens * (1 - hit) + reading.head_tokens + reading.memory_tokens
        yes = [(i + 1) * found // n > i * found // n for i in range(n)]
        rounds = [yes[start : start + slots] for start in range(0, n, slots)]
        sizes = [slots if padded else len(one) for one in rounds]
        total += sum(sizes) * tokens / machine.prefill_rate
        replies = [
            (reading.yes_tokens if any(one) else 0, 0 if all(one) else reading.no_tokens)
            for one in rounds
        ]
        decoding = [
            max(longest) * machine.token_seconds(size)
            for longest, size in zip(replies, sizes, strict=True)
        ]
        total += max(decoding) if overlapped else sum(decoding)
        total += _merge(reading, machine, found)
    return total + _answer(reading, machine)


def latency_ceiling(reading: Reading, machine: Machine) -> float:
    """Return S_max = (c/ρ_p + d_m τ(1)) / (T c/ρ_p): no number of slots gets beyond it uncached."""
    prefill = reading.chunk_tokens / machine.prefill_rate
    rewrite = reading.rewrite_tokens * machine.token_seconds(1)
    return (prefill + rewrite) / (reading.turns * prefill)


def recurrent_work(reading: Reading, machine: Machine) -> float:
    """Return W_rec = n [ (c+q+h+m)/ρ_p + d_m/ρ_d ] and the answer, in busy seconds."""
    other = reading.head_tokens + reading.memory_tokens
    call = (reading.chunk_tokens + other) / machine.prefill_rate
    call += reading.rewrite_tokens / machine.decode_rate
    return reading.chunks * call + _work(machine, other, reading.answer_tokens)


def parallel_work(reading: Reading, machine: Machine, *, cached: Sequence[float] = ()) -> float:
    """Return W_par, in busy seconds: reads, merges and the answer.

        Σ_t n [ (c(1-h_t)+q+h+m)/ρ_p + ((1-y_t) d_no + y_t d_yes)/ρ_d ] + merges

    Args:
        reading: how much of everything.
        machine: the server.
        cached: h_t by turn; missing turns: 0.
    """
    other = reading.head_tokens + reading.memory_tokens
    total = _work(machine, other, reading.answer_tokens)
    for turn, found in enumerate(reading.yes):
        tokens = reading.chunk_tokens * (1 - _cached(cached, turn)) + other
        said = (reading.chunks - found) * reading.no_tokens + found * reading.yes_tokens
        total += _work(machine, reading.chunks * tokens, said)
        if found:
            total += _work(machine, other + found * reading.yes_tokens, reading.rewrite_tokens)
    return total


def throughput_speedup(
    prefill_share: float, *, turns: float, eps: float, cached: float = 0
) -> float:
    """Return S ~ (x + 1) / (T (x (1-h) + eps)), without what is the same for every length.

    Args:
        prefill_share: x = (c/ρ_p) / (d_m/ρ_d).
        turns: T.
        eps: what a reply takes against a rewritten memory, d_no/d_m where few say yes.
        cached: h, over all turns.

    Raises:
        InvalidSetting: a number that cannot be.
    """
    if prefill_share < 0 or turns <= 0 or eps < 0 or not 0 <= cached <= 1:
        raise InvalidSetting(
            f"expected prefill_share and eps of 0 or more, turns above 0 and cached in [0, 1], got "
            f"{prefill_share!r}, {eps!r}, {turns!r}, {cached!r}"
        )
    below = turns * (prefill_share * (1 - cached) + eps)
    return (prefill_share + 1) / below if below else math.inf


def _cached(cached: Sequence[float], turn: int) -> float:
    hit = cached[turn] if turn < len(cached) else 0.0
    if not 0 <= hit <= 1:
        raise InvalidSetting(f"cached is shares in [0, 1] by turn, got {list(cached)!r}")
    return hit


def _merge(reading: Reading, machine: Machine, found: int) -> float:
    """L_merge: one call, alone on the machine."""
    if not found:
        return 0.0
    prompt = reading.head_tokens + reading.memory_tokens + found * reading.yes_tokens
    return prompt / machine.prefill_rate + reading.rewrite_tokens * machine.token_seconds(1)


def _answer(reading: Reading, machine: Machine) -> float:
    """L_ans: one call, alone on the machine."""
    prompt = reading.head_tokens + reading.memory_tokens
    return prompt / machine.prefill_rate + reading.answer_tokens * machine.token_seconds(1)


def _work(machine: Machine, prompt: float, output: float) -> float:
    return prompt / machine.prefill_rate + output / machine.decode_rate
