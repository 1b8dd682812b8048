"""Parsing Python in many threads at once.

The parser of CPython 3.11 keeps its depth in one place for all threads. Where the garbage collector
runs Python code in the middle of one parse, another may begin, and the first ends in a SystemError
("AST constructor recursion depth mismatch", python/cpython#106905). Nothing is wrong with the text.
`sandbox.parsing` does the same for a package that this one may not import.
"""

from __future__ import annotations

import ast
import threading
import warnings

_ATTEMPTS = 20
_MAX_PARSE_CHARS = 1 << 16
"""Longer texts of strangers are not parsed. The parser takes quadratic time for some texts, and it
runs on the host: at this length it takes a second or two at worst."""
_filters = threading.Lock()


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
