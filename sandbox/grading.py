"""One call of a grader: each kind of case is run, remembered and judged in its own way.

Neighbouring cases that need the same program in a guest share a worker, one process for each case.
A case is judged by itself alone, so neither its place among others nor where a grading stops can
change its verdict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from . import checkers, compare, digests, functions, values
from .cache import FlightCache, key
from .checkers import CheckerVerdict
from .codec import Tree
from .relay import AssertOutcome
from .results import exceeded, last_words, result
from .types import (
    AssertCase,
    Case,
    CaseResult,
    Checker,
    CheckerProgram,
    FunctionCase,
    Limits,
    Program,
    Status,
    StdioCase,
    ValueChecker,
)
from .worker import Execution

V = TypeVar("V")
_Results = list[tuple[CaseResult, bool]]
"""Results, and whether each was known without a run."""


class Pool(Protocol):
    """What is needed of a pool of workers."""

    def run_many(
        self,
        source: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        stop: Callable[[Execution], bool] | None = None,
    ) -> list[Execution]:
        """Run a program on one input after another."""
        ...


class Memory(Protocol):
    """What is remembered between gradings."""

    executions: FlightCache[Execution]
    outcomes: FlightCache[AssertOutcome]
    verdicts: FlightCache[CheckerVerdict]


class Place(Protocol):
    """Where cases are run."""

    @property
    def pool(self) -> Pool:
        """Runs the programs."""
        ...

    @property
    def cache(self) -> Memory | None:
        """What ran before; None: forgotten."""
        ...

    @property
    def fingerprint(self) -> str:
        """Part of every key."""
        ...

    def judge_assert(self, program: Program, case: AssertCase, limits: Limits) -> AssertOutcome:
        """Run an assert body against a program."""
        ...

    def run_checker(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a trusted program where no untrusted one runs."""
        ...


class Grading:
    """One call of `Grader.grade`.

    Args:
        place: where to run.
        program: the untrusted program.
        limits: for each case.
        stop: leave out the cases after the first that fails.
    """

    def __init__(self, place: Place, program: Program, limits: Limits, *, stop: bool) -> None:
        self._place = place
        self._program = program
        self._source = compare.encode_text(program.source)
        self._limits = limits
        self._stop = stop

    def results(self, cases: Sequence[Case]) -> _Results:
        """Judge `cases` in their order, up to the first failure if that ends the grading."""
        results: _Results = []
        for source, batch in itertools.groupby(cases, key=self._source_for):
            results += self._batch(source, list(batch))
            if self._stop and results[-1][0].status is not Status.ACCEPTED:
                break
        return results

    def _source_for(self, case: Case) -> tuple[type, bytes]:
        """Return what runs in a guest for a case: neighbours with the same can share a worker."""
        if isinstance(case, FunctionCase):
            return FunctionCase, functions.source(self._program, case)
        return type(case), self._source

    def _batch(self, source: tuple[type, bytes], cases: list[Case]) -> _Results:
        """Judge cases of one kind."""
        calls = [case for case in cases if isinstance(case, FunctionCase)]
        stdio = [case for case in cases if isinstance(case, StdioCase)]
        if calls:
            return self._functions(calls, source[1])
        if stdio:
            return self._stdio(stdio)
        return self._asserts([case for case in cases if isinstance(case, AssertCase)])

    def _stdio(self, cases: Sequence[StdioCase]) -> _Results:
        def judge(position: int, execution: Execution) -> CaseResult:
            return self._stdio_result(cases[position], execution)

        return self._run(self._source, [_stdin(case) for case in cases], judge)

    def _functions(self, cases: Sequence[FunctionCase], source: bytes) -> _Results:
        calls = [functions.stdin(case) for case in cases]
        wanted = [functions.expected(case) for case in cases]

        def judge(position: int, execution: Execution) -> CaseResult:
            return self._function_result(cases[position], wanted[position], execution)

        return self._run(source, calls, judge)

    def _run(
        self,
        source: bytes,
        stdins: Sequence[bytes],
        judge: Callable[[int, Execution], CaseResult],
    ) -> _Results:
        """Run a program on inputs, all that is not known in one worker."""

        def run(wanted: list[int], took: Callable[[Execution], bool]) -> None:
            inputs = [stdins[position] for position in wanted]
            self._place.pool.run_many(source, inputs, self._limits, stop=took)

        cache = self._place.cache
        return self._resolve(cache.executions if cache else None, source, stdins, run, judge)

    def _asserts(self, cases: Sequence[AssertCase]) -> _Results:
        """Run assert bodies, one after another."""

        def run(wanted: list[int], took: Callable[[AssertOutcome], bool]) -> None:
            for position in wanted:
                if took(self._place.judge_assert(self._program, cases[position], self._limits)):
                    break

        def judge(position: int, outcome: AssertOutcome) -> CaseResult:
            return _assert_result(cases[position], outcome, self._limits)

        tests = [key(case.body, case.entry_point, case.helpers) for case in cases]
        cache = self._place.cache
        return self._resolve(cache.outcomes if cache else None, self._source, tests, run, judge)

    def _resolve(
        self,
        cache: FlightCache[V] | None,
        source: bytes,
        inputs: Sequence[bytes],
        run: Callable[[list[int], Callable[[V], bool]], None],
        judge: Callable[[int, V], CaseResult],
    ) -> _Results:
        """Run or recall each input, up to the first failure if that ends the grading."""
        judged: dict[int, tuple[V, CaseResult]] = {}

        def once(position: int, value: V) -> CaseResult:
            # Asked for several times, and a comparison or a checker has its price.
            if position not in judged or judged[position][0] is not value:
                judged[position] = value, judge(position, value)
            return judged[position][1]

        def last(position: int, value: V) -> bool:
            return self._stop and once(position, value).status is not Status.ACCEPTED

        if cache is None:
            values: list[tuple[V, bool]] = []

            def took(value: V) -> bool:
                values.append((value, False))
                return last(len(values) - 1, value)

            run(list(range(len(inputs))), took)
        else:
            common = key(source, repr(self._limits), self._place.fingerprint)
            values = cache.resolve([key(common, data) for data in inputs], run, last=last)
        return [(once(position, value), known) for position, (value, known) in enumerate(values)]

    def _stdio_result(self, case: StdioCase, execution: Execution) -> CaseResult:
        if execution.status is not None:
            why = exceeded(execution.status, execution, self._limits) or last_words(execution)
            return result(case.name, execution.status, execution, why)
        output = execution.stdout
        if isinstance(case.checker, CheckerProgram):
            question = checkers.text_question(case.stdin, output, case.expected)
            verdict = self._ask(case.name, case.checker, question)
            return result(
                case.name,
                _status(verdict.accepted),
                execution,
                verdict.message,
                score=verdict.score,
                digest=digests.of_output(output, Checker()),
            )
        difference = compare.explain(output, case.expected, case.checker)
        if difference is None:
            return result(case.name, Status.ACCEPTED, execution, "")
        digest = digests.of_output(output, case.checker)
        return result(case.name, Status.WRONG_ANSWER, execution, difference, digest=digest)

    def _function_result(
        self, case: FunctionCase, wanted: list[Tree], execution: Execution
    ) -> CaseResult:
        status, message, tree = functions.outcome(execution, case.entry_point)
        if status is not None:
            if status is Status.TIME_LIMIT_EXCEEDED:
                message = exceeded(status, execution, self._limits)
            return result(case.name, status, execution, message, stdout=b"")
        score = None
        digest = ""
        if isinstance(case.checker, CheckerProgram):
            digest = digests.of_value(tree, ValueChecker())
            question = checkers.value_question(case.args, tree, case.expected)
            verdict = self._ask(case.name, case.checker, question)
            accepted, message, score = verdict.accepted, verdict.message, verdict.score
        else:
            differences = [values.explain(tree, answer, case.checker) for answer in wanted]
            accepted = None in differences
            message = "" if accepted else differences[0] or ""
            if not accepted:
                digest = digests.of_value(tree, case.checker)
        return result(
            case.name,
            _status(accepted),
            execution,
            message,
            stdout=b"",
            returned=values.show(tree),
            score=score,
            digest=digest,
        )

    def _ask(self, name: str, checker: CheckerProgram, question: bytes) -> CheckerVerdict:
        cache = self._place.cache
        return checkers.ask(
            name,
            checker,
            question,
            run=self._place.run_checker,
            cache=cache.verdicts if cache else None,
            fingerprint=self._place.fingerprint,
        )


def _status(accepted: bool) -> Status:
    return Status.ACCEPTED if accepted else Status.WRONG_ANSWER


def _stdin(case: StdioCase) -> bytes:
    """Return a case's input; its last line ends like the others."""
    data = compare.encode_text(case.stdin)
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _assert_result(case: AssertCase, outcome: AssertOutcome, limits: Limits) -> CaseResult:
    execution = outcome.execution
    message = outcome.message
    if why := exceeded(execution.status, execution, limits):
        message = f"{why}; {message}" if message else why
    elif not message and outcome.status is not Status.ACCEPTED:
        message = last_words(execution)
    stderr = compare.encode_text(outcome.trace) or execution.stderr
    return result(case.name, outcome.status, execution, message, stderr=stderr)
