"""The sandbox interface and its exception tree.

SandboxError                 the sandbox, not the program, is at fault; never a score
├── SandboxUnavailable       no backend can run here; the message names `sandbox doctor`
├── WorkerDied               a worker broke and the retries could not settle whose fault it was
├── ImageError               the guest image is missing and can't be built
└── UnsupportedCase          a case that this sandbox cannot judge (never scored, never guessed)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from .types import Case, Limits, Program, Report


class SandboxError(Exception):
    """The sandbox failed; nothing is known about the program."""


class SandboxUnavailable(SandboxError):
    """No backend can work on this machine."""


class WorkerDied(SandboxError):
    """A worker broke, and retrying could not show that the program was to blame."""


class ImageError(SandboxError):
    """The guest image is not there and could not be built."""


class UnsupportedCase(SandboxError):
    """The case needs something that the sandbox does not offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend guarantees on this machine, and what it does not."""

    backend: str
    isolated: bool
    """Whether untrusted programs may run in it at all."""
    guarantees: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Protections that are absent here, each in a few words."""


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
