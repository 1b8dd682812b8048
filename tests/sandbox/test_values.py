"""Comparing values on the host: Python's equality as the oracle, and what hostile trees cost."""

from __future__ import annotations

import itertools
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import ValueChecker
from sandbox.codec import MAX_DEPTH, Tree, check
from sandbox.values import explain, show, tree_of

EXACT = ValueChecker(float_abs=None, float_rel=None)
CLOSE = ValueChecker()

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300, math.inf, 10**400])
    | st.text(max_size=2)
    | st.binary(max_size=2)
    | st.complex_numbers(allow_nan=False, max_magnitude=3)
)
hashable = st.recursive(
    scalars,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
    ),
    max_leaves=8,
)


def equal(got: Any, expected: Any, checker: ValueChecker = CLOSE) -> bool:
    return explain(tree_of(got), tree_of(expected), checker) is None


def sequences_alike(value: Any) -> Any:
    """Make lists tuples, so that Python itself takes them for equal."""
    if isinstance(value, (list, tuple)):
        return tuple(map(sequences_alike, value))
    if isinstance(value, dict):
        return {sequences_alike(k): sequences_alike(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return frozenset(map(sequences_alike, value))
    return value


@given(values, values)
def test_values_are_equal_as_python_finds_them_equal(left: Any, right: Any) -> None:
    assert equal(left, right, EXACT) is (sequences_alike(left) == sequences_alike(right))
    assert equal(left, left, EXACT)


@given(st.lists(st.lists(st.integers(0, 2), max_size=2), max_size=4), st.randoms())
def test_order_counts_only_where_it_should(items: list[list[int]], random: Any) -> None:
    other = [list(item) for item in items]
    random.shuffle(other)
    for item in other:
        random.shuffle(item)
    outer = any(list(order) == items for order in itertools.permutations(other))
    assert equal(other, items, ValueChecker(order="outer")) is outer
    assert equal(other, items, ValueChecker(order="any"))
    assert equal(other, items, CLOSE) is (other == items)
    assert not equal([*other, []], items, ValueChecker(order="any"))


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (0.1 + 0.2, 0.3),
        ([1, {"a": (0.30000004,)}], [1, {"a": [0.3]}]),
        (1e9 + 1, 1e9),
        (3, 3.0000001),
        (math.nan, math.nan),
        (complex(0, math.nan), complex(0, math.nan)),
        ({0.1 + 0.2, 5}, {0.3, 5}),
        (1 + 1e-9j, 1 + 2e-9j),
        (2**70, float(2**70)),
        (True, 1),
        ("\ud800", "\ud800"),
    ],
)
def test_close_floats_are_equal_at_any_depth(got: Any, expected: Any) -> None:
    assert equal(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (2.9999999999, 3),
        (1e17, 10**17 + 1),
        (0.31, 0.3),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, 1e308),
        (1e308, math.inf),
        (-math.inf, math.inf),
        (10**400, 1e308),
        ("0.3", 0.3),
        ([1, 2], {1, 2}),
        ([], None),
        ({}, set()),
        (b"a", "a"),
        ({1: 2}, {"1": 2}),
        ("\ud800\udc00", "\U00010000"),
        (range(3), [0, 1, 2]),
        (iter([1]), [1]),
    ],
)
def test_what_is_not_close_differs(got: Any, expected: Any) -> None:
    assert not equal(got, expected)


def test_iterators_and_ranges_stand_for_lists_if_asked() -> None:
    loose = ValueChecker(iterables=True)
    assert equal(iter([1, 2]), [1, 2], loose)
    assert equal(range(3), [0, 1, 2], loose)
    assert equal(range(0, 5, 2), range(0, 6, 2), EXACT)
    assert equal(range(9, 9), range(0), EXACT)
    assert not equal(range(10**18), [0], loose)


def test_differences_are_placed_and_do_not_quote_the_expected_value() -> None:
    for got, expected, text in (
        ([1, [2, 3]], [1, [2, 4]], "at [1][1]: the value differs"),
        ({"a": {"b": "no"}}, {"a": {"b": "yes"}}, "at ['a']['b']: the value differs"),
        ([1], [1, 2], "expected 2 items, got 1"),
        (None, [1], "expected a list, got None"),
        ([[1], (2,)], [[1], "x"], "at [1]: expected a str, got a list"),
        ({"a": 1}, {"b": 1}, "the keys differ"),
        ({1}, {2}, "the items differ"),
    ):
        assert explain(tree_of(got), tree_of(expected), CLOSE) == text


@pytest.mark.parametrize(
    "tree",
    [
        ("o", ["int", True]),
        ("s", [1, 1, 1]),
        ("u", "\xff"),
        ("r", [0, 5, 0]),
        ("d", [1, 2, 1, 42]),
        ("h", "a tag of the future"),
    ],
)
def test_forged_trees_equal_nothing_that_they_are_not(tree: Tree) -> None:
    for expected in (42, None, [1, 1, 1], "\xff", {1: 2}, [], range(0)):
        assert explain(tree, tree_of(expected), ValueChecker(iterables=True)) is not None


def test_the_last_of_equal_keys_counts_as_in_python() -> None:
    assert explain(("d", [1, 2, 1.0, 42]), tree_of({1: 42}), CLOSE) is None
    assert explain(("s", [1, True, 1.0]), tree_of({1}), CLOSE) is None


def test_hostile_trees_are_compared_in_bearable_time() -> None:
    hashes_collide = [n * (2**61 - 1) for n in range(100_000)]
    deep: Tree = []
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    prefix = "x" * 2000
    hostile: list[Tree] = [
        ("s", hashes_collide),
        ("d", [x for n in hashes_collide for x in (n, n)]),
        deep,
        [prefix + str(n) for n in range(10_000)],
        ("i", "f" * 1_000_000),
        [[]] * 100_000,
    ]
    start = time.process_time()
    for tree in hostile:
        check(tree)
        assert explain(tree, tree_of([1]), ValueChecker(order="any")) is not None
        assert len(show(tree)) <= 2000
    # Anything quadratic takes minutes.
    assert time.process_time() - start < 20


@given(values)
def test_values_are_shown_as_python_would(value: Any) -> None:
    text = show(tree_of(value), limit=10**6)
    if "bits" not in text:
        again = eval(text, {"inf": math.inf, "frozenset": frozenset, "set": set})
        assert sequences_alike(again) == sequences_alike(value)


def test_long_values_are_shown_in_part() -> None:
    assert show(tree_of(list(range(10**5))), limit=12) == "[0, 1, 2,..."
    assert show(tree_of("x" * 100), limit=10) == "'xxxxxx..."
    assert show(tree_of((1,))) == "(1,)"
    assert show(tree_of({1: [None, True]})) == "{1: [None, True]}"
    assert show(("o", ["Thing", True])) == "<Thing object>"
    assert show(tree_of(iter([1]))) == "<iterator over [1]>"
    assert json.loads(show(tree_of([1, 2.5]))) == [1, 2.5]
