"""Object graphs on the channel between a test and the program that it tests.

`codec` carries trees of values; this module adds identity, symmetrically for both guests. Values
travel in packets, `[values, classes, changes, news]` without the empty ones at the end:

    values      trees in which these tags may occur besides those of `codec`
    classes     what the other side has to learn about classes first (see `peers`)
    changes     [kind, number, content] for everything that changed since the other side saw it
    news        [class, state] for every instance that is mentioned for the first time

An instance of a shared class has a number for the whole session, and a list, dict, set or deque has
one until the outermost call ends; both sides count alike, in the order of first mention. So cycles
and shared references survive, a change made on one side reaches the very object on the other, and a
returned argument is the caller's own object.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from . import standard
from .codec import CodecError, Decoder, Encoder, Tree

TAGS = frozenset("mnhkCDqeNEMx")
"""m: container by number. n: instance by number. x: value of the standard library. Others, see
`peers`: h: object of the program. k: callable of the test. C: class of the program. D: class of the
test. q: class or function of Python. e: member of an enum. N: named tuple. E: exception. M: method
of an object."""
MAX_INSTANCES = 100_000
_INSTANCE, _CONTAINER = 0, 1


class Side(Protocol):
    """What a guest knows of classes and references."""

    def refer(self, value: Any, kind: type, packer: Packer, depth: int) -> Tree:
        """Return the tree of a value that `codec` cannot carry as it is, or None to leave it."""
        ...

    def resolve(self, tag: str, payload: Tree, unpacker: Unpacker) -> Any:
        """Return the object of a reference."""
        ...

    def describe(self) -> list[Tree]:
        """Return what the other side has to learn about classes, once."""
        ...

    def learn(self, classes: list[Tree]) -> None:
        """Take in what the other side described."""
        ...

    def class_of(self, instance: Any) -> str:
        """Return the name of the shared class of an instance."""
        ...

    def shell(self, name: str) -> Any:
        """Return a new instance, without state, of a shared class."""
        ...

    def may_set(self, instance: Any, name: str) -> bool:
        """Return whether the other side may set or delete an attribute."""
        ...


class Graph:
    """What both sides know by number, as one of them keeps it."""

    def __init__(self, side: Side, *, scale: int = 1) -> None:
        self.side = side
        self.scale = scale
        """How much larger than `codec` allows a packet of this side may be."""
        self._tables = (_Table(), _Table())

    def pack(self, values: Iterable[Any]) -> list[Tree]:
        """Return a packet with these values and everything that the other side has to know.

        Raises:
            TooLarge: beyond the caps of `codec`.
            Inexpressible: one of the values cannot be carried.
        """
        instances, containers = self._tables
        before = len(instances.objects), len(containers.objects)
        packer = Packer(self)
        trees = [packer.value(value) for value in values]
        changes: list[Tree] = []
        for kind, content_of in ((_INSTANCE, state_of), (_CONTAINER, standard.content_of)):
            table = self._tables[kind]
            for number in range(before[kind]):
                content = content_of(table.objects[number])
                if not _same(content, table.seen[number]):
                    table.seen[number] = content
                    changes.append([kind, number, packer.items(iter(content), 1)])
        news: list[Tree] = []
        while (number := before[0] + len(news)) < len(instances.objects):
            instance = instances.objects[number]
            state = instances.seen[number] = state_of(instance)
            news.append([self.side.class_of(instance), packer.items(iter(state), 1)])
        packet = [trees, self.side.describe(), changes, news]
        while not packet[-1] and len(packet) > 1:
            packet.pop()
        return packet

    def unpack(self, packet: Tree, *, last: bool = False) -> list[Any]:
        """Return the values of a packet, after applying the changes that it brings.

        Args:
            packet: as the other side packed it.
            last: whether it ends the outermost call, so that containers are forgotten. This is
                done before any dict or set is filled: hashing may start another call.

        Raises:
            CodecError: it refers to what does not exist, or is malformed otherwise.
        """
        parts: list[list[Tree]] = [*packet, *([],) * (4 - len(packet))]
        values, classes, changes, news = parts
        self.side.learn(classes)
        instances = self._tables[_INSTANCE]
        fresh = [instances.add(self.side.shell(name), None) for name, _ in news]
        unpacker = Unpacker(self)
        result = [unpacker.value(tree) for tree in values]
        updates = [
            (kind, _index(number), [unpacker.value(item) for item in flat])
            for kind, number, flat in changes
        ]
        for number, (_, flat) in zip(fresh, news, strict=True):
            updates.append((_INSTANCE, number, [unpacker.value(item) for item in flat]))
        # Attributes first: what an instance is equal to, and hashed by, may depend on them.
        for kind, number, content in updates:
            if kind == _INSTANCE:
                self._set_state(self._tables[kind].objects[number], content)
                instances.look(number)
        containers = self._tables[_CONTAINER]
        changed = [(number, content) for kind, number, content in updates if kind != _INSTANCE]
        objects = [containers.objects[number] for number, _ in changed]
        if last:
            containers.clear()
        unpacker.fill()
        for container, (_, content) in zip(objects, changed, strict=True):
            standard.refill(container, content)
        if not last:
            for number in (*unpacker.kept, *(number for number, _ in changed)):
                containers.look(number)
        return result

    def forget_containers(self) -> None:
        """Forget lists, dicts and sets: the outermost call has ended."""
        self._tables[_CONTAINER].clear()

    def instance(self, value: Any) -> Tree:
        """Return a reference to an instance of a shared class, new or known."""
        table = self._tables[_INSTANCE]
        number = table.numbers.get(id(value))
        if number is None:
            if len(table.objects) >= MAX_INSTANCES:
                raise CodecError(f"more than {MAX_INSTANCES} objects")
            number = table.add(value, [])
        return {"n": number}

    def container(self, value: Any) -> Tree:
        """Return a reference to a known container, or register a new one and return None."""
        table = self._tables[_CONTAINER]
        number = table.numbers.get(id(value))
        if number is not None:
            return {"m": number}
        table.add(value, standard.content_of(value))
        return None

    def keep(self, value: Any) -> int:
        """Register a container that came from the other side; its content may come later."""
        return self._tables[_CONTAINER].add(value, [])

    def find(self, tag: str, number: Tree) -> Any:
        """Return the object with a number."""
        return self._tables[_INSTANCE if tag == "n" else _CONTAINER].objects[_index(number)]

    def _set_state(self, instance: Any, flat: list[Any]) -> None:
        state = dict(zip(flat[::2], flat[1::2], strict=True))
        for name in [*state_of(instance)[::2]]:
            if name not in state and self.side.may_set(instance, name):
                object.__delattr__(instance, name)
        for name, value in state.items():
            if self.side.may_set(instance, name):
                object.__setattr__(instance, name, value)


class _Table:
    """Objects of one kind, by number, with what the other side has last seen of each."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.seen: list[Any] = []
        self.numbers: dict[int, int] = {}

    def add(self, value: Any, seen: Any) -> int:
        number = len(self.objects)
        self.objects.append(value)
        self.seen.append(seen)
        self.numbers[id(value)] = number
        return number

    def look(self, number: int) -> None:
        value = self.objects[number]
        kind = standard.is_container(value)
        self.seen[number] = standard.content_of(value) if kind else state_of(value)

    def clear(self) -> None:
        self.objects.clear()
        self.seen.clear()
        self.numbers.clear()


class Packer(Encoder):
    """Encodes the values of one packet."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(scale=graph.scale)
        self.graph = graph

    def known(self, container: Any) -> Tree:
        """Return a reference to a container, or register it."""
        return self.graph.container(container)

    def other(self, value: Any, kind: type, depth: int) -> Tree:
        """Return the tree of a value of a rarer type."""
        tree = self.graph.side.refer(value, kind, self, depth)
        if tree is None:
            tree = standard.encode(value, kind, self, depth)
        return super().other(value, kind, depth) if tree is None else tree


class Unpacker(Decoder):
    """Decodes the values of one packet. Dicts and sets are filled by `fill`, at the end."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._late: list[tuple[Any, list[Any]]] = []
        self.kept: list[int] = []

    def sequence(self, items: list[Tree]) -> list[Any]:
        """Return the list with these items."""
        result: list[Any] = []
        self.kept.append(self._graph.keep(result))
        for item in items:
            result.append(self.value(item))
        return result

    def tagged(self, tag: str, payload: Tree) -> Any:
        """Return the value of a tagged tree."""
        if tag == "o":
            raise CodecError("an opaque value")
        if tag in ("m", "n"):
            return self._graph.find(tag, payload)
        if tag == "d" or tag == "s":
            return self.later({} if tag == "d" else set(), payload)
        if tag == "x":
            return standard.decode(payload, self)
        if tag in TAGS:
            return self._graph.side.resolve(tag, payload, self)
        return super().tagged(tag, payload)

    def later(self, container: Any, items: list[Tree]) -> Any:
        """Register an empty container and remember what goes into it."""
        self.kept.append(self._graph.keep(container))
        self._late.append((container, [self.value(item) for item in items]))
        return container

    def fill(self) -> None:
        """Fill what `later` postponed."""
        for container, items in self._late:
            standard.refill(container, items)


def state_of(instance: Any) -> list[Any]:
    """Return names and values of the data attributes of an instance, flat; dunders are left out."""
    found: dict[str, Any] = {}
    for name, member in _slots(type(instance)):
        try:
            found[name] = member.__get__(instance)
        except AttributeError:
            continue
    found.update(getattr(instance, "__dict__", {}))
    flat: list[Any] = []
    for name, value in found.items():
        if type(name) is str and not is_dunder(name):
            flat += name, value
    return flat


def is_dunder(name: str) -> bool:
    """Return whether a name is Python's own, like `__class__`."""
    return name.startswith("__") and name.endswith("__")


def _slots(kind: type) -> Iterator[tuple[str, Any]]:
    for base in kind.__mro__:
        if "__slots__" in base.__dict__:
            for name, member in base.__dict__.items():
                if isinstance(member, _MEMBER) and not is_dunder(name):
                    yield name, member


class _Slotted:
    __slots__ = ("slot",)


_MEMBER = type(_Slotted.__dict__["slot"])


def _same(new: list[Any], old: list[Any]) -> bool:
    return len(new) == len(old) and all(map(operator.is_, new, old))


def _index(number: Tree) -> int:
    if type(number) is not int or number < 0:
        raise CodecError("a number that is none")
    return number
