"""Fenced blocks of a Markdown text, after CommonMark, without a model's reasoning.

Fences are three or more backticks or tildes, closed by a line of at least as many of the same
character, open until the end of the text otherwise. Reasoning between `<think>` and `</think>` is
dropped before anything else, unless it stands inside a fence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\n]*)")
"""A line that may open a block: its indentation, the marks, what stands behind them."""
_THINK, _THINK_END = "<think>", "</think>"


@dataclass(slots=True)
class Block:
    """What stands between two fences."""

    tag: str
    """The language that it names, in lower case; empty: none."""
    lines: list[str]

    @property
    def text(self) -> str:
        """Its content, without the line end before the closing fence."""
        return "\n".join(self.lines)


class Scanner:
    """Splits a reply into fenced blocks and prose, without the reasoning, in one pass.

    Args:
        reply: any text.
        loose: whether a fence with words behind it ends a block, too: one word opens the next.
    """

    def __init__(self, reply: str, *, loose: bool = False) -> None:
        self.reply = reply
        self._loose = loose
        self.blocks: list[Block] = []
        self.prose: list[str] = []
        self._position = 0
        self._stop = -1  # the end of the current line
        self._last_close = reply.rfind(_THINK_END)
        self._began = False  # whether anything but white space stood before the current line
        while self._position < len(reply):
            self._read_line()

    def _read_line(self) -> None:
        start = self._position
        if start > self._stop:  # a line of many tags is read in many parts
            self._stop = _line_end(self.reply, start)
        stop = self._stop
        opening = OPENING.fullmatch(self.reply, start, stop)
        if opening is not None and not (opening[2][0] == "`" and "`" in opening[3]):
            self._position = stop + 1
            self._read_block(opening)
        elif not self._skip_reasoning(start, stop):
            self.prose.append(self.reply[start:stop])
            self._position = stop + 1
        self._began = self._began or not self.reply[start:stop].isspace()

    def _read_block(self, opening: re.Match[str]) -> None:
        indent, marks = opening[1], opening[2]
        block = Block(tag=_tag(opening[3]), lines=[])
        self.blocks.append(block)
        while self._position < len(self.reply):
            start, stop = self._position, _line_end(self.reply, self._position)
            line = self.reply[start:stop]
            words = _behind_fence(line, marks, indent)
            if words is not None and (self._loose or not words):
                opens_next = len(words.split()) == 1
                self._position = start if opens_next else stop + 1
                break
            self._position = stop + 1
            block.lines.append(_unindent(line, len(indent)) if indent else line)

    def _skip_reasoning(self, start: int, stop: int) -> bool:
        """Skip reasoning that starts or ends in this line; return whether it did."""
        opened = self.reply.find(_THINK, start, stop)
        closed = self.reply.find(_THINK_END, start, stop)
        if closed >= 0 and (opened < 0 or closed < opened):
            # The chat template had opened the reasoning, so all that came before belongs to it.
            self.blocks.clear()
            self.prose.clear()
            closed = self.reply.rfind(_THINK_END, start, stop if opened < 0 else opened)
            self._position = closed + len(_THINK_END)
            return True
        if opened < 0:
            return False
        if opened < self._last_close:
            self.prose.append(self.reply[start:opened])
            self._position = self.reply.find(_THINK_END, opened) + len(_THINK_END)
            return True
        if self._began or self.reply[start:opened].strip():
            return False  # a word of the text
        self._position = len(self.reply)  # cut off while still thinking
        return True


def _line_end(text: str, start: int) -> int:
    newline = text.find("\n", start)
    return len(text) if newline < 0 else newline


def _behind_fence(line: str, marks: str, indent: str) -> str | None:
    """Return what stands behind a fence that may end a block; None: the line is no such fence."""
    inner = line.lstrip(" \t")
    words = inner.lstrip(marks[0])
    if len(inner) - len(words) < len(marks) or len(line) - len(inner) > len(indent) + 3:
        return None
    return None if marks[0] == "`" and "`" in words else words.strip(" \t\r")


def _unindent(line: str, width: int) -> str:
    have = len(line) - len(line.lstrip(" \t"))
    return line[min(have, width) :]


def _tag(info: str) -> str:
    """Return the language named behind a fence: `python` for ```` ```{.python title="x"} ````."""
    words = re.split(r"[\s,{}]+", info.strip(" \t\r{.").lower(), maxsplit=1)
    return words[0]
