"""Values on the channel: what survives, what is stripped, what a hostile encoding cannot do."""

from __future__ import annotations

import collections
import contextlib
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import codec
from sandbox.codec import (
    CodecError,
    Frames,
    Inexpressible,
    Opaque,
    TooLarge,
    check,
    decode,
    encode,
    pack,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(), max_size=8)
    | st.binary(max_size=8)
    | st.builds(range, st.integers(-5, 5), st.integers(-5, 10**30), st.integers(1, 3))
)
hashables = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashables, inner, max_size=3)
        | st.sets(hashables, max_size=3)
    ),
    max_leaves=12,
)


def transfer(value: Any, *, opaque: bool = False) -> Any:
    frames = Frames(1 << 24)
    frames.feed(pack(["value", encode(value, opaque=opaque)]))
    tree = frames.pop()[1]
    check(tree)
    return decode(tree)


def shape(value: Any) -> Any:
    """`repr` tells types, the sign of zero and NaN apart; sets are put in an order."""
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, map(shape, value)))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shape(item) for item in value]
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(item)) for key, item in value.items()]
    return type(value).__name__, repr(value)


@settings(max_examples=60)
@given(values)
def test_every_expressible_value_arrives_unchanged(value: Any) -> None:
    assert shape(transfer(value)) == shape(value)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63),
        10**10_000,
        -0.0,
        math.nan,
        math.inf,
        5e-324,
        "\ud800",
        "\ud83d\ude00",  # two surrogates that JSON would join
        "\x00é😀",
        b"\x00\xff",
        {(1, 2): frozenset({3})},
        {1: "a", True and "b": 2},
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else f"{value.bit_length()}",
)
def test_awkward_values_arrive_unchanged(value: Any) -> None:
    assert (
        shape(transfer(value)) == shape(value)
        if not isinstance(value, int)
        else (transfer(value) == value)
    )


def test_subclasses_arrive_as_their_builtin_base() -> None:
    class Yes(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def __str__(self) -> str:
            return "lie"

    class One(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    pair = collections.namedtuple("pair", "a b")
    for value, base in [
        (Yes("no"), "no"),
        (One(1), 1),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.defaultdict(list, {1: [2]}), {1: [2]}),
        (collections.OrderedDict(x=1), {"x": 1}),
        (pair(1, 2), (1, 2)),
    ]:
        arrived = transfer(value)
        assert type(arrived) is type(base)
        assert arrived == base


def test_a_lying_class_attribute_does_not_pass_for_a_builtin() -> None:
    class Liar:
        @property
        def __class__(self) -> type:
            return int

    assert isinstance(transfer(Liar(), opaque=True), Opaque)


@pytest.mark.parametrize(("value", "truth"), [(object(), True), (collections.deque(), False)])
def test_other_values_are_opaque_with_their_truth(value: Any, truth: bool) -> None:
    arrived = transfer([value], opaque=True)[0]
    assert bool(arrived) is truth
    assert arrived == arrived
    assert arrived != value
    assert type(value).__name__ in repr(arrived)


def test_a_truth_value_that_raises_counts_as_true() -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise ValueError

    assert bool(transfer(Undecided(), opaque=True)) is True


def test_other_values_are_refused_where_none_may_be_opaque() -> None:
    with pytest.raises(Inexpressible, match="function"):
        encode([lambda: 0])
    with pytest.raises(Inexpressible, match="Opaque"):
        encode(Opaque("x", True), opaque=True)


def test_iterators_are_materialised_up_to_a_cap() -> None:
    assert list(transfer(iter([1, (2,)]))) == [1, (2,)]
    assert list(transfer(x * x for x in range(3))) == [0, 1, 4]
    with pytest.raises(TooLarge):
        encode(iter(int, 1))


def test_depth_cycles_and_shared_bombs_hit_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_NODES", 10_000)
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    cycle: list[Any] = []
    cycle.append(cycle)
    bomb: list[Any] = [0]
    for _ in range(60):
        bomb = [bomb, bomb]
    for value in (deep, cycle, bomb, [0] * 10_001):
        with pytest.raises(TooLarge):
            encode(value)


def message(text: str) -> Any:
    frames = Frames(1 << 24)
    data = text.encode()
    frames.feed(len(data).to_bytes(4, "big") + data)
    return frames.pop()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "5",
        "[]",
        "not json",
        '[{"t": [], "s": []}]',
        "[" + "1" * 30 + "]",
        '["unterminated',
    ],
)
def test_messages_in_another_dialect_are_refused(text: str) -> None:
    with pytest.raises(CodecError):
        message(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1}',
        '{"t": 1}',
        '{"d": [1]}',
        '{"s": [[1]]}',
        '{"s": [{"d": []}]}',
        '{"d": [[1], 2]}',
        '{"d": [{"t": [1, [2]]}, 2]}',
        '{"i": "0x1"}',
        '{"i": "-"}',
        '{"i": " 1"}',
        '{"i": 5}',
        '{"b": "\\u1234"}',
        '{"c": [1.0]}',
        '{"c": [1, 2]}',
        '{"r": [1, 2]}',
        '{"r": [1, 2, "3"]}',
        '{"o": [1, true]}',
        '{"o": ["x", 1]}',
        '{"g": 1}',
    ],
)
def test_malformed_values_are_refused_before_they_are_built(text: str) -> None:
    with pytest.raises(CodecError):
        check(message(f"[{text}]"))


def test_a_message_longer_than_the_limit_is_refused_by_its_header() -> None:
    frames = Frames(10)
    frames.feed((11).to_bytes(4, "big"))
    with pytest.raises(TooLarge):
        frames.pop()


def test_nesting_bombs_are_refused() -> None:
    with pytest.raises(TooLarge):
        message("[" * 500_000 + "]" * 500_000)
    with pytest.raises(TooLarge):
        check(message("[" * 300 + "]" * 300))


def test_checking_colliding_keys_takes_linear_time() -> None:
    modulus = (1 << 61) - 1  # ints that are equal modulo this have equal hashes
    keys = ",".join(str(modulus * n) for n in range(4))
    big = ",".join(f'{{"i":"{modulus * n:x}"}}' for n in range(5, 100_000))
    start = time.process_time()
    check(message(f'[{{"s":[{keys},{big}]}}]'))
    assert time.process_time() - start < 5


@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63), min_size=1, max_size=3), max_size=5), st.data()
)
def test_messages_survive_any_cutting_of_the_stream(
    messages: list[list[int]], data: st.DataObject
) -> None:
    stream = b"".join(map(pack, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    frames = Frames(1000)
    received = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames.feed(stream[start:end])
        while (item := frames.pop()) is not None:
            received.append(item)
    assert received == messages


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_codec_errors(data: bytes) -> None:
    frames = Frames(50)
    frames.feed(data)
    try:
        while (item := frames.pop()) is not None:
            check(item)
    except CodecError:
        pass


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("0a-é", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(st.sampled_from("tszdgibucro"), inner).map(lambda pair: {pair[0]: pair[1]})
    ),
    max_leaves=8,
)


@given(json_trees)
def test_rebuilding_what_passes_the_check_raises_nothing_but_codec_errors(tree: Any) -> None:
    parsed = message(json.dumps([tree]))
    try:
        check(parsed)
    except CodecError:
        return
    with contextlib.suppress(CodecError):  # bytes that are no text, a range with a step of 0
        decode(parsed)
