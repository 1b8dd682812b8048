r"""Recorded generations on disk: what models once answered, to be replayed.

Four layouts are read, one record per line, told apart by their fields:

* `task`, `text`, `form`: one generation (`task_id` does for `task`);
* `task`, `prompt_used`, `samples[].completion`: many completions of one prompt;
* `id`, `submissions[].source`: whole programs for a problem, by people;
* `task`, `implementations[]`: the successive programs of one refinement run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from ..errors import RolloutFormatError

Form = Literal["completion", "completion_or_full", "full_program", "reply"]

_FORMS: dict[str, Form] = {form: form for form in get_args(Form)}


class RecordingFormatError(RolloutFormatError):
    """A file of recordings that cannot be read; says file, line, field and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recorded generation."""

    text: str
    form: Form
    """`completion` continues its prompt; `completion_or_full` was judged as prompt and text, too;
    `full_program` stands alone; a `reply` is a chat answer and goes verbatim."""
    source: str = ""
    """Who wrote it: a model or a submission's id."""
    label: str = ""
    """The verdict that was recorded with it, in the words of its file."""
    prompt: str | None = None
    """The prompt that a completion continues, where the record has it."""


def load_recordings(
    path: str | PathLike[str], *, source: str | None = None
) -> dict[str, list[Recording]]:
    """Read recordings, in the order of the file.

    Args:
        path: a JSONL file in one of the layouts of this module.
        source: only what this model, algorithm or submission wrote; its name, or patterns with
            `*` and `?` such as "gpt-4*", between them a `|`.

    Returns:
        The recordings of each task, by task id.

    Raises:
        RecordingFormatError: the file cannot be read, or nothing in it is by `source`.
    """
    recordings: dict[str, list[Recording]] = {}
    sources: dict[str, None] = {}
    for line in _lines(Path(path)):
        for task_id, recording in _read(line):
            sources[recording.source] = None
            if source is None or _matches(recording.source, source):
                recordings.setdefault(task_id, []).append(recording)
    if not recordings:
        known = ", ".join(map(repr, list(sources)[:20]))
        raise RecordingFormatError(
            f"{path}: expected recordings by {source!r}, got only those by {known}"
            if sources
            else f"{path}: expected one recording per line, got an empty file"
        )
    return recordings


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or any(fnmatchcase(name, part) for part in pattern.split("|"))


@dataclass(frozen=True, slots=True)
class _Line:
    """One record, and where it stands."""

    where: str
    data: Mapping[str, Any]

    def text(self, field: str, data: Mapping[str, Any] | None = None) -> str:
        value = (self.data if data is None else data).get(field)
        if not isinstance(value, str):
            raise RecordingFormatError(
                f"{self.where}, field `{field}`: expected a string, got {type(value).__name__}"
            )
        return value

    def entries(self, field: str, kind: type) -> list[Any]:
        value = self.data.get(field)
        if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
            wanted = "objects" if kind is dict else "strings"
            raise RecordingFormatError(
                f"{self.where}, field `{field}`: expected a list of {wanted}, got "
                f"{type(value).__name__}"
            )
        return value


def _lines(path: Path) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordingFormatError(
            f"cannot read the recordings {path}: {error.strerror}; check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise RecordingFormatError(f"{path}: expected UTF-8 text, got {error}") from error
    for number, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        where = f"{path}, line {number}"
        try:
            data = json.loads(content)
        except ValueError as error:
            raise RecordingFormatError(
                f"{where}: expected one JSON object, got text that is no JSON ({error}); is the "
                "file cut off?"
            ) from error
        if not isinstance(data, dict):
            raise RecordingFormatError(
                f"{where}: expected one JSON object, got a {type(data).__name__}"
            )
        yield _Line(where, data)


def _read(line: _Line) -> Iterator[tuple[str, Recording]]:
    data = line.data
    if "submissions" in data:
        task_id = line.text("id")
        for entry in line.entries("submissions", dict):
            yield (
                task_id,
                Recording(
                    text=line.text("source", entry),
                    form="full_program",
                    source=str(entry.get("id", "")),
                    label=str(entry.get("expected", "")),
                ),
            )
    elif "samples" in data:
        task_id, prompt = line.text("task"), line.text("prompt_used")
        for entry in line.entries("samples", dict):
            yield (
                task_id,
                Recording(
                    text=line.text("completion", entry),
                    form="completion",
                    source=str(data.get("model", "")),
                    label=str(entry.get("observed", "")),
                    prompt=prompt,
                ),
            )
    elif "implementations" in data:
        task_id = line.text("task")
        programs = line.entries("implementations", str)
        labels = data.get("observed") or []
        for index, program in enumerate(programs):
            yield (
                task_id,
                Recording(
                    text=program,
                    form="full_program",
                    source=str(data.get("model", "")),
                    label=str(labels[index]) if index < len(labels) else "",
                ),
            )
    elif "text" in data and "form" in data:
        yield line.text("task_id" if "task_id" in data else "task"), _generation(line)
    else:
        fields = ", ".join(list(data)[:12]) or "none"
        raise RecordingFormatError(
            f"{line.where}: unknown format of recordings; expected the fields task, text, form (or "
            f"task, prompt_used, samples; id, submissions; task, implementations), got {fields}"
        )


def _generation(line: _Line) -> Recording:
    form = _FORMS.get(line.text("form"))
    if form is None:
        raise RecordingFormatError(
            f"{line.where}, field `form`: expected one of {', '.join(_FORMS)}, got "
            f"{line.data['form']!r}"
        )
    return Recording(
        text=line.text("text"),
        form=form,
        source=str(line.data.get("model", "")),
        label=str(line.data.get("observed", "")),
        prompt=line.text("prompt") if line.data.get("prompt") is not None else None,
    )
