"""Hostile programs: each gets the verdict it deserves and leaves a place that works as before.

The programs stand in `corpus`, with what must come of each. Where a backend lacks the guarantee
that one of them needs, and says so in its capabilities, that one is left out there: there is no
other way to be left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.base import Guarantee
from sandbox.grader import Grader
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Program, Status, StdioCase
from sandbox.worker import Backend

from .corpus import honest, rows
from .corpus.attack import EXPECTED, HEAD, WORKER_MEMORY_MB
from .corpus.catalogue import ALL, FUNCTIONS, STDIO
from .corpus.stage import Ensemble


@pytest.fixture(
    scope="module",
    params=["bubblewrap", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow])],
)
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "docker":
        from sandbox.container import DockerBackend

        request.getfixturevalue("docker_engine")
        return DockerBackend(memory_mb=WORKER_MEMORY_MB)
    from sandbox.bubblewrap import BubblewrapBackend

    return BubblewrapBackend(memory_mb=WORKER_MEMORY_MB)


@pytest.fixture(scope="module")
def ensemble(request: pytest.FixtureRequest, backend: Backend) -> Iterator[Ensemble]:
    """The selected attacks, already under way on several workers."""
    missing = backend.capabilities.missing
    selected = dict.fromkeys(
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == _TEST
    )
    attacks = {name: ALL[name] for name in selected if ALL[name].needs not in missing}
    with Ensemble(lambda: backend, attacks) as ensemble:
        yield ensemble


def _named() -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.slow if attack.slow else ())
        for name, attack in ALL.items()
    ]


@pytest.mark.parametrize("name", _named())
def test_a_hostile_program_harms_itself_alone(
    backend: Backend, ensemble: Ensemble, name: str
) -> None:
    attack = ALL[name]
    if attack.needs in backend.capabilities.missing:
        pytest.skip(f"not guaranteed here: {attack.needs and attack.needs.sentence}")
    assert ensemble.played(name).complaints(attack) == []


_TEST = test_a_hostile_program_harms_itself_alone.__name__


def _family(name: str) -> str:
    return name.partition(":")[0]


def test_every_row_of_the_threat_model_has_its_attacks() -> None:
    known = ALL.keys() | set(map(_family, ALL))
    uncovered = {row: set(names) - known for row, names in rows.ROWS.items()}
    assert {row: names for row, names in uncovered.items() if names} == {}
    assert all(rows.ROWS.values())
    assert len(rows.THREAT_MODEL) == 27


def test_every_attack_belongs_to_a_row() -> None:
    covered = {_family(name) for names in rows.ROWS.values() for name in names}
    assert set(map(_family, ALL)) <= covered


def test_names_of_attacks_are_unique_and_acceptance_is_never_right() -> None:
    assert len(ALL) == len(STDIO) + len(FUNCTIONS)
    assert all(Status.ACCEPTED not in attack.statuses for attack in ALL.values())
    assert not any(EXPECTED in attack.program for attack in STDIO.values())


def test_guarantees_that_attacks_may_need_are_few() -> None:
    assert {attack.needs for attack in ALL.values()} - {None} == {
        Guarantee.PROCESS_LIMIT,
        Guarantee.TOTAL_MEMORY,
        Guarantee.TMP_SIZE,
        Guarantee.TMP_FILES,
    }


def test_no_process_of_a_program_outlives_its_test_on_this_machine(backend: Backend) -> None:
    mark = f"mark{os.getpid()}"
    source = f"""
def be_marked():
    libc()[1].prctl(15, {mark.encode()!r}, 0, 0, 0)
def work(report):
    be_marked()
    report()
    time.sleep(60)
for _ in range(3): daemon(work)
be_marked()  # not before: what is forked on the way to a daemon is none
time.sleep(1.5)
"""
    seen = 0
    with WorkerPool(backend, size=1) as pool, ThreadPoolExecutor(1) as thread:
        run = thread.submit(pool.run, (HEAD + source).encode(), b"attack\n", Limits())
        while not run.done():
            seen = max(seen, _processes_named(mark))
            time.sleep(0.01)
        assert run.result().status is None
        assert seen == 4
        assert _processes_named(mark) == 0


def _processes_named(mark: str) -> int:
    count = 0
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            count += path.read_text().strip() == mark
    return count


HOSTILE = (
    "fork bomb: errors ignored",
    "memory bomb",
    "signal everything",
    "signal the parent: SIGSTOP",
    "stdout flood",
    "fill the disk",
    "a daemon: holding the output",
    "a daemon: never at the same number",
    "files left behind: locked folders",
    "forge a result: through descriptors of the others",
    "end early: os._exit(0)",
    "change the others",
    "segfault",
    "infinite loop",
    "all signals ignored",
    "time of children hidden: in daemons",
)
CONCURRENCY = 8
PEACEFUL = Limits(cpu_s=1.0, memory_mb=256, output_bytes=1 << 16)


@pytest.mark.slow
async def test_honest_programs_among_hostile_ones_keep_their_verdicts_and_so_do_these(
    backend: Backend,
) -> None:
    wanted: list[tuple[Program, StdioCase, Limits, tuple[Status, ...]]] = []
    for name, program in honest.PROGRAMS.items():
        case = StdioCase(name=name, stdin=honest.STDIN, expected=honest.EXPECTED)
        wanted.append((Program(program.source), case, PEACEFUL, (program.status,)))
    for name in HOSTILE:
        attack = STDIO[name]
        case = StdioCase(name=name, stdin="attack\n", expected=EXPECTED)
        wanted.append((Program(attack.program), case, attack.limits, attack.statuses))
    half = len(honest.PROGRAMS)
    pairs = itertools.zip_longest(wanted[:half], wanted[half:])
    mixed = [each for pair in pairs for each in pair if each is not None]
    turns = asyncio.Semaphore(CONCURRENCY)
    with Grader(WorkerPool(backend, size=CONCURRENCY)) as grader:

        async def grade(program: Program, case: StdioCase, limits: Limits) -> Status:
            async with turns:
                return (await grader.agrade(program, [case], limits)).status

        statuses = await asyncio.gather(*(grade(*each[:3]) for each in mixed))
    wrong = {
        case.name: status
        for (_, case, _, right), status in zip(mixed, statuses, strict=True)
        if status not in right
    }
    assert wrong == {}
