"""Objects and classes of the program, as the test sees them.

A proxy has the special methods that the program says its class has; each asks the program. What may
decide a test is kept out of the program's hands:

* A proxy never equals a plain value, and is neither less nor greater than one. Between two proxies
  the program decides: both values are its own, and one that answers "equal" to everything is no
  better off than a program whose function returns the same value for everything.
* Arithmetic with a plain value tells the program that value, which may be the expected one, as in
  `abs(f(x) - 0.5) < 1e-6`. So what comes of it, and of arithmetic on that, has to be an object of
  the program again, and never becomes a number or a truth value.
* Where `x` is plain, `x in proxy` is believed only if `x` turns up among the items as well.
* A context manager of the program suppresses only what the test raised by a `raise` statement:
  neither a failed assertion nor an error that came of the program's own values.

The two exceptions are arithmetic, order and `in` on an object that the test itself made by calling
a class under test (`own`), where the test's use of the name shows that it is a class.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from .peers import CARRIED_OBJECT, CARRIED_TEXT

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

    __slots__ = ("caller", "ended", "error", "items", "number", "own", "tainted", "taken")

    def __init__(self, caller: Caller, number: int, own: bool) -> None:
        self.caller = caller
        self.number = number
        self.own = own
        self.tainted = False
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
        if name in cls._proxy_facts.methods:
            return Method(cls._proxy_facts.caller, cls, name)
        return cls._proxy_facts.caller.request("getattr", cls, name)

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
        facts = type(self)._proxy_facts
        if name in facts.methods:
            return Method(facts.caller, self, name)
        return _ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        _ask("delattr", self, name)

    def __repr__(self) -> str:
        return str(_ask("__repr__", self))

    def __str__(self) -> str:
        return str(_ask("__str__", self))

    def __format__(self, spec: str) -> str:
        if spec and state_of(self).tainted:
            raise TypeError("the result of arithmetic with a plain value has no number")
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
        namespace["__bool__"] = _truth
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


def make(kind: Any, number: int, *, own: bool) -> Any:
    """Return a proxy of a class for an object of the program."""
    proxy = object.__new__(kind)
    object.__setattr__(proxy, _STATE, State(kind._proxy_facts.caller, number, own))
    return proxy


def _ask(operation: str, proxy: Any, *args: Any) -> Any:
    return state_of(proxy).caller.request(operation, proxy, *args)


def _plain(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        return _ask(name, self, *args)

    return method


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return state_of(self).caller.request("call", self, *args, **kwargs)


def _number_of(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        tainted = state_of(self).tainted
        return _tainted(_ask(name, self, *args)) if tainted else _ask(name, self, *args)

    return method


def _arithmetic(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        mine = state_of(self)
        if is_proxy(other):
            tainted = mine.tainted or state_of(other).tainted
        else:
            tainted = mine.tainted or not _is_free(self)
        result = mine.caller.request(name, *((other, self) if swapped else (self, other)))
        return _tainted(result) if tainted else result

    return method


def _tainted(result: Any) -> Any:
    if not is_proxy(result):
        raise TypeError("arithmetic of the program's object with a plain value gave a plain value")
    state_of(result).tainted = True
    return result


def _is_free(proxy: Any) -> bool:
    """Return whether the test itself made an object, of a class that it takes for one."""
    return state_of(proxy).own and type(proxy)._proxy_facts.subject


def differs_if_own(kind: type) -> bool:
    """Return whether a class has methods for which it matters that the test made the object."""
    bases = [base for base in kind.__mro__ if base is not object]
    return any(name in _FREE for base in bases for name in base.__dict__)


def _ordered(name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return _ask(name, self, other) if is_proxy(other) or _is_free(self) else NotImplemented

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


def _truth(self: Any) -> Any:
    if state_of(self).tainted:
        raise TypeError("the result of arithmetic with a plain value has no truth value")
    return _ask("__bool__", self)


def _contains(self: Any, item: Any) -> Any:
    if is_proxy(item) or _is_free(self):
        return _ask("__contains__", self, item)
    if not any("__iter__" in base.__dict__ for base in type(self).__mro__):
        raise TypeError("it cannot be found out whether the program's object contains a value")
    if not _ask("__contains__", self, item):
        return False
    if not any(item is known or item == known for known in self):
        raise TypeError("the program's object claims to contain what is not among its items")
    return True


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
    suppressed = bool(_ask("__exit__", self, kind, error, None))
    return suppressed and _was_raised(error, trace)


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
    **{f"__{name}__": _plain(f"__{name}__") for name in _PLAIN},
    **{f"__{name}__": _number_of(f"__{name}__") for name in _UNARY},
    **{f"__{name}__": _arithmetic(f"__{name}__") for name in _BINARY},
    **{f"__r{name}__": _arithmetic(f"__{name}__", swapped=True) for name in _BINARY},
    **{
        f"__i{name}__": _arithmetic(f"__i{name}__")
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor")
    },
    **{f"__{name}__": _ordered(f"__{name}__") for name in ("lt", "le", "gt", "ge")},
    "__call__": _call,
    "__contains__": _contains,
    "__next__": _next,
    "__exit__": _leave,
}
_FREE = frozenset(
    name
    for name in _SPECIAL
    if name.strip("_").removeprefix("r") in _BINARY or name in ("__lt__", "__gt__", "__contains__")
)
