"""Synthetic tasks with exact truth: nine families of questions about generated documents."""

from .families import FAMILIES
from .settings import SyntheticSettings
from .solver import check_evidence, solve
from .tasks import SyntheticTasks, synthetic_tasks
from .text import SyntheticDocument

__all__ = [
    "FAMILIES",
    "SyntheticDocument",
    "SyntheticSettings",
    "SyntheticTasks",
    "check_evidence",
    "solve",
    "synthetic_tasks",
]
