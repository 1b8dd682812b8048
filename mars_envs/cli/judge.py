"""The judge of a command, with its sandbox already open."""

from __future__ import annotations

from ..judging.code import CodeJudge, shared_sandbox
from .console import console


def open_judge(sandbox: str, workers: int | None) -> CodeJudge:
    """Return a judge after opening its sandbox, so that a missing one is noticed at once.

    Raises:
        SandboxUnavailable: no such sandbox can work here.
    """
    backend = shared_sandbox(sandbox, workers=workers).capabilities.backend
    console.print(f"programs run in: {backend}")
    return CodeJudge(sandbox, workers=workers)
