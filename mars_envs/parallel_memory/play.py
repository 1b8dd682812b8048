"""Driving a workflow with a speaker: whoever turns what is observed into a reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ProtocolError
from .workflow import Call, Note, Phase, Speaker, Workflow

W = TypeVar("W", bound=Workflow)

_READING = ("reader", "memorizer")


def call_view(workflow: Workflow, call: Call) -> dict[str, Any]:
    """Return what is observed of a call: its prompt, and the same in parts, as plain data.

    `selected` is JSON, a list of `{"first", "last", "text"}`; see `read_selected`. `chunk_index` is
    -1 where no chunk is read.
    """
    return {
        "phase": int(call.phase),
        "active": 1,
        "turn": call.turn,
        "max_turns": workflow.max_turns,
        "prompt": call.prompt,
        "question": call.question,
        "memory": call.memory,
        "chunk": call.chunk,
        "chunk_index": call.index if call.role in _READING else -1,
        "n_chunks": workflow.n_chunks,
        "selected": write_selected(call.selected),
        "role": call.role,
        "max_tokens": call.max_tokens,
        "gated": int(call.gated),
    }


def write_selected(notes: Sequence[Note]) -> str:
    """Return notes as JSON; empty where there are none."""
    if not notes:
        return ""
    items = [{"first": note.first, "last": note.last, "text": note.text} for note in notes]
    return json.dumps(items, ensure_ascii=False)


def read_selected(text: str) -> list[Note]:
    """Return the notes of an observation's `selected`.

    Example:
        >>> read_selected('[{"first": 0, "last": 2, "text": "Ada"}]')
        [Note(text='Ada', first=0, last=2)]
    """
    items = json.loads(text) if text else []
    return [Note(text=item["text"], first=item["first"], last=item["last"]) for item in items]


def play(
    workflow: W,
    speak: Speaker,
    *,
    order: Callable[[list[Call]], Sequence[Call]] | None = None,
    at_once: int | None = None,
    failures: tuple[type[Exception], ...] = (),
) -> W:
    """Drive a workflow to its end, and return it.

    Args:
        workflow: at any point of an episode in which no call is open.
        speak: gives the replies, one at a time.
        order: which order to speak in, of the calls that can be made now; None: theirs. The outcome
            does not depend on it.
        at_once: the most calls to ask for together; None: all that can be made.
        failures: exceptions of the speaker that mean that no reply will come; others go through.

    Raises:
        ProtocolError: nothing can be asked for, because calls are open that somebody else made.
    """
    while workflow.phase is not Phase.DONE:
        calls = workflow.ask(at_once)
        if not calls:
            raise ProtocolError(
                "the workflow has no call to make: replies are awaited that were asked for before "
                f"(or at_once is no number above 0: {at_once!r})"
            )
        for call in order(calls) if order else calls:
            try:
                reply = speak(call_view(workflow, call))
            except failures as error:
                workflow.fail(call.id, f"{type(error).__name__}: {error}")
            else:
                workflow.tell(call.id, reply)
    return workflow
