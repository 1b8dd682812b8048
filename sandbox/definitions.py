"""Definitions of a test that the program under test may see: those of classes that it is handed.

Where test and program share a process, a program can call the methods of the objects that it gets.
So the source of their classes travels, with what it needs: base classes, imports, functions and
constants at the top level. Nothing else of the test does: comments and docstrings are removed, and
what asserts something or names the function under test is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from .parsing import parse

Unit = tuple[str, str]
"""A name and the source that defines it."""


class Refused(Exception):
    """A definition that the program must not see, or that is not there; the text says why."""


def class_names(text: str) -> list[str]:
    """Return the qualified names of the classes, named tuples and enums that a text defines."""
    return list(_classes(parse(text).body, ""))


def _classes(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in _statements(body):
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from _classes(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield from _classes(node.body, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = ast.unparse(node.value.func).rpartition(".")[2]
            if maker in ("namedtuple", "NamedTuple", "Enum", "IntEnum", "Flag", "StrEnum"):
                yield from (prefix + name for name in _bound(node))


def units(texts: Collection[str], qualname: str, secrets: Collection[str]) -> list[Unit]:
    """Return the definition of a class, after everything that it needs.

    Args:
        texts: the sources of the test, the later ones override the earlier ones.
        qualname: `__qualname__` of the class.
        secrets: names that a definition must not mention, those of the functions under test.

    Raises:
        Refused: see above.
    """
    top: dict[str, ast.stmt] = {}
    path = qualname.replace(".<locals>", "").split(".")
    found: ast.stmt | None = None
    for text in texts:
        body = parse(text).body
        for node in body:
            top.update(dict.fromkeys(_bound(node), node))
        found = _descend(body, path) or found
    if found is None:
        raise Refused(f"the definition of class {qualname} is not in the source of the test")
    if len(path) > 1:
        top.pop(path[-1], None)
    result: dict[str, Unit] = {}
    _collect(path[-1], found, top, secrets, result, set())
    return list(result.values())


def _collect(
    name: str,
    node: ast.stmt,
    top: dict[str, ast.stmt],
    secrets: Collection[str],
    result: dict[str, Unit],
    under_way: set[str],
) -> None:
    under_way.add(name)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            raise Refused(f"the definition of {name} contains an assertion")
        if isinstance(inner, ast.Name) and inner.id in secrets:
            raise Refused(f"the definition of {name} uses the function under test")
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in top and inner.id not in under_way:
            _collect(inner.id, top[inner.id], top, secrets, result, under_way)
    result[name] = (name, ast.unparse(ast.fix_missing_locations(_Bare().visit(node))))


class _Bare(ast.NodeTransformer):
    """Removes docstrings."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._strip(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._strip(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._strip(node)

    def _strip(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def _descend(body: list[ast.stmt], path: list[str]) -> ast.stmt | None:
    """Return the statement that defines the class at a path of nested definitions."""
    found = None
    for node in _statements(body):
        if path[0] not in _bound(node) or isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if len(path) == 1:
            found = node
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found = _descend(node.body, path[1:]) or found
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those within `if`, `try`, `for` and `with` included."""
    for node in body:
        yield node
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, []))


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []
