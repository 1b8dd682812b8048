"""The ways of reading, by name: PI-Mem's loop and the baselines that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidSetting
from ..reading.chunking import Chunks
from ..wording import did_you_mean
from .gated import GatedMemory
from .loop import MemoryLoop
from .recurrent import RecurrentMemory
from .retrieval import Retrieval
from .settings import MemorySettings
from .single_pass import Direct
from .workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way of reading."""

    make: Callable[..., Workflow]
    options: tuple[str, ...] = ()
    """What it takes beside settings and prompts."""
    says: str
    """What it does, for reports."""


METHODS: Mapping[str, Method] = {
    "pi_mem": Method(make=MemoryLoop, says="all chunks at once with a shared memory, in turns"),
    "recurrent": Method(
        make=RecurrentMemory,
        options=("passes",),
        says="chunk by chunk, the memory rewritten each time (MemAgent)",
    ),
    "gated": Method(
        make=GatedMemory,
        options=("passes", "exit_gate"),
        says="chunk by chunk, with an update gate and an exit gate (GRU-Mem)",
    ),
    "direct": Method(
        make=Direct,
        options=("context_tokens",),
        says="at once: all of it, without its middle where that is more than context_tokens, a "
        "window or an observation holds",
    ),
    "retrieval": Method(
        make=Retrieval, options=("piece_tokens", "top"), says="the pieces that BM25 finds, at once"
    ),
}


_ELSEWHERE: Mapping[str, str] = {
    "pimem": "pi_mem",
    "parallelmemory": "pi_mem",
    "memagent": "recurrent",
    "recurrentmemory": "recurrent",
    "grumem": "gated",
    "longcontext": "direct",
    "fullcontext": "direct",
    "rag": "retrieval",
    "bm25": "retrieval",
}
"""What papers and the environments call the methods, in small letters alone."""


def unknown_method(name: object) -> str:
    """Say that there is no such method, and which one may be meant."""
    letters = "".join(letter for letter in str(name)[:80].lower() if letter.isalnum())
    if letters in _ELSEWHERE:
        hint = f" (here it is called {_ELSEWHERE[letters]!r})"
    else:
        hint = did_you_mean([str(name)[:80]], METHODS)
    return f"unknown method {name!r:.80}{hint}; expected one of {', '.join(METHODS)}"


def make_workflow(
    method: str,
    question: str,
    chunks: Chunks,
    *,
    settings: MemorySettings | None = None,
    prompts: Any = "prose",
    **options: Any,
) -> Workflow:
    """Return a way of reading a document to answer a question, at its start.

    Args:
        method: a name of `METHODS`.
        question: what to answer.
        chunks: the document. "direct" and "retrieval" cut it anew.
        settings: see `MemorySettings`; None for the default ones.
        prompts: see `mars_envs.parallel_memory.prompts.resolve_prompts`.
        options: what the method takes beside, see `METHODS`.

    Raises:
        InvalidSetting: no such method or option, or a value that cannot work.
        ImportError: "retrieval" without the extra of that name.

    Example:
        >>> from mars_envs.reading.chunking import chunk_document
        >>> workflow = make_workflow("recurrent", "Who?", chunk_document("Ada did it."), passes=2)
        >>> workflow.max_turns, [call.role for call in workflow.ask()]
        (2, ['memorizer'])
    """
    known = METHODS.get(method)
    if known is None:
        raise InvalidSetting(unknown_method(method))
    if unknown := sorted(set(options) - set(known.options)):
        expected = f"some of {list(known.options)}" if known.options else "none"
        raise InvalidSetting(f"{method!r:.80} takes no options {unknown}; expected {expected}")
    return known.make(question, chunks, settings=settings, prompts=prompts, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMaker:
    """A method with its settings: makes workflows. Plain data, so it goes to other processes."""

    method: str
    """A name of `METHODS`."""
    settings: MemorySettings
    prompts: Any
    options: Mapping[str, Any]
    """What the method takes beside."""

    def __call__(self, question: str, chunks: Chunks) -> Workflow:
        """Return the workflow of a question, at its start."""
        return make_workflow(
            self.method,
            question,
            chunks,
            settings=self.settings,
            prompts=self.prompts,
            **self.options,
        )
