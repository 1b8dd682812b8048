"""Questions about long documents: tasks, documents, chunks and where they come from."""

from .chunking import Chunks, chunk_document, chunks_holding, count_tokens
from .document import Document, Part, TextDocument
from .file_document import FileDocument
from .joined import JoinedDocument, Passage
from .load import load_reading_tasks
from .long_context import LongContextSettings, long_context_tasks
from .passages import passage_pool
from .records import save_reading_tasks
from .shards import write_shards
from .task import Evidence, ReadingTask
from .tokenizers import Tokenizer, resolve_tokenizer

__all__ = [
    "Chunks",
    "Document",
    "Evidence",
    "FileDocument",
    "JoinedDocument",
    "LongContextSettings",
    "Part",
    "Passage",
    "ReadingTask",
    "TextDocument",
    "Tokenizer",
    "chunk_document",
    "chunks_holding",
    "count_tokens",
    "load_reading_tasks",
    "long_context_tasks",
    "passage_pool",
    "resolve_tokenizer",
    "save_reading_tasks",
    "write_shards",
]
