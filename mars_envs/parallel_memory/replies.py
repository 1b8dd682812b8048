r"""What a reader, a merger and an answerer reply, and how it is read.

    reader     <check>yes</check> what was found            or  <check>no</check>
    merger     the new memory, nothing else
    answerer   anything with the answer in \boxed{...}

A bad reply is data: nothing here raises. Only replies are parsed, never prompts, so that a tag in a
document decides nothing. Thinking, `<think>...</think>`, is taken off first, unless a reader's
reply begins with its check. Tags of thinking that a document has are quiet from the start
(`as_shown`), so what is copied from one is never taken for thinking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..judging.answers import boxed
from ..spaces import replace_surrogates
from .settings import Grammar

CheckStatus = Literal["yes", "no", "empty", "malformed"]

_CHECK = re.compile(
    r"<\s*+check\s*+>\s*+(yes|no)\s*+<\s*+/\s*+check\s*+>",
    re.IGNORECASE,
)
_RELEASED_NO = "<check>no</check>"
_THINK = re.compile(r"(</?think>)", re.IGNORECASE)
_THINK_MARK = re.compile(r"<(?=/?think>)", re.IGNORECASE)


class Read:
    """Replies of a reader, well-formed."""

    @staticmethod
    def yes(text: str) -> str:
        """Say that a chunk holds something new: `text`."""
        return f"<check>yes</check>\n{quiet(text)}"

    @staticmethod
    def no() -> str:
        """Say that a chunk holds nothing new."""
        return "<check>no</check>"


def Merge(text: str) -> str:  # noqa: N802  (the three are named alike)
    """Return a merger's reply: the new memory, `quiet`."""
    return quiet(text)


def Answer(text: str) -> str:  # noqa: N802
    """Return an answerer's reply: the answer, `quiet`, in a box. Its braces have to balance."""
    return f"\\boxed{{{quiet(text)}}}"


@dataclass(frozen=True, slots=True)
class Check:
    """What a reader said."""

    status: CheckStatus
    note: str | None
    """What goes into the merge; None: nothing does."""


def parse_read(reply: str, *, grammar: Grammar = "tagged", strict: bool = False) -> Check:
    """Return what a reader said.

    The first well-formed tag decides, whatever its case and blanks, and the note is what follows
    it. A yes with nothing behind it counts as no (`empty`). Without a tag the reply is `malformed`:
    with `strict` it counts as no, else as yes with all of it.

    With `grammar="released"`, the reply is a no iff `<check>no</check>` occurs anywhere in it,
    lower-cased; else it is a yes, and all of it, the tag included, is the note.

    Example:
        >>> parse_read("<check> Yes </check> Ada, 1843.")
        Check(status='yes', note='Ada, 1843.')
        >>> parse_read("Ada, 1843.", strict=True)
        Check(status='malformed', note=None)
    """
    if grammar == "released":
        if _RELEASED_NO in reply.lower():
            return Check("no", None)
        return Check("yes" if _CHECK.search(reply) else "malformed", reply)
    text = reply.strip()
    tag = _CHECK.match(text)
    if tag is None:
        text = without_thinking(text)
        tag = _CHECK.search(text)
    if tag is None:
        return Check("malformed", None if strict or not text else quiet(text))
    if tag[1].lower() == "no":
        return Check("no", None)
    note = text[tag.end() :].strip()
    return Check("yes", quiet(note)) if note else Check("empty", None)


def parse_summary(reply: str) -> Check:
    """Return what a reader wrote that was asked for a summary, not for a check (`no_check`)."""
    note = without_thinking(reply.strip())
    return Check("yes", quiet(note)) if note else Check("empty", None)


def parse_memory(reply: str, *, grammar: Grammar = "tagged") -> str | None:
    """Return the memory that a merger wrote; None, keep the old one, for an empty reply.

    With `grammar="released"` the reply is the memory as it is, stripped, even where nothing is left
    of it.
    """
    if grammar == "released":
        return reply.strip()
    return without_thinking(reply.strip()) or None


def parse_answer(reply: str) -> str:
    r"""Return what stands in the last box behind any thinking; empty where there is no box.

    Example:
        >>> parse_answer(r"<think>\boxed{A}?</think> It is \boxed{Ada}.")
        'Ada'
    """
    return boxed(reply) or ""


def without_thinking(text: str) -> str:
    """Return a text without thinking, `<think>...</think>`.

    Some chat templates open the tag themselves, so a reply may only close it: then all before is
    thinking. Thinking that never ends goes on to the end of the reply.

    Example:
        >>> without_thinking("<think>Hm.</think> Ada"), without_thinking("Hm.</think> Ada")
        ('Ada', 'Ada')
    """
    kept: list[str] = []
    thinking = False
    for piece in _THINK.split(text):
        tag = piece.lower()
        if tag == "<think>":
            thinking = True
        elif tag == "</think>":
            if not thinking:
                kept.clear()
            thinking = False
        elif not thinking:
            kept.append(piece)
    return "".join(kept).strip()


def quiet(text: str) -> str:
    """Return a text with `‹` for the `<` of each tag of thinking, as long as before.

    Who repeats it word for word does not seem to think.

    Example:
        >>> quiet("Ada</think> wrote it.")
        'Ada‹/think> wrote it.'
    """
    return _THINK_MARK.sub("‹", text) if "<" in text else text


def as_shown(text: str) -> str:
    """Return a text of a task as agents are shown it, character for character as long as before.

    It is `quiet`, and lone surrogates are U+FFFD, so that it can be sent anywhere and be repeated
    in any reply. What agents wrote is compared with texts of a task in this form.
    """
    return quiet(replace_surrogates(text))
