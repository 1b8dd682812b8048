r"""Our own format: one `ReadingTask` per line of JSON.

`task_id`, `question`, `document` and `answers` are needed; everything else has the defaults of
`ReadingTask`. A document is one of

    {"text": "...", "parts": [{"doc_id", "start", "end", "title"}, ...]}
    {"file": "documents/7.txt", "parts": "documents/7.parts.json", "encoding": "utf-8"}
    {"pool": "pool.jsonl", "order": [4, 0, 7], "header": "Document {number}:\\n"}

where files are named relative to the file of the record, and only they and what is below them can
be; a pool is lines of {"doc_id", "title", "text"}. Evidence is {"start", "end"}, perhaps with
`text`, `doc_id` and `triggers`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, cast, overload

from ..errors import InvalidTask
from ..tasks.files import read_records
from ..tasks.records import Record
from .document import Document, Part, TextDocument
from .evidence import verify_evidence
from .file_document import FileDocument
from .joined import JoinedDocument, Passage
from .task import Evidence, ReadingTask

REQUIRED: Final = ("task_id", "question", "document", "answers")
"""Fields by which the format is recognised."""

_FIELDS = [field.name for field in dataclasses.fields(ReadingTask)]


class Pools:
    """Pools of passages by file: each is read once, however many documents draw from it."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Passage, ...]] = {}

    def __getitem__(self, path: Path) -> tuple[Passage, ...]:
        if path not in self._known:
            self._known[path] = read_pool(path)
        return self._known[path]


def read_pool(path: Path) -> tuple[Passage, ...]:
    """Read a pool of passages.

    Raises:
        InvalidTask: it cannot be read, or a line of it is no passage.
    """
    passages = []
    for record in read_records(path):
        if isinstance(record, InvalidTask):
            raise record
        passages.append(
            Passage(record.text("doc_id"), record.text("title", ""), record.text("text"))
        )
    return tuple(passages)


def passage_to_json(passage: Passage) -> dict[str, str]:
    """Return a passage as a line of a pool."""
    return {"doc_id": passage.doc_id, "title": passage.title, "text": passage.text}


def task_to_json(task: ReadingTask, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a task as plain JSON data; `task_from_record` is the way back.

    Args:
        task: the task.
        document: what stands for its document, where that is stored elsewhere; None: its text.
    """
    if document is None:
        parts = [part_to_json(part) for part in task.document.parts]
        document = {"text": task.document.read(0, len(task.document)), "parts": parts}
    data = {name: getattr(task, name) for name in _FIELDS}
    data["document"] = dict(document)
    data["evidence"] = [dataclasses.asdict(item) for item in task.evidence]
    data["source"] = dict(task.source)
    return data


def save_reading_tasks(tasks: Iterable[ReadingTask], path: str | os.PathLike[str]) -> None:
    """Write tasks with their documents to a file of JSON lines; see `write_shards` for long ones.

    The file is whole or not there.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        for task in tasks:
            file.write(json.dumps(task_to_json(task), ensure_ascii=False) + "\n")
    os.replace(partial, path)


def task_from_record(record: Record, pools: Pools | None = None) -> ReadingTask:
    """Build a task from one line of a file.

    Evidence is checked against the document, but for documents that stay in files.

    Raises:
        InvalidTask: a field is missing, unknown or wrong.
    """
    for name in record.data:
        if name not in _FIELDS:
            raise record.error(
                name, f"one of {', '.join(sorted(_FIELDS))}", fix="rename or remove the field"
            )
    document = _document(record.child("document"), pools or Pools())
    match = record.text("match", "any")
    if match not in ("any", "all"):
        raise record.error("match", '"any" or "all"', fix="choose one")
    hops = record.data.get("hops", 0)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
        raise record.error("hops", "a whole number, at least 0", fix="0 stands for unknown")
    source = record.child("source") if record.has("source") else record.inner({}, "source.")
    task = ReadingTask(
        task_id=record.filled("task_id"),
        question=record.filled("question"),
        document=document,
        answers=tuple(record.strings("answers")),
        match=cast(Literal["any", "all"], match),
        evidence=tuple(
            _evidence(child, document) for child in record.children("evidence", required=False)
        ),
        hops=hops,
        kind=record.text("kind", ""),
        choices=tuple(record.strings("choices", required=False)),
        no_evidence=record.flag("no_evidence", False),
        source={key: source.text(key) for key in source.data},
    )
    if not isinstance(document, FileDocument):
        try:
            verify_evidence(task)
        except InvalidTask as error:
            raise InvalidTask(f"{record.place}, field `evidence`: {error}") from error
    return task


def _document(record: Record, pools: Pools) -> Document:
    kinds = [name for name in ("text", "file", "pool") if record.has(name)]
    if len(kinds) != 1:
        raise record.error("text", "one of `text`, `file` and `pool`", fix="give exactly one")
    if kinds == ["text"]:
        text = record.text("text")
        parts = _parts(record, record.children("parts", required=False), len(text))
        return TextDocument(text, parts)
    path = _below(record, kinds[0])
    if kinds == ["file"]:
        try:
            path.open("rb").close()
        except OSError as error:
            raise record.error(
                "file", "a file that can be read", fix=error.strerror or str(error)
            ) from error
        stored = StoredParts(_below(record, "parts")) if record.has("parts") else ()
        errors = record.text("errors", "strict")
        if errors not in ("strict", "replace"):
            raise record.error("errors", '"strict" or "replace"', fix="choose one")
        return FileDocument(
            path,
            encoding=record.text("encoding", "utf-8"),
            errors=cast(Literal["strict", "replace"], errors),
            parts=stored,
        )
    passages = pools[path]
    order = record.data.get("order")
    numbers = isinstance(order, list) and all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n < len(passages) for n in order
    )
    if not numbers:
        raise record.error(
            "order", f"numbers of passages, 0 to {len(passages) - 1}", fix="count from 0"
        )
    return JoinedDocument(passages, cast("list[int]", order), header=record.text("header", ""))


def _below(record: Record, field: str) -> Path:
    """Return the path that a field names, which a record may not choose freely."""
    # Resolved, since the record's file may be named by a path with `..` or by way of a link.
    folder = Path(record.file).parent.resolve()
    name = record.filled(field)
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder):
        raise record.error(
            field, "a file beside the record's, or below", fix="move it there and name it so"
        )
    return path


def _evidence(record: Record, document: Document) -> Evidence:
    start, end = _span(record)
    text = record.text("text") if record.has("text") else document.read(start, end)
    return Evidence(
        start=start,
        end=end,
        text=text,
        doc_id=record.text("doc_id", ""),
        triggers=tuple(record.strings("triggers", required=False)),
    )


def _span(record: Record) -> tuple[int, int]:
    found = []
    for field in ("start", "end"):
        value = record.data.get(field)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise record.error(field, "a number of characters, at least 0", fix="count from 0")
        found.append(value)
    if found[0] > found[1]:
        raise record.error("end", f"at least `start`, {found[0]}", fix="give the end of the span")
    return found[0], found[1]


def part_to_json(part: Part) -> dict[str, Any]:
    """Return a part as JSON data."""
    return dataclasses.asdict(part)


def _parts(record: Record, children: Sequence[Record], length: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    for child in children:
        start, end = _span(child)
        if start < (parts[-1].end if parts else 0) or end > length:
            raise child.error(
                "start",
                f"parts in order, without overlap, within {length} characters",
                fix="sort and cut them",
            )
        title = child.text("title", "")
        parts.append(Part(doc_id=child.text("doc_id", ""), start=start, end=end, title=title))
    return tuple(parts)


class StoredParts(Sequence[Part]):
    """Parts that are read from a file of JSON when they are first asked for.

    Args:
        path: of the file, a list of {"doc_id", "start", "end", "title"}.

    Raises:
        InvalidTask: when they are asked for: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        records = []
        for record in read_records(self._path):
            if isinstance(record, InvalidTask):
                raise record
            records.append(record)
        whole = Record(file=str(self._path), line=0, data={})
        return _parts(whole, records, 1 << 62)

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Part]: ...
    def __getitem__(self, index: int | slice) -> Part | Sequence[Part]:
        return self._parts[index]
