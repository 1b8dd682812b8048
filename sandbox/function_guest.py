"""Runs inside the program's guest: loads the untrusted program and makes one call.

The call comes in on standard input. What comes of it goes out on the descriptor that was standard
output, which is moved away and closed for descendants before the program's first line; what the
program prints goes to standard error. All this shares a process with the program and may be
rewritten by it: whatever arrives at the host is, at best, just what the function returned.

First a mark, once the program has compiled, then one message (see `functions`).
"""

from __future__ import annotations

import io
import os
import sys
import types
from collections import deque
from typing import Any, NoReturn

from .codec import MAX_ITEMS, Frames, TooLarge, decode, encode, pack

FILE = "solution.py"
MARK = b"R"
RECURSION_LIMIT = 50_000
"""What LiveCodeBench and others grant; LeetCode grants more."""

_FOREIGN_BYTES = 1 << 30

# Names that programs written for LeetCode take for granted, as in LiveCodeBench: first those in
# these modules, then the modules. Built-in names stay what they are.
ASSUMED = (
    *("string", "re", "collections", "heapq", "bisect", "copy", "math", "itertools", "functools"),
    *("operator", "io", "sys", "json", "typing"),
)
# Modules that take milliseconds to import, and for which names that is worth it.
_COSTLY = {
    "datetime": "date datetime time timedelta timezone tzinfo MINYEAR MAXYEAR UTC",
    "random": "Random SystemRandom betavariate choice choices expovariate gammavariate gauss "
    "getrandbits getstate lognormvariate normalvariate paretovariate randbytes randint random "
    "randrange sample seed setstate shuffle triangular uniform vonmisesvariate weibullvariate",
    "statistics": "NormalDist StatisticsError correlation covariance fmean geometric_mean "
    "harmonic_mean linear_regression mean median median_grouped median_high median_low mode "
    "multimode pstdev pvariance quantiles stdev variance",
}


class ListNode:
    """LeetCode's singly linked list."""

    def __init__(self, val: Any = 0, next: Any = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """LeetCode's binary tree."""

    def __init__(self, val: Any = 0, left: Any = None, right: Any = None) -> None:
        self.val = val
        self.left = left
        self.right = right


def serve(source: str, entry_point: str, assume: bool) -> NoReturn:
    """Compile and load the program, make the call, say what came of it.

    Args:
        source: the program.
        entry_point: a function, or a method of `Solution` or of another class.
        assume: whether to supply what LeetCode's programs take for granted.
    """
    results = os.dup(1)  # closed in whatever is executed
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=lambda: os.close(results))
    frames = Frames(_FOREIGN_BYTES)
    while data := os.read(0, 1 << 20):
        frames.feed(data)
    order = frames.pop()
    # The program may replace any of these, and then fail where it would have been right.
    out, leave = sys.stdout, _Exit(results)
    try:
        code = compile(source, FILE, "exec", dont_inherit=True)
    except BaseException as error:
        leave("compile_error", error=error, source=source)
    os.write(results, MARK)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    if assume:
        sys.setrecursionlimit(RECURSION_LIMIT)
        _supply(code, module)
    try:
        exec(code, module.__dict__)
        function = _find(module, entry_point)
    except BaseException as error:
        leave("load_error", error=error, source=source)
    if function is None:
        leave("missing")
    try:
        tree = _call(module, function, order)
    except TooLarge:
        leave("too_large")
    except BaseException as error:
        leave("raised", error=error, source=source)
    leave("returned", tree, out=out)


class _Exit:
    """Says what came of the call and ends the process, before threads or exit handlers can act."""

    def __init__(self, results: int) -> None:
        self._results = results

    def __call__(
        self,
        kind: str,
        *tree: Any,
        error: BaseException | None = None,
        source: str = "",
        out: Any = None,
    ) -> NoReturn:
        data = memoryview(pack([kind, *tree]))
        while data:
            data = data[os.write(self._results, data) :]
        try:
            if type(out) is io.TextIOWrapper:
                io.TextIOWrapper.flush(out)
            else:
                sys.stdout.flush()
            if error is not None:
                _print(error, source)
        except BaseException:
            os.write(2, type(error).__name__.encode("utf-8", "backslashreplace") + b"\n")
        os._exit(0 if kind == "returned" else 1)


def _print(error: BaseException, source: str) -> None:
    """Print a traceback of the program's own frames, with its lines."""
    import linecache
    import traceback

    lines = source.splitlines(keepends=True)
    linecache.cache[FILE] = (len(source), None, lines, FILE)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    error.__traceback__ = trace
    # A hundred thousand frames would take seconds, charged to the program.
    text = "".join(traceback.format_exception(error, limit=-100))
    os.write(2, text.encode("utf-8", "backslashreplace"))


def _supply(code: types.CodeType, module: types.ModuleType) -> None:
    """Define the assumed names that the program mentions. Its own definitions come later."""
    import builtins
    import importlib

    mentioned: set[str] = set()
    stack = [code]
    while stack:
        part = stack.pop()
        mentioned.update(part.co_names)
        stack.extend(const for const in part.co_consts if isinstance(const, types.CodeType))
    mentioned.difference_update(vars(builtins))
    known = module.__dict__
    costly = [name for name, names in _COSTLY.items() if mentioned.intersection(names.split())]
    for name in (*costly, *ASSUMED):
        found = importlib.import_module(name)
        public = getattr(found, "__all__", None) or [n for n in vars(found) if n[0] != "_"]
        known.update((each, getattr(found, each)) for each in mentioned.intersection(public))
    for name in mentioned.intersection((*_COSTLY, *ASSUMED)):
        known[name] = importlib.import_module(name)
    for kind in (ListNode, TreeNode):
        if kind.__name__ in mentioned:
            known[kind.__name__] = kind


def _find(module: types.ModuleType, entry_point: str) -> Any:
    """Return the function to call, a method bound to a new instance, or None."""
    owner, _, name = entry_point.rpartition(".")
    kind = module.__dict__.get(owner or "Solution")
    if isinstance(kind, type) and callable(getattr(kind, name, None)):
        return getattr(kind(), name)
    function = module.__dict__.get(name)
    return function if callable(function) else None


def _call(module: types.ModuleType, function: Any, order: list[Any]) -> Any:
    """Call, and return the tree of what is to be compared."""
    tree, kinds, return_kind, mutated = order
    args = [_build(module, value, kind) for value, kind in zip(decode(tree), kinds, strict=True)]
    value = function(*args)
    if mutated is not None:
        value, return_kind = args[mutated], kinds[mutated]
    return encode(_flatten(value, return_kind), opaque=True)


def _build(module: types.ModuleType, value: Any, kind: str) -> Any:
    """Turn an array into the list or tree that it stands for."""
    if kind.startswith("list["):
        return [_build(module, item, kind[5:-1]) for item in value]
    if kind == "ListNode":
        node_class = module.__dict__.get(kind, ListNode)
        head = None
        for item in reversed(value):
            node = node_class(item)
            node.next = head
            head = node
        return head
    if kind == "TreeNode":
        return _tree(value, module.__dict__.get(kind, TreeNode))
    return value


def _tree(values: list[Any], node_class: Any) -> Any:
    """Read level order, where a missing node has no entries for its children."""
    if not values or values[0] is None:
        return None
    root = node_class(values[0])
    parents = deque([root])
    entries = iter(values[1:])
    while parents:
        parent = parents.popleft()
        for side in ("left", "right"):
            entry = next(entries, None)
            child = None if entry is None else node_class(entry)
            setattr(parent, side, child)
            if child is not None:
                parents.append(child)
    return root


def _flatten(value: Any, kind: str) -> Any:
    """Turn a list or tree into the array that stands for it."""
    if kind.startswith("list[") and isinstance(value, (list, tuple)):
        return [_flatten(item, kind[5:-1]) for item in value]
    if kind not in ("ListNode", "TreeNode"):
        return value
    items: list[Any] = []
    nodes = deque([value])
    while nodes:
        if len(items) > MAX_ITEMS:
            raise TooLarge("a linked structure that does not end")
        node = nodes.popleft()
        if kind == "ListNode":
            if node is not None:
                items.append(node.val)
                nodes.append(node.next)
        elif node is None:
            items.append(None)
        else:
            items.append(node.val)
            nodes.extend((node.left, node.right))
    while items and kind == "TreeNode" and items[-1] is None:
        items.pop()
    return items
