"""Checking problems before programs are judged by them."""

from __future__ import annotations

from collections.abc import Iterable

from .base import ReferenceRejected, Sandbox
from .types import Case, Limits, Program, Report, Status


def validate(
    sandbox: Sandbox, reference: Program, cases: Iterable[Case], limits: Limits | None = None
) -> Report:
    """Run a problem's own solution and return the report, in which every case is accepted.

    Args:
        sandbox: where to run.
        reference: a solution that is right, if the problem is.
        cases: the problem's tests.
        limits: as other programs will have them.

    Raises:
        ReferenceRejected: a case is not accepted; the message names the first.
        SandboxError: the sandbox failed, or a case cannot be judged at all.
    """
    cases = tuple(cases)
    report = sandbox.grade(reference, cases, limits)
    failed = [case for case in report.cases if case.status is not Status.ACCEPTED]
    if failed:
        first = failed[0]
        raise ReferenceRejected(
            f"the reference solution fails {len(failed)} of {len(cases)} cases, first "
            f"{first.name!r}: {first.status}{f' ({first.message})' if first.message else ''}; "
            "correct the tests, the limits or the checker, or leave the problem out"
        )
    return report
