"""Who waits for a slot, and who is next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Literal

from .jobs import Job, Request

Schedule = Literal["sample_major", "turn_major"]
"""`sample_major`: earlier questions first, so that one is finished before the next is begun as far
as slots allow. `turn_major`: the first turn of every question before the second turn of any, which
is what happens when all are sent at once."""
SCHEDULES: tuple[Schedule, ...] = ("sample_major", "turn_major")


class Queue:
    """Lets jobs in, and the next stage of a job when a stage is done.

    Args:
        jobs: in the order in which they are let in.
        schedule: who goes first.
        alternate: in every second turn, backwards.
        in_flight: jobs that are let in at once.
    """

    def __init__(
        self, jobs: Sequence[Job], *, schedule: Schedule, alternate: bool, in_flight: int
    ) -> None:
        self._jobs = jobs
        self._schedule = schedule
        self._alternate = alternate
        self._heap: list[tuple[tuple[int, ...], int, Request]] = []
        self._stage = [-1] * len(jobs)
        self._open = [0] * len(jobs)
        self._next = 0
        self.let_in = [math.nan] * len(jobs)
        """When, by job."""
        self.ended = [math.nan] * len(jobs)
        """When its last call was done, by job."""
        for _ in range(min(in_flight, len(jobs))):
            self._let_in(0.0)

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._heap)

    def pop(self) -> tuple[int, Request]:
        """Return the next one, and which job it is of."""
        _, job, request = heapq.heappop(self._heap)
        return job, request

    def done(self, job: int, now: float) -> None:
        """Note that one call of a job is done."""
        self._open[job] -= 1
        if self._open[job]:
            return
        if self._stage[job] + 1 < len(self._jobs[job].stages):
            self._next_stage(job)
            return
        self.ended[job] = now
        if self._next < len(self._jobs):
            self._let_in(now)

    def _let_in(self, now: float) -> None:
        self.let_in[self._next] = now
        self._next += 1
        self._next_stage(self._next - 1)

    def _next_stage(self, job: int) -> None:
        self._stage[job] += 1
        stage = self._jobs[job].stages[self._stage[job]]
        self._open[job] = len(stage)
        for index, request in enumerate(stage):
            backwards = self._alternate and request.turn % 2 == 0
            place = -index if backwards else index
            key: tuple[int, ...] = (job, self._stage[job], place)
            if self._schedule == "turn_major":
                key = (request.turn, -job if backwards else job, *key[1:])
            heapq.heappush(self._heap, (key, job, request))
