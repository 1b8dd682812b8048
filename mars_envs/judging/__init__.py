"""Judging: from a completion to a verdict."""

from .base import CaseFeedback, Feedback, Judge, Verdict
from .code import CodeJudge, JudgeStats
from .extract import Extraction, extract_program

__all__ = [
    "CaseFeedback",
    "CodeJudge",
    "Extraction",
    "Feedback",
    "Judge",
    "JudgeStats",
    "Verdict",
    "extract_program",
]
