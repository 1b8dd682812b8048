"""Values as tagged JSON, for the channel between a test driver and the program that it tests.

The module is self-contained: it is imported on the host and also sent into both guests. A value is
rebuilt from exact built-in types only, so that nothing a program returns can bring code along:

    None, bool, str, small int, float, list      themselves (floats by `repr`, NaN and Infinity too)
    other values                                 an object with one key, the tag; see `_TAGS`

Instances of subclasses lose their class (a `Counter` arrives as a dict, a `str` that claims to
equal everything as a plain str). Anything else is opaque: it arrives as an object that equals only
itself and knows its truth value. Depth, number of nodes and bytes are bounded.

The tree between values and JSON text has the shape `Tree`: lists for arrays and `(tag, payload)`
tuples for objects. `check` validates one without building anything from it, in linear time: a
host may call it on what a hostile program sent, `decode` is for guests.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

MAX_DEPTH = 100
MAX_NODES = 1_000_000
MAX_ITEMS = 100_000
"""How many items of an iterator are materialised."""

Tree = Any
"""None, bool, int, float, str, a list of trees, or a pair (tag, payload)."""

_TAGS = {
    "t": "tuple: items",
    "s": "set: items",
    "z": "frozenset: items",
    "d": "dict: flat list of keys and values",
    "g": "iterator or generator: the items it would give",
    "i": "large int: hexadecimal digits",
    "b": "bytes: one character for each byte",
    "u": "str with lone surrogates: its bytes (surrogatepass), as for bytes",
    "c": "complex: real and imaginary part",
    "r": "range: start, stop, step",
    "o": "opaque: name of its type, truth value",
}
_SMALL = 1 << 63


class CodecError(ValueError):
    """A text or tree that no encoder produces."""


class TooLarge(CodecError):
    """A value, or a message, beyond the caps on depth, nodes, items or bytes."""


class Inexpressible(CodecError):
    """A value of a type that the codec cannot carry, where opaque values are not allowed."""


class Opaque:
    """Stands for a value that could not be carried: equal only to itself, true as it was."""

    def __init__(self, type_name: str, truth: bool) -> None:
        self._type_name = type_name
        self._truth = truth

    def __bool__(self) -> bool:
        return self._truth

    def __repr__(self) -> str:
        return f"<{self._type_name} object>"


def encode(value: Any, *, opaque: bool = False) -> Tree:
    """Turn a value into a JSON-able tree.

    Args:
        value: anything.
        opaque: carry values of other types as opaque ones instead of raising.

    Raises:
        TooLarge: too deep, too many nodes, or an iterator that does not end.
        Inexpressible: a value of another type, and `opaque` is False.
    """
    return _Encoder(opaque).encode(value, 0)


class _Encoder:
    """Dispatches on real types (`type`, never `__class__`) and reads through base-class methods."""

    def __init__(self, opaque: bool) -> None:
        self._opaque = opaque
        self._nodes = 0

    def encode(self, value: Any, depth: int) -> Tree:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise TooLarge(f"a value deeper than {MAX_DEPTH} or of more than {MAX_NODES} nodes")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, int):
            number = int.__add__(value, 0)
            return number if -_SMALL < number < _SMALL else {"i": format(number, "x")}
        if issubclass(kind, float):
            return float.__pos__(value)
        if issubclass(kind, str):
            return _encode_str(str.__str__(value))
        if issubclass(kind, list):
            return self._items(list.__iter__(value), depth)
        if issubclass(kind, tuple):
            return {"t": self._items(tuple.__iter__(value), depth)}
        if issubclass(kind, dict):
            pairs = itertools.chain.from_iterable(dict.items(value))
            return {"d": self._items(pairs, depth)}
        if issubclass(kind, (set, frozenset)):
            base = set if issubclass(kind, set) else frozenset
            return {"s" if base is set else "z": self._items(base.__iter__(value), depth)}
        return self._rare(value, kind, depth)

    def _items(self, items: Iterator[Any], depth: int) -> list[Tree]:
        return [self.encode(item, depth + 1) for item in items]

    def _rare(self, value: Any, kind: type, depth: int) -> Tree:
        if issubclass(kind, bytes):
            return {"b": bytes.__getitem__(value, slice(None)).decode("latin-1")}
        if issubclass(kind, complex):
            return {"c": [complex.real.__get__(value), complex.imag.__get__(value)]}
        if kind is range:
            return {
                "r": [self.encode(part, depth) for part in (value.start, value.stop, value.step)]
            }
        if hasattr(kind, "__next__"):
            items = list(itertools.islice(value, MAX_ITEMS + 1))
            if len(items) > MAX_ITEMS:
                raise TooLarge(f"an iterator of more than {MAX_ITEMS} items")
            return {"g": self._items(iter(items), depth)}
        if not self._opaque or kind is Opaque:
            raise Inexpressible(f"a value of type {kind.__name__}")
        try:
            truth = bool(value)
        except Exception:
            truth = True
        return {"o": [str(kind.__name__)[:100], truth]}


def _encode_str(text: str) -> Tree:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON would join two lone surrogates into one character
        return {"u": text.encode("utf-8", "surrogatepass").decode("latin-1")}
    return text


def decode(tree: Tree) -> Any:
    """Rebuild the value of a tree that passed `check`.

    Raises:
        CodecError: the tree cannot be a value after all.
    """
    if isinstance(tree, list):
        return [decode(item) for item in tree]
    if not isinstance(tree, tuple):
        return tree
    tag, payload = tree
    try:
        return _DECODERS[tag](payload)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CodecError(f"malformed value with tag {tag!r}") from error


def _decode_dict(payload: list[Tree]) -> dict[Any, Any]:
    flat = map(decode, payload)
    return dict(zip(flat, flat, strict=True))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "t": lambda payload: tuple(map(decode, payload)),
    "s": lambda payload: set(map(decode, payload)),
    "z": lambda payload: frozenset(map(decode, payload)),
    "d": _decode_dict,
    "g": lambda payload: iter([decode(item) for item in payload]),
    "i": lambda payload: int(payload, 16),
    "b": lambda payload: payload.encode("latin-1"),
    "u": lambda payload: payload.encode("latin-1").decode("utf-8", "surrogatepass"),
    "c": lambda payload: complex(*payload),
    "r": lambda payload: range(*map(decode, payload)),
    "o": lambda payload: Opaque(*payload),
}


def check(tree: Tree) -> None:
    """Validate a tree that came from an untrusted side. Linear, builds nothing, cannot recurse.

    Raises:
        TooLarge: beyond the caps.
        CodecError: not a tree that `encode` produces.
    """
    stack: list[tuple[Tree, int, bool]] = [(tree, 0, False)]
    nodes = 0
    while stack:
        node, depth, hashable = stack.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise TooLarge("a value beyond the caps on depth and nodes")
        if isinstance(node, list):
            if hashable:
                raise CodecError("a list where only hashable values can be")
            stack.extend((item, depth + 1, False) for item in node)
        elif isinstance(node, tuple):
            tag, payload = node
            stack.extend(
                (item, depth + 1, need) for item, need in _children(tag, payload, hashable)
            )


def _children(tag: str, payload: Tree, hashable: bool) -> Iterator[tuple[Tree, bool]]:
    """Check one tagged node; yield its children and whether each has to be hashable."""
    if tag in ("t", "s", "z", "d", "g"):
        if not isinstance(payload, list) or (tag == "d" and len(payload) % 2):
            raise CodecError(f"tag {tag!r} needs a list")
        if hashable and tag in ("s", "d"):
            raise CodecError("a set or dict where only hashable values can be")
        for position, item in enumerate(payload):
            key = tag in ("s", "z") or (tag == "d" and position % 2 == 0)
            yield item, key or (hashable and tag == "t")
        return
    valid = {"i": _is_hex, "b": _is_latin, "u": _is_latin, "c": _is_complex, "r": _is_range}
    valid["o"] = _is_opaque
    if tag not in valid or not valid[tag](payload):
        raise CodecError(f"malformed value with tag {tag!r}")


def _is_hex(payload: Tree) -> bool:
    if not isinstance(payload, str):
        return False
    digits = payload.removeprefix("-")
    return bool(digits) and not digits.strip("0123456789abcdef")


def _is_latin(payload: Tree) -> bool:
    if not isinstance(payload, str):
        return False
    try:
        payload.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def _is_complex(payload: Tree) -> bool:
    return _is_list(payload, 2) and all(type(part) is float for part in payload)


def _is_range(payload: Tree) -> bool:
    if not _is_list(payload, 3):
        return False
    return all(
        type(part) is int or (isinstance(part, tuple) and part[0] == "i" and _is_hex(part[1]))
        for part in payload
    )


def _is_opaque(payload: Tree) -> bool:
    return _is_list(payload, 2) and type(payload[0]) is str and type(payload[1]) is bool


def _is_list(payload: Tree, length: int) -> bool:
    return isinstance(payload, list) and len(payload) == length


def _tagged(pairs: list[tuple[str, Tree]]) -> tuple[str, Tree]:
    if len(pairs) != 1:
        raise CodecError("an object must have exactly one key, its tag")
    return pairs[0]


def _small_int(digits: str) -> int:
    if len(digits) > 20:  # `int` is quadratic in them
        raise CodecError("a large integer outside its tag")
    return int(digits)


def pack(message: Tree) -> bytes:
    """Frame one message: four bytes of length, then JSON."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return len(data).to_bytes(4, "big") + data


class Frames:
    """Cuts a stream of bytes back into messages."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes as they came."""
        self._buffer += data

    def pop(self) -> Tree:
        """Return the next message (a list), or None while it is incomplete.

        Raises:
            TooLarge: the message is longer than the limit.
            CodecError: it is not a JSON array in the dialect above.
        """
        if len(self._buffer) < 4:
            return None
        end = 4 + int.from_bytes(self._buffer[:4], "big")
        if end - 4 > self._limit:
            raise TooLarge(f"a message of {end - 4} bytes, more than {self._limit}")
        if len(self._buffer) < end:
            return None
        data = bytes(self._buffer[4:end])
        del self._buffer[:end]
        try:
            message = json.loads(data, object_pairs_hook=_tagged, parse_int=_small_int)
        except RecursionError:
            raise TooLarge("a message nested too deeply") from None
        except ValueError as error:
            raise CodecError("a message that is not the codec's JSON") from error
        if not isinstance(message, list) or not message:
            raise CodecError("a message that is not a list")
        return message
