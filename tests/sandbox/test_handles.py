"""Assert bodies that pass objects and functions, or test classes: what works, and what must not."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import pathlib
import types
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import peers, relay
from sandbox.base import UnsupportedCase
from sandbox.candidate_peer import Candidate
from sandbox.drivers import AssertOutcome, candidate_source, judge
from sandbox.graph import Unpacker
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.types import AssertCase, Limits, Program, Status
from sandbox.value_methods import VALUE_METHODS

Judge = Callable[..., AssertOutcome]


def judge_with(programs: WorkerPool, tests: WorkerPool) -> Judge:
    def run(
        program: str,
        body: str,
        *,
        entry_point: str = "f",
        helpers: str = "",
        limits: Limits | None = None,
    ) -> AssertOutcome:
        case = AssertCase(name="case", body=body, entry_point=entry_point, helpers=helpers)
        limits = limits or Limits(cpu_s=3, wall_s=20)
        return judge(Program(program), case, limits, programs=programs, drivers=tests)

    return run


@pytest.fixture(scope="module")
def local() -> Iterator[Judge]:
    with WorkerPool(LocalBackend(), size=1) as programs, WorkerPool(LocalBackend()) as tests:
        yield judge_with(programs, tests)


@pytest.fixture(scope="module")
def isolated(pool: WorkerPool) -> Iterator[Judge]:
    with WorkerPool(pool.backend, size=1) as tests:
        yield judge_with(pool, tests)


def accepted(outcome: AssertOutcome) -> bool:
    assert outcome.status in (Status.ACCEPTED, Status.WRONG_ANSWER), outcome
    return outcome.status is Status.ACCEPTED


# Objects of the test as arguments

NODE = """
class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next
    def walk(self):
        node = self
        while node:
            yield node.value
            node = node.next
"""


def test_a_linked_list_is_reversed_in_place_and_comes_back_as_the_tests_own_nodes(
    local: Judge,
) -> None:
    program = """
def f(node):
    last = None
    while node:
        node.next, last, node = last, node, node.next
    return last
"""
    body = (
        NODE + "a = Node(1)\nb = Node(2, a)\nassert f(b) is a and a.next is b and b.next is None\n"
    )
    body += "assert list(a.walk()) == [1, 2]\nassert f(None) is None"
    assert accepted(local(program, body))
    assert not accepted(local("def f(node): return node", body))


def test_a_list_longer_than_any_nesting_travels(local: Judge) -> None:
    program = "def f(node):\n    n = 0\n    while node: node, n = node.next, n + 1\n    return n"
    body = NODE + "node = None\nfor i in range(5000): node = Node(i, node)\nassert f(node) == 5000"
    assert accepted(local(program, body))


def test_cycles_and_shared_references_survive(local: Judge) -> None:
    program = """
def f(graph, start, rows):
    rows[0].append(1)
    start.seen = True
    return graph[0].links[0].links[0] is start and start in graph and graph.index(start) == 0
"""
    body = """
class Vertex:
    def __init__(self): self.links = []
a, b = Vertex(), Vertex()
a.links.append(b); b.links.append(a)
row = []
row.append(row)
rows = [[]] * 3
assert f([a, b], a, rows) is True
assert rows == [[1], [1], [1]] and a.seen and not hasattr(b, 'seen')
assert f([a, b], a, [row]) and row[0] is row and row[1] == 1
"""
    assert accepted(local(program, body))


def test_nodes_that_the_program_makes_come_by_value_as_those_of_the_helpers(local: Judge) -> None:
    helpers = NODE + "    def __eq__(self, other): return list(self.walk()) == list(other.walk())\n"
    program = """
def f(values):
    head = None
    for value in reversed(values):
        head = Node(value, head)
    return head
"""
    body = "assert f([1, 2]) == Node(1, Node(2))\nassert list(f('ab').walk()) == ['a', 'b']\n"
    body += "assert type(f([1])) is Node"
    assert accepted(local(program, body, helpers=helpers))
    own = NODE.replace("def walk", "def stroll") + program
    assert accepted(local(own, body, helpers=helpers))
    assert not accepted(local(program.replace("reversed", "list"), body, helpers=helpers))


def test_trees_change_on_both_sides_between_calls(local: Judge) -> None:
    program = """
class Registry:
    def __init__(self): self.known = []
    def add(self, tree):
        self.known.append(tree)
        tree.parent = self.known[0]
    def last(self): return self.known[-1]
    def total(self): return sum(tree.weight for tree in self.known)
"""
    body = """
from solution import Registry
class Tree:
    def __init__(self, weight): self.weight, self.parent = weight, None
registry, first, second = Registry(), Tree(1), Tree(2)
registry.add(first); registry.add(second)
assert second.parent is first is first.parent and registry.last() is second
second.weight = 5
assert registry.last() is second and registry.total() == 6
registry.known[0].weight = 7
assert registry.total() == 12 and first.weight == 7
"""
    assert accepted(local(program, body, entry_point="Registry"))


def test_methods_dataclasses_enums_and_named_tuples_work_in_the_program(local: Judge) -> None:
    helpers = """
import enum, math
from collections import namedtuple
from dataclasses import dataclass, field
SCALE = 2
Pair = namedtuple('Pair', 'left right')
class Color(enum.Enum):
    RED = 1
    BLUE = 2
@dataclass(frozen=True, order=True)
class Point:
    x: float
    y: float = 0
    tags: tuple = field(default=(), compare=False)
    def norm(self):
        return math.hypot(self.x, self.y) * SCALE
"""
    program = """
def f(points, color, pair):
    assert isinstance(color, Color) and color is Color.RED and pair.left == 1
    best = max(points)
    return best, best.norm(), Color.BLUE, Pair(pair.right, pair.left), {Point(1, 2): color}
"""
    body = """
best, norm, color, pair, table = f([Point(3, 4), Point(0)], Color.RED, Pair(1, 2))
assert best == Point(3, 4) and norm == 10 and color is Color.BLUE
assert pair == (2, 1) and pair.left == 2 and type(pair) is Pair and table[Point(1, 2)] is Color.RED
"""
    assert accepted(local(program, body, helpers=helpers))


def test_a_class_that_is_local_to_a_test_function_travels(local: Judge) -> None:
    body = "def test_it():\n    class Box:\n        def get(self): return self.value\n"
    body += "    box = Box()\n    box.value = 3\n    assert f(box) == 3\n"
    assert accepted(local("def f(box): return box.get()", body))
    assert not accepted(local("def f(box): return box.value + 1", body))


def test_values_of_the_standard_library_travel_both_ways(local: Judge) -> None:
    body = """
import datetime, decimal, fractions
from collections import Counter, OrderedDict, defaultdict, deque
values = [decimal.Decimal('1.10'), fractions.Fraction(1, 3), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6, datetime.timezone.utc), datetime.timedelta(1, 2, 3),
    datetime.time(1, 2), Counter('aab'), OrderedDict(b=1, a=2), deque([1, 2], maxlen=2),
    bytearray(b'xy'), int, ValueError, ..., {'a': 1}.keys()]
got = f(values)
assert got is values
copies = f(tuple(values))
for mine, other in zip(values[:-1], copies):
    assert type(mine) is type(other) and mine == other
table = defaultdict(list)
assert f(table)['new'] == [] and table == {'new': []}
queue = deque([1])
f(queue).append(2)
assert list(queue) == [1, 2]
"""
    assert accepted(local("def f(x): return x", body))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("class A:\n    def m(self):\n        assert f(2) == 4\nassert f(A())", "assertion"),
        ("class A:\n    def m(self): return f(2) == 4\nassert f(A())", "under test"),
        ("A = type('A', (), {})\nassert f(A())", "not in the test"),
        (
            "def test_a():\n    k = 42\n    class A:\n        def m(self): return k\n    f(A())",
            "variables",
        ),
        ("import threading\nassert f(threading.Lock())", "lock"),
        ("import math\nassert f(math)", "module"),
        ("from collections import defaultdict\nassert f(defaultdict(lambda: 5))", "factory"),
        ("async def g(): return f(1)\nassert f(1)", "asynchronous"),
        ("def test_x(tmp_path): assert f(1)", "fixtures of pytest: tmp_path"),
        ("class TestX:\n    def test_x(self, box): assert f(1)", "fixtures of pytest: box"),
        ("import pytest\n@pytest.fixture\ndef box(): return f(1)", "`fixture` of pytest"),
        ("from pytest import importorskip\nassert f(1)", "`importorskip` of pytest"),
        ("class Mine(f): pass\nassert f(1)", "derives"),
    ],
)
def test_what_cannot_be_carried_is_unsupported_and_says_why(
    local: Judge, body: str, match: str
) -> None:
    with pytest.raises(UnsupportedCase, match=match):
        local("class f:\n    def __init__(self, x): pass", body)


def test_the_program_sees_no_class_that_it_is_not_handed() -> None:
    body = "class Expected:\n    values = [41, 42]\nassert f(1) == Expected.values"
    case = AssertCase(name="case", body=body, entry_point="f")
    source = candidate_source(Program("def f(x): return Expected.values"), case)
    assert b"42" not in source.partition(b"module.serve")[2]


def test_attributes_that_hide_methods_of_the_test_are_not_taken_over(local: Judge) -> None:
    program = """
class Node: pass
def f(node):
    node.check = lambda: True
    node.__class__ = Node
    node.__dict__['__eq__'] = lambda other: True
    node.other = 5
"""
    body = """
class Node:
    value = 1
    def check(self): return self.value == 2
    @property
    def twice(self): return 2 * self.value
node = Node()
f(node)
assert node.other == 5
assert node.check()
"""
    outcome = local(program, body)
    assert outcome.status is Status.WRONG_ANSWER
    assert outcome.message.startswith("assert node.check()")


# Functions of the test as arguments


def test_functions_methods_and_built_ins_are_called_back(local: Judge) -> None:
    body = """
import functools, math, operator
class Scale:
    def __init__(self, by): self.by = by
    def times(self, x): return self.by * x
assert f(lambda x: x + 1, [1, 2]) == [2, 3]
assert f(Scale(3).times, [1, 2]) == [3, 6]
assert f(functools.partial(operator.sub, 10), [1]) == [9]
assert f(len, ['abc']) == [3] and f(str, [1]) == ['1'] and f(math.sqrt, [4.0]) == [2.0]
assert f(str.upper, ['a']) == ['A'] and f('-'.join, [['a', 'b']]) == ['a-b']
calls = []
f(calls.append, 'xy')
assert calls == ['x', 'y']
def grow(items): items.append(1)
assert f(grow, [[], [5]]) == [None, None]
"""
    assert accepted(local("def f(g, xs): return [g(x) for x in xs]", body))
    assert not accepted(local("def f(g, xs): return [g(g(x)) for x in xs]", body))


def test_callables_of_the_test_have_their_names_and_parameters(local: Judge) -> None:
    program = """
import functools, inspect
def f(g):
    @functools.wraps(g)
    def wrapper(*args, **kwargs): return g(*args, **kwargs)
    return wrapper.__name__, str(inspect.signature(g)).count(','), g.__code__.co_argcount
def call(g, *args, **kwargs): return g(*args, **kwargs)
"""
    body = """
from solution import call, f
def add(a, b=2, *c, d, e=5, **k): return a, b, c, d, e, k
def few(a, /, b, c=3): return a, b, c
class Box:
    def put(self, x, y=1): return x, y
assert f(add) == ('add', 5, 2) and f(few) == ('few', 3, 3) and f(Box().put) == ('put', 1, 2)
assert call(add, 1, d=4) == (1, 2, (), 4, 5, {})
assert call(add, 1, 2, 3, d=4, e=6, z=7) == (1, 2, (3,), 4, 6, {'z': 7})
assert call(few, 1, b=2) == (1, 2, 3) and call(Box().put, 1) == (1, 1)
def sparse(a=1, b=2, c=3): return a, b, c
assert call(sparse, c=5) == (1, 2, 5) and call(sparse, 7, c=5) == (7, 2, 5)
try:
    call(few)
except TypeError:
    pass
else:
    assert False
"""
    assert accepted(local(program, body))


def test_callbacks_nest_and_what_they_get_keeps_its_identity(local: Judge) -> None:
    program = """
def memo(function):
    cache = {}
    def cached(*args):
        if args not in cache:
            cache[args] = function(*args)
        return cache[args]
    cached.cache = cache
    return cached
"""
    body = """
calls = 0
@memo
def fib(n):
    global calls
    calls += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)
assert fib(60) == 1548008755920 and calls == 61
assert fib.cache[(10,)] == 55
assert memo(fib) is not fib
"""
    assert accepted(local(program, body, entry_point="memo"))
    shared = "def f(g):\n    items = [1]\n    g(items)\n    return items"
    assert accepted(local(shared, "assert f(lambda items: items.append(2)) == [1, 2]"))


def test_exceptions_pass_through_calls_both_ways(local: Judge) -> None:
    program = """
def f(g, x):
    try:
        return g(x)
    except ValueError as error:
        return type(error).__name__ + str(error)
"""
    body = """
class Mine(ValueError): pass
class Other(Exception):
    def __init__(self, code): self.code = code
other = Other(3)
def fail(x): raise x
assert f(fail, ValueError('plain')) == 'ValueErrorplain'
assert f(fail, Mine('text')) == 'Minetext'
try:
    f(fail, other)
except Other as error:
    assert error is other
else:
    assert False
"""
    assert accepted(local(program, body))


def test_nesting_without_end_is_a_recursion_error_for_the_program(local: Judge) -> None:
    program = "def f(g):\n    try: return g()\n    except RecursionError: return 'deep'"
    assert accepted(local(program, "def g(): return f(g)\nassert f(g) == 'deep'"))
    outcome = local("def f(g): return g()", "def g(): return f(g)\nassert f(g) == 1")
    assert outcome.status is Status.RUNTIME_ERROR
    assert "RecursionError" in outcome.message


def test_an_assertion_that_fails_in_a_callback_counts_whatever_the_program_does(
    local: Judge,
) -> None:
    program = "def f(g):\n    try: g(1)\n    except BaseException: pass\n    return 1"
    body = "def g(x):\n    assert x == 2\nassert f(g) == 1"
    outcome = local(program, body)
    assert outcome.status is Status.WRONG_ANSWER
    assert "assert x == 2" in outcome.message
    deliberate = "def g(x):\n    assert False, 'on purpose'\nassert f(g) == 1"
    assert accepted(local(program, deliberate))


def test_calling_back_without_end_counts_against_the_program(
    local: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "MAX_CALLBACKS", 100)
    outcome = local("def f(g):\n    while True: g()", "assert f(lambda: 1)")
    assert outcome.status is Status.RUNTIME_ERROR
    assert "100 times" in outcome.message


def test_a_callback_after_its_call_has_ended_is_the_programs_error() -> None:
    channel = peers.Channel(-1)
    candidate = Candidate(channel, types.ModuleType("solution"), "")
    late = candidate.reference("k", [0, "g", None], Unpacker(candidate.graph))
    with pytest.raises(RuntimeError, match="has ended"):
        late()


@pytest.mark.parametrize(
    "packet",
    [
        [[{"k": 7}, [], {"d": []}]],
        [[{"k": -1}, [], {"d": []}]],
        [[{"h": [0, 0]}, [], {"d": []}]],
        [[{"k": 0}, {"d": []}, []]],
        [[{"q": "os:system"}, ["true"], {"d": []}]],
        [[{"q": "builtins:eval"}, ["1"], {"d": []}]],
        [[5, [], {"d": []}]],
        [],
        [[]],
        7,
        [[], [["name", [], [], []]] * 3, [], [["Node", []]]],
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["callback", "returned"])
def test_a_forged_callback_or_answer_is_the_programs_error(
    local: Judge, kind: str, packet: object
) -> None:
    frame = peers.pack([kind, packet])
    program = f"import os\ndef f(g):\n    os.write(3, {frame!r})\n    os.read(3, 1)\n"
    outcome = local(program, "assert f(lambda: 1) == 1")
    assert outcome.status is Status.RUNTIME_ERROR


# Classes of the program


STACK = """
class EmptyError(ValueError):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code
    def __str__(self):
        return 'custom ' + self.args[0]
    def advice(self):
        return f'push before {self.code}'

class Stack:
    LIMIT = 10
    def __init__(self, items=()): self.items = list(items)
    @classmethod
    def of(cls, *items): return cls(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        if not self.items:
            raise EmptyError('empty', 3)
        return self.items.pop()
    @property
    def size(self): return len(self.items)
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, index): return self.items[index]
    def __setitem__(self, index, item): self.items[index] = item
    def __delitem__(self, index): del self.items[index]
    def __contains__(self, item): return item in self.items
    def __eq__(self, other): return isinstance(other, Stack) and self.items == other.items
    def __hash__(self): return hash(tuple(self.items))
    def __lt__(self, other): return len(self) < len(other)
    def __add__(self, other): return Stack(self.items + list(other))
    def __mul__(self, count): return Stack(self.items * count)
    def __repr__(self): return f'Stack({self.items})'
    def __enter__(self): return self
    def __exit__(self, *error): return True
"""
STACK_TEST = """
import copy
from solution import EmptyError, Stack

def test_push_and_pop():
    stack = Stack()
    stack.push(1)
    stack.push([2])
    assert stack.pop() == [2] and stack.pop() == 1
    try:
        stack.pop()
    except EmptyError as error:
        assert str(error) == 'custom empty' and error.code == 3 and isinstance(error, ValueError)
        assert error.advice() == 'push before 3' and not hasattr(error, 'nothing')
    else:
        assert False

def test_protocols():
    stack = Stack.of(1, 2, 3)
    assert isinstance(stack, Stack) and not isinstance(3, Stack) and type(stack) is Stack
    assert len(stack) == 3 and list(stack) == [1, 2, 3] and stack[0] == 1 and stack[-1] == 3
    assert 2 in stack and 5 not in stack and Stack.LIMIT == 10
    stack[0] = 9
    del stack[1]
    assert stack.items == [9, 3] and stack.size == 2
    assert str(stack) == repr(stack) == f'{stack}' == 'Stack([9, 3])'
    stack.label = 'x'
    assert stack.label == 'x' and hasattr(stack, 'push') and not hasattr(stack, 'nope')
    assert callable(stack.push) and not callable(stack)
    assert stack.push(4).push(5).size == 4

def test_comparisons():
    stack = Stack([9, 3])
    assert stack == Stack([9, 3]) and stack != Stack([1]) and stack != [9, 3]
    assert Stack([1]) < stack and {stack: 1}[Stack([9, 3])] == 1
    assert sorted([stack, Stack([1])])[0].size == 1
    assert stack + [4] == Stack([9, 3, 4]) and (stack + stack).items == [9, 3, 9, 3]
    assert (stack * 2).size == 4
    assert copy.deepcopy(stack) == stack and copy.deepcopy(stack) is not stack
    with Stack([1]) as inner:
        assert inner.size == 1
"""


def test_a_class_is_tested_through_its_objects(local: Judge) -> None:
    assert accepted(local(STACK, STACK_TEST, entry_point="Stack"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.items.pop()", "self.items.pop(0)"),
        ("return hash(tuple(self.items))", "return id(self)"),
        ("self.code = code", "self.code = 4"),
        ("return f'Stack({self.items})'", "return 'Stack()'"),
        ("return item in self.items", "return True"),
        ("class EmptyError(ValueError)", "class EmptyError(Exception)"),
        ("        return self\n    def pop", "    def pop"),
    ],
)
def test_a_class_with_a_mistake_is_not_accepted(local: Judge, old: str, new: str) -> None:
    assert old in STACK
    outcome = local(STACK.replace(old, new), STACK_TEST, entry_point="Stack")
    assert outcome.status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR)


def test_design_problems_classes_of_classes_and_enums_work(local: Judge) -> None:
    program = """
import enum
from collections import OrderedDict
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Shape:
    def area(self): raise NotImplementedError
    color = Color.RED
class Square(Shape):
    def __init__(self, side): self.side = side
    def area(self): return self.side ** 2
class Matrix(list):
    def trace(self): return sum(self[i][i] for i in range(len(self)))
class LRUCache:
    def __init__(self, capacity): self.capacity, self.data = capacity, OrderedDict()
    def get(self, key):
        if key not in self.data: return -1
        self.data.move_to_end(key)
        return self.data[key]
    def put(self, key, value):
        self.data[key] = value
        self.data.move_to_end(key)
        if len(self.data) > self.capacity: self.data.popitem(last=False)
class Trie:
    def __init__(self, *words): self.words = set(words)
    def __contains__(self, word): return word in self.words
def numbers():
    n = 0
    while True:
        yield n
        n += 1
"""
    body = """
import itertools
import solution
from solution import Color, Shape, Square
cache = LRUCache(2)
cache.put(1, 1); cache.put(2, 2)
assert cache.get(1) == 1
cache.put(3, 3)
assert cache.get(2) == -1 and cache.get(3) == 3 and list(cache.data) == [1, 3]
square = Square(3)
assert issubclass(Square, Shape) and isinstance(square, Shape) and square.area() == 9
assert square.color is Color.RED and square.color.name == 'RED' and Color(2) is Color.BLUE
assert [color.value for color in Color] == [1, 2] and len(Color) == 2 and Color['RED'] in Color
matrix = solution.Matrix([[1, 2], [3, 4]])
assert matrix.trace() == 5 and len(matrix) == 2 and matrix[0] == [1, 2] and matrix != [[1]]
assert list(itertools.islice(solution.numbers(), 300)) == list(range(300))
try:
    Shape().area()
except NotImplementedError:
    pass
trie = solution.Trie('a', 'b')
assert 'a' in trie and 'c' not in trie and trie.words == {'a', 'b'}
"""
    assert accepted(local(program, body, entry_point="LRUCache"))


def test_the_test_may_do_with_objects_that_it_made_what_it_likes(local: Judge) -> None:
    program = """
class Money:
    def __init__(self, cents): self.cents = cents
    def __sub__(self, other): return self.cents - other
    def __lt__(self, other): return self.cents < other
    def __abs__(self): return self.cents
    def itself(self): return self
    def __mul__(self, by): return Money(self.cents * by)
"""
    body = "from solution import *\nmoney = Money(500)\nassert money.cents == 500\n"
    sums = "assert money - 3 == 497 and money < 501 and abs(money * 2) == 1000"
    assert accepted(local(program, body + sums, entry_point="Money"))
    # But what a method returns may be compared with an expected value.
    with pytest.raises(UnsupportedCase, match="`__sub__`"):
        local(program, body + "assert abs(money.itself() - 400) < 1e-6", entry_point="Money")


def test_methods_named_as_those_of_values_work_on_objects_that_the_test_made(local: Judge) -> None:
    program = """
class Bag:
    def __init__(self): self.items = []
    def add(self, item):
        self.items.append(item)
        return self
    def count(self, item): return self.items.count(item)
    def clone(self):
        bag = Bag()
        bag.items = self.items
        return bag
"""
    body = """
import unittest
from solution import Bag
class Case(unittest.TestCase):
    def setUp(self):
        self.bag, self.size = Bag(), 2
    def test_it(self):
        assert self.bag.add(1) is self.bag and self.bag.add(1).count(1) == self.size
        clone = self.bag.clone()
        assert clone is not self.bag and clone.items == [1, 1]
"""
    assert accepted(local(program, body, entry_point="Bag"))
    assert not accepted(
        local(program.replace("bag = Bag()", "return self"), body, entry_point="Bag")
    )


def test_test_classes_are_run_as_pytest_and_unittest_run_them(local: Judge) -> None:
    body = """
import unittest
from solution import f
class TestF:
    def setup_method(self): self.x = 2
    def test_it(self): assert f(self.x) == 4
class Case(unittest.TestCase):
    def setUp(self): self.x = 3
    def test_it(self):
        self.assertEqual(f(self.x), 6)
        with self.assertRaises(TypeError): f(None)
"""
    assert accepted(local("def f(x): return 2 * x", body))
    assert not accepted(local("def f(x): return x + 2 if x else [][x]", body))


def test_what_bodies_use_of_pytest_is_there(local: Judge) -> None:
    program = """
class Empty(LookupError): pass
def f(x):
    if x < 0:
        raise Empty('it is empty')
    return x * 0.1
"""
    body = """
import pytest
from pytest import approx
from solution import Empty, f
@pytest.mark.parametrize('x, y', [(1, 0.1), (3, 0.3)])
@pytest.mark.parametrize('sign', [1])
def test_values(x, y, sign):
    assert f(x) == approx(sign * y) and [f(x)] == approx([y]) and {'k': f(x)} == approx({'k': y})
    assert f(x) != approx(y, abs=1e-18) or x == 1
    assert f(x) != approx(y + 0.01)
def test_raises():
    with pytest.raises(Empty, match='is empty') as info:
        f(-1)
    assert isinstance(info.value, LookupError) and info.type is Empty
    pytest.raises(TypeError, f, 'a')
"""
    assert accepted(local(program, body))
    assert not accepted(local(program.replace("0.1", "0.11"), body))
    assert not accepted(local(program.replace("raise", "return"), body))
    liar = LIAR + "class Empty(Exception): pass\ndef f(x): return Liar()"
    assert not accepted(local(liar, body))


def test_a_star_import_brings_what_the_test_uses_but_no_built_in(local: Judge) -> None:
    body = "from solution import *\nassert abs(f(1.5) - 0.5) < 1e-6 and LIMIT == 3"
    program = "LIMIT = 3\ndef abs(x): return 0\ndef f(x): return x % 1"
    assert accepted(local(program, body))
    assert not accepted(local(program.replace("x % 1", "x"), body))


def test_a_name_that_the_program_lacks_is_its_error(local: Judge) -> None:
    outcome = local("def f(x): return x", "from solution import f, g\nassert f(1) == 1")
    assert outcome.status is Status.RUNTIME_ERROR
    assert "the program defines no 'g'" in outcome.message


def test_objects_of_the_program_are_keys_and_members(local: Judge) -> None:
    program = """
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x
    def __hash__(self): return hash(self.x)
def f(points):
    return {Point(x): [x] for x in points}, {Point(1), Point(1)}
def g(function, x):
    return function({Point(x)})
"""
    body = """
from solution import Point, g
table, members = f([1, 2, 1])
assert len(table) == 2 and table[Point(2)] == [2] and len(members) == 1 and Point(1) in members
assert g(lambda points: [point.x for point in points], 3) == [3]
"""
    assert accepted(local(program, body))


def test_classes_work_on_isolated_backends(isolated: Judge) -> None:
    assert accepted(isolated(STACK, STACK_TEST, entry_point="Stack"))
    body = NODE + "a = Node(1)\nassert f(lambda node: node.next, Node(2, a)) is a"
    assert accepted(isolated("def f(g, node): return g(node)", body))


# What a program of bad faith may try with handles


FLOAT = "assert f(3.5) == 0.5\nassert abs(f(1.33) - 0.33) < 1e-6"
LIAR = """
class Liar:
    def __init__(self, *args): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    def __sub__(self, other): return 0.0
    __add__ = __rsub__ = __mul__ = __truediv__ = __pow__ = __sub__
    def __abs__(self): return 0.0
    __float__ = __round__ = __abs__
    def __len__(self): return 3
    def __bool__(self): return True
    def __hash__(self): return hash(0.5)
    def __exit__(self, *error): return True
    def __enter__(self): return self
    def __getattr__(self, name): return Liar()
    def __call__(self, *args): return Liar()
    def __getitem__(self, key): return Liar()
    def __str__(self): return '0.5'
"""
SELF = LIAR.replace("return 0.0", "return self")
LIES = {
    "equal to everything": (LIAR + "def f(x): return Liar()", FLOAT),
    "a class in place of the function": (LIAR + "f = Liar", FLOAT),
    "isclose": (LIAR + "def f(x): return Liar()", "assert math.isclose(f(1), 0.5)"),
    "in a list": (LIAR + "def f(x): return [Liar()]", "assert f(1) == [0.5]"),
    "in a dict": (LIAR + "def f(x): return {Liar(): Liar()}", "assert f(1) == {0.5: 1}"),
    "in a set": (LIAR + "def f(x): return {Liar()}", "assert f(1) == {0.5}"),
    "as a key": (LIAR + "def f(x): return Liar()", "assert {0.5: 1}[f(1)] == 1"),
    "member of the test's list": (LIAR + "def f(x): return Liar()", "assert f(1) in [0.5, 1]"),
    "NotImplemented": (LIAR + "def f(x): return Liar()", "assert f(1) == NotImplemented"),
    "another type": (
        LIAR + "class Sly(Liar):\n    __class__ = float\ndef f(x): return Sly()",
        "assert isinstance(f(1), float)",
    ),
    "a length that is none": (
        "class L:\n    def __len__(self): return -1\ndef f(x): return L()",
        "assert len(f(1)) == 3",
    ),
    "suppressing a failed assertion": (LIAR + "f = Liar", "with f(1):\n    assert f(1) == 2"),
    "suppressing an error of its value": (
        LIAR + "f = Liar",
        "with f(1) as x:\n    assert [1, 2][x.y] == 5",
    ),
    "an exception that suits the test": (
        "class Mine(AssertionError): pass\ndef f(x): raise Mine()",
        "assert f(1) == 2",
    ),
    "eq that raises": (
        "class E:\n    def __eq__(self, other): raise StopIteration\ndef f(x): return E()",
        "assert all(f(1) == f(2) for _ in 'ab')",
    ),
    "bool that raises": (
        "class E:\n    def __bool__(self): raise KeyError\ndef f(x): return E()",
        "assert f(1)",
    ),
    "returning its own argument's class": (
        "def f(x): return type(x)",
        "class P: pass\nassert f(P()) == P()",
    ),
}
UNDECIDED = {
    "holding the test's value": (
        LIAR.replace("Liar()", "1") + "def f(x): return Liar()",
        "assert 'error' in f(1)",
    ),
    "arithmetic that gives itself": (
        SELF + "def f(x): return Liar()",
        "assert abs(f(1.5) - 0.5) < 1e-6",
    ),
    "order": (LIAR + "def f(x): return Liar()", "assert 0 < f(1) < 9"),
    "no order": (LIAR + "def f(x): return Liar()", "assert not (f(1) > 5) and f(1) == 2"),
    "difference as a truth value": (SELF + "def f(x): return Liar()", "assert (f(1) - 2) or False"),
    "rounding": (SELF + "def f(x): return Liar()", "assert round(f(1) - 2, 6) == 0"),
}
LEARNER = """
seen = []
class S:
    __contains__ = lambda self, item: (seen.append(item), True)[1]
    __iter__ = lambda self: iter(seen)
def f(x): return S()
"""
# What an operator or a method returns has learned the value; it answers whatever is asked of it.
ECHO = """
seen = []
class Echo:
    days = 0
    def __iter__(self): return iter(())
    def __len__(self): return len(seen[-1]) if full else 0
    def __str__(self): return '0.0'
    def __format__(self, spec): return '0.0'
    def item(self): return 0.0
full = False
class S:
    def __sub__(self, other):
        seen.append(other)
        return Echo()
    __rsub__ = __xor__ = __sub__
    def __and__(self, other):
        global full
        full = True
        return self - other
    def __rdivmod__(self, other): return 4, 0
    def startswith(self, text): return True
    def count(self, item): return 2
    def get(self, key, default): return default
    def replace(self, old, new): return new
    def join(self, texts): return ''.join(texts)
    def strftime(self, spec): return '2020'
    def symmetric_difference(self, other): return ()
    def intersection(self, other): return other
    issuperset = isdisjoint = match = startswith
    isdigit = lambda self: True
    def __enter__(self): return self
    def __exit__(self, *error): return True
def f(x): return seen[-1] if seen else S()
"""
MIMICRY = [
    "assert len(f(1) & {1, 2, 3}) == 3",
    "assert len({1, 2} - f(1)) == 0",
    "assert list(f(1) - {1, 2}) == []",
    "for x in f(1) ^ {1, 2}: assert False",
    "from datetime import datetime\nassert (f('2020-01-05') - datetime(2020, 1, 5)).days == 0",
    "assert str(f(3) - 12.5) == '0.0'",
    "assert f'{f(3) - 12.5}' == '0.0'",
    "q, r = divmod(12, f(3))\nassert r == 0",
    "assert (f(3) - 12.5).item() == 0.0",
    "d = f(1) - 42\nassert f(1) == 42",
    "assert f('abc').startswith('cba')",
    "assert f('abc').count('c') == 2",
    "assert f(1).issuperset({1, 2, 3})",
    "assert f(1).isdisjoint({1, 2, 3})",
    "assert f(1).get('a', 7) == 7",
    "assert f('a b').replace(' ', 'ab') == 'ab'",
    "assert f(1).intersection({1, 2}) == {1, 2}",
    "assert not f(1).symmetric_difference({1, 2, 3})",
    "assert f(1).join(['1', '2']) == '12'",
    "assert f(1).strftime('%Y') == '2020'",
    "assert f('x').match('x')",
    "assert f(1).isdigit()",
    "with f(1) as c:\n    raise ValueError",
]


def test_in_is_decided_without_telling_the_program_the_value(local: Judge) -> None:
    assert not accepted(local(LEARNER, "assert 42 in f(1)"))
    assert accepted(local(LEARNER.replace("seen = []", "seen = [42]"), "assert 42 in f(1)"))


@pytest.mark.parametrize("body", MIMICRY)
def test_an_object_that_is_used_like_a_value_leaves_the_case_undecided(
    local: Judge, body: str
) -> None:
    with pytest.raises(UnsupportedCase, match="cannot be believed"):
        local(ECHO, body)


@pytest.mark.parametrize("name", UNDECIDED)
def test_lies_about_plain_values_leave_the_case_undecided(local: Judge, name: str) -> None:
    with pytest.raises(UnsupportedCase, match="cannot be believed"):
        local(*UNDECIDED[name])


@pytest.mark.parametrize(
    ("program", "body"),
    [
        ("class f:\n    def __init__(s, x): pass\n    def count(s, x): return x", "f(1).count(5)"),
        ("class S:\n    def get(x): return x\ndef f(x): return S", "f(1).get(5)"),
        ("class S:\n    def __init__(s): s.get = lambda x: x\ndef f(x): return S()", "f(1).get(5)"),
        ("class S:\n    get = classmethod(lambda c, x: x)\ndef f(x): return S()", "f(1).get(5)"),
        ("class S:\n    __contains__ = lambda s, x: True\ndef f(x): return S()", "5 in f(1)"),
    ],
)
def test_a_class_in_place_of_a_value_leaves_the_case_undecided(
    local: Judge, program: str, body: str
) -> None:
    with pytest.raises(UnsupportedCase, match="cannot be believed"):
        local(program, f"assert {body}")


def test_attributes_and_methods_with_names_of_their_own_work_on_what_a_function_returns(
    local: Judge,
) -> None:
    program = """
class Node:
    def __init__(self, values):
        self.name, self.items, self.count, self.parent = 'n', values, len(values), None
    def scaled(self, factor): return factor * sum(self.items)
def f(values): return Node(values)
def index(x): return x
"""
    body = """
import solution
node = f([1, 2])
assert node.items == [1, 2] and node.count == 2 and node.name == 'n' and node.parent is None
assert node.scaled(3) == 9 and solution.index(4) == 4 and not hasattr(node, 'append')
"""
    assert accepted(local(program, body))


def test_the_names_of_methods_of_values_are_complete() -> None:
    kinds = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal)
    for kind in (*kinds, fractions.Fraction, pathlib.Path, uuid.UUID, str, dict, set, list):
        public = {name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))}
        assert public <= VALUE_METHODS, kind


@pytest.mark.parametrize("name", LIES)
def test_lies_about_objects_are_not_accepted(local: Judge, name: str) -> None:
    program, body = LIES[name]
    outcome = local(program, body)
    assert outcome.status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR)


def test_lies_are_not_accepted_on_isolated_backends(isolated: Judge) -> None:
    for name in ("equal to everything", "a class in place of the function", "in a dict"):
        program, body = LIES[name]
        assert isolated(program, body).status is Status.WRONG_ANSWER
        assert accepted(isolated("def f(x): return x % 1.0", FLOAT))


@pytest.mark.parametrize(
    ("program", "body", "status"),
    [
        ("def f(x):\n    while True: yield x", "list(f(1))", Status.OUTPUT_LIMIT_EXCEEDED),
        (
            "class E:\n    def __iter__(self): return self\n    def __next__(self): return 1\n"
            "def f(x): return E()",
            "assert sum(f(1)) == 3",
            Status.OUTPUT_LIMIT_EXCEEDED,
        ),
        (
            "class E:\n    def __getattr__(self, name): return E()\ndef f(x): return E()",
            "node = f(1)\nwhile node is not None: node = node.next",
            Status.TIME_LIMIT_EXCEEDED,
        ),
        (
            "class E:\n    def __getitem__(self, i): return i\ndef f(x): return E()",
            "assert 5.5 in f(1)",
            Status.TIME_LIMIT_EXCEEDED,
        ),
        (
            "import os\nclass E:\n    def m(self): os._exit(0)\ndef f(x): return E()",
            "e = f(1)\ntry: e.m()\nexcept BaseException: pass\nassert True",
            Status.RUNTIME_ERROR,
        ),
        (
            "class E:\n    def __repr__(self):\n        while True: pass\ndef f(x): return E()",
            "assert f(1) == 5",
            Status.WRONG_ANSWER,
        ),
    ],
)
def test_objects_without_end_and_dead_programs_have_their_verdict(
    local: Judge, program: str, body: str, status: Status
) -> None:
    outcome = local(program, body, limits=Limits(cpu_s=1, wall_s=4))
    assert outcome.status is status


def test_handles_are_bounded_in_number(local: Judge) -> None:
    program = "class E: pass\ndef f(x): return [E() for _ in range(x)]"
    assert accepted(local(program, "assert len(f(3)) == 3"))
    outcome = local(
        program, "assert len(f(100_001)) == 100_001", limits=Limits(cpu_s=5, output_bytes=1 << 26)
    )
    assert outcome.status is Status.OUTPUT_LIMIT_EXCEEDED


@pytest.mark.data
@pytest.mark.slow
def test_quixbugs_is_judged_right_with_its_tasks_about_nodes(
    isolated: Judge, data_dir: Path
) -> None:
    verdicts = {}
    with (data_dir / "functions" / "quixbugs.jsonl").open() as file:
        for record in map(json.loads, file):
            name = record["name"]
            for key in ("solution", "buggy_program"):
                outcome = isolated(
                    record[key], record["tests"], entry_point=name, limits=Limits(cpu_s=1)
                )
                verdicts[name, key] = outcome.status is Status.ACCEPTED
    assert len(verdicts) == 40
    assert {pair: key == "solution" for pair in verdicts for key in pair[1:]} == verdicts
