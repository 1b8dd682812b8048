"""Rounds of every way to judge, in turn, each with its wall and CPU time."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..base import SandboxError, SandboxUnavailable
from . import cpu, machine, modes
from .engine import own_engine, why_no_own_engine
from .machine import Machine

Progress = Callable[[str, int, int], None]
"""Told the way that is measured next, the measurements done, and all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to measure."""

    modes: tuple[str, ...] = tuple(modes.MODES)
    rounds: int = 5
    programs: int = 40
    """Programs per round, for each way."""
    tests: int = 10
    """Tests per program."""
    clients: int = 2
    """Programs judged at once."""

    def __post_init__(self) -> None:
        unknown = [mode for mode in self.modes if mode not in modes.MODES]
        if unknown or not self.modes:
            raise ValueError(
                f"cannot measure {', '.join(unknown) or 'nothing'}; "
                f"choose from {', '.join(modes.MODES)}"
            )
        for name in ("rounds", "programs", "tests", "clients"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One way in one round."""

    mode: str
    round: int
    programs: int
    tests: int
    """Of all programs together."""
    wall_s: float
    latencies_s: tuple[float, ...]
    """For each program, from request to verdict."""
    cpu_s: float | None
    """CPU time of everything that took part; None where a part of it cannot be seen."""
    roles_s: dict[str, float]
    """CPU seconds by kind of process, see `cpu.spent_by_role_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All that was measured."""

    settings: Settings
    machine: Machine
    samples: tuple[Sample, ...]
    left_out: dict[str, str]
    """Ways that could not be measured here, and why."""
    notes: tuple[str, ...]
    load_before: float
    load_after: float


def measure(settings: Settings, *, progress: Progress | None = None) -> Measurement:
    """Measure every way that works here, round by round.

    Raises:
        SandboxError: a way that had been working gave a wrong result.
    """
    load_before = machine.load()
    with contextlib.ExitStack() as stack:
        stack.enter_context(cpu.keeping_orphans())
        left_out, notes = {}, []
        engine_pid, version = None, ""
        if set(settings.modes) & set(modes.WITH_ENGINE):
            engine_pid, version, note = stack.enter_context(engine())
            notes += [note] if note else []
        ready: dict[str, modes.Mode] = {}
        for name in settings.modes:
            try:
                ready[name] = stack.enter_context(modes.opened(name, clients=settings.clients))
            except SandboxError as error:
                left_out[name] = str(error)
        facts = machine.describe(engine=version)
        clients = stack.enter_context(ThreadPoolExecutor(settings.clients, "bench-client"))
        turns = [
            (number, name)
            for number in range(settings.rounds)
            for name in _rotated(list(ready), number)
        ]
        samples = []
        for done, (number, name) in enumerate(turns):
            if progress is not None:
                progress(name, done, len(turns))
            samples.append(
                _sample(
                    name,
                    ready[name],
                    clients,
                    settings=settings,
                    number=number,
                    engine_pid=engine_pid,
                )
            )
    return Measurement(
        settings=settings,
        machine=facts,
        samples=tuple(samples),
        left_out=left_out,
        notes=tuple(notes),
        load_before=load_before,
        load_after=machine.load(),
    )


@contextlib.contextmanager
def engine() -> Iterator[tuple[int | None, str, str]]:
    """Provide an engine: one of our own where possible, else the one that is there, if any.

    Yields:
        The process above our own engine, or None; the engine's version, empty without one; and a
        note on what cannot be measured for lack of an engine of our own.
    """
    from ..factory import ping_engine

    reason = why_no_own_engine()
    with contextlib.ExitStack() as stack:
        if reason is None:
            try:
                own = stack.enter_context(own_engine())
            except SandboxUnavailable as error:
                reason = str(error)
            else:
                yield own.pid, ping_engine(), ""
                return
        try:
            version = ping_engine()
        except SandboxUnavailable:
            yield None, "", ""
        else:
            yield None, version, f"CPU time of the engine cannot be seen from here: {reason}"


def _rotated(names: list[str], number: int) -> list[str]:
    """Return the names in another order each round, so that none always follows the same one."""
    start = number % len(names) if names else 0
    return names[start:] + names[:start]


def _sample(
    name: str,
    mode: modes.Mode,
    clients: ThreadPoolExecutor,
    *,
    settings: Settings,
    number: int,
    engine_pid: int | None,
) -> Sample:
    """Judge one round's programs in one way."""
    first = 1000 * (number + 1)
    works = [modes.make_work(first + i, settings.tests) for i in range(settings.programs)]
    queue = deque(works)
    latencies: list[float] = []

    def client(index: int) -> None:
        while True:
            try:
                work = queue.popleft()
            except IndexError:
                return
            start_s = time.perf_counter()
            mode.run(index, work)
            latencies.append(time.perf_counter() - start_s)

    visible = name not in modes.WITH_ENGINE or engine_pid is not None
    without = [engine_pid] if engine_pid is not None and name not in modes.WITH_ENGINE else []
    before = cpu.settled(without=without)
    start_s = time.perf_counter()
    futures = [clients.submit(client, index) for index in range(settings.clients)]
    try:
        for future in futures:
            future.result()
    finally:
        queue.clear()  # after an error or a Ctrl-C no one goes on
    wall_s = time.perf_counter() - start_s
    after = cpu.settled(without=without)
    return Sample(
        mode=name,
        round=number,
        programs=len(works),
        tests=len(works) * settings.tests,
        wall_s=wall_s,
        latencies_s=tuple(latencies),
        cpu_s=cpu.spent_s(before, after) if visible else None,
        roles_s=cpu.spent_by_role_s(before, after) if visible else {},
    )
