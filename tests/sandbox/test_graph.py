"""Object graphs between two guests, by property; and what hostile packets and messages can do."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.base import UnsupportedCase
from sandbox.candidate_peer import Candidate
from sandbox.codec import CodecError, check, pack, parse
from sandbox.driver_peer import Driver
from sandbox.graph import TAGS
from sandbox.peers import Channel
from sandbox.relay import Ended, Relay
from sandbox.types import AssertCase, Limits, Status

NODE = "class Node:\n    pass"
NAMESPACE: dict[str, Any] = {"__name__": "test"}
exec(NODE, NAMESPACE)
Node = NAMESPACE["Node"]


def pair() -> tuple[Driver, Candidate]:
    driver = Driver(Channel(-1), "", {"Node": (("Node", NODE),)})
    return driver, Candidate(Channel(-1), types.ModuleType("solution"), "")


def carry(packet: Any) -> Any:
    tree = parse(pack([packet])[4:])
    check(tree, references=TAGS)
    return tree[0]


kinds_of_objects = st.sampled_from((Node, list, dict, set))
scalars = st.integers(0, 3) | st.text("ab", max_size=2)
Recipe = list[tuple[Any, list[tuple[Any, Any]]]]


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Up to eight nodes and containers that refer to each other at will, by position in a list."""
    kinds = draw(st.lists(kinds_of_objects, min_size=1, max_size=8))
    nodes = [(number,) for number, kind in enumerate(kinds) if kind is Node]
    hashable = st.integers(0, 3) | (st.sampled_from(nodes) if nodes else st.nothing())
    item = scalars | st.integers(0, len(kinds) - 1).map(lambda number: (number,))
    names = st.sampled_from("pqr")
    pairs = {
        Node: st.tuples(names, item),
        list: st.tuples(st.none(), item | st.lists(item, min_size=2, max_size=2)),
        dict: st.tuples(hashable, item),
        set: st.tuples(st.none(), hashable),
    }
    return [(kind, draw(st.lists(pairs[kind], max_size=3))) for kind in kinds]


def build(recipe: Recipe) -> list[Any]:
    """Make the objects of a recipe, where `(n,)` stands for the nth and a list for a tuple."""
    objects = [kind() for kind, _ in recipe]

    def value(item: Any) -> Any:
        if isinstance(item, list):
            return tuple(map(value, item))
        return objects[item[0]] if isinstance(item, tuple) else item

    for thing, (_, pairs) in zip(objects, recipe, strict=True):
        for key, item in pairs:
            if isinstance(thing, Node):
                setattr(thing, key, value(item))
            elif isinstance(thing, list):
                thing.append(value(item))
            elif isinstance(thing, dict):
                thing[value(key)] = value(item)
            else:
                thing.add(value(item))
    return objects


def shape(root: Any) -> list[Any]:
    """Describe a graph so that two have the same description exactly if they are isomorphic."""
    numbers: dict[int, int] = {}
    kept: list[Any] = []

    def visit(value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, (int, str)):
            return kind, value
        if isinstance(value, tuple):
            return kind, [visit(item) for item in value]
        if id(value) in numbers:
            return "seen", numbers[id(value)]
        numbers[id(value)] = len(numbers)
        kept.append(value)
        if isinstance(value, dict):
            return kind, [(visit(key), visit(item)) for key, item in value.items()]
        if isinstance(value, list):
            return kind, [visit(item) for item in value]
        if isinstance(value, set):
            plain = sorted(item for item in value if isinstance(item, int))
            marks = sorted(numbers.get(id(item), -1) for item in value if not isinstance(item, int))
            return kind, plain, marks
        return kind, [(name, visit(item)) for name, item in vars(value).items()]

    return [visit(root), len(kept)]


@settings(max_examples=150, deadline=None)
@given(recipes())
def test_a_graph_arrives_isomorphic_and_comes_back_as_itself(recipe: Recipe) -> None:
    driver, candidate = pair()
    objects = build(recipe)
    before = shape(objects)
    (arrived,) = candidate.graph.unpack(carry(driver.graph.pack([objects])))
    assert shape(arrived) == before
    (back,) = driver.graph.unpack(carry(candidate.graph.pack([arrived])), last=True)
    assert back is objects
    assert shape(objects) == before


@settings(max_examples=150, deadline=None)
@given(recipes(), st.data())
def test_changes_on_the_other_side_are_those_that_one_process_would_see(
    recipe: Recipe, data: st.DataObject
) -> None:
    """The oracle is a second graph of the same recipe, to which the same is done."""
    driver, candidate = pair()
    objects, twin = build(recipe), build(recipe)
    (arrived,) = candidate.graph.unpack(carry(driver.graph.pack([objects])))
    places = st.integers(0, len(objects) - 1)
    for target, source, fresh in data.draw(st.lists(st.tuples(places, places, st.booleans()))):
        for world in (arrived, twin):
            change(world[target], [world[source]] if fresh else world[source])
    (back,) = driver.graph.unpack(carry(candidate.graph.pack([arrived])))
    assert back is objects
    assert shape(objects) == shape(twin)


def change(target: Any, value: Any) -> None:
    if isinstance(target, list):
        target.append(value)
    elif isinstance(target, dict):
        target[len(target)] = value
    elif isinstance(target, set):
        target.add(len(target) + 10)
    elif hasattr(target, "p"):
        del target.p
    else:
        target.q = value


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["p", "Node", "builtins:int"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(st.sampled_from("tszdgibucrmnhkCDqeNEMxo"), inner).map(lambda p: {p[0]: p[1]})
    ),
    max_leaves=12,
)
states = st.lists(st.sampled_from(["p", 1, "__class__"]), max_size=2)
packets = trees | st.tuples(
    st.lists(trees, max_size=2),
    st.lists(st.tuples(st.text("N_a", max_size=3), st.lists(trees), st.just([]), st.just(["m"]))),
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 2), st.lists(trees, max_size=2))),
    st.lists(
        st.tuples(st.just("Node"), st.lists(st.sampled_from(["p", 1, "__class__"]), max_size=2))
    ),
).map(list)


class Forged(Exception):
    pass


class Cut(Driver):
    """A driver whose program has nothing to say, and whose end can be caught."""

    def request(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("the program's")

    def end(self, kind: str, text: str) -> NoReturn:
        assert kind in ("forged", "too_large"), (kind, text)
        raise Forged


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(packets)
@pytest.mark.slow
def test_no_packet_does_more_to_a_test_than_end_it_as_forged(packet: Any) -> None:
    driver = Cut(Channel(-1), "", {"Node": (("Node", NODE),)})
    mine = Node()
    mine.p = [1]
    driver.graph.pack([[mine, len]])
    try:
        tree = carry(json.loads(json.dumps(packet)))
    except CodecError:
        return
    try:
        values = driver.unpack(tree, 1)
    except Forged:
        return
    assert len(values) == 1
    assert type(mine) is Node
    assert vars(mine).keys() <= {"p"}


class Scripted:
    """A session that says what it is told to, in pieces, whatever it is sent."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self.heard: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.heard.append(data)

    def receive(self, timeout_s: float) -> bytes | None:
        return next(self._pieces, None)

    def finish(self) -> Any:
        return types.SimpleNamespace(status=None, exit_code=0, stderr=b"")


kinds = st.sampled_from(["ready", "returned", "raised", "callback", "too_large", "done", "x"])
messages = st.tuples(kinds, trees).map(list) | st.lists(trees, max_size=5) | trees
frames = messages.map(pack) | st.binary(max_size=12)


@settings(max_examples=300, deadline=None)
@given(st.lists(frames, max_size=6), st.integers(0, 40))
@pytest.mark.slow
def test_no_message_of_a_program_gets_more_than_a_verdict(said: list[bytes], cut: int) -> None:
    """The test calls until the program is silent; it never says that it passed."""
    stream = b"".join(said)
    program = Scripted([piece for piece in (stream[:cut], *said, stream[cut:]) if piece])
    call = pack(["call", "call", [[{"h": 0}]]])
    driver = Scripted([call] * 50)
    case = AssertCase(name="case", body="assert f(1)", entry_point="f")
    relay = Relay(case, Limits())
    ended = relay.load(program)
    try:
        while ended is None:
            relay.run(driver)
    except Ended as verdict:
        ended = verdict
    except UnsupportedCase:  # the script of the test is over
        assert len(driver.heard) > 0
        return
    assert ended.status in (None, *(s for s in Status if s is not Status.ACCEPTED))


def test_speaking_out_of_turn_is_forgery() -> None:
    ready = pack(["ready", [[]]])
    relay = Relay(AssertCase(name="case", body="assert f(1)", entry_point="f"), Limits())
    ended = relay.load(Scripted([ready + pack(["returned", [[1]]])]))
    assert ended is not None
    assert ended.status is Status.RUNTIME_ERROR


@pytest.mark.parametrize("entry", [5, {"k": 0}, {"D": "Node"}, {"h": [1, 1]}, {"h": [0, 0]}])
def test_an_entry_point_that_is_none_of_the_programs_is_refused(entry: Any) -> None:
    driver = Cut(Channel(-1), "", {})
    classes = [["module", [], [], []], ["number", [], ["__add__"], []]]
    try:
        _, found = driver.unpack(carry([[{"h": [0, 0]}, entry], classes]), 2)
    except Forged:
        return
    assert not driver.is_entry(found)
