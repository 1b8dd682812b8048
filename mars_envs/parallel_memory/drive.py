"""Driving a workflow with calls in flight, retries with pauses, and a report after every call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import InvalidSetting, ProtocolError
from ..generators import Workers, may_come_again
from .settings import is_number, whole_number
from .workflow import Call, Phase, TurnRecord, Workflow

LONGEST_DELAY_S = 30.0
"""Pauses before a call is asked again double up to here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far reading has come."""

    phase: Phase
    turn: int
    """From 1."""
    max_turns: int
    n_chunks: int
    read: int
    """Chunks of this turn that have been read."""
    failed: int
    """Calls that have failed so far."""
    finished: TurnRecord | None
    """The turn that has just ended, where one has."""


def drive(
    workflow: Workflow,
    respond: Callable[[Call], str],
    *,
    concurrency: int = 8,
    delay_s: float = 0.5,
    failures: tuple[type[Exception], ...] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Exception]:
    """Drive a workflow to its end; the outcome is that of one call at a time.

    Args:
        workflow: at any point in which no call is open.
        respond: gives the replies; called from `concurrency` threads.
        concurrency: calls in flight at most.
        delay_s: pause before a call is asked again; doubled each time, up to `LONGEST_DELAY_S`.
        failures: exceptions that mean that no reply will come. Others end it all, and so does
            `InvalidSetting`. None: all but `mars_envs.generators.PROGRAMMING_ERRORS`.
        progress: called after every call, in the caller's thread.

    Returns:
        What was raised by the calls that failed, in the order in which they did.

    Raises:
        InvalidSetting: an argument that cannot work; found before the first call.
        ProtocolError: the workflow is not done but asks for nothing: it has a bug.
    """
    _check(concurrency, delay_s, failures, progress)
    causes: list[Exception] = []
    watch = _Watch(workflow)
    with Workers[Call, str](concurrency) as workers:

        def patiently(call: Call) -> str:
            if call.attempt:
                workers.stopping.wait(min(LONGEST_DELAY_S, delay_s * 2 ** (call.attempt - 1)))
            return respond(call)

        while workflow.phase is not Phase.DONE:
            for call in workflow.ask(workers.free):
                workers.start(call, partial(patiently, call))
            if not workers.open:
                raise ProtocolError(
                    f"{type(workflow).__name__} is in the phase {workflow.phase!r} and awaits no "
                    "reply, but asks for no call"
                )
            call, result = workers.take()
            if isinstance(result, str):
                workflow.tell(call.id, result)
            elif isinstance(result, Exception) and may_come_again(result, failures):
                causes.append(result)
                workflow.fail(call.id, f"{type(result).__name__}: {result}")
            elif isinstance(result, BaseException):
                raise result
            else:
                raise InvalidSetting(f"a reply is a text (str), got a {type(result).__name__}")
            if progress is not None:
                progress(watch.after(call, failed=len(causes), answered=isinstance(result, str)))
    return causes


def _check(concurrency: Any, delay_s: Any, failures: Any, progress: Any) -> None:
    whole_number("concurrency", concurrency, 1)
    if not (is_number(delay_s) and 0 <= delay_s < math.inf):
        raise InvalidSetting(f"delay_s is a number of seconds of at least 0, got {delay_s!r:.80}")
    if failures is not None and not (
        isinstance(failures, tuple)
        and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in failures)
    ):
        raise InvalidSetting(
            f"failures is a tuple of exceptions, e.g. (TimeoutError, OSError), got {failures!r:.80}"
        )
    if progress is not None and not callable(progress):
        raise InvalidSetting(
            f"progress is a function, called after every call, got {progress!r:.80}"
        )


class _Watch:
    """Counts what a workflow has been told."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._turns = len(workflow.turns)
        self._turn = 0
        self._read = 0

    def after(self, call: Call, *, failed: int, answered: bool) -> Progress:
        """Say how far it is after a call."""
        workflow = self._workflow
        if call.turn != self._turn:
            self._turn, self._read = call.turn, 0
        self._read += answered and call.phase is Phase.READ
        turns = workflow.turns
        finished = turns[-1] if len(turns) > self._turns else None
        self._turns = len(turns)
        return Progress(
            phase=workflow.phase,
            turn=call.turn,
            max_turns=workflow.max_turns,
            n_chunks=workflow.n_chunks,
            read=self._read,
            failed=failed,
            finished=finished,
        )
