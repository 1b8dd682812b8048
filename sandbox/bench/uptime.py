"""Does a pool get slower or bigger while it lives? Thousands of tests, looked at in blocks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base import SandboxError
from ..factory import open_sandbox
from ..types import Program, StdioCase
from . import cpu, modes
from .measure import engine

BLOCK = 1000
"""Tests after which the pool is looked at."""
_GUESTS = ("supervisor", "zygote", "template", "program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive tests of one pool."""

    tests: int
    cpu_ms: float | None
    """CPU time per test of everything that took part; None where a part cannot be seen."""
    host_rss_mb: float
    """Resident memory of this process after the last of them."""
    guest_rss_mb: float | None
    """Resident memory of the guests' processes together; shared pages count in each."""


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
        backend: as for `open_sandbox`.
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
        sandbox = stack.enter_context(open_sandbox(backend, workers=1, cache=False))
        name = sandbox.capabilities.backend
        visible = name != modes.DOCKER or engine_pid is not None
        blocks: list[Block] = []
        done = number = 0
        while done < tests:
            first, before = done, cpu.settled()
            while done - first < block and done < tests:
                work = modes.make_work(number, tests_per_program)
                cases = [StdioCase(name="", stdin=i, expected=o) for i, o in work.tests]
                report = sandbox.grade(Program(work.source), cases)
                if not report.accepted:
                    raise SandboxError(f"program {number} was not accepted: {report.cases}")
                number += 1
                done += tests_per_program
                if progress is not None:
                    progress(done)
            after = cpu.settled()
            guests = [usage.rss_kb for usage in after.values() if usage.role in _GUESTS]
            blocks.append(
                Block(
                    tests=done - first,
                    cpu_ms=1000 * cpu.spent_s(before, after) / (done - first) if visible else None,
                    host_rss_mb=next(u.rss_kb for u in after.values() if u.role == "client") / 1024,
                    guest_rss_mb=sum(guests) / 1024 if visible else None,
                )
            )
        return Uptime(backend=name, tests=done, blocks=tuple(blocks))
