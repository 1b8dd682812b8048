"""The judge of programs: take the program out of a reply, run it in `sandbox`, say what happened.

Public tests run first, all of them: their share is the score, and what they show is the feedback.
Probes follow, for the signature alone. Hidden tests run only where every public one passed, up to
the first that fails; with them `solved` is decided. Trouble of the sandbox is raised as
`JudgeUnavailable` and never becomes a score.

This is the only module that imports `sandbox`, and only when something has to be judged.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from ..errors import InvalidTask, JudgeUnavailable
from ..tasks.code import AssertBody, CodeTask, ExpectedCase, FunctionCall, Probe, Test
from .base import Feedback, Verdict
from .extract import Extractor, resolve_extractor
from .feedback import public_feedback
from .helpers import with_helpers
from .signatures import (
    answered,
    signature_of_probes,
    signature_of_tests,
)

if TYPE_CHECKING:
    from sandbox import Case, Limits, Program, Report, Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeStats:
    """What a judge has done since it was made."""

    nodes: int = 0
    """Completions judged."""
    cached_nodes: int = 0
    """Of these, those for which no test had to run."""
    cases: int = 0
    """Tests judged."""
    cached_cases: int = 0
    """Of these, those that were known already."""
    no_code: int = 0
    """Completions without a program."""
    unsupported: int = 0
    """Completions whose task has a test that the sandbox cannot judge."""

    @property
    def hit_rate(self) -> float:
        """Share of the tests that were known already; 0 before the first."""
        return self.cached_cases / self.cases if self.cases else 0.0


MAX_PROBES = 16
"""How many probes of a task a judge runs, unless it is told otherwise."""


class CodeJudge:
    """Judges completions of `CodeTask`s. Safe to call from several threads.

    A sandbox given by name is opened at the first judgement and shared by all judges of the process
    that ask for the same; it is closed when the process ends. A sandbox given as an object belongs
    to the caller. A judge can be pickled: the copy opens its sandbox anew, by name. A `deepcopy`
    shares the open sandbox. Copies count their statistics from zero.
    """

    def __init__(
        self,
        sandbox: str | Sandbox = "auto",
        *,
        time_limit_s: float | None = None,
        memory_mb: int | None = None,
        time_factor: float = 1.0,
        workers: int | None = None,
        cache: bool = True,
        extract: str | Extractor = "default",
        probes: int = MAX_PROBES,
    ) -> None:
        """Make a judge; nothing is opened yet.

        Args:
            sandbox: `"auto"`, `"docker"`, `"bubblewrap"`, `"local"` (trusted programs only), or an
                open sandbox.
            time_limit_s: CPU seconds per test, in place of the task's.
            memory_mb: MiB per test, in place of the task's.
            time_factor: multiplies every time limit: above 1 on a slow or busy machine.
            workers: how many programs may run at once; None leaves it to the sandbox.
            cache: whether equal (program, test, limits) are run once only.
            extract: how the program is taken out of a reply: "default", "lcb" (LiveCodeBench's
                rule), or a function from a reply to the program or None, or "module:name" of one.
            probes: how many of a task's probes are run at most; 0 leaves them out.

        Raises:
            ValueError: the time factor is not positive, the number of probes is negative, or there
                is no such extraction.
        """
        if not time_factor > 0:
            raise ValueError(f"time_factor must be positive, got {time_factor!r}")
        if probes < 0:
            raise ValueError(f"probes is a number of probes, at least 0, got {probes!r}")
        self.sandbox = sandbox if isinstance(sandbox, str) else sandbox.capabilities.backend
        self.time_limit_s = time_limit_s
        self.memory_mb = memory_mb
        self.time_factor = time_factor
        self.workers = workers
        self.cache = cache
        self.extract = extract
        self.probes = probes
        self._given = None if isinstance(sandbox, str) else sandbox
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._stats = JudgeStats()
        self._extract = resolve_extractor(self.extract)

    @property
    def stats(self) -> JudgeStats:
        """What has been judged so far."""
        return self._stats

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Judge a completion.

        Args:
            task: what was asked.
            completion: a reply of a language model, any text at all.

        Raises:
            JudgeUnavailable: the sandbox failed; the completion has no verdict.
            InvalidTask: the task's `helpers` are no Python, or its limits cannot be set.
        """
        program = self._extract(completion)
        if program is None:
            return self._without_tests(task, "no_code")
        program = with_helpers(program, task.helpers, task.entry_point)
        try:
            reports, probes = self._run(task, program)
        except _Unsupported:
            return self._without_tests(task, "unsupported", program)
        verdict = self._verdict(task, program, reports, probes)
        self._count(
            nodes=1,
            cached_nodes=int(verdict.cached),
            cases=sum(len(report.cases) for report in reports),
            cached_cases=sum(report.cached for report in reports),
        )
        return verdict

    def close(self) -> None:
        """Do nothing: shared sandboxes end with the process, others belong to the caller."""

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_lock", "_stats", "_given", "_extract"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._given = None
        self._reset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = self.__class__.__new__(self.__class__)
        copy.__setstate__(self.__getstate__())
        copy._given = self._given
        return copy

    def _limits(self, task: CodeTask) -> tuple[float, int]:
        seconds = task.time_limit_s if self.time_limit_s is None else self.time_limit_s
        memory = task.memory_mb if self.memory_mb is None else self.memory_mb
        return seconds * self.time_factor, memory

    def _run(self, task: CodeTask, program: str) -> tuple[list[Report], list[Report | None]]:
        """Run the public tests, the probes, and if all public tests pass the hidden ones.

        Returns:
            The reports on public and hidden tests, and those on the probes that were run,
            None in the place of a probe that cannot be carried.
        """
        package = sandbox_package()
        seconds, memory = self._limits(task)
        try:
            limits: Limits = package.Limits(cpu_s=seconds, memory_mb=memory)
        except ValueError as error:
            raise InvalidTask(f"task {task.task_id!r} cannot be judged: {error}") from error
        try:
            sandbox = self._given or shared_sandbox(
                self.sandbox, workers=self.workers, cache=self.cache
            )
            source = package.Program(program)
            reports = [sandbox.grade(source, sandbox_cases(package, task, task.public), limits)]
            probes: list[Report | None] = []
            if answered(reports[0].cases):
                for part in _doubling(self._probes(task)):
                    found = self._run_probes(sandbox, task, source, part, limits)
                    probes += found
                    if any(_ran_out_of_time(report) for report in found):
                        break
            if reports[0].accepted and task.hidden:
                hidden = sandbox_cases(package, task, task.hidden)
                reports.append(sandbox.grade(source, hidden, limits, stop_at_first_failure=True))
        except package.UnsupportedCase as error:
            raise _Unsupported from error
        except package.SandboxError as error:
            raise JudgeUnavailable(
                f"the sandbox could not judge task {task.task_id!r}: "
                f"{type(error).__name__}: {error}; `mars-envs sandbox doctor` says what works here"
            ) from error
        return reports, probes

    def _run_probes(
        self,
        sandbox: Sandbox,
        task: CodeTask,
        program: Program,
        probes: Sequence[Probe],
        limits: Limits,
    ) -> list[Report | None]:
        """Run some probes at once; one at a time where one of them cannot be carried."""
        package = sandbox_package()
        try:
            return [sandbox.grade(program, probe_cases(package, task, probes), limits)]
        except package.UnsupportedCase:
            if len(probes) == 1:
                return [None]
        return [
            report
            for probe in probes
            for report in self._run_probes(sandbox, task, program, [probe], limits)
        ]

    def _probes(self, task: CodeTask) -> tuple[Probe, ...]:
        return task.probes[: self.probes]

    def _verdict(
        self, task: CodeTask, program: str, reports: list[Report], probes: list[Report | None]
    ) -> Verdict:
        public = reports[0]
        seconds, memory = self._limits(task)
        failed = next((report for report in reports if not report.accepted), None)
        probed = [case for report in probes for case in (report.cases if report else (None,))]
        ran = [*reports, *filter(None, probes)]
        return Verdict(
            score=public.passed / len(task.public),
            solved=failed is None,
            status=str((failed or public).status),
            public_passed=public.passed,
            public_total=len(task.public),
            feedback=public_feedback(task, public.cases, time_limit_s=seconds, memory_mb=memory),
            program=program,
            cached=all(report.cached == len(report.cases) for report in ran),
            signature=(
                *signature_of_tests(task.public, public.cases),
                *signature_of_probes(probed, of=len(self._probes(task))),
            ),
        )

    def _without_tests(self, task: CodeTask, status: str, program: str = "") -> Verdict:
        self._count(nodes=1, **{status: 1})
        total = len(task.public)
        return Verdict(
            score=0.0,
            solved=False,
            status=status,
            public_passed=0,
            public_total=total,
            feedback=Feedback(passed=0, total=total, status=status),
            program=program,
        )

    def _count(self, **more: int) -> None:
        with self._lock:
            stats = self._stats
            self._stats = replace(
                stats, **{name: getattr(stats, name) + count for name, count in more.items()}
            )


class _Unsupported(Exception):
    """The sandbox cannot judge one of the task's tests."""


def sandbox_cases(package: ModuleType, task: CodeTask, tests: Iterable[Test]) -> list[Case]:
    """Return tests of a task as cases of the package `sandbox`."""
    rule = task.rule
    custom = package.CheckerProgram(source=task.checker) if task.checker else None
    output_checker = custom or package.Checker(
        kind=rule.kind,
        case_sensitive=rule.case_sensitive,
        space_change_sensitive=rule.space_change_sensitive,
        float_abs=rule.float_abs,
        float_rel=rule.float_rel,
    )
    given = {"float_abs": rule.float_abs, "float_rel": rule.float_rel}
    tolerances = given if set(given.values()) != {None} else {}
    value_checker = custom or package.ValueChecker(order=rule.order, **tolerances)
    cases: list[Case] = []
    for test in tests:
        if isinstance(test, AssertBody):
            case = package.AssertCase(
                name=test.name,
                body=test.body,
                entry_point=task.entry_point,
                helpers=task.helpers,
            )
        elif isinstance(test, FunctionCall):
            case = package.FunctionCase.from_json_lines(
                test.name,
                task.entry_point,
                test.arguments,
                test.expected,
                alternatives=tuple(map(json.loads, test.alternatives)),
                checker=value_checker,
            )
        else:
            case = package.StdioCase(
                name=test.name, stdin=test.input, expected=test.expected, checker=output_checker
            )
        cases.append(case)
    return cases


def probe_cases(package: ModuleType, task: CodeTask, probes: Iterable[Probe]) -> list[Case]:
    """Return probes of a task as cases, whose verdicts mean nothing.

    The rule of the task normalises the answers; a custom checker could not, so without one.
    """
    entry_point = task.entry_point
    if entry_point is None:
        texts = [ExpectedCase(name=p.name, input=p.input, expected="") for p in probes]
        return sandbox_cases(package, replace(task, checker=""), texts)
    calls = [FunctionCall(name=p.name, arguments=p.input, expected="null") for p in probes]
    # A program is called as its tests call it.
    assume = "nothing" if isinstance(task.public[0], AssertBody) else "leetcode"
    cases: list[Any] = sandbox_cases(package, replace(task, checker=""), calls)
    return [replace(case, assume=assume) for case in cases]


def _ran_out_of_time(report: Report | None) -> bool:
    return report is not None and any(case.status == "time_limit_exceeded" for case in report.cases)


def _doubling(probes: Sequence[Probe]) -> Iterator[Sequence[Probe]]:
    """Cut probes into parts of 1, 2, 4, ...: few calls, and an early chance to stop."""
    start, size = 0, 1
    while start < len(probes):
        yield probes[start : start + size]
        start, size = start + size, 2 * size


_shared: dict[tuple[Hashable, ...], Sandbox] = {}
_shared_lock = threading.Lock()


def shared_sandbox(
    name: str, *, workers: int | None = None, cache: bool = True, **options: Hashable
) -> Sandbox:
    """Return this process's sandbox of that name, opened at the first call.

    Args:
        name: of its backend, or `auto`.
        workers: how many programs may run at once; None leaves it to the sandbox.
        cache: whether it remembers what programs did.
        options: of the backend, which has to be named then.

    Raises:
        sandbox.SandboxError: it cannot be opened.
        ImportError: the package `sandbox` is not ours.
    """
    # A forked child must not talk to its parent's workers, so it opens its own.
    key = (os.getpid(), name, workers, cache, *sorted(options.items()))
    with _shared_lock:
        if key not in _shared:
            package = sandbox_package()
            _shared[key] = package.open_sandbox(name, workers=workers, cache=cache, **options)
        return _shared[key]


@atexit.register
def close_shared_sandboxes() -> None:
    """Close what `shared_sandbox` opened in this process; the next call opens it again."""
    with _shared_lock:
        mine = [key for key in _shared if key[0] == os.getpid()]
        sandboxes = [_shared.pop(key) for key in mine]
    for sandbox in sandboxes:
        sandbox.close()


def sandbox_package() -> ModuleType:
    """Import our `sandbox`; the name is common, so another package may stand before it."""
    import sandbox

    if getattr(sandbox, "__distribution__", None) != "mars-envs":
        where = getattr(sandbox, "__file__", None) or list(getattr(sandbox, "__path__", []))
        raise ImportError(
            f"expected the package `sandbox` of mars-envs, found another one at {where}; rename or "
            "remove it, run from another folder, or uninstall the distribution that brought it"
        )
    return sandbox
