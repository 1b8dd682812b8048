"""The sandbox interface and its exception tree.

SandboxError                 the sandbox, not the program, is at fault; never a score
├── SandboxUnavailable       no backend can run here; the message names `sandbox doctor`
├── WorkerDied               a worker broke and the retries could not settle whose fault it was
├── QueueFull                too many programs wait for a worker, or one waited too long
├── ImageError               the guest image is missing and can't be built
├── CheckerFailed            a custom checker gave no verdict: it broke, or ran out of its limits
├── ReferenceRejected        a reference solution is not accepted: the problem's data are wrong
└── UnsupportedCase          a case that this sandbox cannot judge (never scored, never guessed)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from .types import Case, Limits, Program, Report


class SandboxError(Exception):
    """The sandbox failed; nothing is known about the program."""


class SandboxUnavailable(SandboxError):
    """No backend can work on this machine."""


class WorkerDied(SandboxError):
    """A worker broke, and retrying could not show that the program was to blame."""


class QueueFull(SandboxError):
    """No worker was free in time, and the caller had said how long to wait or in how long a line.

    Raised only where `max_waiting` or `wait_s` was given.
    """


class ImageError(SandboxError):
    """The guest image is not there and could not be built."""


class CheckerFailed(SandboxError):
    """A custom checker gave no verdict, which says nothing about the program."""


class ReferenceRejected(SandboxError):
    """A problem's own solution is not accepted: its tests, limits or checker are wrong."""


class UnsupportedCase(SandboxError):
    """The case needs something that the sandbox does not offer."""


class Guarantee(StrEnum):
    """One protection that a backend has on this machine or lacks, with a sentence for people.

    The corpus of hostile programs holds each backend to those that it names; an attack that
    needs one that is missing is the only kind that may be left out.
    """

    sentence: str

    def __new__(cls, name: str, sentence: str) -> Self:
        """Make a member of a name for programs and a sentence for people."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        return member

    OWN_FILES = "own_files", "files: an interpreter, a few devices, a /tmp"
    OWN_PROCESSES = "own_processes", "a process table of its own"
    NO_NETWORK = "no_network", "no network, not even to this machine"
    CALL_FILTER = "call_filter", "no tracing, mounts, namespaces or modules"
    SEPARATE_TESTS = "separate_tests", "no test reaches another, or its judge"
    TEST_LIMITS = "test_limits", "limits on a test's time, memory and output"
    PROCESS_LIMIT = "process_limit", "a limit on a test's processes"
    TOTAL_MEMORY = "total_memory", "a limit on the memory of all processes"
    TMP_SIZE = "tmp_size", "a limit on the bytes in /tmp"
    TMP_FILES = "tmp_files", "a limit on the number of files in /tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend guarantees on this machine, and what it does not."""

    backend: str
    isolated: bool
    """Whether untrusted programs may run in it at all."""
    guarantees: frozenset[Guarantee] = frozenset()

    @property
    def missing(self) -> tuple[Guarantee, ...]:
        """Every protection that is absent here."""
        return tuple(each for each in Guarantee if each not in self.guarantees)


class Sandbox(Protocol):
    """Runs untrusted programs. Safe to call from many threads at once."""

    @property
    def capabilities(self) -> Capabilities:
        """What this sandbox guarantees here."""
        ...

    @property
    def fingerprint(self) -> str:
        """A short hash of backend, guest and interpreter: part of every cache key."""
        ...

    def grade(
        self,
        program: Program,
        cases: Sequence[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        """Run `program` on `cases` and compare on the host.

        Args:
            program: the untrusted program.
            cases: at least one case.
            limits: per case; None takes the defaults of `Limits`.
            stop_at_first_failure: leave out the cases after the first one that fails.

        Raises:
            SandboxError: the sandbox failed; the program has no verdict.
            ValueError: no cases were given.
        """
        ...

    async def agrade(
        self,
        program: Program,
        cases: Sequence[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        """`grade`, awaited."""
        ...

    def close(self) -> None:
        """Stop and remove every worker. Safe to call twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
