"""One call: the answer from passages of the document, without a memory.

`Direct` shows as much of the document as fits, with the middle left out, as is usual for models
whose window is too small. `retrieval` shows what a search finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import InvalidSetting
from ..reading.chunking import Chunks, chunk_document
from .calls import CallLoop, Request, Sizes, question_text
from .prompts import DirectView, resolve_prompts
from .settings import MemorySettings
from .workflow import Call, Note, TurnRecord

_WHOLE = 2**40
"""Tokens: more than any document has."""


class SinglePass(CallLoop):
    """Answers from some pieces of a document at once.

    There is one turn, in which the pieces that are shown count as read and found, and one call.

    Args:
        question: what to answer.
        pieces: the document as it is cut here.
        shown: pieces to answer from, in order.
        settings: `answer_tokens`, `retries` and `max_failures` count; None for the default ones.
        prompts: see `resolve_prompts`; function `direct`.

    Raises:
        InvalidSetting: prompts that lack it.
    """

    chunks: Chunks

    def __init__(
        self,
        question: str,
        pieces: Chunks,
        shown: Sequence[int],
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
    ) -> None:
        super().__init__(question, pieces, settings=settings, prompts=prompts, needs=("direct",))
        self._show(shown)
        self._ask_answer("read_all")

    @property
    def max_turns(self) -> int:
        """One."""
        return 1

    def _show(self, shown: Sequence[int]) -> None:
        """Choose what to answer from."""
        self._shown = tuple(shown)
        self._turns = [
            TurnRecord(
                turn=1,
                read=self._shown,
                found=self._shown,
                failed=(),
                malformed=0,
                dropped=0,
                memory="",
                memory_tokens=0,
                memory_cut=False,
            )
        ]

    def _too_much(self) -> int:
        """Return by how many tokens the call, its reply included, is over the window."""
        window = self.settings.window
        if window is None:
            return 0
        return self._count(self._answer_prompt()) + self.settings.answer_tokens - window

    def _advance(self) -> None:
        raise AssertionError("the only call is the answerer's")

    def _call(self, call_id: int, request: Request) -> Call:
        notes = tuple(Note(text=self._chunk(i), first=i, last=i) for i in self._shown)
        return replace(super()._call(call_id, request), selected=notes)

    def _sizes(self, request: Request) -> Sizes:
        shown = sum(self.chunks.tokens(i) for i in self._shown)
        return Sizes(prompt=self._count(self._prompt_around()) + shown, selected=shown)

    def _answer_prompt(self) -> str:
        return self._direct_prompt([self._chunk(i) for i in self._shown])

    def _prompt_around(self) -> str:
        return self._direct_prompt([""] * len(self._shown))

    def _direct_prompt(self, passages: Sequence[str]) -> str:
        labels = [self._label(i) for i in self._shown]
        view = DirectView(question=self.question, passages=passages, labels=labels)
        return self.prompts.direct(view)


class Direct(SinglePass):
    """Answers from the document itself; of one that is too long, the middle is left out.

    Args:
        question: what to answer.
        chunks: the document; how it is cut does not matter.
        settings: as of `SinglePass`; `window` counts, too.
        prompts: as of `SinglePass`.
        context_tokens: the most tokens of the document that are shown: its first and its last half
            of them. None: what the window leaves beside prompt and answer; without a window, all.

    Raises:
        InvalidSetting: `context_tokens` is less than 1, or nothing is left of the window.
    """

    def __init__(
        self,
        question: str,
        chunks: Chunks,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
        context_tokens: int | None = None,
    ) -> None:
        question = question_text(question)
        settings = settings or MemorySettings()
        if context_tokens is None and settings.window is not None:
            view = DirectView(question=question, passages=("", ""), labels=("1/2", "2/2"))
            around = resolve_prompts(prompts, needs=("direct",)).direct(view)
            taken = chunks.tokenizer.count(around) + settings.answer_tokens
            context_tokens = settings.window - taken
            if context_tokens < 1:
                raise InvalidSetting(
                    f"a window of {settings.window} tokens has no room for a document beside "
                    f"prompt and answer ({taken} tokens); widen it, or lower answer_tokens"
                )
        pieces = chunk_document(
            chunks.document,
            size=_WHOLE if context_tokens is None else context_tokens,
            limit=context_tokens,
            tokenizer=chunks.tokenizer,
        )
        super().__init__(question, pieces, range(len(pieces)), settings=settings, prompts=prompts)
