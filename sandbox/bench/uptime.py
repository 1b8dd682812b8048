"""Does a pool get slower or bigger while it lives? Thousands of tests, looked at in blocks."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import Capabilities, SandboxError, SandboxUnavailable
from ..grader import Grader
from ..pool import WorkerPool
from ..types import Limits, Program, StdioCase
from ..worker import Backend, Execution, Session, Worker
from . import cpu, modes
from .measure import engine

BLOCK = 1000
"""Tests after which the pool is looked at."""
_LOOK_EVERY = 10
_GUESTS = ("supervisor", "zygote", "template", "program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive tests of one pool."""

    tests: int
    cpu_ms: float | None
    """CPU time per test of everything that took part, starts of workers included; None where a
    part cannot be seen."""
    host_rss_mb: float
    """Resident memory of this process after the last of them."""
    guest_rss_mb: float | None
    """The most resident memory that the guests' processes were seen to have together; pages that
    they share count in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptime:
    """The life of a pool."""

    backend: str
    tests: int
    blocks: tuple[Block, ...]

    def as_json(self, command: str) -> dict[str, Any]:
        """Return everything, for `json.dump`."""
        return {"command": command, **dataclasses.asdict(self)}


def uptime(
    backend: str,
    *,
    tests: int,
    tests_per_program: int = 10,
    block: int = BLOCK,
    progress: Callable[[int], None] | None = None,
) -> Uptime:
    """Run `tests` tests, one program after another, in one pool of one worker.

    Args:
        backend: `docker`, `bubblewrap`, or `auto`: the first of them that works.
        tests: in all, rounded up to whole programs.
        tests_per_program: how many tests each program has.
        block: tests after which CPU time and memory are read.
        progress: told the tests done.

    Raises:
        SandboxError: the backend cannot work here, or a program was not accepted.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(cpu.keeping_orphans())
        engine_pid = None
        if backend in ("auto", modes.DOCKER):
            engine_pid, _, _ = stack.enter_context(engine())
        counted = CountedBackend(_backend(backend))
        visible = counted.name != modes.DOCKER or engine_pid is not None
        grader = stack.enter_context(Grader(WorkerPool(counted, size=1)))
        _judge(grader, 0, tests_per_program)  # builds the image, starts the first worker
        blocks: list[Block] = []
        done = number = 0
        while done < tests:
            first, before, lost_s = done, cpu.settled(), counted.lost_s
            guest_kb = 0
            while done - first < block and done < tests:
                number += 1
                _judge(grader, number, tests_per_program)
                done += tests_per_program
                # Now and then: after one program in a few hundred there is no worker.
                if number % _LOOK_EVERY == 0 or not guest_kb:
                    guest_kb = max(guest_kb, _guests_kb())
                if progress is not None:
                    progress(done)
            spent_s = cpu.spent_s(before, cpu.settled()) + counted.lost_s - lost_s
            blocks.append(
                Block(
                    tests=done - first,
                    cpu_ms=1000 * spent_s / (done - first) if visible else None,
                    host_rss_mb=cpu.usages()[os.getpid()].rss_kb / 1024,
                    guest_rss_mb=guest_kb / 1024 if visible else None,
                )
            )
        return Uptime(backend=counted.name, tests=done, blocks=tuple(blocks))


def _guests_kb() -> int:
    return sum(usage.rss_kb for usage in cpu.usages().values() if usage.role in _GUESTS)


def _judge(grader: Grader, number: int, tests: int) -> None:
    work = modes.make_work(number, tests)
    cases = [StdioCase(name="", stdin=stdin, expected=output) for stdin, output in work.tests]
    report = grader.grade(Program(work.source), cases)
    if not report.accepted:
        raise SandboxError(f"program {number} was not accepted: {report.cases}")


def _backend(name: str) -> Backend:
    from ..bubblewrap import BubblewrapBackend
    from ..container import DockerBackend
    from ..factory import ping_engine

    if name not in ("auto", modes.DOCKER, modes.BUBBLEWRAP):
        raise ValueError(f"backend is auto, docker or bubblewrap, got {name!r}")
    if name != modes.BUBBLEWRAP:
        try:
            ping_engine()
        except SandboxUnavailable:
            if name == modes.DOCKER:
                raise
        else:
            return DockerBackend()
    return BubblewrapBackend()


class CountedBackend:
    """Starts another backend's workers and keeps account of what is lost with each that ends.

    When the first process of a place ends, the kernel ends the others there, and what those had
    used is handed to no one. So the tree is looked at before and after, and the difference kept.
    """

    def __init__(self, backend: Backend) -> None:
        self.name = backend.name
        self.lost_s = 0.0
        """CPU seconds that have left the tree, less what ending the workers took."""
        self._backend = backend

    @property
    def capabilities(self) -> Capabilities:
        """The other backend's."""
        return self._backend.capabilities

    @property
    def fingerprint(self) -> str:
        """The other backend's."""
        return self._backend.fingerprint

    def start_worker(self) -> Worker:
        """Start one of the other backend's workers."""
        return _CountedWorker(self._backend.start_worker(), self._count)

    def _count(self, end: Callable[[], None]) -> None:
        before = cpu.usages()
        end()
        self.lost_s += max(0.0, -cpu.spent_s(before, cpu.settled()))


class _CountedWorker:
    def __init__(self, worker: Worker, count: Callable[[Callable[[], None]], None]) -> None:
        self.name = worker.name
        self._worker = worker
        self._count = count
        self._closed = False

    @property
    def usable(self) -> bool:
        return self._worker.usable

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        return self._worker.run(source, stdin, limits)

    def run_batch(
        self, source: bytes, stdins: Sequence[bytes], limits: Limits
    ) -> Iterator[Execution]:
        return self._worker.run_batch(source, stdins, limits)

    def open(self, source: bytes, limits: Limits) -> Session:
        return self._worker.open(source, limits)

    def abort(self) -> None:
        self._worker.abort()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._count(self._worker.close)
