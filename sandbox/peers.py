"""What the guests of a test and of a program have in common: references, and who is who.

Classes and objects that live on one side only travel as references:

    {"h": [number, class]}  object of the program; from the test, {"h": number}
    {"k": number}           callable or exception of the test; from the test, {"k": [number, name,
                            parameters]}, see `stand_ins`
    {"C": number}           class of the program, described in the packet that first mentions it
    {"D": name}             class of the test, likewise
    {"q": "module:name"}    class or function of Python
    {"e": [class, name]}    member of an enum of the test
    {"N": [class name, field names, items]}
    {"E": [class, arguments, attributes, text, number or None]}
    {"M": [object, name]}   method of an object of the program, from the test
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import os
import sys
import types
from typing import Any

from .codec import CodecError, Encoder, Frames, Tree, pack, parse
from .graph import Graph, Packer, Unpacker, is_dunder, state_of

CHANNEL_FD = 3
MESSAGE_BYTES = 1 << 26
MAX_NESTING = 150
"""How deeply calls and callbacks may be nested."""
FRAMES_PER_NESTING = 40
DATA = (int, float, str, list, tuple, dict, set, frozenset, bytes, complex)
"""Built-in types whose instances, those of subclasses too, travel as data."""
CARRIED_OBJECT = "_carried_object"
"""Attribute of exceptions of the program, as the test has them: the object itself."""
CARRIED_TEXT = "_carried_text"
"""Attribute of classes of exceptions that have no `__str__` here: their text in its place."""
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


class Channel:
    """Messages over the session's socket."""

    def __init__(self, fd: int = CHANNEL_FD) -> None:
        self._fd = fd
        self._frames = Frames(MESSAGE_BYTES)

    def send(self, *message: Any) -> None:
        """Send one message."""
        data = memoryview(pack(message))
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self) -> Any:
        """Wait for the next message; the process ends when the host has gone."""
        while (data := self._frames.cut()) is None:
            data = os.read(self._fd, 1 << 16)
            if not data:
                os._exit(0)
            self._frames.feed(data)
        return parse(data)


class Peer(abc.ABC):
    """References in both directions; a base class of the two sides of `graph.Side`."""

    def __init__(self, channel: Channel, *, scale: int = 1) -> None:
        self.channel = channel
        self.graph = Graph(self, scale=scale)
        self.described: list[Tree] = []

    def describe(self) -> list[Tree]:
        """Return what the other side has to learn about classes, once."""
        described, self.described = self.described, []
        return described

    @abc.abstractmethod
    def refer(self, value: Any, kind: type, packer: Packer, depth: int) -> Tree:
        """Return the tree of a value that `codec` cannot carry as it is."""

    @abc.abstractmethod
    def learn(self, classes: list[Tree]) -> None:
        """Take in descriptions of classes."""

    @abc.abstractmethod
    def class_of(self, instance: Any) -> str:
        """Return the name of the shared class of an instance."""

    @abc.abstractmethod
    def shared_class(self, name: Tree) -> Any:
        """Return the shared class with a name."""

    @abc.abstractmethod
    def reference(self, tag: str, payload: Tree, unpacker: Unpacker) -> Any:
        """Return the object of a reference that only one side makes: h, k, C, M, q."""

    @abc.abstractmethod
    def class_tree(self, kind: type, depth: int) -> Tree:
        """Return a reference to a class."""

    def keep(self, error: BaseException, number: Tree) -> BaseException:
        """Return what stands for an exception that the other side knows by a number."""
        return error

    def may_set(self, instance: Any, name: str) -> bool:
        """Only data: no dunder, and nothing that hides a method or property of the class."""
        if type(name) is not str or is_dunder(name):
            return False
        for base in type(instance).__mro__:
            if name in base.__dict__:
                member = base.__dict__[name]
                return isinstance(member, types.MemberDescriptorType) or not (
                    callable(member) or hasattr(type(member), "__get__")
                )
        return True

    def shell(self, name: str) -> Any:
        """Return a new instance, without state, of a shared class."""
        kind = self.shared_class(name)
        if hasattr(kind, "__members__"):
            raise CodecError("a new member of an enum")
        return object.__new__(kind)

    def resolve(self, tag: str, payload: Tree, unpacker: Unpacker) -> Any:
        """Return the object of a reference."""
        if tag == "D":
            return self.shared_class(payload)
        if tag == "e":
            name, member = payload
            return self.shared_class(name).__members__[member]
        if tag == "N":
            return self._named_tuple(unpacker, *payload)
        if tag == "E":
            return self._exception(unpacker, *payload)
        return self.reference(tag, payload, unpacker)

    def named_tuple_tree(self, value: Any, name: str, packer: Encoder, depth: int) -> Tree:
        """Return the tree of a named tuple."""
        fields = [str(field) for field in type(value)._fields]
        return {"N": [name, fields, packer.items(tuple.__iter__(value), depth + 1)]}

    def _named_tuple(
        self, unpacker: Unpacker, name: str, fields: list[str], items: list[Tree]
    ) -> Any:
        values = tuple(unpacker.value(item) for item in items)
        kind: Any = None
        with contextlib.suppress(CodecError):
            kind = self.shared_class(name)
        if not (isinstance(kind, type) and getattr(kind, "_fields", None) == tuple(fields)):
            make: Any = collections.namedtuple
            kind = make(name, fields)
        if len(values) != len(fields):
            raise CodecError("a named tuple with too many or too few items")
        return tuple.__new__(kind, values)

    def exception_tree(
        self, error: BaseException, packer: Encoder, depth: int, *, number: int | None = None
    ) -> Tree:
        """Return the tree of an exception, with the number under which its owner knows it."""
        try:
            text = str(error)[:10_000]
        except Exception:
            text = type(error).__name__
        return {
            "E": [
                self.class_tree(type(error), depth + 1),
                packer.items(iter(tuple(error.args)), depth + 1),
                packer.items(iter(state_of(error)), depth + 1),
                packer.value(text, depth + 1),
                number,
            ]
        }

    def _exception(
        self,
        unpacker: Unpacker,
        name: Tree,
        args: list[Tree],
        state: list[Tree],
        text: Tree,
        number: Tree,
    ) -> Any:
        """Rebuild an exception; `keep` may know it already."""
        kind = _exception_class(unpacker.value(name))
        values = [unpacker.value(arg) for arg in args]
        flat = [unpacker.value(item) for item in state]
        try:
            if not _is_builtin(kind):
                raise TypeError
            error = kind(*values)
        except Exception:
            error = kind.__new__(kind, *values)
            error.args = tuple(values)
        for name, value in zip(flat[::2], flat[1::2], strict=True):
            if self.may_set(error, name):
                error.__dict__[name] = value
        if hasattr(kind, CARRIED_TEXT):
            error.__dict__[CARRIED_TEXT] = unpacker.value(text)
        return self.keep(error, number)


def _is_builtin(kind: type) -> bool:
    return getattr(builtins, kind.__name__, None) is kind


def _exception_class(kind: Any) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise CodecError("an exception whose class is none")
    return kind


def importable(value: Any) -> str | None:
    """Return the name under which Python itself has a class or function, 'module:name', or None."""
    owner = getattr(value, "__objclass__", None)
    module = owner.__module__ if isinstance(owner, type) else getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is value else None
