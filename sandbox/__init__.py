"""Run untrusted Python programs and say what they did. Knows nothing of reinforcement learning.

from sandbox import Program, StdioCase, open_sandbox

with open_sandbox() as sandbox:
    report = sandbox.grade(Program("print(int(input()) * 2)"),
                           [StdioCase(name="double", stdin="21", expected="42")])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .base import (
    Capabilities,
    CheckerFailed,
    Guarantee,
    ImageError,
    QueueFull,
    ReferenceRejected,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    UnsupportedCase,
    WorkerDied,
)
from .types import (
    AssertCase,
    Case,
    CaseResult,
    Checker,
    CheckerProgram,
    FunctionCase,
    Limits,
    Program,
    Report,
    Status,
    StdioCase,
    ValueChecker,
)

if TYPE_CHECKING:
    from .cache import CacheStats
    from .factory import open_sandbox
    from .grader import Grader, RunCache
    from .scoring import GroupedReport, GroupScore, Scores, ScoringGroup, grade_groups, score_groups
    from .validation import validate

__distribution__ = "mars-envs"

__all__ = [
    "AssertCase",
    "CacheStats",
    "Capabilities",
    "Case",
    "CaseResult",
    "Checker",
    "CheckerFailed",
    "CheckerProgram",
    "FunctionCase",
    "Grader",
    "GroupScore",
    "GroupedReport",
    "Guarantee",
    "ImageError",
    "Limits",
    "Program",
    "QueueFull",
    "ReferenceRejected",
    "Report",
    "RunCache",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "Scores",
    "ScoringGroup",
    "Status",
    "StdioCase",
    "UnsupportedCase",
    "ValueChecker",
    "WorkerDied",
    "grade_groups",
    "open_sandbox",
    "score_groups",
    "validate",
]

# The machinery is imported when it is first used; the records above cost next to nothing.
_LATE = {
    "CacheStats": "cache",
    "Grader": "grader",
    "RunCache": "grader",
    "open_sandbox": "factory",
    "GroupScore": "scoring",
    "GroupedReport": "scoring",
    "Scores": "scoring",
    "ScoringGroup": "scoring",
    "grade_groups": "scoring",
    "score_groups": "scoring",
    "validate": "validation",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LATE[name]}", __name__), name)
    globals()[name] = value
    return value
