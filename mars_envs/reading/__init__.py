"""Questions about long documents: tasks, documents, chunks and where they come from."""

from .document import Document, Part, TextDocument
from .task import Evidence, ReadingTask

__all__ = ["Document", "Evidence", "Part", "ReadingTask", "TextDocument"]
