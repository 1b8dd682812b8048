"""Gated recurrent memory: an update gate spares rewriting, an exit gate spares reading.

This is GRU-Mem's workflow (arXiv:2602.10560) as digests of the paper describe it: for each chunk
the memorizer says whether the memory is replaced (U_t), with what, and whether to read on (E_t).
Its code is not public; what it leaves open is said at `GatedMemory`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import InvalidSetting
from .calls import ChunkedText, Heard, Request
from .gated_replies import parse_gated
from .recurrent import RecurrentMemory
from .settings import MemorySettings
from .workflow import Call, ExitReason


class GatedMemory(RecurrentMemory):
    """Reads a document chunk by chunk; gates decide whether to write and whether to read on.

    See `gated_replies` for what a memorizer replies. Our choices: a reply without an update gate
    leaves the memory as it is and is counted as malformed; one that opens the gate with nothing
    behind it, too, as empty; both may still end reading. An exit ends all passes.

    Args:
        question: what to answer.
        chunks: the document.
        settings: as of `RecurrentMemory`.
        prompts: see `resolve_prompts`; functions `gated_update` and `answer`.
        passes: how often the whole document is read at most.
        exit_gate: whether a memorizer can end reading. Where all that there is must be found, it
            cannot know; then it is asked and not heeded.

    Raises:
        InvalidSetting: as of `RecurrentMemory`, or `exit_gate` is not True or False.
    """

    _prompt = "gated_update"

    def __init__(
        self,
        question: str,
        chunks: ChunkedText,
        *,
        settings: MemorySettings | None = None,
        prompts: Any = "prose",
        passes: int = 1,
        exit_gate: bool = True,
    ) -> None:
        if not isinstance(exit_gate, bool):
            raise InvalidSetting(f"exit_gate is True or False, got {exit_gate!r:.80}")
        self._exit_gate = exit_gate
        self._left_early = False
        super().__init__(question, chunks, settings=settings, prompts=prompts, passes=passes)

    def _call(self, call_id: int, request: Request) -> Call:
        call = super()._call(call_id, request)
        return replace(call, gated=True) if request.role == "memorizer" else call

    @property
    def _reply_tokens(self) -> int:
        # Beside the memory there are the gates, and thinking before them.
        return self.settings.memory_tokens + self.settings.reply_tokens

    def _exits(self) -> bool:
        return self._left_early

    def _reason(self) -> ExitReason:
        return "exit_gate" if self._left_early else "read_all"

    def _hear_update(self, request: Request, reply: str) -> Heard:
        said = parse_gated(reply)
        self._left_early |= said.end and self._exit_gate
        self._malformed += said.malformed
        if said.malformed:
            return Heard(status="malformed")
        if said.update is None:
            return Heard(status="no")
        if not said.update:
            return Heard(status="empty")
        return self._remember(said.update, request.index, "yes")
