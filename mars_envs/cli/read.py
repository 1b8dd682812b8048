"""`mars-envs read`: answer a question about a document, and show where the answer is from."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import TaskID
from rich.table import Table
from rich.text import Text

from ..answer import AnswerFailed, Finding, Progress, Reading, answer
from ..errors import InvalidSetting
from ..judging.answers import score_answer
from ..parallel_memory.methods import METHODS
from ..parallel_memory.settings import memory_settings
from ..parallel_memory.workflow import Phase
from ..reading.chunking import blocks
from ..reading.document import Document, TextDocument
from ..reading.file_document import decoded
from ..reading.files import open_document
from ..reading.load import load_reading_tasks
from ..reading.quotes import LEAST_LETTERS
from ..reading.task import ReadingTask
from ..terminal import printable, printable_json
from ..wording import counted
from .changes import read_changes
from .console import console, progress
from .reading_config import ReadConfig
from .reading_models import open_model

_EXITS = {
    "no_new_evidence": "nobody found anything new",
    "max_turns": "the last turn allowed",
    "read_all": "everything was read",
    "exit_gate": "the reader had seen enough",
    "backend_error": "too many calls failed",
}
_SHOWN = 40
"""Findings that are shown; the rest is counted. `--json` has all."""
_LONGEST = 300
_RECORDS = (".json", ".jsonl")


def read(config: ReadConfig) -> int:
    """Read, and print what came of it; exit status 1 if the answerer gave no answer."""
    try:
        return _read(config)
    except ImportError as error:  # a part that is not installed; the message names the extra
        raise InvalidSetting(str(error)) from error


def _read(config: ReadConfig) -> int:
    settings, options = _settings(config)
    question, document, task = _what(config)
    model = open_model(
        config.model,
        name=config.name,
        key_env=config.key_env,
        temperature=config.temperature,
        seed=config.seed,
        timeout_s=config.timeout,
    )
    out = Console(stderr=True, quiet=True) if config.json else console
    out.print(
        f"{printable(config.document)}: {counted(len(document), 'character')}, "
        f"{counted(len(document.parts), 'part')}; {model.label} reads by {config.method}",
        markup=False,
    )
    for warning in _doubts(config, document):
        out.print(warning, style="yellow", markup=False)
    try:
        with nullcontext() if config.json else progress() as bar:
            reading = answer(
                question,
                document,
                generate=model.generate,
                speak=model.speak,
                failures=model.failures,
                progress=None if bar is None else _Report(bar),
                method=config.method,
                options=options,
                chunk_tokens=config.chunk_tokens,
                align=config.align,
                tokenizer=config.tokenizer,
                prompts=config.prompts,
                concurrency=config.concurrency,
                **settings,
            )
    except AnswerFailed as failed:
        _print(failed.reading, task, config, out)
        raise
    _print(reading, task, config, out)
    return 0 if reading.answer else 1


def _settings(config: ReadConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `memory_settings` takes, and what the method takes beside.

    Raises:
        InvalidSetting: neither takes it, or one is given twice.
    """
    own = {
        "max_turns": config.max_turns,
        "memory_tokens": config.memory_tokens,
        "reply_tokens": config.reply_tokens,
        "window": config.window,
    }
    further = read_changes(config.settings, option="--settings")
    for name in own:
        if name in further:
            option = name.replace("_", "-")
            raise InvalidSetting(f"--settings: {name} has an option of its own, --{option}")
    options = {
        name: further.pop(name) for name in METHODS[config.method].options if name in further
    }
    settings = {"answer_tokens": config.reply_tokens, **own, **further}
    try:
        memory_settings(**settings)
    except InvalidSetting as error:
        raise InvalidSetting(f"--settings: {error}") from error
    return settings, options


def _what(config: ReadConfig) -> tuple[str, Document, ReadingTask | None]:
    """Return what to answer, from what, and the item that both are from, if they are."""
    if config.item is not None:
        task = _item(load_reading_tasks(config.document), config.item)
        return config.question or task.question, task.document, task
    if config.question is None or not config.question.strip():
        raise InvalidSetting("the question is empty: give one behind the document, or --item")
    if config.document == "-":
        return config.question, _standard_input(config), None
    if os.path.isdir(config.document):
        raise InvalidSetting(
            f"{config.document} is a folder: name a file or, if it holds questions about "
            "documents, one of these with --item (--item 0 is the first)"
        )
    document = open_document(config.document, encoding=config.encoding, errors=config.errors)
    return config.question, document, None


def _doubts(config: ReadConfig, document: Document) -> Iterator[str]:
    """Yield what may be wrong with a document that can be read all the same."""
    if not any(text.strip() for _, text in blocks(document)):
        yield "there is no text in the document: what comes is answered from nothing"
    if config.item is None and config.document.lower().endswith(_RECORDS):
        yield (
            "it is read as it stands in the file, braces and all; if it holds questions about "
            "documents, choose one with --item (--item 0 is the first)"
        )


def _standard_input(config: ReadConfig) -> Document:
    if sys.stdin is None:  # closed, as by `<&-`
        raise InvalidSetting("standard input is closed, so `-` has no text; give a file")
    data = sys.stdin.buffer.read()
    return TextDocument(
        decoded(
            data, encoding=config.encoding or "utf-8", errors=config.errors, name="standard input"
        )
    )


def _item(tasks: Sequence[ReadingTask], name: str) -> ReadingTask:
    found = next((task for task in tasks if task.task_id == name), None)
    if found is None and name.isdecimal() and int(name) < len(tasks):
        found = tasks[int(name)]
    if found is None:
        raise InvalidSetting(
            f"--item: there is no item {name!r} among {len(tasks)}; the first is "
            f"{tasks[0].task_id!r}, or 0"
        )
    return found


class _Report:
    """Shows how far it is, and a line for every turn that ends."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._line: TaskID | None = None
        self._turn = 0

    def __call__(self, now: Progress) -> None:
        if self._line is None:
            self._line = self._bar.add_task("read", total=now.n_chunks, note="")
        if now.turn != self._turn:
            self._turn = now.turn
            self._bar.reset(self._line, total=now.n_chunks, description=f"turn {now.turn}")
        failed = f"{counted(now.failed, 'call')} failed" if now.failed else ""
        phase = {Phase.MERGE: "merging", Phase.ANSWER: "answering"}.get(now.phase, "")
        note = ", ".join(part for part in (phase, failed) if part)
        self._bar.update(self._line, completed=now.read, note=note)
        done = now.finished
        if done is not None:
            self._bar.console.print(
                f"turn {done.turn} of at most {now.max_turns}: "
                f"{counted(len(done.read), 'chunk')} read, something new in {len(done.found)}"
                + (f", {len(done.failed)} not read" if done.failed else "")
                + (f", {done.malformed} malformed" if done.malformed else "")
                + f"; memory {counted(done.memory_tokens, 'token')}"
                + (" (cut)" if done.memory_cut else "")
            )


def _print(reading: Reading, task: ReadingTask | None, config: ReadConfig, out: Console) -> None:
    scores = None if task is None else score_answer(reading.answer, task)
    if config.json:
        told = {"document": config.document, "model": config.model, **_as_json(reading)}
        if task is not None and scores is not None:
            told |= {"task_id": task.task_id, "answers": task.answers, **dataclasses.asdict(scores)}
        print(printable_json(told))
        return
    if reading.evidence:
        out.print(_evidence(reading))
    if reading.memory:
        out.print(Text("memory", style="bold"))
        out.print(Text(_shown(reading.memory)), soft_wrap=True)
    calls = Counter(call.role for call in reading.calls)
    tokens = sum(call.prompt_tokens for call in reading.calls)
    written = sum(call.output_tokens for call in reading.calls)
    out.print(
        f"{counted(len(reading.turns), 'turn')}, ended because "
        f"{_EXITS.get(reading.exit_reason, '')}; calls: "
        + ", ".join(f"{count} {role}" for role, count in calls.items())
        + f"; {counted(tokens, 'token')} read, {written:,} written",
        style="dim",
    )
    if reading.malformed:
        out.print(
            f"{reading.malformed} of {len(reading.calls)} replies were malformed: without the tag "
            "or box that was asked for. If the model thinks, allow longer replies (--reply-tokens) "
            "or switch thinking off where it is served.",
            style="yellow",
        )
    if reading.answer:
        out.print(Text.assemble(("answer  ", "bold green"), _shown(reading.answer)), soft_wrap=True)
    elif reading.exit_reason != "backend_error":
        out.print(Text("no answer: there is no box in the reply", style="bold red"))
        out.print(Text(_short(reading.reply)), soft_wrap=True)
    if task is not None and scores is not None:
        gold = _shown(" | ".join(task.answers))
        figures = f"EM {scores.em:.0f}, F1 {scores.f1:.2f}, sub-EM {scores.sub_em:.0f}"
        out.print(Text.assemble(("gold    ", "bold"), gold, f"  ({figures})"), soft_wrap=True)


def _evidence(reading: Reading) -> Table:
    table = Table(title="evidence")
    for name in ("turn", "chunk", "characters", "where", "evidence"):
        # Wide letters have no blanks between words: folded, none of them is left out.
        table.add_column(name, overflow="fold")
    for finding in reading.evidence[:_SHOWN]:
        read_in = str(finding.turn), f"{finding.chunk + 1}/{reading.n_chunks}"
        if finding.text and not finding.quotes:
            # The chunk's place would look like that of a quote, which it is not.
            table.add_row(*read_in, "-", "-", Text.assemble(_doubt(finding), _short(finding.text)))
            continue
        # What is quoted word for word is shown as the document has it, with its own place.
        for one in finding.quotes or (finding,):
            table.add_row(
                *read_in,
                f"{one.start}-{one.end}",
                Text(_short(", ".join(one.parts))),
                Text(_short(one.text)),
            )
    if len(reading.evidence) > _SHOWN:
        table.caption = f"and {len(reading.evidence) - _SHOWN} more; --json has all"
    return table


def _doubt(finding: Finding) -> tuple[str, str]:
    """Say, with a style, why a note without a quote has no place."""
    looked_for = sum(map(len, finding.text.split())) >= LEAST_LETTERS
    why = "not in the chunk word for word" if looked_for else "too short to look for"
    return f"[{why}] ", "yellow"


def _shown(text: str) -> str:
    return printable(text, keep="\n")


def _short(text: str) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _as_json(reading: Reading) -> dict[str, Any]:
    found = dataclasses.asdict(reading) | {"malformed": reading.malformed}
    # What readers said stands in the evidence already.
    for turn in found["turns"]:
        del turn["notes"]
    return found
