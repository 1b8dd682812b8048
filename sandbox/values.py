"""Whether a value that a function returned is the expected one.

The host compares trees that passed `codec.check` and rebuilds nothing from them: no class, no hash
and no iterator of the program takes part, and the work grows with size times its logarithm.

Both sides are brought into a normal form of nested tuples that begin with a rank, so that values of
different kinds can be told apart and anything can be sorted: the items of sets and dicts always,
those of lists where their order does not count.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from .codec import MAX_NODES, Frames, Tree, encode, pack
from .types import ValueChecker

_NONE, _NUMBER, _NAN, _COMPLEX, _STR, _BYTES, _LIST, _ITERATOR, _RANGE, _SET, _DICT, _OTHER = range(
    12
)
_KINDS = {
    _NONE: "None",
    _NUMBER: "a number",
    _NAN: "NaN",
    _COMPLEX: "a complex number",
    _STR: "a str",
    _BYTES: "bytes",
    _LIST: "a list",
    _ITERATOR: "an iterator",
    _RANGE: "a range",
    _SET: "a set",
    _DICT: "a dict",
    _OTHER: "an object",
}
_SHORT = 40

Normal = tuple[Any, ...]


def tree_of(value: Any) -> Tree:
    """Return the tree of a trusted value, in the form in which trees arrive.

    Raises:
        CodecError: the value cannot be carried.
    """
    frames = Frames(1 << 40)
    frames.feed(pack([encode(value)]))
    return frames.pop()[0]


def explain(got: Tree, expected: Tree, checker: ValueChecker) -> str | None:
    """Return None if `got` is as good as `expected`, else one line that says where they differ.

    The line quotes neither value, so that it may be shown where the expected one may not.

    Args:
        got: a tree that passed `codec.check`.
        expected: the tree of a right answer.
        checker: what counts as equal.
    """
    mine, theirs = (normal(tree, checker, outer=True) for tree in (got, expected))
    return None if mine == theirs else _difference(mine, theirs, checker, "")


def normal(tree: Tree, checker: ValueChecker, *, outer: bool = False) -> Normal:
    """Return the normal form of a tree; `outer`: it is the value itself, not a part of one."""
    if tree is None:
        return (_NONE,)
    if isinstance(tree, bool):
        return (_NUMBER, int(tree))
    if isinstance(tree, (int, float)):
        return (_NUMBER, tree) if tree == tree else (_NAN,)
    if isinstance(tree, str):
        return (_STR, tree)
    if isinstance(tree, list):
        return _listed(tree, checker, outer)
    tag, payload = tree
    match tag:
        case "t":
            return _listed(payload, checker, outer)
        case "g" if checker.iterables:
            return _listed(payload, checker, outer)
        case "g":
            return (_ITERATOR, tuple(normal(item, checker) for item in payload))
        case "s" | "z":
            items = sorted(normal(item, checker) for item in payload)
            return (_SET, tuple(item for item, _ in itertools.groupby(items)))
        case "d":
            keys = (normal(key, checker) for key in payload[::2])
            values = (normal(value, checker) for value in payload[1::2])
            return (_DICT, *_by_key(list(zip(keys, values, strict=True))))
    return _scalar(tag, payload, checker, outer)


def _listed(items: Iterable[Tree], checker: ValueChecker, outer: bool) -> Normal:
    found = [normal(item, checker) for item in items]
    if checker.order == "any" or (outer and checker.order == "outer"):
        found.sort()
    return (_LIST, tuple(found))


def _by_key(pairs: list[tuple[Normal, Normal]]) -> tuple[tuple[Normal, ...], tuple[Normal, ...]]:
    """Return the keys in order, and their values; of equal keys the last one counts."""
    pairs.sort(key=itemgetter(0))
    groups = [list(group)[-1] for _, group in itertools.groupby(pairs, key=itemgetter(0))]
    return tuple(key for key, _ in groups), tuple(value for _, value in groups)


def _scalar(tag: str, payload: Any, checker: ValueChecker, outer: bool) -> Normal:
    if tag == "i":
        return (_NUMBER, int(payload, 16))
    if tag == "b":
        return (_BYTES, payload)
    if tag == "u":
        with contextlib.suppress(UnicodeError):
            return (_STR, payload.encode("latin-1").decode("utf-8", "surrogatepass"))
    if tag == "c":
        real, imaginary = payload
        return (_COMPLEX, real, imaginary) if imaginary else normal(real, checker)
    if tag == "r":
        start, stop, step = (int(x[1], 16) if isinstance(x, tuple) else x for x in payload)
        if step:
            length = max(0, -((start - stop) // step))
            if checker.iterables and length <= MAX_NODES:
                return _listed(range(start, stop, step), checker, outer)
            return (_RANGE, length, start if length else 0, step if length > 1 else 0)
    return (_OTHER,)


def _difference(got: Normal, expected: Normal, checker: ValueChecker, path: str) -> str | None:
    where = f"at {path}: " if path else ""
    rank = expected[0]
    if got[0] != rank:
        return f"{where}expected {_KINDS[rank]}, got {_KINDS[got[0]]}"
    if rank in (_NUMBER, _COMPLEX):
        close = all(map(_close, got[1:], expected[1:], itertools.repeat(checker)))
        return None if close else f"{where}the value differs"
    if rank in (_LIST, _SET, _ITERATOR):
        mine, theirs = got[1], expected[1]
        if len(mine) != len(theirs):
            return f"{where}expected {len(theirs)} items, got {len(mine)}"
        named = rank != _SET and checker.order == "given"
        for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            inner = f"{path}[{number}]" if named else path
            if (difference := _difference(one, other, checker, inner)) is not None:
                return difference if named else f"{where}the items differ"
        return None
    if rank == _DICT:
        if got[1] != expected[1]:
            return f"{where}the keys differ"
        for key, one, other in zip(expected[1], got[2], expected[2], strict=True):
            short = key[0] in (_STR, _NUMBER) and len(repr(key[1])) <= _SHORT
            inner = f"{path}[{key[1]!r}]" if short else f"{path}[...]"
            if (difference := _difference(one, other, checker, inner)) is not None:
                return difference
        return None
    return None if got == expected and rank != _OTHER else f"{where}the value differs"


def _close(got: float, expected: float, checker: ValueChecker) -> bool:
    """Compare two numbers. Only an expected float has a tolerance."""
    if got == expected or (got != got and expected != expected):
        return True
    if not isinstance(expected, float) or not math.isfinite(expected):
        return False
    try:
        error = abs(got - expected)
    except OverflowError:  # an int that no float can hold
        return False
    if not math.isfinite(error):
        return False
    absolute = checker.float_abs is not None and error <= checker.float_abs
    relative = checker.float_rel is not None and error <= checker.float_rel * abs(expected)
    return absolute or relative


def show(tree: Tree, limit: int = 2000) -> str:
    """Return a value that passed `codec.check` as Python would show it, or the head of that.

    Args:
        tree: the value.
        limit: most characters.
    """
    pieces: list[str] = []
    length = 0
    for piece in _pieces(tree, limit):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            return "".join(pieces)[: limit - 3] + "..."
    return "".join(pieces)


def _pieces(tree: Tree, limit: int) -> Iterator[str]:
    if isinstance(tree, list):
        yield from _bracketed("[", tree, "]", limit)
    elif isinstance(tree, str):
        yield repr(tree[: limit + 1])
    elif not isinstance(tree, tuple):
        yield repr(tree)
    else:
        tag, payload = tree
        match tag:
            case "t":
                yield from _bracketed("(", payload, ",)" if len(payload) == 1 else ")", limit)
            case "s" if payload:
                yield from _bracketed("{", payload, "}", limit)
            case "s":
                yield "set()"
            case "z":
                yield from _bracketed("frozenset({", payload, "})", limit)
            case "g":
                yield from _bracketed("<iterator over [", payload, "]>", limit)
            case "d":
                yield from _bracketed("{", payload, "}", limit, separators=(": ", ", "))
            case "i" if len(payload) > _SHORT:
                yield f"<int of {4 * len(payload)} bits>"
            case "i":
                yield str(int(payload, 16))
            case "b":
                yield repr(payload[: limit + 1].encode("latin-1"))
            case "u":
                yield repr(payload[: limit + 1].encode("latin-1").decode("utf-8", "replace"))
            case "c":
                yield repr(complex(*payload))
            case "r":
                yield from _bracketed("range(", payload, ")", limit)
            case _:
                yield f"<{payload[0] if isinstance(payload, list) and payload else tag} object>"


def _bracketed(
    start: str,
    items: list[Tree],
    end: str,
    limit: int,
    separators: tuple[str, ...] = (", ",),
) -> Iterator[str]:
    yield start
    for number, item in enumerate(items):
        if number:
            yield separators[(number - 1) % len(separators)]
        yield from _pieces(item, limit)
    yield end
