"""The program in a language model's reply, by one of several rules.

`default` reads Markdown as CommonMark does and takes the last fenced block that is a program, since
models explain first and answer last; `lcb` is LiveCodeBench's rule to the letter, for figures that
are to be compared with published ones. `docs/judging.md` shows where they differ.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidSetting
from ..importing import import_function
from ..parsing import parse_python
from .fences import OPENING, Block, Scanner

How = Literal["fenced", "unparsed", "whole", "none"]
Extractor = Callable[[str], str | None]
"""From a reply to the program in it; None: there is none."""

_PYTHON_TAGS = frozenset({"", "python", "python3", "py", "py3", "python2", "ipython"})
_ESCAPE = re.compile(r"\\([ntr\"'\\])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program of a reply, if there is one."""

    program: str | None
    how: How
    """`fenced`: a fenced block (under `default`, the last that is a program); `unparsed`: no block
    parses, so the last one; `whole`: no fence, the reply itself is a program; `none`: there is no
    program."""


def extract_program(reply: str) -> Extraction:
    r"""Find the program in a reply, in time linear in its length. Never raises.

    The last fenced block that is a program (`is_program`), else the last fenced block; a fence that
    is not closed runs to the end. A fence with words behind it closes a block only where no block
    is a program otherwise. Blank blocks are none, and blocks labelled with another language count
    only where no other block stands. Without any fence the reply itself is taken if it is a
    program. Reasoning between `<think>` and `</think>` is dropped first. A reply without a single
    line end of its own but with `\n` spelled out, as some logs hold, is read with its escapes
    undone, unless it is a program as it stands.

    A fenced program comes back character for character, without the line end before the closing
    fence; an indented block loses the indentation of its fence.
    """
    reply = reply.removeprefix("\ufeff")  # a byte order mark
    found = _extract(reply)
    if found.program is None and "\\n" in reply and "\n" not in reply.strip():
        return _extract(_ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), reply))
    return found


def extract_lcb(reply: str) -> Extraction:
    """Find the program by LiveCodeBench's rule: what stands between the last two fence lines.

    A fence line is any that contains three backticks. So a block after the program wins over it, a
    fence that is not closed hides the program, and nested or doubled fences give nothing; a blank
    result is no program. Nothing is parsed and no reasoning is dropped.
    """
    lines = reply.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    if len(fences) < 2:
        return Extraction(None, "none")
    program = "\n".join(lines[fences[-2] + 1 : fences[-1]])
    return Extraction(program, "fenced") if program.strip() else Extraction(None, "none")


EXTRACTORS: Mapping[str, Callable[[str], Extraction]] = {
    "default": extract_program,
    "lcb": extract_lcb,
}
"""The rules that have a name."""


def resolve_extractor(source: str | Extractor) -> Extractor:
    """Return the function that takes programs out of replies.

    Args:
        source: a name in `EXTRACTORS`, "module:name" of a function from a reply to the program or
            None, or such a function.

    Raises:
        InvalidSetting: no rule of that name, or not callable.
    """
    if isinstance(source, str) and source in EXTRACTORS:
        rule = EXTRACTORS[source]
        return lambda reply: rule(reply).program
    function: Callable[[str], object] = import_function(
        source,
        what="code extraction",
        known=", ".join(EXTRACTORS),
        kind="a function from a reply to the program (or None)",
        must="is a function from a reply to the program (or None)",
    )

    def extract(reply: str) -> str | None:
        program = function(reply)
        if program is not None and not isinstance(program, str):
            raise InvalidSetting(
                f"the code extraction {source!r:.60} must return the program as a str, or None, "
                f"got a {type(program).__name__}"
            )
        return program

    return extract


def is_program(text: str) -> bool:
    """Whether `text` parses as Python and does something.

    A word, a number or `Answer: 42` parses, too; so at least one statement has to be more than
    names, constants and operators.
    """
    module = parse_python(text)
    return module is not None and any(_does_something(node) for node in module.body)


def _extract(reply: str) -> Extraction:
    # A bare program may hold fences or tags in its strings; prose around a fence never parses.
    first = OPENING.match(reply.lstrip("\n\r"))
    if first is None and is_program(reply):
        return Extraction(reply.strip(), "whole")
    scanned = Scanner(reply)
    candidates = _candidates(scanned)
    if not candidates:
        bare = "\n".join(scanned.prose).strip()
        return Extraction(bare, "whole") if is_program(bare) else Extraction(None, "none")
    program = _last_program(candidates)
    if program is None:
        # Perhaps a fence with words behind it was meant to close a block.
        program = _last_program(_candidates(Scanner(reply, loose=True)))
    if program is None:
        return Extraction(candidates[-1].text, "unparsed")
    return Extraction(program, "fenced")


def _candidates(scanned: Scanner) -> list[Block]:
    """Return the blocks that may hold the program; other languages where there is nothing else."""
    blocks = [block for block in scanned.blocks if block.text.strip()]
    return [block for block in blocks if block.tag in _PYTHON_TAGS] or blocks


def _last_program(blocks: list[Block]) -> str | None:
    return next((block.text for block in reversed(blocks) if is_program(block.text)), None)


def _does_something(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if isinstance(node, ast.Expr):
        return any(
            isinstance(child, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
            for child in ast.walk(node)
        )
    return True
