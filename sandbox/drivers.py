"""Judging assert bodies: the test in one guest, the program in another, the host in between.

The program's guest knows its own source and the arguments of the calls, never the test. The test's
guest holds proxies of the program's functions, classes and objects; what is done to them crosses
the host as data (see `codec`, `graph`, `peers`). So a program can lie only about what its objects
answer, which is what the test is there to find out; which answers decide nothing, and leave the
case unsupported, is said in `proxies`. What of the test travels the other way:

    plain data, also of the standard library    by value; changes of containers come back
    instances of classes of the test            by value, as a graph with identities; attributes
                                                that the program sets come back
    functions, bound methods, lambdas           as callbacks, run in the test's guest
    anything else                               `UnsupportedCase`, never run in the program's guest

The definition of a class goes with its instances, so that their methods work in the program, as
they would in one process; what `definitions` refuses, makes the case unsupported.

Who is at fault when a test ends badly? An assertion: the program's answer was wrong. An exception
that came from a call: the program's runtime error. Any other exception once the program has
answered: its answer had the wrong shape, wrong too. But a test that fails before the first answer,
or that lacks a name or a module, is broken, and a broken test is no verdict: `UnsupportedCase`.
An assertion that fails in a callback fails the test even if the program swallows the exception. A
name that the test imports from `solution` and the program lacks, a message that no program of ours
sends and a reference to what was never handed out are the program's runtime errors; values, objects
or iterators beyond the caps are `output_limit_exceeded`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from . import bodies, bundle
from .base import UnsupportedCase, WorkerDied
from .relay import AssertOutcome, Ended, Relay, driver_limits
from .types import AssertCase, Limits, Program, Status
from .worker import Execution, Session

_CANDIDATE = (
    "codec",
    "standard",
    "graph",
    "peers",
    "stand_ins",
    "candidate_peer",
    "candidate_guest",
)
_DRIVER = (
    *("codec", "standard", "graph", "peers"),
    *("value_methods", "proxies", "driver_peer", "driver_guest"),
)
_IMPORTS = (
    *("collections", "contextlib", "copy", "functools", "itertools", "json", "math", "operator"),
    *("re", "typing"),
)
"""What these import of the standard library."""
_PYTEST = "pytest_guest"
_CANARY = b"print(42)"


class SessionPool(Protocol):
    """What this module needs of a pool."""

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program once."""
        ...

    def session(
        self, source: bytes, limits: Limits, *, alone: bool = False
    ) -> AbstractContextManager[Session]:
        """Lease a worker and start a program with a channel."""
        ...

    def is_suspicious(self, execution: Execution, limits: Limits) -> bool:
        """Whether a result may be the machine's doing and must be confirmed by a run alone."""
        ...

    def longer_limits(self, execution: Execution, limits: Limits) -> Limits | None:
        """Return limits to try a run with that may have been slowed down; None: it was not."""
        ...


def fingerprint() -> str:
    """Return a short hash of everything that this module puts into guests."""
    return bundle.fingerprint((*_CANDIDATE, *_DRIVER, _PYTEST))


def judge(
    program: Program,
    case: AssertCase,
    limits: Limits,
    *,
    programs: SessionPool,
    drivers: SessionPool,
) -> AssertOutcome:
    """Run one assert body against a program.

    Args:
        program: the untrusted program.
        case: the trusted test.
        limits: for the program; the test has limits of its own.
        programs: where the program runs.
        drivers: where the test runs; another pool, or a full one would wait for itself.

    Raises:
        UnsupportedCase: the test is broken or passes arguments that cannot be carried.
        SandboxError: a worker failed.
    """
    sources = candidate_source(program, case), driver_source(case)
    relay = Relay(case, limits)
    try:
        outcome = _attempt(relay, sources, programs, drivers)
        suspicious = programs.is_suspicious(outcome.execution, limits)
        longer = programs.longer_limits(outcome.execution, limits)
        if longer is not None:
            again = _attempt(Relay(case, longer), sources, programs, drivers)
            if again.status is Status.TIME_LIMIT_EXCEEDED:
                return _retried(outcome)
            suspicious = True
        if not suspicious:
            return outcome
        outcome = _attempt(Relay(case, limits), sources, programs, drivers, alone=True)
        return _retried(outcome)
    except WorkerDied:
        broke_before = relay.program_broke
        relay = Relay(case, limits)
    try:
        outcome = _attempt(relay, sources, programs, drivers)
    except WorkerDied as error:
        if not (broke_before and relay.program_broke):
            raise
        programs.run(_CANARY, b"", Limits())  # raises if no worker lives
        facts = Execution(status=Status.RUNTIME_ERROR, retried=True)
        message = f"it broke its sandbox twice: {error}"
        return AssertOutcome(status=Status.RUNTIME_ERROR, execution=facts, message=message)
    return _retried(outcome)


def _retried(outcome: AssertOutcome) -> AssertOutcome:
    return replace(outcome, execution=replace(outcome.execution, retried=True))


def _attempt(
    relay: Relay,
    sources: tuple[bytes, bytes],
    programs: SessionPool,
    drivers: SessionPool,
    *,
    alone: bool = False,
) -> AssertOutcome:
    program_source, driver_source = sources
    # Verdicts are caught inside the blocks: a block left by an exception costs its worker.
    broken: UnsupportedCase | None = None
    with programs.session(program_source, relay.limits, alone=alone) as program:
        ended = relay.load(program)
        if ended is None:
            with drivers.session(driver_source, driver_limits(relay.limits)) as driver:
                try:
                    relay.run(driver)
                except Ended as verdict:
                    ended = verdict
                except UnsupportedCase as error:
                    broken = error
        if broken is None:
            return relay.settle(ended or Ended(Status.ACCEPTED))
    raise broken


def candidate_source(program: Program, case: AssertCase) -> bytes:
    """Return what runs in the program's guest."""
    body = bodies.read(case.body, case.helpers, case.entry_point)
    units = [unit for name in body.shared if name in program.source for unit in body.classes[name]]
    arguments = (program.source, case.entry_point, units, body.shared)
    return bundle.source(_CANDIDATE, f"module.serve{arguments!a}", imports=_IMPORTS)


def driver_source(case: AssertCase) -> bytes:
    """Return what runs in the test's guest."""
    body = bodies.read(case.body, case.helpers, case.entry_point)
    options = {
        "call_check": body.call_check,
        "definitions": dict(body.classes),
        "shared": body.shared,
        "subjects": body.subjects,
        "tests": body.tests,
        "pytest": body.pytest,
    }
    arguments = (body.helpers, case.body, case.entry_point)
    modules = (_PYTEST, *_DRIVER) if body.pytest else _DRIVER
    call = f"module.drive(*{arguments!a}, **{options!a})"
    return bundle.source(modules, call, imports=_IMPORTS)
