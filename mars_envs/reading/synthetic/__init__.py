"""Synthetic tasks with exact truth: nine families of questions about generated documents."""

from .families import FAMILIES
from .lazy import SyntheticTasks
from .passages import FillerPassages, filler_passages
from .settings import SyntheticSettings
from .solver import check_evidence, solve
from .tasks import synthetic_tasks
from .text import SyntheticDocument

__all__ = [
    "FAMILIES",
    "FillerPassages",
    "SyntheticDocument",
    "SyntheticSettings",
    "SyntheticTasks",
    "check_evidence",
    "filler_passages",
    "solve",
    "synthetic_tasks",
]
