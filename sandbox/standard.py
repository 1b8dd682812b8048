"""Values of the standard library that are data: decimals, dates, deques and their like.

They travel as `{"x": [name, ...]}` and are rebuilt by the constructors of the standard library, for
exact types only: an instance of a subclass comes as what it is based on, or as an object.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from .codec import CodecError, Encoder, Tree

_VALUES: dict[tuple[str, str], tuple[Callable[[Any], list[Any]], Callable[..., Any]]] = {
    ("decimal", "Decimal"): (lambda v: [str(v)], lambda kind, text: kind(text)),
    ("fractions", "Fraction"): (lambda v: [v.numerator, v.denominator], lambda kind, *a: kind(*a)),
    ("uuid", "UUID"): (lambda v: [v.hex], lambda kind, text: kind(text)),
    ("datetime", "timedelta"): (
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda kind, *a: kind(*a),
    ),
    **{
        ("datetime", name): (lambda v: [v.isoformat()], lambda kind, text: kind.fromisoformat(text))
        for name in ("date", "datetime", "time")
    },
    ("builtins", "bytearray"): (lambda v: [bytes(v)], lambda kind, data: kind(data)),
    ("builtins", "ellipsis"): (lambda v: [], lambda kind: kind()),
    ("builtins", "NotImplementedType"): (lambda v: [], lambda kind: kind()),
}
"""By module and name of the type: its parts, and how to build it from them."""
_TYPES = {"ellipsis": type(Ellipsis), "NotImplementedType": type(NotImplemented)}
_CONTAINERS = ("Counter", "OrderedDict", "defaultdict", "deque")


def is_container(value: Any) -> bool:
    """Return whether a value holds others and can be changed."""
    return isinstance(value, (list, dict, set, deque))


def content_of(container: Any) -> list[Any]:
    """Return what a container holds, flat; keys and values of a dict in turn."""
    if isinstance(container, dict):
        flat: list[Any] = []
        for pair in dict.items(container):
            flat += pair
        return flat
    return list(container)


def refill(container: Any, items: list[Any]) -> None:
    """Replace what a container holds, as `content_of` gives it."""
    if type(container) is list:
        container[:] = items
        return
    container.clear()
    if isinstance(container, dict):
        for key, value in zip(items[::2], items[1::2], strict=True):
            container[key] = value
    elif isinstance(container, set):
        container.update(items)
    else:
        container.extend(items)


def encode(value: Any, kind: type, encoder: Encoder, depth: int) -> Tree:
    """Return the tree of a value of the standard library, or None if it is none."""
    module, name = kind.__module__, kind.__qualname__
    if module == "collections" and name in _CONTAINERS and _is(kind, module, name):
        known = encoder.known(value)
        if known is not None:
            return known
        factory = getattr(value, "default_factory", None)
        extra = value.maxlen if name == "deque" else getattr(factory, "__name__", None)
        return {"x": [name, extra, encoder.items(iter(content_of(value)), depth + 1)]}
    found = _VALUES.get((module, name))
    if found is None or not _is(kind, module, name):
        return None
    return {"x": [name, *(encoder.value(part, depth + 1) for part in found[0](value))]}


def decode(payload: Tree, decoder: Any) -> Any:
    """Rebuild a value from its checked tree.

    Args:
        payload: what the tag holds.
        decoder: an `Unpacker`.

    Raises:
        CodecError: it is malformed.
    """
    name, *parts = payload
    if name in _CONTAINERS:
        extra, items = parts
        kind = getattr(sys.modules["collections"], name)
        if name == "defaultdict":
            return decoder.later(kind(_factory(extra)), items)
        return decoder.later(kind(maxlen=extra) if name == "deque" else kind(), items)
    for (module, known), (_, build) in _VALUES.items():
        if known == name:
            kind = _TYPES.get(name) or getattr(importlib.import_module(module), name)
            values = [decoder.value(part) for part in parts]
            try:
                return build(kind, *values)
            except (ArithmeticError, ValueError, TypeError) as error:
                raise CodecError(f"malformed value of type {name}") from error
    raise CodecError("a value of an unknown type")


def _factory(name: Tree) -> Any:
    kind = getattr(builtins, name, None) if isinstance(name, str) else None
    return kind if kind in (int, float, str, list, dict, set, tuple, bool) else None


def _is(kind: type, module: str, name: str) -> bool:
    return (_TYPES.get(name) or getattr(sys.modules.get(module), name, None)) is kind
