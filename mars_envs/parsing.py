"""Parsing Python in many threads at once.

The parser of CPython 3.11 keeps its depth in one place for all threads. Where the garbage collector
runs Python code in the middle of one parse, another may begin, and the first ends in a SystemError
("AST constructor recursion depth mismatch", python/cpython#106905). Nothing is wrong with the text.
`sandbox.parsing` does the same for a package that this one may not import.
"""

from __future__ import annotations

import ast

_ATTEMPTS = 20


def parse(text: str) -> ast.Module:
    """Return `ast.parse(text)`.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
