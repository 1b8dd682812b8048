"""The program's side of the channel: its objects by number, and stand-ins for those of the test.

Everything here shares a process with the program and may be rewritten by it. Nothing rests on
that: whatever it sends is, to the test's driver, just what the program's objects answered.
"""

from __future__ import annotations

import _thread
import builtins
import copy
import math
import operator
import os
import sys
import types
from typing import Any

from . import stand_ins
from .codec import CodecError, TooLarge, Tree
from .graph import Packer, Unpacker, is_dunder
from .peers import (
    DATA,
    FRAMES_PER_NESTING,
    MAX_NESTING,
    VIEWS,
    Channel,
    Peer,
    importable,
)
from .standard import encode as encode_standard

FILE = "solution.py"
TRACE_CHARACTERS = 4000
MAX_HANDLES = 100_000
"""How many of its objects a program may hand out in one session."""


def _take(iterator: Any, count: int) -> list[Any]:
    """Return up to `count` items, whether there was an end, and what was raised instead."""
    items: list[Any] = []
    try:
        while len(items) < count:
            items.append(next(iterator))
    except StopIteration:
        return [items, True, None]
    except Exception as error:
        return [items, True, error]
    return [items, False, None]


_OPERATIONS: dict[str, Any] = {
    "call": lambda function, /, *args, **kwargs: function(*args, **kwargs),
    "method": lambda owner, name, /, *args, **kwargs: getattr(owner, name)(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "next": _take,
    **{
        f"__{name}__": getattr(builtins, name)
        for name in (
            *("abs", "bool", "bytes", "complex", "dir", "divmod", "float", "format", "hash"),
            *("int", "iter", "len", "pow", "repr", "reversed", "round", "str"),
        )
    },
    **{f"__{name}__": getattr(math, name) for name in ("ceil", "floor", "trunc")},
    **{
        f"__{name.strip('_')}__": getattr(operator, name)
        for name in (
            *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "lshift", "rshift"),
            *("and_", "or_", "xor", "neg", "pos", "invert", "index", "contains", "getitem"),
            *("setitem", "delitem", "eq", "ne", "lt", "le", "gt", "ge"),
            *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor"),
        )
    },
    "__enter__": lambda owner: type(owner).__enter__(owner),
    "__exit__": lambda owner, *error: type(owner).__exit__(owner, *error),
    "__copy__": copy.copy,
    "__deepcopy__": copy.deepcopy,
}


class Candidate(Peer):
    """The program's side: its objects by number, and stand-ins for what the test holds."""

    def __init__(self, channel: Channel, module: types.ModuleType, source: str) -> None:
        super().__init__(channel)
        self._source = source
        self._module = module
        self._definitions: dict[str, Any] = {"__name__": "test"}
        self._shared: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._handles: list[Any] = [module]
        self._numbers: dict[int, int] = {id(module): 0}
        self._classes: dict[type, int] = {}
        self._class_list: list[type] = []
        self._theirs: dict[int, int] = {}
        self._stand_ins: dict[int, Any] = {}
        self._built: Any = None
        self._lock = _thread.RLock()
        self._nesting = 0

    def define(self, units: list[tuple[str, str]], names: list[str]) -> None:
        """Make definitions of the test known to the program; its own will override them."""
        self._execute(units)
        for name in names:
            if name in self._definitions:
                self._module.__dict__[name] = self._definitions[name]

    def adopt(self, names: list[str]) -> None:
        """Let instances of the program's classes of these names travel by value."""
        for name in names:
            kind = self._module.__dict__.get(name)
            if isinstance(kind, type):
                self._share(name, kind)

    def entries(self, function: Any) -> Tree:
        """Return a packet with references to the module and to the entry point."""
        if isinstance(function, type) and importable(function):
            kind = function  # the test must not take its own class of that name instead
            function = lambda *args, **kwargs: kind(*args, **kwargs)  # noqa: E731
        return self.graph.pack([self._module, function])

    def _execute(self, units: Any) -> None:
        for name, source in units:
            if name not in self._definitions:
                try:
                    exec(compile(source, "<test>", "exec", dont_inherit=True), self._definitions)
                except Exception:
                    continue  # e.g. a module that is absent here: data will do

    def _share(self, name: str, kind: type) -> None:
        self._shared[name] = kind
        self._names.setdefault(kind, name)

    # What `graph` asks for

    def learn(self, classes: list[Tree]) -> None:
        """Take in classes of the test: [name, kind, fields, units]."""
        for name, kind, fields, units in classes:
            self._execute(units)
            simple = name.rpartition(".")[2]
            given = self._definitions.get(simple)
            if not isinstance(given, type):
                given = type(simple, (), {})
            own = self._module.__dict__.setdefault(simple, given)
            self._share(name, own if own is given or _alike(own, kind, fields) else given)
            self._names.setdefault(given, name)

    def shared_class(self, name: Tree) -> Any:
        """Return the stand-in for a class of the test."""
        if name not in self._shared:
            raise CodecError("a class that was not described")
        return self._shared[name]

    def class_of(self, instance: Any) -> str:
        """Return the test's name of the class of an instance."""
        return self._names[type(instance)]

    def refer(self, value: Any, kind: type, packer: Packer, depth: int) -> Tree:
        """Return the tree of anything but plain data."""
        number = self._theirs.get(id(value))
        if number is not None:
            return {"k": number}
        if value is self._built and self._built is not None and not importable(kind):
            return self.export(value, kind)
        name = self._names.get(kind)
        if name is not None and not issubclass(kind, BaseException):
            if hasattr(kind, "__members__"):
                return {"e": [name, value.name]}
            if not issubclass(kind, DATA):
                return self.graph.instance(value)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return self.named_tuple_tree(value, name or kind.__name__, packer, depth)
        if issubclass(kind, type):
            return self.class_tree(value, depth)
        if issubclass(kind, BaseException):
            own = name is None and importable(kind) is None
            number = self.export(value, kind)["h"][0] if own else None
            return self.exception_tree(value, packer, depth, number=number)
        if issubclass(kind, DATA) and not hasattr(kind, "__members__"):
            return encode_standard(value, kind, packer, depth)
        if kind is range:
            return None
        if kind in VIEWS:
            return packer.value(list(value), depth)
        tree = encode_standard(value, kind, packer, depth)
        return self.export(value, kind) if tree is None else tree

    def class_tree(self, kind: type, depth: int) -> Tree:
        """Return a reference to a class: the test's, Python's or the program's."""
        if kind in self._names:
            return {"D": self._names[kind]}
        name = importable(kind)
        if name is not None and (name.startswith("builtins:") or issubclass(kind, BaseException)):
            return {"q": name}
        return {"C": self._class_number(kind)}

    def export(self, value: Any, kind: type) -> Tree:
        """Return a reference to an object of the program."""
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._handles) >= MAX_HANDLES:
                raise TooLarge(f"more than {MAX_HANDLES} objects")
            number = self._numbers[id(value)] = len(self._handles)
            self._handles.append(value)
        return {"h": [number, self._class_number(kind)]}

    def _class_number(self, kind: type) -> int:
        number = self._classes.get(kind)
        if number is not None:
            return number
        bases: list[Tree] = []
        for base in kind.__bases__:
            tree = self.class_tree(base, 0)
            if "q" not in tree or issubclass(base, BaseException):
                bases.append(tree)
        number = self._classes[kind] = len(self._class_list)
        self._class_list.append(kind)
        dunders: dict[str, None] = {}
        methods: dict[str, None] = {}
        for base in kind.__mro__[:-1]:
            for name, member in base.__dict__.items():
                if not is_dunder(name):
                    if isinstance(member, types.FunctionType):
                        methods[name] = None
                elif member is not None:
                    dunders[name] = None
        if getattr(kind, "__hash__", None) is None:
            dunders["unhashable"] = None
        self.described.append([str(kind.__name__), bases, [*dunders], [*methods]])
        return number

    def reference(self, tag: str, payload: Tree, unpacker: Unpacker) -> Any:
        """Return an object of the program, or a stand-in for a callable of the test."""
        if tag == "h":
            return self._handles[payload]
        if tag == "C":
            return self._class_list[payload]
        if tag == "M":
            return getattr(unpacker.value(payload[0]), payload[1])
        if tag == "k":
            number, name, parameters = payload
            return self._stand_ins.get(number) or self._stand_in(number, name, parameters)
        module, _, name = payload.partition(":")
        found = __import__(module, fromlist=["*"])
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def _stand_in(self, number: int, name: str, parameters: list[Any] | None) -> Any:
        def call(args: Any, kwargs: Any) -> Any:
            return self._call_back(stand_in, args, kwargs)

        stand_in = stand_ins.make(name, parameters, call)
        return self.keep(stand_in, number)

    def keep(self, value: Any, number: Tree) -> Any:
        """Return what stands for a callable or exception of the test: what first did."""
        known = self._stand_ins.setdefault(number, value)
        self._theirs[id(known)] = number
        return known

    # Calls in both directions

    def _call_back(self, stand_in: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of the test."""
        with self._lock:
            if not self._nesting:
                raise RuntimeError("the call that this function was passed to has ended")
            if self._nesting >= MAX_NESTING:
                raise RecursionError("calls between program and test are nested too deeply")
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + FRAMES_PER_NESTING)
            try:
                try:
                    packet = self.graph.pack([stand_in, list(args), kwargs])
                except TooLarge:
                    self.channel.send("too_large")
                    os._exit(0)
                self.channel.send("callback", packet)
                while (message := self.channel.receive())[0] == "call":
                    self.serve(*message[1:])
                (value,) = self.graph.unpack(message[1])
                if message[0] == "answer":
                    return value
            finally:
                sys.setrecursionlimit(limit)
        raise value

    def serve(self, operation: str, packet: Tree) -> None:
        """Answer one operation of the test."""
        args, kwargs = self.graph.unpack(packet)
        self._nesting += 1
        try:
            value = _OPERATIONS[operation](*args, **kwargs)
            if operation == "call" and isinstance(args[0], type) and isinstance(value, DATA):
                self._built = value  # a list of the program's own kind, say
            with self._lock:
                answer: tuple[Any, ...] = "returned", self.graph.pack([value])
        except TooLarge:
            answer = ("too_large",)
        except BaseException as error:
            with self._lock:
                answer = self._failure(error)
        finally:
            self._nesting -= 1
            self._built = None
        self.channel.send(*answer)
        if not self._nesting:
            self.graph.forget_containers()

    def _failure(self, error: BaseException) -> tuple[Any, ...]:
        texts = describe(error, source=self._source)
        try:
            return "raised", self.graph.pack([error]), *texts
        except TooLarge:
            return ("too_large",)


def _alike(own: Any, kind: str, fields: list[str]) -> bool:
    """Return whether a class of the program can stand for a class of the test."""
    if not isinstance(own, type):
        return False
    if kind == "enum":
        members = getattr(own, "__members__", {})
        return all(field in members for field in fields)
    if kind == "tuple":
        return getattr(own, "_fields", None) == tuple(fields)
    if kind == "exception":
        return issubclass(own, BaseException)
    try:
        instance: Any = object.__new__(own)
        for field in fields:
            object.__setattr__(instance, field, None)
    except (TypeError, AttributeError):
        return False
    return not any(isinstance(getattr(own, field, None), property) for field in fields)


def describe(error: BaseException, *, source: str = "") -> tuple[str, str]:
    """Return 'Class: message' and the tail of the traceback, the program's own frames only."""
    import linecache
    import traceback

    try:
        lines = source.splitlines(keepends=True)
        linecache.cache[FILE] = (len(source), None, lines, FILE)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
            trace = trace.tb_next
        error.__traceback__ = trace
        text = "".join(traceback.format_exception(error, limit=-50))
        last = traceback.format_exception_only(error)[-1].strip()
    except BaseException:
        last = text = type(error).__name__
    return last[:500], text[-TRACE_CHARACTERS:]
