"""Judging: from a completion to a verdict."""

from .base import CaseFeedback, Feedback, Judge, Verdict

__all__ = ["CaseFeedback", "Feedback", "Judge", "Verdict"]
