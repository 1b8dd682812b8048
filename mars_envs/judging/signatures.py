"""How a program behaved, as a tuple of short digests: one per public test, then one per probe.

Equal tuples are equal behaviour, as far as the tests and their checkers can tell. Nothing that
changes from run to run takes part: no time, no address, no path. Hidden tests never come here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from ..tasks.code import AssertBody, Test
from .feedback import CaseOutcome

CHARACTERS = 16
_ANSWERS = ("accepted", "wrong_answer")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?=:|$)")


class DigestedOutcome(CaseOutcome, Protocol):
    """What is read of a `sandbox.CaseResult`, once more."""

    @property
    def digest(self) -> str:
        """Of the answer, normalised as its checker reads it; empty where the status says all."""
        ...


def signature_of_tests(
    tests: Sequence[Test], outcomes: Iterable[DigestedOutcome]
) -> tuple[str, ...]:
    """Return one digest per test, of the status and what goes with it.

    With `accepted` from a comparison goes nothing, from a checker the answer; with `wrong_answer`
    the answer, or what a failed assert says; with `runtime_error` the class of the exception.
    """
    return tuple(
        _digest(str(outcome.status), _said(test, outcome))
        for test, outcome in zip(tests, outcomes, strict=True)
    )


def signature_of_probes(outcomes: Iterable[DigestedOutcome | None], *, of: int) -> tuple[str, ...]:
    """Return one digest per probe, of the answer, or of why there was none.

    A probe has no right answer, so `accepted` and `wrong_answer` mean the same: it was answered.
    One that the sandbox cannot carry has None as its outcome. The last of the `of` probes may have
    no outcome: a program that answers no public test is not probed, and one that runs out of time
    is probed no further.
    """
    digests = [_of_probe(outcome) for outcome in outcomes]
    return (*digests, *[_of_probe(None)] * (of - len(digests)))


def answered(outcomes: Iterable[DigestedOutcome]) -> bool:
    """Whether a program came to an answer, right or wrong, on any test."""
    return any(str(outcome.status) in _ANSWERS for outcome in outcomes)


def _of_probe(outcome: DigestedOutcome | None) -> str:
    if outcome is None:
        return _digest("not_run", "")
    if str(outcome.status) in _ANSWERS:
        return _digest("answered", outcome.digest)
    return _digest(str(outcome.status), _exception(outcome))


def _said(test: Test, outcome: DigestedOutcome) -> str:
    if str(outcome.status) not in _ANSWERS:
        return _exception(outcome)
    if isinstance(test, AssertBody) and str(outcome.status) == "wrong_answer":
        return _ADDRESS.sub(" at 0x", outcome.message)
    return outcome.digest


def _exception(outcome: DigestedOutcome) -> str:
    """Return the class of the exception that ended a run, without its module; empty: none did."""
    if str(outcome.status) != "runtime_error":
        return ""
    found = ""
    in_traceback = False
    for line in outcome.stderr.splitlines():
        if in_traceback and (match := _EXCEPTION.match(line)):
            found = match[0]
        in_traceback = line.startswith("  ")
    return found.rpartition(".")[2]


def _digest(status: str, said: str) -> str:
    text = f"{status}\n{said}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:CHARACTERS]
