"""The sandbox that users see: programs and cases in, a report out.

A grader puts three things together: a pool that runs programs, a comparison that runs here, and a
cache of what ran before. Tests in the form of code run in a second pool: one that served both could
fill up with programs that wait for their tests.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from . import compare, drivers
from .base import Capabilities
from .cache import CacheStats, FlightCache, key
from .pool import WorkerPool
from .relay import AssertOutcome
from .types import AssertCase, Case, CaseResult, Limits, Program, Report, Status, StdioCase
from .worker import Execution

_UNSTABLE = (Status.TIME_LIMIT_EXCEEDED, Status.MEMORY_LIMIT_EXCEEDED)
_THREADS_PER_WORKER = 4
_MESSAGE_CHARACTERS = 300

V = TypeVar("V")


class RunCache:
    """What graders remember: executions of programs, and outcomes of assert bodies.

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

    @property
    def stats(self) -> CacheStats:
        """Counts so far, of both kinds together."""
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
        self._threads: ThreadPoolExecutor | None = None
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
            text = f"{self._pool.backend.fingerprint} {drivers.fingerprint()}"
            self._fingerprint = key(text).hex()[:16]
        return self._fingerprint

    @property
    def stats(self) -> CacheStats:
        """Cache hits and misses so far; all zero without a cache."""
        return self._cache.stats if self._cache is not None else CacheStats()

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
            UnsupportedCase: a case is broken, or needs something that cannot be carried.
            RuntimeError: the sandbox has been closed.
            ValueError: no cases were given.
        """
        if not cases:
            raise ValueError("a program needs at least one case to be graded; got none")
        for case in cases:
            if not isinstance(case, (StdioCase, AssertCase)):
                raise TypeError(f"a case is a StdioCase or an AssertCase, not {case!r:.100}")
        if self._closed:
            raise RuntimeError("the sandbox is closed; open another")
        grading = _Grading(self, program, limits or Limits(), stop=stop_at_first_failure)
        results: list[tuple[CaseResult, bool]] = []
        for _, group in itertools.groupby(cases, key=type):
            members = list(group)
            results += grading.stdio([case for case in members if isinstance(case, StdioCase)])
            results += grading.asserts([case for case in members if isinstance(case, AssertCase)])
            if stop_at_first_failure and results[-1][0].status is not Status.ACCEPTED:
                break
        return self._report(results)

    async def agrade(
        self,
        program: Program,
        cases: Sequence[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        """`grade`, awaited. Runs in threads of the grader's own."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    max_workers=_THREADS_PER_WORKER * self._pool.size,
                    thread_name_prefix="sandbox-grader",
                )
            threads = self._threads

        def work() -> Report:
            return self.grade(program, cases, limits, stop_at_first_failure=stop_at_first_failure)

        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def close(self) -> None:
        """Stop and remove every worker. Safe to call twice."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        self._pool.close()
        if self._driver_pool is not None:
            self._driver_pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _judge_assert(self, program: Program, case: AssertCase, limits: Limits) -> AssertOutcome:
        with self._lock:
            if self._driver_pool is None:
                self._driver_pool = WorkerPool(self._pool.backend, size=self._pool.size)
            driver_pool = self._driver_pool
        with self._pairs:
            return drivers.judge(program, case, limits, programs=self._pool, drivers=driver_pool)

    def _report(self, results: list[tuple[CaseResult, bool]]) -> Report:
        cases = tuple(result for result, _ in results)
        failed = (case.status for case in cases if case.status is not Status.ACCEPTED)
        capabilities = self.capabilities
        return Report(
            status=next(failed, Status.ACCEPTED),
            cases=cases,
            backend=capabilities.backend,
            isolated=capabilities.isolated,
            cached=sum(known for _, known in results),
        )


class _Grading:
    """One call of `Grader.grade`."""

    def __init__(self, grader: Grader, program: Program, limits: Limits, *, stop: bool) -> None:
        self._grader = grader
        self._program = program
        self._source = compare.encode_text(program.source)
        self._limits = limits
        self._stop = stop

    def stdio(self, cases: Sequence[StdioCase]) -> list[tuple[CaseResult, bool]]:
        """Run cases on standard input, all that is not known in one worker."""
        stdins = [_stdin(case) for case in cases]
        pool = self._grader._pool

        def run(wanted: list[int], took: Callable[[Execution], bool]) -> None:
            inputs = [stdins[position] for position in wanted]
            pool.run_many(self._source, inputs, self._limits, stop=took)

        def judge(position: int, execution: Execution) -> CaseResult:
            return _stdio_result(cases[position], execution)

        cache = self._grader._cache
        return self._results(cache.executions if cache else None, stdins, run, judge)

    def asserts(self, cases: Sequence[AssertCase]) -> list[tuple[CaseResult, bool]]:
        """Run assert bodies, one after another."""

        def run(wanted: list[int], took: Callable[[AssertOutcome], bool]) -> None:
            for position in wanted:
                if took(self._grader._judge_assert(self._program, cases[position], self._limits)):
                    break

        def judge(position: int, outcome: AssertOutcome) -> CaseResult:
            return _assert_result(cases[position], outcome)

        tests = [key(case.body, case.entry_point, case.helpers) for case in cases]
        cache = self._grader._cache
        return self._results(cache.outcomes if cache else None, tests, run, judge)

    def _results(
        self,
        cache: FlightCache[V] | None,
        inputs: Sequence[bytes],
        run: Callable[[list[int], Callable[[V], bool]], None],
        judge: Callable[[int, V], CaseResult],
    ) -> list[tuple[CaseResult, bool]]:
        """Run or recall each input, up to the first failure if that ends the grading."""

        def last(position: int, value: V) -> bool:
            return self._stop and judge(position, value).status is not Status.ACCEPTED

        if cache is None:
            values: list[tuple[V, bool]] = []

            def took(value: V) -> bool:
                values.append((value, False))
                return last(len(values) - 1, value)

            run(list(range(len(inputs))), took)
        else:
            common = key(self._source, repr(self._limits), self._grader.fingerprint)
            values = cache.resolve([key(common, data) for data in inputs], run, last=last)
        return [(judge(position, value), known) for position, (value, known) in enumerate(values)]


def _stdin(case: StdioCase) -> bytes:
    """Return a case's input; its last line ends like the others."""
    data = compare.encode_text(case.stdin)
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _stdio_result(case: StdioCase, execution: Execution) -> CaseResult:
    status = execution.status
    if status is None:
        difference = compare.explain(execution.stdout, case.expected, case.checker)
        status = Status.ACCEPTED if difference is None else Status.WRONG_ANSWER
        message = difference or ""
    else:
        message = _last_words(execution)
    return _result(case.name, status, execution, message, execution.stderr)


def _assert_result(case: AssertCase, outcome: AssertOutcome) -> CaseResult:
    execution = outcome.execution
    message = outcome.message
    if not message and outcome.status is not Status.ACCEPTED:
        message = _last_words(execution)
    stderr = compare.encode_text(outcome.trace) or execution.stderr
    return _result(case.name, outcome.status, execution, message, stderr)


def _result(
    name: str, status: Status, execution: Execution, message: str, stderr: bytes
) -> CaseResult:
    return CaseResult(
        name=name,
        status=status,
        cpu_s=execution.cpu_s,
        wall_s=execution.wall_s,
        max_rss_kb=execution.max_rss_kb,
        exit_code=execution.exit_code,
        signal=execution.signal,
        stdout=execution.stdout.decode("utf-8", "surrogateescape"),
        stderr=stderr.decode("utf-8", "surrogateescape"),
        message=message[:_MESSAGE_CHARACTERS],
    )


def _last_words(execution: Execution) -> str:
    """Return the last line of standard error, or how the process ended."""
    lines = execution.stderr.decode("utf-8", "replace").strip().splitlines()
    if lines:
        return lines[-1].strip()
    if execution.signal is not None:
        return f"ended by signal {execution.signal}"
    return f"exit status {execution.exit_code}" if execution.exit_code else ""


def _may_keep(execution: Execution) -> bool:
    return not execution.retried and execution.status not in _UNSTABLE
