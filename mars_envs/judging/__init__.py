"""Judging: from a completion to a verdict."""

from .base import CaseFeedback, Feedback, Judge, Verdict
from .code import CodeJudge, JudgeStats
from .extract import Extraction, Extractor, extract_lcb, extract_program, resolve_extractor

__all__ = [
    "CaseFeedback",
    "CodeJudge",
    "Extraction",
    "Extractor",
    "Feedback",
    "Judge",
    "JudgeStats",
    "Verdict",
    "extract_lcb",
    "extract_program",
    "resolve_extractor",
]
