"""Where tasks come from, in a form that copies and pickles well, and is never copied whole.

Tasks hold documents of megabytes. A source that has a name pickles as the name; copies share what
is loaded. The task of the running episode and its chunks are kept, so that further episodes about
the same document do not cut it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidTask
from ..reading.chunking import Chunks, chunk_document
from ..reading.document import Document
from ..reading.load import load_reading_tasks
from ..reading.task import ReadingTask

TaskSource = str | os.PathLike[str] | Sequence[ReadingTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """How documents are cut; see `chunk_document`."""

    size: int = 5000
    align: str = "token"
    tokenizer: Any = "words"
    overlap: int = 0
    limit: int | None = None

    def cut(self, document: Document | str) -> Chunks:
        """Return the chunks of a document."""
        return chunk_document(
            document,
            size=self.size,
            align=self.align,  # type: ignore[arg-type]  # checked there, with a better message
            tokenizer=self.tokenizer,
            overlap=self.overlap,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableTask:
    """A task whose document is cut."""

    task: ReadingTask
    chunks: Chunks


class ReadingTasks:
    """The tasks that episodes are drawn from.

    Args:
        source: see `load_reading_tasks`.
        chunking: of their documents.

    Raises:
        InvalidTask: the source cannot be used, or is empty.
    """

    def __init__(self, source: TaskSource, chunking: Chunking) -> None:
        self._source = source
        self._chunking = chunking
        self._tasks: Sequence[ReadingTask] = load_reading_tasks(source)
        if not len(self._tasks):
            raise InvalidTask("there is no task to draw from; give at least one")
        self._known: dict[str, int] = {}
        self._recent: tuple[int, ReadableTask] | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> Sequence[ReadingTask]:
        """As they were loaded; a long one may be made anew at every look."""
        return self._tasks

    def get(self, index: int) -> ReadableTask:
        """Return a task, its document cut."""
        recent = self._recent
        if recent is not None and recent[0] == index:
            return recent[1]
        del recent
        self._recent = None  # two documents of megabytes need not be held at once
        task = self._tasks[index]
        chunks = self._chunking.cut(task.document)
        readable = ReadableTask(task=task, chunks=chunks)
        self._known[task.task_id] = index
        self._recent = index, readable
        return readable

    def find(self, options: Mapping[str, Any]) -> int | None:
        """Return the place of the task that the options of `reset` ask for; None: any.

        Raises:
            InvalidTask: there is no such task.
        """
        wanted = options.get("task")
        if wanted is None:
            return None
        if not isinstance(wanted, str):
            raise InvalidTask(f"options['task'] is the id of a task, a text, got {wanted!r:.200}")
        if wanted in self._known:
            return self._known[wanted]
        for index, name in enumerate(self._ids()):
            self._known[name] = index
            if name == wanted:
                return index
        some = ", ".join(repr(name) for name in list(self._known)[:5])
        raise InvalidTask(f"no task {wanted!r:.80} among {len(self)} tasks (the first are {some})")

    def _ids(self) -> Any:
        """Return the ids, without making the tasks where the source can tell them so."""
        ids = getattr(self._tasks, "ids", None)
        return (task.task_id for task in self._tasks) if ids is None else ids

    def __deepcopy__(self, memo: dict[int, Any]) -> ReadingTasks:
        return self

    def __reduce__(self) -> tuple[Callable[..., ReadingTasks], tuple[Any, ...]]:
        return ReadingTasks, (self._source, self._chunking)
