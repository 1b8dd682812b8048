"""The judge of a command, with its sandbox already open."""

from __future__ import annotations

from ..errors import InvalidSetting
from ..judging.code import CodeJudge, shared_sandbox
from ..judging.extract import resolve_extractor
from .console import console


def open_judge(sandbox: str, workers: int | None, extract: str = "default") -> CodeJudge:
    """Return a judge after opening its sandbox, so that a missing one is noticed at once.

    Raises:
        InvalidSetting: there is no such code extraction.
        SandboxUnavailable: no such sandbox can work here.
    """
    try:
        resolve_extractor(extract)
    except InvalidSetting as error:
        raise InvalidSetting(f"--extract: {error}") from error
    backend = shared_sandbox(sandbox, workers=workers).capabilities.backend
    console.print(f"programs run in: {backend}")
    return CodeJudge(sandbox, workers=workers, extract=extract)
