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
from .probes import argument_probes, load_probes, mutated_probes, with_probes

__all__ = [
    "AssertBody",
    "CodeTask",
    "ExpectedCase",
    "FunctionCall",
    "OutputRule",
    "Probe",
    "ScoringGroup",
    "Test",
    "argument_probes",
    "load_probes",
    "load_tasks",
    "mutated_probes",
    "save_tasks",
    "task_from_json",
    "task_to_json",
    "with_probes",
]
