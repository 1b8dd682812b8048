"""The sandbox that users see: programs and cases in, a report out.

A grader puts three things together: a pool that runs programs, a comparison that runs here, and a
cache of what ran before. Tests in the form of code, and custom checkers, run in a second pool: one
that served both could fill up with programs that wait for their tests. How each kind of case is
judged is in `grading`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from . import bundle, checkers, drivers, functions
from .base import Capabilities, SandboxError
from .cache import CacheStats, FlightCache, key
from .checkers import CheckerVerdict
from .grading import Grading
from .pool import WorkerPool
from .relay import AssertOutcome
from .threads import BoundedThreads
from .types import AssertCase, Case, Limits, Program, Report, Status
from .worker import Execution

_UNSTABLE = (Status.TIME_LIMIT_EXCEEDED, Status.MEMORY_LIMIT_EXCEEDED)
_THREADS_PER_WORKER = 4
_MODULES = (functions.MODULES, checkers.MODULES)


class RunCache:
    """What graders remember: executions of programs, outcomes of assert bodies, custom verdicts.

    Args:
        max_bytes: most to keep in memory, of each kind.
    """

    def __init__(self, *, max_bytes: int = 128 << 20) -> None:
        self.executions: FlightCache[Execution] = FlightCache(
            size=lambda run: len(run.stdout) + len(run.stderr),
            keep=_may_keep,
            max_bytes=max_bytes,
        )
        self.outcomes: FlightCache[AssertOutcome] = FlightCache(
            size=lambda outcome: len(outcome.execution.stdout) + len(outcome.execution.stderr),
            keep=lambda outcome: outcome.status not in _UNSTABLE and _may_keep(outcome.execution),
            max_bytes=max_bytes,
        )

        self.verdicts: FlightCache[CheckerVerdict] = FlightCache(
            size=lambda verdict: len(verdict.message), keep=lambda _: True, max_bytes=max_bytes
        )

    @property
    def stats(self) -> CacheStats:
        """Counts of programs' runs so far; what checkers said is not among them."""
        return self.executions.stats + self.outcomes.stats


class Grader:
    """Grades programs. Implements `Sandbox`; safe to call from many threads at once.

    Args:
        pool: runs the programs; closed with the grader.
        driver_pool: runs assert bodies; None makes one of the same backend when it is needed.
        cache: what ran before; None forgets everything at once. May be shared between graders.
    """

    def __init__(
        self,
        pool: WorkerPool,
        driver_pool: WorkerPool | None = None,
        cache: RunCache | None = None,
    ) -> None:
        self._pool = pool
        self._driver_pool = driver_pool
        # Programs and their tests come in pairs, and a program must not wait for its test's worker.
        self._pairs = threading.BoundedSemaphore((driver_pool or pool).size)
        self._cache = cache
        self._lock = threading.Lock()
        self._threads = BoundedThreads(
            _THREADS_PER_WORKER * pool.size, max_waiting=pool.max_waiting, wait_s=pool.wait_s
        )
        self._fingerprint: str | None = None
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """What this sandbox guarantees here."""
        return self._pool.capabilities

    @property
    def fingerprint(self) -> str:
        """A short hash of backend, guest and interpreter: part of every cache key."""
        if self._fingerprint is None:
            ours = (drivers.fingerprint(), *map(bundle.fingerprint, _MODULES))
            text = " ".join((self._pool.backend.fingerprint, *ours))
            self._fingerprint = key(text).hex()[:16]
        return self._fingerprint

    @property
    def stats(self) -> CacheStats:
        """Cache hits and misses so far; all zero without a cache."""
        return self._cache.stats if self._cache is not None else CacheStats()

    def grade(
        self,
        program: Program,
        cases: Iterable[Case],
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
            UnsupportedCase: a case is broken, or needs something that cannot be carried.
            CheckerFailed: a custom checker gave no verdict.
            RuntimeError: the sandbox has been closed.
            ValueError: no cases were given.
            TypeError: something given is of another type.
        """
        cases = _checked(program, cases, limits)
        if self._closed:
            raise RuntimeError("the sandbox is closed; open another")
        grading = Grading(self, program, limits or Limits(), stop=stop_at_first_failure)
        results = grading.results(cases)
        failed = next((case for case, _ in results if case.status is not Status.ACCEPTED), None)
        if failed is None and len(results) != len(cases):
            raise SandboxError(
                f"expected a result for each of {len(cases)} cases, got {len(results)}; this is a "
                "fault of the sandbox, so the program has no verdict"
            )
        capabilities = self.capabilities
        return Report(
            status=Status.ACCEPTED if failed is None else failed.status,
            cases=tuple(case for case, _ in results),
            backend=capabilities.backend,
            isolated=capabilities.isolated,
            cached=sum(known for _, known in results),
        )

    async def agrade(
        self,
        program: Program,
        cases: Iterable[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        """`grade`, awaited.

        Any number may be awaited at once: they take turns in a few threads of the grader's own.
        One that is cancelled gives its worker up at once.

        Raises:
            QueueFull: no thread or worker was free in time, where a limit is set.
            SandboxError: the sandbox failed, or was closed meanwhile; the program has no verdict.
            RuntimeError: the sandbox had been closed before.
            ValueError: no cases were given.
            TypeError: something given is of another type.
        """
        # Here, not in a thread: an iterator belongs to the task that made it.
        cases = _checked(program, cases, limits)

        def work() -> Report:
            return self.grade(program, cases, limits, stop_at_first_failure=stop_at_first_failure)

        if self._closed:
            raise RuntimeError("the sandbox is closed; open another")
        return await self._threads.run(work)

    def close(self) -> None:
        """Stop every worker and return when they are gone. Safe to call twice, from any thread.

        Gradings that wait or run in other threads end with a `SandboxError`.
        """
        with self._lock:
            self._closed = True
        self._threads.refuse()
        self._pool.close()
        if self._driver_pool is not None:
            self._driver_pool.close()
        self._threads.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What `Grading` needs (see `grading.Place`).

    @property
    def pool(self) -> WorkerPool:
        """Runs the programs."""
        return self._pool

    @property
    def cache(self) -> RunCache | None:
        """What ran before."""
        return self._cache

    def judge_assert(self, program: Program, case: AssertCase, limits: Limits) -> AssertOutcome:
        """Run an assert body against a program, each in a worker of its own."""
        with self._pairs:
            return drivers.judge(
                program, case, limits, programs=self._pool, drivers=self._trusted_pool()
            )

    def run_checker(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a checker in the pool of trusted programs."""
        return self._trusted_pool().run(source, stdin, limits)

    def _trusted_pool(self) -> WorkerPool:
        with self._lock:
            if self._driver_pool is None:
                self._driver_pool = WorkerPool(self._pool.backend, size=self._pool.size)
            return self._driver_pool


def _checked(program: object, cases: object, limits: object) -> tuple[Case, ...]:
    """Return the cases, of any iterable, once everything is of its type."""
    if not isinstance(program, Program):
        hint = "; wrap the text: Program(source)" if isinstance(program, str) else ""
        raise TypeError(f"program is a sandbox.Program, got {program!r:.60}{hint}")
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(
            f"limits is a sandbox.Limits or None, got {limits!r:.60}; "
            "say, Limits(cpu_s=2.0, memory_mb=512)"
        )
    if isinstance(cases, Case):
        raise TypeError(
            f"cases is a list of cases, got one case; write [{type(cases).__name__}(…)]"
        )
    if not isinstance(cases, Iterable):
        raise TypeError(f"cases is a list of cases, got {cases!r:.60}")
    found = tuple(cases)
    if not found:
        raise ValueError("a program needs at least one case to be graded; got none")
    for case in found:
        if not isinstance(case, Case):
            raise TypeError(
                f"a case is a StdioCase, a FunctionCase or an AssertCase, not {case!r:.100}"
            )
    return found


def _may_keep(execution: Execution) -> bool:
    return not execution.retried and execution.status not in _UNSTABLE
