"""One call: a question, a document, any text generator; the answer, and where it is from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .errors import InvalidSetting, MarsEnvsError
from .generators import Generator, TextGenerator
from .parallel_memory.drive import Progress, drive
from .parallel_memory.findings import Finding, find_evidence
from .parallel_memory.methods import make_workflow
from .parallel_memory.play import call_view
from .parallel_memory.settings import MemorySettings, memory_settings, whole_number
from .parallel_memory.workflow import CallRecord, ExitReason, Speaker, TurnRecord, Workflow
from .reading.chunking import Align, Chunks, chunk_document
from .reading.document import Document
from .reading.files import open_document
from .reading.quotes import Quote
from .wording import did_you_mean

__all__ = ["AnswerFailed", "Finding", "Progress", "Quote", "Reading", "answer"]

_LONGEST_PATH = 4096


class AnswerFailed(MarsEnvsError, RuntimeError):
    """Too many calls failed to answer the question. `reading` has what was found until then."""

    def __init__(self, message: str, reading: Reading) -> None:
        super().__init__(message)
        self.reading = reading

    def __reduce__(self) -> tuple[type[AnswerFailed], tuple[str, Reading]]:
        return type(self), (str(self), self.reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of reading a document to answer a question."""

    question: str
    answer: str
    """Empty where the answerer boxed nothing; see `reply`."""
    reply: str
    """What the answerer said, whole."""
    evidence: tuple[Finding, ...]
    """In the order of turns, then of chunks. Of recurrent methods, which keep no notes, the chunks
    that the final memory quotes. Empty for methods that read once."""
    memory: str
    """All that the answerer knew."""
    method: str
    n_chunks: int
    turns: tuple[TurnRecord, ...]
    calls: tuple[CallRecord, ...]
    exit_reason: ExitReason

    @property
    def malformed(self) -> int:
        """Replies of the wrong form: without the tag, or the box, that was asked for.

        Where they are many, look at what the model says: it may have been cut off while it thought.
        """
        return sum(call.status == "malformed" for call in self.calls)


def answer(
    question: str,
    document: str | Document | Path,
    *,
    generate: TextGenerator | None = None,
    speak: Speaker | None = None,
    method: str = "pi_mem",
    options: Mapping[str, Any] | None = None,
    chunk_tokens: int = 5000,
    align: Align = "sentence",
    tokenizer: Any = "words",
    prompts: Any = "prose",
    preset: str = "default",
    concurrency: int = 8,
    delay_s: float = 0.5,
    failures: tuple[type[Exception], ...] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Reading:
    r"""Answer a question about a document of any length.

    Calls that fail are asked again after a pause that doubles each time; see `retries` and
    `max_failures` of `MemorySettings`. An interrupt ends the call at once.

    Args:
        question: what to answer.
        document: its text, a document, or the `Path` of a text, Markdown, HTML or PDF file.
        generate: a function from a prompt to a text, async or not. If it takes a keyword
            `max_tokens`, it is told how long the text should be at most. It is called from
            `concurrency` threads at once; an async one runs in a single event loop.
        speak: instead of `generate`, a function from an observation to a text, for agents that need
            no prompt; see `call_view`. It is called one call at a time.
        method: one of `mars_envs.parallel_memory.methods.METHODS`.
        options: what the method takes beside, e.g. `{"top": 10}` for "retrieval".
        chunk_tokens: the most tokens of a chunk.
        align: where chunks may end; see `chunk_document`.
        tokenizer: what counts tokens; see `resolve_tokenizer`.
        prompts: see `resolve_prompts`.
        preset: of the settings; see `memory_settings`.
        concurrency: calls in flight at most.
        delay_s: before a call is asked again; doubled each time, at most half a minute.
        failures: exceptions of the generator that mean that no reply will come. Others end it all.
            None: all but those of a bug (`NameError`, `TypeError`, `AttributeError`, ...; see
            `mars_envs.generators.PROGRAMMING_ERRORS`). To ask again after these, too, say
            `(Exception,)`.
        progress: called after every call, in the caller's thread.
        settings: fields of `MemorySettings`, e.g. `max_turns=5`.

    Raises:
        InvalidSetting: a setting that cannot work, or a generator that gives no text.
        InvalidTask: a file that cannot be read as a document.
        AnswerFailed: too many calls failed.

    Example:
        >>> def model(prompt):  # stands for a language model
        ...     if "Ada wrote" in prompt:
        ...         return r"<check>yes</check> Ada wrote the notes. \boxed{Ada}"
        ...     return "<check>no</check>"
        >>> text = "It rained. Ada wrote the notes."
        >>> reading = answer("Who wrote the notes?", text, generate=model)
        >>> reading.answer, [quote.start for quote in reading.evidence[0].quotes]
        ('Ada', [11])
    """
    if (generate is None) == (speak is None):
        raise InvalidSetting(
            "give either generate= (from a prompt) or speak= (from an observation)"
        )
    _check(question, options)
    _check_names(settings)
    whole_number("chunk_tokens", chunk_tokens, 1)
    document = _opened(document)
    chunks = chunk_document(document, size=chunk_tokens, align=align, tokenizer=tokenizer)
    workflow = make_workflow(
        method,
        question,
        chunks,
        settings=memory_settings(preset, **settings),
        prompts=prompts,
        **(options or {}),
    )
    run = partial(drive, workflow, delay_s=delay_s, failures=failures, progress=progress)
    if speak is not None:
        say = speak
        causes = run(lambda call: say(call_view(workflow, call)), concurrency=1)
    else:
        assert generate is not None  # one of the two
        with Generator(generate) as generator:
            causes = run(
                lambda call: generator(call.prompt, call.max_tokens), concurrency=concurrency
            )
    reading = _reading(workflow, question, method, chunks)
    if workflow.exit_reason == "backend_error":
        failed = sum(record.status == "error" for record in reading.calls)
        last = causes[-1]
        raise AnswerFailed(
            f"{failed} of {len(reading.calls)} calls failed, which is too many to answer; the last "
            f"one because: {type(last).__name__}: {last}",
            reading,
        ) from last
    return reading


def _check(question: Any, options: Any) -> None:
    if not isinstance(question, str):
        raise InvalidSetting(f"a question is a text (str), got {question!r:.80}")
    if options is not None and not isinstance(options, Mapping):
        raise InvalidSetting(
            f'options are a dict of what the method takes, e.g. {{"top": 10}}, got {options!r:.80}'
        )


def _check_names(settings: Mapping[str, Any]) -> None:
    known = {field.name for field in dataclasses.fields(MemorySettings)}
    if unknown := sorted(set(settings) - known):
        every = sorted(known | set(answer.__kwdefaults__ or {}))
        raise InvalidSetting(
            f"unknown options {unknown}{did_you_mean(unknown, every)}; expected some of {every}"
        )


def _opened(document: Any) -> str | Document:
    if isinstance(document, Path):
        return open_document(document)
    if isinstance(document, str) and _names_file(document):
        raise InvalidSetting(
            f"the document is the text {document!r:.80}, and there is a file of this name: give "
            f"Path({document!r:.80}) to read the file, TextDocument(...) to read the name"
        )
    if isinstance(document, str) or (hasattr(document, "read") and hasattr(document, "parts")):
        found: str | Document = document
        return found
    raise InvalidSetting(
        "a document is its text (str), a Document or the Path of a file, got a "
        f"{type(document).__name__}: {document!r:.80}"
    )


def _names_file(text: str) -> bool:
    """Whether a text is the path of a file that is there."""
    return len(text) <= _LONGEST_PATH and os.path.isfile(text)


def _reading(workflow: Workflow, question: str, method: str, chunks: Chunks) -> Reading:
    # Methods that read once cut the document in their own way.
    own = getattr(workflow, "chunks", chunks)
    return Reading(
        question=question,
        answer=workflow.answer,
        reply=workflow.reply,
        evidence=tuple(
            find_evidence(
                workflow.turns,
                own,
                conclusion=workflow.memory or workflow.reply,
                parts=chunks.document.parts,
            )
        ),
        memory=workflow.memory,
        method=method,
        n_chunks=workflow.n_chunks,
        turns=tuple(workflow.turns),
        calls=tuple(workflow.calls),
        exit_reason=workflow.exit_reason,
    )
