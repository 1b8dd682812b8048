"""Submissions in, results out: every program in the sandbox, several at once, none of them lost.

A failure of the sandbox while it grades one submission is written down as such: it has no verdict,
and the others go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidTask
from ..judging.agreement import agrees
from ..judging.code import sandbox_cases, sandbox_package
from ..judging.extract import extract_program
from ..judging.helpers import with_helpers
from ..tasks.code import AssertBody, CodeTask, Test
from ..tasks.submissions import Submission
from .config import Tests

if TYPE_CHECKING:
    from sandbox import Case, Limits, Report, Sandbox

NOT_GRADED = ("unsupported", "checker_failed", "infrastructure")
"""What takes the place of a status where there is no verdict."""

_MORE_MEMORY = "give workers more with --worker-memory-mb, or programs less with --memory-mb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A submission with its task; `set` names the file that it comes from."""

    set: str
    task: CodeTask
    submission: Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedTest:
    """What one test said."""

    name: str
    status: str
    cpu_s: float
    message: str = ""
    recorded: str | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether this is the recorded verdict; None where none was recorded."""
        return None if self.recorded is None else agrees(self.recorded, self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """What became of one submission."""

    set: str
    task_id: str
    name: str
    status: str
    """A word of `sandbox.Status`, `no_code`, or one of `NOT_GRADED`."""
    recorded: str = ""
    message: str = ""
    """Of the first test that failed, or why there is no verdict."""
    backend: str = ""
    tests: tuple[GradedTest, ...] = ()
    total: int = 0
    """How many tests there are, run or not."""
    points: float | None = None
    """Of a problem with scoring groups, all of whose tests were run."""
    max_points: float | None = None
    key: str = ""
    """Hash of all that the result depends on."""

    @property
    def graded(self) -> bool:
        """Whether there is a verdict."""
        return self.status not in NOT_GRADED

    @property
    def agrees(self) -> bool | None:
        """Whether this is the recorded verdict; None where none was recorded or given."""
        if not self.graded or not self.recorded:
            return None
        return agrees(self.recorded, self.status, [test.status for test in self.tests])

    @property
    def differs(self) -> bool:
        """Whether the verdict on the submission or on one of its tests is not the recorded one."""
        return self.agrees is False or any(test.agrees is False for test in self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """The settings of a grading that change results."""

    tests: Tests = "auto"
    stop_at_first_failure: bool = False
    time_factor: float = 1.0
    memory_mb: int | None = None
    preamble: str = ""
    """Source put before every whole program, as some harnesses put imports."""
    packages: tuple[str, ...] = ()
    """What programs may import besides the standard library."""
    python: str | None = None
    """The interpreter that they run in; None: the one that runs here."""


class Grading:
    """Grades items in one sandbox.

    Args:
        sandbox: where programs run; it belongs to the caller.
        how: which tests, under which limits.
        workers: how many are graded at once.
    """

    def __init__(self, sandbox: Sandbox, how: How, *, workers: int) -> None:
        self._sandbox = sandbox
        self._how = how
        self._workers = workers
        self._package = sandbox_package()

    def run(self, items: Sequence[Item]) -> Iterator[Graded]:
        """Yield results as they come, in no particular order."""
        with ThreadPoolExecutor(self._workers, thread_name_prefix="grade") as threads:
            futures: list[Future[Graded]] = [threads.submit(self.grade, item) for item in items]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def key(self, item: Item) -> str:
        """Return a hash of program, tests, limits and sandbox: equal keys, equal results."""
        try:
            judged_by: tuple[object, ...] = (self._cases(item), self._limits(item.task))
        except ValueError as error:
            judged_by = (_line(error),)  # has no verdict, so no later run takes it over
        parts = (
            program_of(item, self._how.preamble),
            *judged_by,
            self._how.stop_at_first_failure,
            self._sandbox.capabilities.backend,
            self._how.packages,
            self._how.python,
        )
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def grade(self, item: Item) -> Graded:
        """Grade one submission. Trouble of the sandbox is a result without a verdict."""
        program = program_of(item, self._how.preamble)
        if program is None:
            return self._graded(item, status="no_code", message="the reply holds no program")
        package = self._package
        try:
            report = self._sandbox.grade(
                package.Program(program),
                self._cases(item),
                self._limits(item.task),
                stop_at_first_failure=self._how.stop_at_first_failure,
            )
        except package.UnsupportedCase as error:
            return self._graded(item, status="unsupported", message=_line(error))
        except ValueError as error:
            # A limit that no worker of this backend can keep, or a test that is none.
            message = _line(error).replace("give the backend more: memory_mb=...", _MORE_MEMORY)
            return self._graded(item, status="unsupported", message=message)
        except package.CheckerFailed as error:
            return self._graded(item, status="checker_failed", message=_line(error))
        except (package.SandboxError, OSError) as error:
            message = f"{type(error).__name__}: {_line(error)}"
            return self._graded(item, status="infrastructure", message=message)
        return self._from_report(item, report)

    def _from_report(self, item: Item, report: Report) -> Graded:
        recorded = [word for _, word in tests_of(item, self._how.tests)]
        tests = tuple(
            GradedTest(
                name=case.name,
                status=str(case.status),
                cpu_s=round(case.cpu_s, 4),
                message=case.message,
                recorded=word,
            )
            for case, word in zip(report.cases, recorded, strict=False)
        )
        failed = next((test for test in tests if test.status != "accepted"), None)
        message = f"{failed.name}: {failed.message}" if failed is not None else ""
        return self._graded(
            item,
            status=str(report.status),
            message=message,
            tests=tests,
            **self._points(item.task, report),
        )

    def _points(self, task: CodeTask, report: Report) -> dict[str, float]:
        """Score the groups of a task; without all of its tests, nothing is known of them."""
        if not task.groups or len(report.cases) < len(task.public) + len(task.hidden):
            return {}
        groups = [
            self._package.ScoringGroup(name=group.name, points=group.points, cases=group.tests)
            for group in task.groups
        ]
        scores = self._package.score_groups(report.cases, groups)
        return {"points": scores.points, "max_points": scores.max_points}

    def _graded(self, item: Item, **fields: Any) -> Graded:
        return Graded(
            set=item.set,
            task_id=item.task.task_id,
            name=item.submission.name,
            recorded=item.submission.recorded,
            backend=self._sandbox.capabilities.backend,
            total=len(tests_of(item, self._how.tests)),
            key=self.key(item),
            **fields,
        )

    def _cases(self, item: Item) -> list[Case]:
        tests = [test for test, _ in tests_of(item, self._how.tests)]
        return sandbox_cases(self._package, item.task, tests)

    def _limits(self, task: CodeTask) -> Limits:
        memory = task.memory_mb if self._how.memory_mb is None else self._how.memory_mb
        limits: Limits = self._package.Limits(
            cpu_s=task.time_limit_s * self._how.time_factor, memory_mb=memory
        )
        return limits


def tests_of(item: Item, which: Tests) -> list[tuple[Test, str | None]]:
    """Return the tests to be run, in that order, with the verdicts recorded for them, if any.

    `auto` is what the data set's own judge runs: every test on standard input, or the hidden bodies
    of asserts, which hold the public ones. There are always some: without hidden tests, `hidden`
    means the public ones, which then serve as both; without any recorded verdict, `recorded` means
    `auto`.
    """
    task = item.task
    every: list[Test] = [*task.public, *task.hidden]
    words = item.submission.recorded_tests or (None,) * len(every)
    pairs = list(zip(every, words, strict=True))
    if which == "recorded":
        found = [pair for pair in pairs if pair[1] is not None]
        if found:
            return found
    hidden = pairs[len(task.public) :] or pairs
    asserts = any(isinstance(test, AssertBody) for test, _ in hidden)
    if which == "hidden" or (which in ("auto", "recorded") and asserts):
        return hidden
    return pairs[: len(task.public)] if which == "public" else pairs


def program_of(item: Item, preamble: str = "") -> str | None:
    """Return the program of a submission as it is run; None where a reply holds none.

    A program runs as it was written, behind the preamble if there is one. A completion continues
    its prompt. A reply goes through code extraction and may rely on what its task's prompt defines,
    as in the environments.

    Raises:
        InvalidTask: a completion has no prompt.
    """
    submission, task = item.submission, item.task
    if submission.form == "reply":
        program = extract_program(submission.text).program
        return program and with_helpers(program, task.helpers, task.entry_point)
    if submission.form == "full_program":
        return f"{preamble}\n{submission.text}" if preamble else submission.text
    prompt = submission.prompt if submission.prompt is not None else task.helpers
    if not prompt:
        raise InvalidTask(
            f"{item.set}: {submission.name} is a {submission.form}, but its task "
            f"{task.task_id!r} has no prompt that it could continue; give it a `prompt`, or say "
            '`"form": "full_program"`'
        )
    return prompt + submission.text


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
