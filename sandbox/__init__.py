"""Run untrusted Python programs and say what they did. Knows nothing of reinforcement learning."""

from .base import (
    Capabilities,
    ImageError,
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
    Limits,
    Program,
    Report,
    Status,
    StdioCase,
)

__distribution__ = "mars-envs"

__all__ = [
    "AssertCase",
    "Capabilities",
    "Case",
    "CaseResult",
    "Checker",
    "ImageError",
    "Limits",
    "Program",
    "Report",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "Status",
    "StdioCase",
    "UnsupportedCase",
    "WorkerDied",
]
