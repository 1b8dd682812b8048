"""One call: the answer from passages of the document, without a memory.

`Direct` shows as much of the document as fits, with the middle left out, as is usual for models
whose window is too small. `retrieval` shows what a search finds. An observation is a text of
`TEXT_LIMIT` characters at most; what does not fit into it is left out here, so that an environment
shows, counts and scores the same as whoever plays the workflow itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import InvalidSetting
from ..reading.chunking import Chunks, chunk_document
from ..spaces import TEXT_LIMIT
from .calls import CallLoop, Request, Sizes, question_text
from .play import write_selected
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

    def _fits(self) -> bool:
        """Return whether the texts of the call fit into an observation."""
        return max(map(len, self._texts(self._passages()))) <= TEXT_LIMIT

    def _advance(self) -> None:
        raise AssertionError("the only call is the answerer's")

    def _call(self, call_id: int, request: Request) -> Call:
        notes = self._notes(self._passages())
        return replace(super()._call(call_id, request), selected=notes)

    def _sizes(self, request: Request) -> Sizes:
        shown = sum(self.chunks.tokens(i) for i in self._shown)
        return Sizes(prompt=self._count(self._prompt_around()) + shown, selected=shown)

    def _answer_prompt(self) -> str:
        return self._direct_prompt(self._passages())

    def _prompt_around(self) -> str:
        return self._direct_prompt([""] * len(self._shown))

    def _passages(self) -> list[str]:
        return [self._chunk(i) for i in self._shown]

    def _notes(self, passages: Sequence[str]) -> tuple[Note, ...]:
        pairs = zip(self._shown, passages, strict=True)
        return tuple(Note(text=text, first=i, last=i) for i, text in pairs)

    def _texts(self, passages: Sequence[str]) -> tuple[str, str]:
        """Return both texts that show passages, the prompt and JSON."""
        return self._direct_prompt(passages), write_selected(self._notes(passages))

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
            of them. None: what the window leaves beside prompt and answer; without a window, as
            many as a text of `TEXT_LIMIT` characters holds, which is the most in any case.

    Raises:
        InvalidSetting: `context_tokens` is less than 1, nothing is left of the window, or the
            question, or the first token, fills an observation on its own.
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
        whole, room = chunks, TEXT_LIMIT
        chunks = _ends(whole, context_tokens, room)
        super().__init__(question, chunks, range(len(chunks)), settings=settings, prompts=prompts)
        while not self._fits():
            if sum(chunks.tokens(i) for i in range(len(chunks))) < 2:
                raise InvalidSetting(
                    f"an observation of {TEXT_LIMIT:,} characters has no room for a single token "
                    "of the document beside the question; shorten the question, or take another "
                    "tokenizer"
                )
            # Fewer by some in any case: what is left may be longer as JSON than what goes.
            room = min(room - room // 64 - 1, self._room())
            self.chunks = chunks = _ends(whole, context_tokens, room)
            self._show(range(len(chunks)))

    def _room(self) -> int:
        """Return how many characters of the document fit, if all are like those that are shown."""
        passages = self._passages()
        shown = sum(map(len, passages))
        around = self._texts([""] * len(passages))
        return min(
            shown * (TEXT_LIMIT - len(frame)) // max(1, len(text) - len(frame))
            for text, frame in zip(self._texts(passages), around, strict=True)
        )


def _ends(chunks: Chunks, tokens: int | None, characters: int) -> Chunks:
    """Cut a document to its first and its last half of so many tokens, and of so many characters.

    One token is the least, whatever its length.
    """
    document, tokenizer = chunks.document, chunks.tokenizer
    if len(document) > characters:
        half = max(0, characters // 2)
        head = document.read(0, half)
        tail = document.read(len(document) - half, len(document))
        held = max(1, 2 * min(tokenizer.count(head), tokenizer.count(tail)))
        tokens = held if tokens is None else min(tokens, held)
    size = _WHOLE if tokens is None else tokens
    return chunk_document(document, size=size, limit=tokens, tokenizer=tokenizer)
