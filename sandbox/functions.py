"""Judging function calls: the program's guest makes the call, the host compares what comes back.

Each case is one run of the program, imported by `function_guest` in a process of its own, so that
no state is carried from one test to the next and the CPU limit holds for each. The guest knows the
arguments and never the expected value. It answers on a stream of its own: a mark once the program
has compiled, then exactly one message. A program that forges it has merely "returned" another
value; whatever is not one message of the right form is a runtime error.
"""

from __future__ import annotations

import re

from . import bundle, values
from .base import UnsupportedCase
from .codec import CodecError, Frames, TooLarge, Tree, check, encode, pack
from .function_guest import ASSUMED, MARK
from .results import last_words
from .types import FunctionCase, Program, Status
from .worker import Execution

MODULES = ("codec", "function_guest")
_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+([a-z]+)", re.MULTILINE)
# Modules that a program seems to import are imported with our own, once for all of its tests.
_WORTH_IMPORTING = {
    *("bisect", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
    *("heapq", "math", "operator", "random", "re", "statistics", "string", "time"),
}
_STRUCTURES = ("", "ListNode", "TreeNode", "list[ListNode]", "list[TreeNode]")
_EXPLAINS = (None, Status.RUNTIME_ERROR)
"""The kernel's verdicts that the guest's message may refine."""


def source(program: Program, case: FunctionCase) -> bytes:
    """Return what runs in the program's guest. Cases that share it can share a worker."""
    arguments = (program.source, case.entry_point, case.assume == "leetcode")
    named = set(_IMPORTED.findall(program.source)) & _WORTH_IMPORTING
    if case.assume == "leetcode":
        named.update(ASSUMED)
    imports = tuple(sorted(named | {"collections", "io", "itertools", "json", "os", "typing"}))
    return bundle.source(MODULES, f"module.serve{arguments!a}", imports=imports)


def stdin(case: FunctionCase) -> bytes:
    """Return the call as the guest reads it.

    Raises:
        UnsupportedCase: an argument cannot be carried, or a structure is not known.
    """
    _check_structures(case)
    try:
        arguments = encode(list(case.args))
    except CodecError as error:
        raise UnsupportedCase(f"case {case.name!r}: an argument is {error}") from error
    kinds = [*case.arg_types, *[""] * (len(case.args) - len(case.arg_types))]
    return pack([arguments, kinds, case.return_type, case.compare_argument])


def expected(case: FunctionCase) -> list[Tree]:
    """Return the trees of the right answers, the usual one first.

    Raises:
        UnsupportedCase: an expected value cannot be carried.
    """
    kind = case.return_type
    if case.compare_argument is not None:
        kind = ([*case.arg_types, *[""] * len(case.args)])[case.compare_argument]
    try:
        trees = [values.tree_of(value) for value in (case.expected, *case.alternatives)]
    except CodecError as error:
        raise UnsupportedCase(f"case {case.name!r}: the expected value is {error}") from error
    return [_trimmed(tree, kind) for tree in trees]


def outcome(execution: Execution, entry_point: str) -> tuple[Status | None, str, Tree]:
    """Return (verdict, message, value) of a run; a verdict of None: the value is to be compared."""
    compiled, answer = execution.stdout[:1] == MARK, execution.stdout[1:]
    status = execution.status
    if not compiled:
        return Status.COMPILE_ERROR, last_words(execution), None
    if status not in _EXPLAINS:
        return status, last_words(execution), None
    if not answer:
        message = last_words(execution) or "the program ended before the function returned"
        return status or Status.RUNTIME_ERROR, message, None
    try:
        kind, *rest = _message(answer)
    except TooLarge:
        kind, rest = "too_large", []
    except CodecError:
        kind, rest = "forged", []
    if kind == "returned" and len(rest) == 1:
        return status, last_words(execution) if status else "", rest[0]
    if kind == "too_large":
        return Status.OUTPUT_LIMIT_EXCEEDED, "the function returned too large a value", None
    if kind == "missing":
        return Status.RUNTIME_ERROR, f"the program defines no {_described(entry_point)}", None
    if kind in ("raised", "load_error") and status is not None:
        return status, last_words(execution), None
    return Status.RUNTIME_ERROR, "the program wrote to the channel of its caller", None


def _message(answer: bytes) -> list[Tree]:
    """Return the one message that `answer` consists of.

    Raises:
        CodecError: it is not one message.
    """
    frames = Frames(len(answer))
    frames.feed(answer)
    if len(answer) != 4 + int.from_bytes(answer[:4], "big"):
        raise CodecError("not exactly one message")
    message = frames.pop()
    check(message)
    return list(message)


def _described(entry_point: str) -> str:
    owner, _, name = entry_point.rpartition(".")
    if owner:
        return f"method {name!r} in a class {owner!r}"
    return f"function {name!r}, nor a class 'Solution' with such a method"


def _check_structures(case: FunctionCase) -> None:
    for kind in (*case.arg_types, case.return_type):
        if kind not in _STRUCTURES:
            known = ", ".join(_STRUCTURES[1:])
            raise UnsupportedCase(
                f"case {case.name!r} needs the type {kind!r}; arrays can stand for {known} only"
            )
    if len(case.arg_types) > len(case.args):
        raise UnsupportedCase(f"case {case.name!r} has more arg_types than args")
    if case.compare_argument is not None and not 0 <= case.compare_argument < len(case.args):
        raise UnsupportedCase(
            f"case {case.name!r} compares argument {case.compare_argument}, but there are "
            f"{len(case.args)}, counted from 0"
        )
    for value, kind in zip(case.args, case.arg_types, strict=False):
        if kind and not isinstance(value, (list, tuple)):
            raise UnsupportedCase(
                f"case {case.name!r}: an argument of type {kind} is given as an array, "
                f"got {value!r:.60}"
            )


def _trimmed(tree: Tree, kind: str) -> Tree:
    """Return an array that stands for a structure as the guest would write it."""
    if kind.startswith("list[") and isinstance(tree, list):
        return [_trimmed(item, kind[5:-1]) for item in tree]
    if kind not in ("ListNode", "TreeNode"):
        return tree
    items = [] if tree is None else tree
    if kind == "TreeNode" and isinstance(items, list):
        end = next((n for n in range(len(items), 0, -1) if items[n - 1] is not None), 0)
        return items[:end]
    return items
