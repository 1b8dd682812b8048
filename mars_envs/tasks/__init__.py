"""Tasks: what an episode is about. Data in, no reinforcement learning."""

from .code import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    OutputRule,
    Probe,
    ScoringGroup,
    Test,
)
from .jsonl import save_tasks, task_from_json, task_to_json
from .load import load_tasks

__all__ = [
    "AssertBody",
    "CodeTask",
    "ExpectedCase",
    "FunctionCall",
    "OutputRule",
    "Probe",
    "ScoringGroup",
    "Test",
    "load_tasks",
    "save_tasks",
    "task_from_json",
    "task_to_json",
]
