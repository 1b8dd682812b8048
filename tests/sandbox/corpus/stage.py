"""Where hostile programs perform: one worker at a time, looked over after each of them."""

from __future__ import annotations

import ast
import dataclasses
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from sandbox.grader import Grader
from sandbox.pool import WorkerPool
from sandbox.types import AssertCase, CaseResult, Limits, Program, Status, StdioCase
from sandbox.worker import Backend

from .attack import CANARY, EXPECTED, SUM_INPUT, Attack, FunctionAttack

_HONEST_LIMITS = Limits(cpu_s=5.0, memory_mb=256)
_HONEST_BODY = "assert f(3.5) == 0.5\nassert abs(f(1.33) - 0.33) < 1e-6\n"


@dataclasses.dataclass(frozen=True)
class Played:
    """What came of an attack, and what other runs in the same place noticed of it."""

    result: CaseResult
    again: str
    """Said by the same program in its next test, where it behaves."""
    canary: str
    """Said by another program right after it."""
    clean: str
    """What both say in a place that nothing has ever run in."""

    def complaints(self, attack: Attack | FunctionAttack) -> list[str]:
        """Return what is not as it has to be."""
        result, found = self.result, []
        if result.status not in attack.statuses:
            found.append(f"it has {result}")
        if isinstance(attack, Attack):
            if attack.says is not None and result.stdout != attack.says:
                found.append(f"it said {result.stdout[:1000]!r}, not {attack.says[:1000]!r}")
            if len(result.stdout) > attack.limits.output_bytes:
                found.append(f"{len(result.stdout)} characters were kept of its output")
        if len(result.stderr) > attack.limits.stderr_bytes:
            found.append(f"{len(result.stderr)} characters were kept of its errors")
        if not self.clean.startswith("42\n"):
            found.append(f"the canary had been ill before: {self.clean}")
        for who, said in (("its own next test", self.again), ("the next program", self.canary)):
            if said != self.clean:
                found.append(f"{who} noticed it: {_difference(self.clean, said)}")
        return found


class Stage:
    """One worker and the grader above it. Not for two threads at once."""

    def __init__(self, backend: Backend) -> None:
        self._pool = WorkerPool(backend, size=1)
        self._grader = Grader(self._pool)
        self._clean = self._look()

    def play(self, attack: Attack | FunctionAttack) -> Played:
        """Let a hostile program run, then look around."""
        play = self._play if isinstance(attack, Attack) else self._play_function
        result, again = play(attack)  # type: ignore[arg-type]
        return Played(result=result, again=again, canary=self._look(), clean=self._clean)

    def close(self) -> None:
        """Stop the worker."""
        self._grader.close()

    def _play(self, attack: Attack) -> tuple[CaseResult, str]:
        if attack.before is not None:
            self._pool.run(attack.before.encode(), b"", _HONEST_LIMITS)
        cases = [
            StdioCase(name="attack", stdin="attack\n", expected=EXPECTED, checker=attack.checker),
            StdioCase(name="honest", stdin=SUM_INPUT, expected=self._clean),
        ]
        cases = cases[: 1 if attack.whole else 2]
        report = self._grader.grade(Program(attack.program), cases, attack.limits)
        return report.cases[0], self._clean if attack.whole else _said(report.cases[1])

    def _play_function(self, attack: FunctionAttack) -> tuple[CaseResult, str]:
        case = AssertCase(name="attack", body=attack.body, entry_point="f")
        hostile = self._grader.grade(Program(attack.source), [case], attack.limits)
        case = AssertCase(name="honest", body=_HONEST_BODY, entry_point="f")
        honest = self._grader.grade(
            Program("def f(x): return x % 1.0"), [case], _HONEST_LIMITS
        ).cases[0]
        again = self._clean if honest.status is Status.ACCEPTED else repr(honest)
        return hostile.cases[0], again

    def _look(self) -> str:
        case = StdioCase(name="look", stdin=SUM_INPUT, expected="")
        return _said(self._grader.grade(Program(CANARY), [case], _HONEST_LIMITS).cases[0])


def _said(result: CaseResult) -> str:
    ended = result.status in (Status.ACCEPTED, Status.WRONG_ANSWER)
    return result.stdout if ended else repr(result)


def _difference(clean: str, said: str) -> str:
    """Return the facts that differ, or all that was said if it was no list of facts."""
    try:
        before, after = (ast.literal_eval(text.split("\n", 1)[1]) for text in (clean, said))
        return repr({key: (before[key], after[key]) for key in before if before[key] != after[key]})
    except (SyntaxError, ValueError, IndexError, KeyError):
        return said


class Ensemble:
    """Several stages on which attacks perform side by side, so that waiting costs less.

    Args:
        backend: makes their workers.
        attacks: by name; they start at once.
        stages: how many perform at the same time.
    """

    def __init__(
        self,
        backend: Callable[[], Backend],
        attacks: Mapping[str, Attack | FunctionAttack],
        *,
        stages: int = 4,
    ) -> None:
        self._backend = backend
        self._mine = threading.local()
        self._stages: list[Stage] = []
        self._threads = ThreadPoolExecutor(stages)
        self._futures: dict[str, Future[Played]] = {
            name: self._threads.submit(self._perform, attack) for name, attack in attacks.items()
        }

    def played(self, name: str) -> Played:
        """Return what came of an attack, once it is over."""
        return self._futures[name].result()

    def _perform(self, attack: Attack | FunctionAttack) -> Played:
        stage: Stage | None = getattr(self._mine, "stage", None)
        if stage is None:
            stage = self._mine.stage = Stage(self._backend())
            self._stages.append(stage)
        return stage.play(attack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
        for stage in self._stages:
            stage.close()
