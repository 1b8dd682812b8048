"""Reading test bodies before they run: what they call, import and define.

All of it is read from the trusted text, so no program can influence what is found here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from . import pytest_guest
from .base import UnsupportedCase
from .definitions import Refused, Unit, class_names, units
from .parsing import parse

MODULE = "solution"
"""The name under which a body may import the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What is known about a test."""

    helpers: str
    """The helpers, completed so that they compile."""
    call_check: bool
    """Whether its `check` has to be called with the function."""
    names: tuple[str, ...]
    """The names by which it knows the program: the entry point and what it imports."""
    subjects: tuple[str, ...]
    """Those of them that it uses as classes."""
    tests: tuple[str, ...]
    """Test functions and classes that have to be run at the end, as pytest would."""
    shared: tuple[str, ...]
    """Names of classes of the helpers, whose instances travel by value."""
    classes: Mapping[str, tuple[Unit, ...] | str]
    """By qualified name of each class of helpers and body: its definition for the program, after
    what it needs, or why the program must not see it."""
    pytest: bool
    """Whether it imports pytest."""


@functools.lru_cache(maxsize=1024)
def read(body: str, helpers: str, entry_point: str) -> Body:
    """Read a test.

    Raises:
        UnsupportedCase: it does not compile, could not fail, or needs what there is not.
    """
    try:
        tree = parse(body)
    except (SyntaxError, ValueError) as error:
        raise UnsupportedCase(f"the test body does not compile: {error}") from error
    for node in ast.walk(tree):
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await)):
            raise UnsupportedCase("the test body is asynchronous code, which cannot be carried")
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    imported, modules = _imports(tree)
    pytest = _uses_pytest(tree)
    if not (defines or imported or modules or entry_point in _names(tree)):
        raise UnsupportedCase(
            f"the test body neither defines `check(candidate)` nor mentions {entry_point!r}, "
            "so it could not fail"
        )
    helpers = _completed(helpers)
    names = (entry_point, *imported)
    classes = _classes((helpers, body), frozenset(names) | modules)
    shared = [
        name
        for name in class_names(helpers)
        if "." not in name and name not in names and not isinstance(classes[name], str)
    ]
    return Body(
        helpers=helpers,
        call_check=defines and "check" not in _called_at_top(tree),
        names=names,
        subjects=tuple(sorted(_subjects(tree, set(names), modules))),
        tests=() if defines else tuple(_tests(tree)),
        shared=tuple(shared),
        classes=classes,
        pytest=pytest,
    )


def _completed(helpers: str) -> str:
    """Return helpers that compile: a prompt may end at the head of the function to be written."""
    for text in (helpers, f"{helpers.rstrip()}\n    pass\n"):
        try:
            parse(text)
        except (SyntaxError, ValueError):
            continue
        return text
    raise UnsupportedCase("the trusted helpers of the test do not compile")


def _classes(texts: tuple[str, str], secrets: frozenset[str]) -> dict[str, tuple[Unit, ...] | str]:
    found: dict[str, tuple[Unit, ...] | str] = {}
    for name in itertools.chain.from_iterable(map(class_names, texts)):
        try:
            found[name] = tuple(units(texts, name, secrets))
        except Refused as error:
            found[name] = str(error)
    return found


def _free_names(tree: ast.Module) -> set[str]:
    """Return the names that a test uses and does not define."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    bound |= set(vars(builtins)) | {
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    return {node.id for node in nodes} - bound


def _names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _imports(tree: ast.Module) -> tuple[list[str], set[str]]:
    """Return the names imported from the program, and the names of the program as a module."""
    names: list[str] = []
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == MODULE:
            names += [alias.asname or alias.name for alias in node.names]
            if node.names[0].name == "*":
                names += sorted(_free_names(tree))
        elif isinstance(node, ast.Import):
            modules |= {a.asname or a.name for a in node.names if a.name == MODULE}
    return names, modules


def _uses_pytest(tree: ast.Module) -> bool:
    """Return whether a test imports pytest; refuse one that needs more of it than there is."""
    used: list[str] = []
    imports = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name == "pytest" for a in node.names):
            imports = True
        elif isinstance(node, ast.ImportFrom) and node.module == "pytest":
            imports = True
            used += [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if text.startswith("pytest.mark."):
                used.append("mark" if text == "pytest.mark.parametrize" else text)
            elif isinstance(node.value, ast.Name) and node.value.id == "pytest":
                used.append(node.attr)
    for name in used:
        if name not in pytest_guest.NAMES:
            raise UnsupportedCase(
                f"the test uses `{name}` of pytest; there are {', '.join(pytest_guest.NAMES)}"
            )
    return imports


def _called_at_top(tree: ast.Module) -> set[str]:
    """Return the names that are called outside of functions and classes."""
    return {
        node.func.id
        for top in tree.body
        if not isinstance(top, (ast.FunctionDef, ast.ClassDef))
        for node in ast.walk(top)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _tests(tree: ast.Module) -> Iterator[str]:
    """Yield the names of test functions and classes that the body does not call itself."""
    called = _called_at_top(tree)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            cases = any("TestCase" in ast.unparse(base) for base in node.bases)
            if node.name.startswith("Test") or cases:
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name.startswith("test"):
                        _require_no_fixtures(method, skip=1)
                yield node.name
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            if node.name in called:
                continue
            _require_no_fixtures(node, skip=0)
            yield node.name


def _require_no_fixtures(test: ast.FunctionDef, *, skip: int) -> None:
    arguments = [arg.arg for arg in (*test.args.posonlyargs, *test.args.args)][skip:]
    needed = set(arguments[: len(arguments) - len(test.args.defaults)])
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            # The names, as one string with commas or as a sequence of strings.
            for node in ast.walk(decorator.args[0]) if decorator.args else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    needed -= {name.strip() for name in node.value.split(",")}
    if needed:
        raise UnsupportedCase(f"{test.name} needs fixtures of pytest: {', '.join(sorted(needed))}")


def _subjects(tree: ast.Module, names: set[str], modules: set[str]) -> set[str]:
    """Return the capitalised names of the program whose use shows that they are classes."""

    def named(node: ast.AST | None) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr if node.value.id in modules else None
        return node.id if isinstance(node, ast.Name) and node.id in names else None

    made: dict[str, str] = {}
    found: set[str | None] = set()
    for node in ast.walk(tree):
        for target, value in _bindings(node):
            name = named(value.func) if isinstance(value, ast.Call) else None
            if name:
                made[ast.unparse(target)] = name
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and isinstance(node.context_expr, ast.Call):
            found.add(named(node.context_expr.func))
        elif isinstance(node, ast.Call) and _function(node) == "isinstance":
            found.add(named(node.args[-1]))
        elif isinstance(node, ast.Attribute):
            owner = node.value
            found.add(named(owner.func if isinstance(owner, ast.Call) else owner))
            found.add(made.get(ast.unparse(owner)))
    return {name for name in found if name and name[:1].isupper()}


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (target, value) for what an assignment binds."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _function(node: ast.Call) -> str:
    """Return the name of a called function, or an empty one."""
    return node.func.id if isinstance(node.func, ast.Name) and node.args else ""
