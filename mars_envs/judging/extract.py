"""The program in a language model's reply.

Fences follow CommonMark: three or more backticks or tildes, closed by a line of at least as many of
the same character, open until the end of the reply otherwise. Where several blocks stand, the last
one that is a program wins, since models explain first and answer last. Reasoning between `<think>`
and `</think>` is dropped before anything else, unless it stands inside a fence.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from dataclasses import dataclass
from typing import Literal

from ..parsing import parse

How = Literal["fenced", "unparsed", "whole", "none"]

_MAX_PARSE_CHARS = 1 << 16
"""Longer texts are not parsed, so only a fence makes them programs. The parser takes quadratic time
for some texts, and it runs on the host: at this length it takes a second or two at worst."""

_OPEN = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\n]*)")
_PYTHON_TAGS = frozenset({"", "python", "python3", "py", "py3", "python2", "ipython"})
_THINK, _THINK_END = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program of a reply, if there is one."""

    program: str | None
    how: How
    """`fenced`: the last fenced block that is a program; `unparsed`: no block parses, so the last
    one; `whole`: no fence, the reply itself is a program; `none`: there is no program."""


@dataclass(slots=True)
class _Block:
    tag: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def extract_program(reply: str) -> Extraction:
    """Find the program in a reply, in time linear in its length. Never raises.

    A fenced program comes back character for character, without the line end before the closing
    fence; an indented block loses the indentation of its fence.
    """
    # A bare program may hold fences or tags in its strings; prose around a fence never parses.
    first = _OPEN.match(reply.lstrip("\n\r"))
    if first is None and is_program(reply):
        return Extraction(reply.strip(), "whole")
    scanned = _Scanner(reply)
    blocks = [block for block in scanned.blocks if block.text.strip()]
    if not blocks:
        bare = "\n".join(scanned.prose).strip()
        if is_program(bare):
            return Extraction(bare, "whole")
        return Extraction(None, "none")
    candidates = [block for block in blocks if block.tag in _PYTHON_TAGS] or blocks
    for block in reversed(candidates):
        if is_program(block.text):
            return Extraction(block.text, "fenced")
    return Extraction(candidates[-1].text, "unparsed")


def is_program(text: str) -> bool:
    """Whether `text` parses as Python and does something.

    A word, a number or `Answer: 42` parses, too; so at least one statement has to be more than
    names, constants and operators.
    """
    module = parse_python(text)
    return module is not None and any(_does_something(node) for node in module.body)


def _does_something(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if isinstance(node, ast.Expr):
        return any(
            isinstance(child, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
            for child in ast.walk(node)
        )
    return True


_filters = threading.Lock()


def parse_python(text: str) -> ast.Module | None:
    """Parse any text at all; None where it is no Python. Never raises."""
    if len(text) > _MAX_PARSE_CHARS:
        return None
    try:
        return parse(text)
    except SyntaxError as error:
        # The parser warns of "\d" in a plain string. Where warnings are errors, that arrives here,
        # and only then the process-wide filters are touched.
        if "invalid" not in str(error.msg) or "\\" not in text:
            return None
    except (ValueError, MemoryError, RecursionError, OverflowError):
        # NUL bytes, lone surrogates, nesting beyond the parser's limits
        return None
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parse(text)
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
            return None


class _Scanner:
    """Splits a reply into fenced blocks and prose, without the reasoning, in one pass."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.blocks: list[_Block] = []
        self.prose: list[str] = []
        self._position = 0
        self._last_close = reply.rfind(_THINK_END)
        self._began = False  # whether anything but white space stood before the current line
        while self._position < len(reply):
            self._read_line()

    def _read_line(self) -> None:
        start = self._position
        stop = _line_end(self.reply, start)
        opening = _OPEN.fullmatch(self.reply, start, stop)
        if opening is not None and not (opening[2][0] == "`" and "`" in opening[3]):
            self._position = stop + 1
            self._read_block(opening)
        elif not self._skip_reasoning(start, stop):
            self.prose.append(self.reply[start:stop])
            self._position = stop + 1
        self._began = self._began or not self.reply[start:stop].isspace()

    def _read_block(self, opening: re.Match[str]) -> None:
        indent, marks = opening[1], opening[2]
        block = _Block(tag=_tag(opening[3]), lines=[])
        self.blocks.append(block)
        while self._position < len(self.reply):
            stop = _line_end(self.reply, self._position)
            line = self.reply[self._position : stop]
            self._position = stop + 1
            if _closes(line, marks, indent):
                break
            block.lines.append(_unindent(line, len(indent)) if indent else line)

    def _skip_reasoning(self, start: int, stop: int) -> bool:
        """Skip reasoning that starts or ends in this line; return whether it did."""
        opened = self.reply.find(_THINK, start, stop)
        closed = self.reply.find(_THINK_END, start, stop)
        if closed >= 0 and (opened < 0 or closed < opened):
            # The chat template had opened the reasoning, so all that came before belongs to it.
            self.blocks.clear()
            self.prose.clear()
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


def _closes(line: str, marks: str, indent: str) -> bool:
    stripped = line.strip(" \t\r")
    return (
        len(stripped) >= len(marks)
        and stripped == marks[0] * len(stripped)
        and len(line) - len(line.lstrip(" \t")) <= len(indent) + 3
    )


def _unindent(line: str, width: int) -> str:
    have = len(line) - len(line.lstrip(" \t"))
    return line[min(have, width) :]


def _tag(info: str) -> str:
    """Return the language named behind a fence: `python` for ```` ```{.python title="x"} ````."""
    words = re.split(r"[\s,{}]+", info.strip(" \t\r{.").lower(), maxsplit=1)
    return words[0]
