"""Objects and classes of the program, as the test sees them.

A proxy has the special methods that the program says its class has; each asks the program. What may
decide a test is kept out of the program's hands. Where the test did not make an object itself, by
calling a class under test, it may have expected a built-in value in its place. So for such objects

* comparisons with a plain value are decided here: it equals none, and contains what turns up among
  its items;
* arithmetic and order with a plain value, and methods with a name that methods of built-in values
  have, are refused: whatever the program answered would decide the test, and it would learn the
  value, which may be the expected one, as in `abs(f(x) - 0.5) < 1e-6`. The case is unsupported;
* so is one in which it suppresses, as a context manager, an exception that the test raised.

Of an object that the test made and the program has handed over since, such as `self` in place of a
value, the methods may be called, and nothing else.

Between two objects of the program it decides: both values are its own, and one that answers "equal"
to everything is no better off than a program whose function returns the same value for everything.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from .peers import CARRIED_OBJECT, CARRIED_TEXT
from .value_methods import VALUE_METHODS

MAX_ITEMS = 100_000
"""How many items the test may take from one iterator of the program."""
_SINGLE_ITEMS = 16
_MOST_ITEMS = 1024
_STATE = "_state_of_proxy"


class Caller(Protocol):
    """What proxies need of the test's side."""

    def request(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        """Let the program do something; return its value or raise its exception."""
        ...

    def end(self, kind: str, text: str) -> NoReturn:
        """End the test at once."""
        ...

    def blame(self, error: BaseException) -> BaseException:
        """Note that an exception came from the program."""
        ...


class State:
    """What is known about the object behind a proxy."""

    __slots__ = ("built", "caller", "ended", "error", "items", "number", "seen", "taken")

    def __init__(self, caller: Caller, number: int) -> None:
        self.caller = caller
        self.number = number
        self.built = False
        """Whether the test made it by calling a class under test."""
        self.seen = 0
        """How often the program has handed it over."""
        self.items: collections.deque[Any] = collections.deque()
        self.taken = 0
        self.ended = False
        self.error: BaseException | None = None


class Facts:
    """What is known about a class of the program."""

    def __init__(self, caller: Caller, number: int, methods: list[str]) -> None:
        self.caller = caller
        self.number = number
        self.methods = frozenset(methods)
        self.subject = False
        """Whether the test knows it by a name that it uses as a class."""


class ProxyClass(type):
    """Classes of the program: called, they make its objects; their attributes are its own."""

    _proxy_facts: Facts

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> Any:
        """Make the class of proxies for a class of the program."""
        if "_proxy_facts" not in namespace:
            for base in bases:
                if isinstance(base, ProxyClass):
                    base._proxy_facts.caller.end(
                        "unsupported", "the test derives a class from the program's"
                    )
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Let the program make an object of the class."""
        return cls._proxy_facts.caller.request("call", cls, *args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        facts = cls._proxy_facts
        return _attribute(facts, cls, name, believed=facts.subject)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._proxy_facts.caller.request("setattr", cls, name, value)

    def __iter__(cls) -> Any:
        return cls._proxy_facts.caller.request("__iter__", cls)

    def __len__(cls) -> Any:
        return cls._proxy_facts.caller.request("__len__", cls)

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return cls._proxy_facts.caller.request("__getitem__", cls, key)

    def __contains__(cls, item: Any) -> bool:
        return any(item is known or item == known for known in cls)


class Proxy(metaclass=ProxyClass):
    """Base of the classes of all proxies; `make_class` makes the others."""

    __slots__ = (_STATE,)
    _proxy_facts = None

    def __getattr__(self, name: str) -> Any:
        return _attribute(type(self)._proxy_facts, self, name, believed=state_of(self).built)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        _ask("delattr", self, name)

    def __repr__(self) -> str:
        return str(_ask("__repr__", self))

    def __str__(self) -> str:
        return str(_ask("__str__", self))

    def __format__(self, spec: str) -> str:
        return str(_ask("__format__", self, spec))

    def __dir__(self) -> Any:
        return _ask("__dir__", self)

    def __copy__(self) -> Any:
        return _ask("__copy__", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return _ask("__deepcopy__", self)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return _ask("getattr", self, "__doc__")


class Method:
    """A method of an object or class of the program, called in one step."""

    __slots__ = ("__name__", "_caller", "owner")

    def __init__(self, caller: Caller, owner: Any, name: str) -> None:
        self._caller = caller
        self.owner = owner
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Let the program run the method."""
        return self._caller.request("method", self.owner, self.__name__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._caller.request("getattr", self.owner, self.__name__), name)


def state_of(proxy: Any) -> State:
    """Return what is known about the object behind a proxy."""
    state: State = object.__getattribute__(proxy, _STATE)
    return state


def is_proxy(value: Any) -> bool:
    """Return whether a value is an object of the program, not a class or exception of it."""
    return issubclass(type(value), Proxy)


def make_class(
    caller: Caller,
    number: int,
    name: str,
    bases: list[type],
    dunders: list[str],
    methods: list[str],
) -> Any:
    """Return the class of proxies for a class of the program.

    Args:
        caller: where its proxies ask.
        number: of the class.
        name: of the class.
        bases: proxies of its bases, classes of the test, and built-in exceptions.
        dunders: the special methods that it says it has.
        methods: names of its other methods.
    """
    namespace: dict[str, Any] = {
        "_proxy_facts": Facts(caller, number, methods),
        "__module__": "solution",
    }
    failures = [base for base in bases if issubclass(base, BaseException)]
    if failures:
        namespace[CARRIED_TEXT] = None
        namespace["__getattr__"] = _of_carried
        namespace["__str__"] = lambda self: str(getattr(self, CARRIED_TEXT) or self.args)
        return ProxyClass(name, tuple(failures), namespace)
    known = set(dunders)
    namespace["__slots__"] = ()
    namespace.update({key: _SPECIAL[key] for key in dunders if key in _SPECIAL})
    namespace["__eq__"] = _equal if "__eq__" in known else _same
    namespace["__hash__"] = _hash if "__hash__" in known else _number
    if "unhashable" in known:
        namespace["__hash__"] = None
    if "__len__" in known or "__bool__" in known:
        namespace["__bool__"] = _plain("__bool__")
    if "__next__" in known:
        namespace["__iter__"] = lambda self: self
    if not any(issubclass(base, Proxy) for base in bases):
        bases = [Proxy, *bases]
    return ProxyClass(name, tuple(bases), namespace)


def _of_carried(self: Any, name: str) -> Any:
    """Ask the program for what an exception of its own has besides its data."""
    carried = self.__dict__.get(CARRIED_OBJECT)
    if carried is None or name.startswith("__"):
        raise AttributeError(name)
    return getattr(carried, name)


def make(kind: Any, number: int) -> Any:
    """Return a proxy of a class for an object of the program."""
    proxy = object.__new__(kind)
    object.__setattr__(proxy, _STATE, State(kind._proxy_facts.caller, number))
    return proxy


def _is_own(proxy: Any) -> bool:
    """Return whether the test made an object, and has it from nowhere else."""
    state = state_of(proxy)
    return state.built and state.seen == 1


def _attribute(facts: Facts, owner: Any, name: str, *, believed: bool) -> Any:
    """Return an attribute, but no method that the test may take for that of a built-in value."""
    if name in facts.methods:
        found: Any = Method(facts.caller, owner, name)
    else:
        found = facts.caller.request("getattr", owner, name)
    if not believed and name in VALUE_METHODS and callable(found):
        _refuse(facts.caller, f"calls `{name}`, as of a built-in value")
    return found


def _refuse(caller: Caller, use: str) -> NoReturn:
    """End a test that cannot be decided."""
    text = "the function returned an object of the program's own class where the test"
    caller.end("unsupported", f"{text} {use}; what it answers cannot be believed")


def _ask(operation: str, proxy: Any, *args: Any) -> Any:
    return state_of(proxy).caller.request(operation, proxy, *args)


def _plain(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        return _ask(name, self, *args)

    return method


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return state_of(self).caller.request("call", self, *args, **kwargs)


def _arithmetic(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        caller = state_of(self).caller
        if not (is_proxy(other) or _is_own(self)):
            _refuse(caller, f"combines it with a plain value by `{name}`")
        return caller.request(name, *((other, self) if swapped else (self, other)))

    return method


def _equal(self: Any, other: Any) -> Any:
    return _ask("__eq__", self, other) if is_proxy(other) else NotImplemented


def _same(self: Any, other: Any) -> Any:
    if is_proxy(other) and state_of(self).number == state_of(other).number:
        return True
    return NotImplemented


def _hash(self: Any) -> Any:
    return _ask("__hash__", self)


def _number(self: Any) -> int:
    return hash(state_of(self).number)


def _contains(self: Any, item: Any) -> Any:
    if is_proxy(item) or _is_own(self):
        return _ask("__contains__", self, item)
    if not any("__iter__" in vars(base) for base in type(self).__mro__):
        _refuse(state_of(self).caller, "uses `in`, and it has no items")
    found = any(item is known or item == known for known in self)
    if not type(self)._proxy_facts.subject:
        return found
    claimed = bool(_ask("__contains__", self, item))  # a mistake in a class under test has to show
    if claimed and not found:
        raise TypeError("the program's object claims to contain what is not among its items")
    return claimed


def _next(self: Any) -> Any:
    state = state_of(self)
    if not state.items and not state.ended:
        count = 1 if state.taken < _SINGLE_ITEMS else min(state.taken, _MOST_ITEMS)
        answer = _ask("next", self, count)
        if not _is_taken(answer, count):
            state.caller.end("forged", "")
        items, ended, error = answer
        state.items.extend(items)
        state.ended = ended
        state.error = error
        state.taken += len(items)
        if state.taken > MAX_ITEMS:
            state.caller.end("too_large", "")
    if state.items:
        return state.items.popleft()
    if state.error is not None:
        error, state.error = state.error, None
        raise state.caller.blame(error)
    raise StopIteration


def _is_taken(answer: Any, count: int) -> bool:
    """Return whether an answer is [items, whether they ended, None or an exception]."""
    if type(answer) is not list or len(answer) != 3:
        return False
    items, ended, error = answer
    if type(items) is not list or len(items) > count or type(ended) is not bool:
        return False
    return (ended or len(items) == count) and isinstance(error, BaseException | None)


def _leave(self: Any, kind: Any, error: Any, trace: Any) -> bool:
    suppressed = bool(_ask("__exit__", self, kind, error, None)) and _was_raised(error, trace)
    if suppressed and not _is_own(self):
        _refuse(state_of(self).caller, "raises an exception in its `with` block")
    return suppressed


def _was_raised(error: Any, trace: Any) -> bool:
    """Return whether a `raise` statement of the test, and no assertion, raised an exception."""
    if error is None or trace is None or isinstance(error, AssertionError):
        return False
    import opcode  # costs more than most tests, and most need it not

    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return bool(
        code.co_filename == "<body>"
        and code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
    )


_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("lshift", "rshift", "and", "or", "xor"),
)
_UNARY = (
    *("abs", "neg", "pos", "invert", "int", "float", "complex", "index"),
    *("round", "trunc", "floor", "ceil"),
)
_PLAIN = ("len", "iter", "reversed", "getitem", "setitem", "delitem", "bytes", "enter")
_SPECIAL: dict[str, Any] = {
    **{f"__{name}__": _plain(f"__{name}__") for name in (*_PLAIN, *_UNARY)},
    **{f"__{name}__": _arithmetic(f"__{name}__") for name in _BINARY},
    **{f"__r{name}__": _arithmetic(f"__{name}__", swapped=True) for name in _BINARY},
    **{
        f"__i{name}__": _arithmetic(f"__i{name}__")
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor")
    },
    **{f"__{name}__": _arithmetic(f"__{name}__") for name in ("lt", "le", "gt", "ge")},
    "__call__": _call,
    "__contains__": _contains,
    "__next__": _next,
    "__exit__": _leave,
}
