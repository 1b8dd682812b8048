"""Tasks: what an episode is about. Data in, no reinforcement learning."""

from .code import AssertBody, CodeTask, ExpectedCase, OutputRule, Test

__all__ = ["AssertBody", "CodeTask", "ExpectedCase", "OutputRule", "Test"]
