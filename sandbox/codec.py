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
    return Encoder(opaque=opaque).value(value)


class Encoder:
    """Dispatches on real types (`type`, never `__class__`) and reads through base-class methods.

    `graph` extends it: by `known` for containers that keep their identity, and by `other`.
    """

    def __init__(self, *, opaque: bool = False, scale: int = 1) -> None:
        self._opaque = opaque
        self._nodes = 0
        self._max_nodes = scale * MAX_NODES
        self._max_depth = scale * MAX_DEPTH

    def value(self, value: Any, depth: int = 0) -> Tree:
        """Return the tree of a value that lies `depth` levels deep in another."""
        self._nodes += 1
        if self._nodes > self._max_nodes or depth > self._max_depth:
            raise TooLarge(
                f"a value deeper than {self._max_depth} or of more than {self._max_nodes} nodes"
            )
        kind = type(value)
        if kind is int:
            return value if -_SMALL < value < _SMALL else {"i": format(value, "x")}
        if kind is str:
            return _encode_str(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is list or kind is dict or kind is set:
            return self.known(value) or self.container(value, kind, depth)
        return self.other(value, kind, depth)

    def known(self, container: Any) -> Tree:
        """Return a reference to a list, dict or set that has been met before, or None."""
        return None

    def other(self, value: Any, kind: type, depth: int) -> Tree:
        """Return the tree of anything but None and exact bool, int, float, str, list, dict, set."""
        if issubclass(kind, int):
            return self.value(int.__add__(value, 0), depth)
        if issubclass(kind, float):
            return float.__pos__(value)
        if issubclass(kind, str):
            return _encode_str(str.__str__(value))
        if issubclass(kind, tuple):
            return {"t": self.items(tuple.__iter__(value), depth)}
        if issubclass(kind, (list, dict, set)):
            return self.known(value) or self.container(value, kind, depth)
        if issubclass(kind, frozenset):
            return {"z": self.items(frozenset.__iter__(value), depth)}
        return self._rare(value, kind, depth)

    def container(self, value: Any, kind: type, depth: int) -> Tree:
        """Return the tree of a list, dict or set, or of an instance of their subclasses."""
        if issubclass(kind, list):
            return self.items(list.__iter__(value), depth)
        if issubclass(kind, dict):
            return {"d": self.items(itertools.chain.from_iterable(dict.items(value)), depth)}
        return {"s": self.items(set.__iter__(value), depth)}

    def items(self, items: Iterator[Any], depth: int) -> list[Tree]:
        """Return the trees of the items of something that lies `depth` levels deep."""
        return [self.value(item, depth + 1) for item in items]

    def _rare(self, value: Any, kind: type, depth: int) -> Tree:
        if issubclass(kind, bytes):
            return {"b": bytes.__getitem__(value, slice(None)).decode("latin-1")}
        if issubclass(kind, complex):
            return {"c": [complex.real.__get__(value), complex.imag.__get__(value)]}
        if kind is range:
            return {
                "r": [self.value(part, depth) for part in (value.start, value.stop, value.step)]
            }
        if hasattr(kind, "__next__"):
            items = list(itertools.islice(value, MAX_ITEMS + 1))
            if len(items) > MAX_ITEMS:
                raise TooLarge(f"an iterator of more than {MAX_ITEMS} items")
            return {"g": self.items(iter(items), depth)}
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
    return Decoder().value(tree)


class Decoder:
    """Rebuilds values from trees. `graph` extends it, by `keep` and by more tags."""

    def value(self, tree: Tree) -> Any:
        """Return the value of a tree."""
        if isinstance(tree, list):
            return self.sequence(tree)
        if not isinstance(tree, tuple):
            return tree
        tag, payload = tree
        try:
            return self.tagged(tag, payload)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise CodecError(f"malformed value with tag {tag!r}") from error

    def sequence(self, items: list[Tree]) -> list[Any]:
        """Return the list with these items."""
        return [self.value(item) for item in items]

    def tagged(self, tag: str, payload: Tree) -> Any:
        """Return the value of a tagged tree; the errors of built-in types are caught."""
        if tag == "t":
            return tuple(map(self.value, payload))
        if tag == "d":
            flat = map(self.value, payload)
            return dict(zip(flat, flat, strict=True))
        if tag == "s":
            return set(map(self.value, payload))
        if tag == "z":
            return frozenset(map(self.value, payload))
        if tag == "g":
            return iter([self.value(item) for item in payload])
        if tag == "r":
            return range(*map(self.value, payload))
        return _SCALARS[tag](payload)


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "i": lambda payload: int(payload, 16),
    "b": lambda payload: payload.encode("latin-1"),
    "u": lambda payload: payload.encode("latin-1").decode("utf-8", "surrogatepass"),
    "c": lambda payload: complex(*payload),
    "o": lambda payload: Opaque(*payload),
}


def check(tree: Tree, *, references: frozenset[str] = frozenset()) -> None:
    """Validate a tree that came from an untrusted side. Linear, builds nothing, cannot recurse.

    Args:
        tree: as a parsed message holds it.
        references: further tags to let pass, with any tree as payload (see `graph`).

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
            if tag in references:
                stack.append((payload, depth + 1, False))
                continue
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

    @property
    def empty(self) -> bool:
        """Whether nothing has come since the last whole message."""
        return not self._buffer

    def cut(self) -> bytes | None:
        """Return the next message as it came, or None while it is incomplete.

        Raises:
            TooLarge: the message is longer than the limit.
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
        return data

    def pop(self) -> Tree:
        """Return the next message (a list), or None while it is incomplete.

        Raises:
            TooLarge: the message is longer than the limit.
            CodecError: it is not a JSON array in the dialect above.
        """
        data = self.cut()
        return None if data is None else parse(data)


def parse(data: bytes) -> Tree:
    """Return the message (a list) in the payload of a frame.

    Raises:
        TooLarge: it is nested too deeply.
        CodecError: it is not a JSON array in the dialect above.
    """
    try:
        message = json.loads(data, object_pairs_hook=_tagged, parse_int=_small_int)
    except RecursionError:
        raise TooLarge("a message nested too deeply") from None
    except ValueError as error:
        raise CodecError("a message that is not the codec's JSON") from error
    if not isinstance(message, list) or not message:
        raise CodecError("a message that is not a list")
    return message
