"""Questions about long documents: tasks, documents, chunks and where they come from."""

from .chunking import Chunks, chunk_document, chunks_holding
from .document import Document, Part, TextDocument
from .task import Evidence, ReadingTask
from .tokenizers import Tokenizer, resolve_tokenizer

__all__ = [
    "Chunks",
    "Document",
    "Evidence",
    "Part",
    "ReadingTask",
    "TextDocument",
    "Tokenizer",
    "chunk_document",
    "chunks_holding",
    "resolve_tokenizer",
]
