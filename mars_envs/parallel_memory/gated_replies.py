"""What a gated memorizer replies: an update gate, the new memory, an exit gate.

`<check>yes</check>` opens the update gate: what stands in `<update>` becomes the memory. With
`<check>no</check>` the memory stays as it is. `<next>end</next>` opens the exit gate: the rest of
the document need not be read; `<next>continue</next>` goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHECK = re.compile(r"<check>\s*(yes|no)\s*</check>", re.IGNORECASE)
_NEXT = re.compile(r"<next>\s*(continue|end)\s*</next>", re.IGNORECASE)
_THINK = re.compile(r"<think>.*?</think>", re.IGNORECASE | re.DOTALL)
# From the first opening to the last closing tag, so that tags in a text that is passed on are text.
_UPDATE = re.compile(r"<update>(.*)</update>", re.IGNORECASE | re.DOTALL)
# Of a reply that was cut, or whose update was never closed.
_OPEN_UPDATE = re.compile(
    r"<update>(.*?)(?=(?:<next>\s*(?:continue|end)\s*</next>\s*)?\Z)", re.IGNORECASE | re.DOTALL
)


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

    Thinking is taken out first, so a gate that is only thought about is none. A reply without an
    update gate leaves the memory as it is; one without an exit gate goes on.
    """
    said = _THINK.sub("", reply)
    written = _UPDATE.search(said) or _OPEN_UPDATE.search(said)
    gates = said if written is None else f"{said[: written.start()]}\n{said[written.end() :]}"
    check, following = _CHECK.search(gates), _NEXT.search(gates)
    update = None
    if check is not None and check[1].lower() == "yes":
        update = "" if written is None else written[1].strip()
    return GatedReply(
        update=update,
        end=following is not None and following[1].lower() == "end",
        malformed=check is None,
    )


def Update(text: str | None, *, end: bool = False) -> str:  # noqa: N802
    """Return a memorizer's reply that parses to this.

    Args:
        text: the new memory; None leaves the old one.
        end: nothing more need be read.
    """
    gate = "<next>end</next>" if end else "<next>continue</next>"
    if text is None:
        return f"<check>no</check>\n{gate}"
    return f"<check>yes</check>\n<update>\n{text}\n</update>\n{gate}"
