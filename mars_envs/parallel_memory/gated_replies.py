"""What a gated memorizer replies: an update gate, the new memory, an exit gate.

`<check>yes</check>` opens the update gate: what stands in `<update>` becomes the memory. With
`<check>no</check>` the memory stays as it is. `<next>end</next>` opens the exit gate: the rest of
the document need not be read; `<next>continue</next>` goes on.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from .replies import quiet, without_thinking

_CHECK = re.compile(r"<check>\s*+(yes|no)\s*+</check>", re.IGNORECASE)
_NEXT = re.compile(r"<next>\s*+(continue|end)\s*+</next>", re.IGNORECASE)
_LAST_NEXT = re.compile(rf"{_NEXT.pattern}\s*+\Z", re.IGNORECASE)
_OPENING = re.compile(r"<update>", re.IGNORECASE)
_CLOSING = re.compile(r"</update>", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedReply:
    """A memorizer's reply, taken apart."""

    update: str | None
    """The new memory; None: the gate is shut. Empty: the gate is open and nothing is behind it."""
    end: bool
    """The exit gate is open."""
    malformed: bool
    """It has no update gate."""


def parse_gated(reply: str) -> GatedReply:
    """Take a reply apart: outside of the update, the first tag of each kind decides.

    Thinking is taken off first (see `replies`), so a gate that is only thought about is none. A
    reply without an update gate leaves the memory as it is; one without an exit gate goes on.
    """
    said = without_thinking(reply)
    written, gates = _update(said)
    check, following = _CHECK.search(gates), _NEXT.search(gates)
    update = None
    if check is not None and check[1].lower() == "yes":
        update = quiet(written.strip())
    return GatedReply(
        update=update,
        end=following is not None and following[1].lower() == "end",
        malformed=check is None,
    )


def _update(said: str) -> tuple[str, str]:
    """Return what stands in the update, and all around it."""
    opening = _OPENING.search(said)
    if opening is None:
        return "", said
    # Up to the last closing tag, so that tags in a text that is passed on are text.
    closing = deque(_CLOSING.finditer(said, opening.end()), maxlen=1)
    if closing:
        start, end = closing[0].span()
    else:  # the reply was cut, or its update never closed
        last = _LAST_NEXT.search(said, opening.end())
        start = end = len(said) if last is None else last.start()
    return said[opening.end() : start], f"{said[: opening.start()]}\n{said[end:]}"


def Update(text: str | None, *, end: bool = False) -> str:  # noqa: N802
    """Return a memorizer's reply that parses to this.

    Args:
        text: the new memory; None leaves the old one.
        end: nothing more need be read.
    """
    gate = "<next>end</next>" if end else "<next>continue</next>"
    if text is None:
        return f"<check>no</check>\n{gate}"
    return f"<check>yes</check>\n<update>\n{quiet(text)}\n</update>\n{gate}"
