"""Programs that rely on what their task's prompt defines.

HumanEval/32, 38 and 50 define a helper before the function to write, and many prompts import types.
A reply with only the function is right, but cannot run alone; so the prompt's definitions go before
it. The tests get theirs from the trusted prompt, whatever a program does to its copy.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from ..errors import InvalidTask
from ..parsing import parse, parse_python


def with_helpers(program: str, helpers: str, entry_point: str | None) -> str:
    """Put the definitions of `helpers` before a program that uses one without making it itself.

    Args:
        program: any text; one that does not parse is returned as it is.
        helpers: trusted source; its function `entry_point` is left out.
        entry_point: the function that the program is to define.

    Returns:
        `program` itself where nothing is missing, so that a complete program runs byte for byte.

    Raises:
        InvalidTask: `helpers` does not parse.
    """
    if not helpers:
        return program
    source, names = _definitions(helpers, entry_point)
    if not names:
        return program
    module = parse_python(program)
    if module is None:
        return program
    used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    if not used & (names - _bound(module.body)):
        return program
    # `from __future__` has to stay first.
    future = max(
        (
            node.end_lineno or 0
            for node in module.body
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ),
        default=0,
    )
    lines = program.split("\n")
    head = "".join(f"{line}\n" for line in lines[:future])
    return f"{head}{source}\n\n{chr(10).join(lines[future:])}"


@lru_cache(maxsize=1024)
def _definitions(helpers: str, entry_point: str | None) -> tuple[str, frozenset[str]]:
    """Return the source of all statements but `entry_point` and docstrings, and what they bind."""
    try:
        module = parse(helpers)
    except (SyntaxError, ValueError) as error:
        raise InvalidTask(
            f"a task's `helpers` must be Python source, got text that does not parse ({error}); "
            "mend it, or leave `helpers` empty"
        ) from error
    kept = [
        node
        for node in module.body
        if not isinstance(node, ast.Expr) and getattr(node, "name", None) != entry_point
    ]
    source = "\n".join(ast.get_source_segment(helpers, node) or "" for node in kept)
    return source, frozenset(_bound(kept))


def _bound(statements: list[ast.stmt]) -> set[str]:
    """Return the names that statements bind at the top level."""
    names: set[str] = set()
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        else:
            names.update(
                child.id
                for child in ast.walk(node)
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
            )
    return names
