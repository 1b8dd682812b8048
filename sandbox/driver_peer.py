"""The test's side of the channel: what it holds of the program, and what it hands out.

The counterpart of `candidate_peer`. It trusts nothing that comes: whatever does not fit ends the
test as forged, at once and whatever handlers the test has.
"""

from __future__ import annotations

import collections
import functools
import operator
import os
import re
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from . import proxies
from .codec import CodecError, Encoder, Inexpressible, TooLarge, Tree
from .graph import Packer, Unpacker, state_of
from .peers import (
    CARRIED_OBJECT,
    DATA,
    FRAMES_PER_NESTING,
    MAX_NESTING,
    VIEWS,
    Channel,
    Peer,
    importable,
)
from .proxies import Method, ProxyClass, is_proxy

BODY = "<body>"
HELPERS = "<helpers>"
_CALLABLE_TYPES = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    functools.partial,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    type(functools.lru_cache(lambda: None)),
)
_FUNCTIONS = (types.FunctionType, types.MethodType)
_VARARGS, _VARKEYWORDS = 4, 8
"""Bits of `co_flags`, as in `inspect`."""
_PLAIN_FACTORIES = (None, int, float, str, list, dict, set, tuple, bool)


class Driver(Peer):
    """The test's side. Keeps the facts that the verdict needs."""

    def __init__(self, channel: Channel, body: str, definitions: dict[str, Any]) -> None:
        # A value of the program may come back to it as part of another, deeper and larger.
        super().__init__(channel, scale=2)
        self.answered = 0
        self.heard = False
        """Whether the program has had any influence on the test yet."""
        self.raised: list[BaseException] = []
        self.failed_line = 0
        """Line of an assertion that failed in a callback, whatever the program made of it."""
        self.module: dict[str, Any] = {}
        self.subjects: frozenset[str] = frozenset()
        self.program: Any = None
        self._lines = body.splitlines()
        self._definitions = definitions
        self._last: Any = None
        self._shared: dict[str, type] = {}
        self._described: dict[type, str] = {}
        self._sent: set[str] = set()
        self._exports: list[Any] = []
        self._export_numbers: dict[int, int] = {}
        self._proxies: dict[int, Any] = {}
        self._classes: list[Any] = []
        self._nesting = 0
        self._under_way = 0

    # Calls in both directions

    def request(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        """Let the program do something; return its value or raise its exception."""
        try:
            packet = self.graph.pack([list(args), kwargs])
        except Inexpressible as error:
            self.end("unsupported", f"an argument holds {error}")
        except TooLarge as error:
            self.end("unsupported", f"an argument is too large: {error}")
        self._under_way += 1
        self.channel.send("call", operation, packet)
        while (message := self.channel.receive())[0] == "callback":
            self._call_back(message[1])
        self._under_way -= 1
        (value,) = self.unpack(message[1], 1, last=not self._under_way)
        self.heard = True
        if operation != "getattr" or args[0] is not self.program:
            self.answered += 1
        if message[0] == "raised":
            if not isinstance(value, BaseException):
                self.end("forged", "")
            raise value if self._is_export(value) else self.blame(value)
        if operation == "call" and is_proxy(value) and type(value) is args[0]:
            state = proxies.state_of(value)
            state.built |= args[0]._proxy_facts.subject and state.seen == 1
        elif operation in ("call", "method"):
            self._last = value
        return value

    def is_entry(self, value: Any) -> bool:
        """Return whether a value is a function or class of the program."""
        return isinstance(value, ProxyClass) or (is_proxy(value) and callable(value))

    def blame(self, error: BaseException) -> BaseException:
        """Note that an exception came from the program; return what to raise."""
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            # As in a generator (PEP 479): else `map` takes a failing call for the end, and a
            # test that loops over the calls passes without having compared anything.
            error = RuntimeError(f"the function raised {type(error).__name__}")
        self.raised.append(error)
        return error

    def _call_back(self, packet: Tree) -> None:
        """Run a callable of the test for the program."""
        function, args, kwargs = self.unpack(packet, 3)
        if not callable(function) or not self._is_export(function):
            self.end("forged", "")
        self._nesting += 1
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + FRAMES_PER_NESTING)
        kind, answer = "answer", None
        try:
            if self._nesting > MAX_NESTING:
                raise RecursionError("calls between program and test are nested too deeply")
            answer = function(*args, **kwargs)
        except BaseException as error:
            if isinstance(error, AssertionError) and not self.failed_line:
                self.failed_line = self._assertion_line(error)
            kind, answer = "fault", error
        finally:
            sys.setrecursionlimit(limit)
            self._nesting -= 1
        try:
            self.channel.send(kind, self.graph.pack([answer]))
        except Inexpressible as error:
            self.end("unsupported", f"a callback returns {error}")
        except TooLarge as error:
            self.end("unsupported", f"a callback returns too large a value: {error}")

    def _assertion_line(self, error: BaseException) -> int:
        """Return the line of the test's assertion that failed, but 0 for one that has to fail."""
        line = line_of(error)
        text = self._lines[line - 1].strip() if 0 < line <= len(self._lines) else ""
        return 0 if re.match(r"assert\s+(False|0)\b|raise\b|$", text) else line

    def unpack(self, packet: Tree, count: int, *, last: bool = False) -> list[Any]:
        """Return the values of a packet; end the test if it is out of order."""
        try:
            values = self.graph.unpack(packet, last=last)
            if len(values) != count:
                raise CodecError("a packet with too many or too few values")
            if count == 3 and not (type(values[1]) is list and type(values[2]) is dict):
                raise CodecError("arguments that are none")
        except Exception:  # hashing, or the test's own `__hash__`, may raise anything
            self.end("forged", "")
        return values

    def end(self, kind: str, text: str) -> NoReturn:
        """End the test at once, whatever handlers the test has."""
        frame: Any = sys._getframe()
        line = 0
        while frame is not None and not line:
            if frame.f_code.co_filename == BODY:
                line = frame.f_lineno
            frame = frame.f_back
        self.channel.send("done", kind, text, line, self.answered, self.last())
        os._exit(0)

    def last(self) -> str:
        """Return what the last call returned, if it is plain, in short."""
        return _short(self._last) if self.answered else ""

    # What `graph` asks for

    def refer(self, value: Any, kind: type, packer: Packer, depth: int) -> Tree:
        """Return the tree of anything but plain data."""
        if issubclass(kind, type):
            return self.class_tree(value, depth)
        if isinstance(kind, ProxyClass) and is_proxy(value):
            return {"h": proxies.state_of(value).number}
        if kind is Method:
            return {"M": [packer.value(value.owner, depth + 1), value.__name__]}
        if issubclass(kind, BaseException):
            if CARRIED_OBJECT in value.__dict__:
                return packer.value(value.__dict__[CARRIED_OBJECT], depth)
            return self.exception_tree(value, packer, depth, number=self._export(value))
        if hasattr(kind, "__members__") and kind.__module__ == "test":
            self._define(kind, "enum", list(kind.__members__))
            return {"e": [kind.__qualname__, value.name]}
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            if kind.__module__ == "test":
                self._define(kind, "tuple", list(kind._fields), needed=False)
            return self.named_tuple_tree(value, kind.__qualname__, packer, depth)
        if kind is collections.defaultdict and value.default_factory not in _PLAIN_FACTORIES:
            raise Inexpressible("a defaultdict with a factory of the test's own")
        if kind in VIEWS:
            return packer.value(list(value), depth)
        if issubclass(kind, (*DATA, range)):
            return None
        if kind.__module__ == "test":
            self._define(kind, "object", state_of(value)[::2])
            return self.graph.instance(value)
        name = importable(value)
        if name is not None:
            return {"q": name}
        if isinstance(value, _CALLABLE_TYPES):
            name = str(getattr(value, "__name__", kind.__name__))
            parameters = _parameters(value) if isinstance(value, _FUNCTIONS) else None
            return {"k": [self._export(value), name, parameters]}
        if hasattr(kind, "__next__") and kind.__module__ not in ("builtins", "itertools"):
            raise Inexpressible(f"a value of type {kind.__name__}")
        return None

    def class_tree(self, kind: type, depth: int) -> Tree:
        """Return a reference to a class: the program's, Python's or the test's."""
        if isinstance(kind, ProxyClass):
            return {"C": kind._proxy_facts.number}
        name = importable(kind)
        if name is not None:
            return {"q": name}
        if issubclass(kind, BaseException):
            try:
                self._define(kind, "exception", [])
            except Inexpressible:
                return self.class_tree(kind.__mro__[1], depth)
        else:
            self._define(kind, "object", [])
        return {"D": kind.__qualname__}

    def _define(self, kind: type, sort: str, fields: list[str], *, needed: bool = True) -> None:
        """Describe a class of the test to the program, once."""
        if kind in self._described:
            return
        name = kind.__qualname__
        if sort == "object":
            _check_portable(kind)
        units = self._definitions.get(name, f"its definition {name} is not in the test")
        if isinstance(units, str):
            if needed:
                raise Inexpressible(f"an instance of a class of the test, but {units}")
            units = ()
        fresh = [unit for unit in units if unit[0] not in self._sent]
        self._sent.update(unit[0] for unit in fresh)
        self._described[kind] = name
        self._shared[name] = kind
        self.described.append([name, sort, fields, [list(unit) for unit in fresh]])

    def share(self, names: Sequence[str]) -> None:
        """Let instances of classes of the helpers come by value."""
        for name in names:
            kind = self.module.get(name)
            if isinstance(kind, type):
                self._shared.setdefault(name, kind)

    def learn(self, classes: list[Tree]) -> None:
        """Take in classes of the program: [name, bases, dunders, methods]."""
        for name, bases, dunders, methods in classes:
            kinds = [Unpacker(self.graph).value(base) for base in bases]
            texts = [name, *dunders, *methods]
            if not (all(map(self._may_be_base, kinds)) and all(type(t) is str for t in texts)):
                raise CodecError("a class with a malformed description")
            number = len(self._classes)
            self._classes.append(proxies.make_class(self, number, name, kinds, dunders, methods))

    def _may_be_base(self, kind: Any) -> bool:
        if not isinstance(kind, type):
            return False
        known = isinstance(kind, ProxyClass) or kind in self._shared.values()
        return known or issubclass(kind, BaseException)

    def class_of(self, instance: Any) -> str:
        """Return the name of the class of an instance."""
        return type(instance).__qualname__

    def shared_class(self, name: Tree) -> Any:
        """Return a class of the test that the program has been told of."""
        if not isinstance(name, str) or name not in self._shared:
            raise CodecError("a class that was not described")
        return self._shared[name]

    def reference(self, tag: str, payload: Tree, unpacker: Unpacker) -> Any:
        """Return a proxy, or what the program has been handed before."""
        if tag == "h":
            number, kind = payload
            return self._proxy(number, self._classes[_natural(kind)])
        if tag == "C":
            return self._classes[_natural(payload)]
        if tag == "k":
            return self._exports[_natural(payload)]
        module, _, name = payload.partition(":")
        found = getattr(sys.modules.get(module), name, None) if tag == "q" else None
        if not isinstance(found, type) or isinstance(found, ProxyClass):
            raise CodecError("a reference to what is no class")
        if module != "builtins" and not issubclass(found, BaseException):
            raise CodecError("a reference to a class that the program may not name")
        return found

    def keep(self, error: BaseException, number: Tree) -> BaseException:
        """Attach the object itself to an exception of the program."""
        kind: Any = type(error)
        if isinstance(kind, ProxyClass):
            error.__dict__[CARRIED_OBJECT] = self._proxy(number, kind)
        return error

    def _proxy(self, number: Any, kind: Any) -> Any:
        found = self._proxies.get(_natural(number))
        if found is None:
            if issubclass(kind, BaseException):
                kind = proxies.make_class(self, kind._proxy_facts.number, kind.__name__, [], [], [])
            found = self._proxies[number] = proxies.make(kind, number)
        proxies.state_of(found).seen += 1
        return found

    def _export(self, value: Any) -> int:
        number = self._export_numbers.get(id(value))
        if number is None:
            number = self._export_numbers[id(value)] = len(self._exports)
            self._exports.append(value)
        return number

    def _is_export(self, value: Any) -> bool:
        return id(value) in self._export_numbers


def _parameters(function: Any) -> list[Any]:
    """Return the parameters of a function or bound method, as `stand_ins.make` takes them."""
    bound = isinstance(function, types.MethodType)
    function = getattr(function, "__func__", function)
    code = function.__code__
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    extra = list(names[count + only :])
    rest = extra.pop(0) if code.co_flags & _VARARGS else None
    more = extra.pop(0) if code.co_flags & _VARKEYWORDS else None
    positional = list(names[bound:count])
    return [
        positional,
        max(0, code.co_posonlyargcount - bound),
        min(len(function.__defaults__ or ()), len(positional)),
        rest,
        list(names[count : count + only]),
        list(function.__kwdefaults__ or ()),
        more,
    ]


def _check_portable(kind: type) -> None:
    """Refuse classes whose instances are more than their attributes."""
    try:
        object.__new__(kind)
    except TypeError as error:
        raise Inexpressible(f"an instance of {kind.__name__}: {error}") from None
    for base in kind.__mro__:
        for member in base.__dict__.values():
            code = getattr(member, "__code__", None)
            if (
                code is not None
                and code.co_filename in (BODY, HELPERS)
                and set(code.co_freevars) - {"__class__"}
            ):
                raise Inexpressible(
                    f"an instance of {kind.__name__}, whose methods use variables of a function"
                )


def _natural(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise CodecError("a number that is none")
    return number


def line_of(error: BaseException) -> int:
    """Return the line of the body that an exception came from, or 0."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == BODY:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


class _Plain(Encoder):
    """Refuses what is not plain: the `repr` of it may ask the program, or an iterator."""

    def other(self, value: Any, kind: type, depth: int) -> Tree:
        if not issubclass(kind, DATA):
            raise Inexpressible(kind.__name__)
        return super().other(value, kind, depth)


def _short(value: Any) -> str:
    try:
        _Plain().value(value)  # not so large or cyclic that `repr` would run for ever
    except CodecError:
        return f"<{type(value).__name__} object>"
    digits = sys.get_int_max_str_digits()
    # Printing a huge int takes quadratic time, which the program would be charged for.
    sys.set_int_max_str_digits(4300)
    try:
        text = repr(value)
    except Exception:  # e.g. more digits than that
        return f"<{type(value).__name__} object>"
    finally:
        sys.set_int_max_str_digits(digits)
    return text if len(text) <= 120 else text[:117] + "..."
