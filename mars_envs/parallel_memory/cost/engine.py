"""Playing jobs through a machine, event by event."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InvalidSetting
from .jobs import Job, Request
from .ledger import Cost, Served
from .machine import Machine
from .prefix_cache import PrefixCache
from .queueing import SCHEDULES, Queue, Schedule


def simulate(
    jobs: Sequence[Job],
    machine: Machine,
    *,
    schedule: Schedule = "sample_major",
    alternate: bool = False,
    in_flight: int | None = None,
    cache: PrefixCache | None = None,
) -> Cost:
    """Return what it takes to serve jobs.

    Assumptions: the machine reads one prompt at a time, at one rate; a prompt is looked up in the
    cache when it begins to be read and is in the cache once it is read; what is being served takes
    no room in the cache; tokens of replies are not looked up.

    Args:
        jobs: in the order in which they are let in; one for the latency of a question, many for
            throughput.
        machine: which serves them.
        schedule: who is served first among those that wait.
        alternate: read the chunks in reversed order in every second turn (with `turn_major` the
            questions, too), so that what was read last, and is still cached, is read first.
        in_flight: jobs that are let in at once; None: all.
        cache: one to go on with; None: an empty one.

    Raises:
        InvalidSetting: no job, or no such schedule.
    """
    if not jobs:
        raise InvalidSetting("expected a job or more, got none")
    if schedule not in SCHEDULES:
        raise InvalidSetting(f"schedule is one of {', '.join(SCHEDULES)}, got {schedule!r:.80}")
    if in_flight is not None and in_flight < 1:
        raise InvalidSetting(f"in_flight is 1 or more, or None, got {in_flight!r:.80}")
    queue = Queue(jobs, schedule=schedule, alternate=alternate, in_flight=in_flight or len(jobs))
    if cache is None:
        cache = PrefixCache(machine.block_tokens, machine.cache_blocks)
    server = _Server(queue, machine, cache)
    {"static": server.static, "continuous": server.continuous, "overlapped": server.overlapped}[
        machine.batching
    ]()
    return Cost(
        machine=machine,
        served=tuple(call for call in server.served if call is not None),
        makespan_s=max(queue.ended),
        latencies_s=tuple(e - b for b, e in zip(queue.let_in, queue.ended, strict=True)),
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request that has a slot."""

    job: int
    request: Request
    place: int
    """Among those that were served."""
    begin: float
    cached_tokens: int

    @property
    def fresh_tokens(self) -> int:
        """Of the prompt, what has to be read."""
        return self.request.prompt_tokens - self.cached_tokens


class _Server:
    """Serves what waits in a queue. The methods are the three ways of batching."""

    def __init__(self, queue: Queue, machine: Machine, cache: PrefixCache) -> None:
        self.served: list[Served | None] = []
        self._queue = queue
        self._machine = machine
        self._cache = cache

    def static(self) -> None:
        """Serve group after group; each is read whole, then decoded until the longest is done."""
        now = 0.0
        while self._queue:
            group: list[_Begun] = []
            while self._queue and len(group) < self._machine.slots:
                group.append(self._begin(now))
                now = self._read(group[-1], now)
            seconds = self._machine.token_seconds(len(group))
            for begun in group:
                self._note(begun, now + begun.request.output_tokens * seconds)
            now += max(begun.request.output_tokens for begun in group) * seconds
            for begun in group:
                self._queue.done(begun.job, now)

    def continuous(self) -> None:
        """Fill free slots at once; nobody decodes while a prompt is read."""
        now, step = 0.0, 0
        decoding: list[tuple[int, int, _Begun]] = []  # (last step, place, who)
        while self._queue or decoding:
            if self._queue and len(decoding) < self._machine.slots:
                begun = self._begin(now)
                now = self._read(begun, now)
                last = step + begun.request.output_tokens
                heapq.heappush(decoding, (last, begun.place, begun))
            else:
                now += (decoding[0][0] - step) * self._machine.token_seconds(len(decoding))
                step = decoding[0][0]
            while decoding and decoding[0][0] == step:
                self._end(heapq.heappop(decoding)[2], now)

    def overlapped(self) -> None:
        """Fill free slots at once; reading prompts and decoding do not hold each other up."""
        now, step = 0.0, 0.0
        decoding: list[tuple[float, int, _Begun]] = []
        reading: tuple[float, _Begun] | None = None  # (when it is read, who)
        while self._queue or decoding or reading:
            if reading is None and self._queue and len(decoding) < self._machine.slots:
                begun = self._begin(now)
                reading = (now + begun.fresh_tokens / self._machine.prefill_rate, begun)
            seconds = self._machine.token_seconds(len(decoding)) if decoding else math.inf
            ends = now + (decoding[0][0] - step) * seconds if decoding else math.inf
            if reading is not None and reading[0] < ends:
                if decoding:
                    step += (reading[0] - now) / seconds
                now, begun = reading
                reading = None
                self._cache.add(begun.request.prompt)
                heapq.heappush(decoding, (step + begun.request.output_tokens, begun.place, begun))
            else:
                now, step = ends, decoding[0][0]
            while decoding and decoding[0][0] <= step:
                self._end(heapq.heappop(decoding)[2], now)

    def _begin(self, now: float) -> _Begun:
        """Give a slot to the next that waits."""
        job, request = self._queue.pop()
        self.served.append(None)
        cached = self._cache.find(request.prompt)
        return _Begun(job, request, len(self.served) - 1, now, cached)

    def _read(self, begun: _Begun, now: float) -> float:
        """Read a prompt; return when it is read."""
        self._cache.add(begun.request.prompt)
        return now + begun.fresh_tokens / self._machine.prefill_rate

    def _end(self, begun: _Begun, now: float) -> None:
        self._note(begun, now)
        self._queue.done(begun.job, now)

    def _note(self, begun: _Begun, end: float) -> None:
        request = begun.request
        before, chunk = 0, 0
        if request.chunk >= 0:
            before = sum(segment.tokens for segment in request.prompt[: request.chunk])
            chunk = request.prompt[request.chunk].tokens
        self.served[begun.place] = Served(
            job=begun.job,
            role=request.role,
            turn=request.turn,
            begin=begun.begin,
            end=end,
            prompt_tokens=request.prompt_tokens,
            cached_tokens=begun.cached_tokens,
            chunk_tokens=chunk,
            cached_chunk_tokens=min(max(begun.cached_tokens - before, 0), chunk),
            output_tokens=request.output_tokens,
        )
