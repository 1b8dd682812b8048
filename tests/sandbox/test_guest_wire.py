"""The framing between host and guest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.guest import wire


@given(st.lists(st.tuples(st.integers(1, 7), st.binary(max_size=50)), max_size=5), st.data())
def test_frames_survive_any_cutting_of_the_stream(
    frames: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(wire.pack(kind, payload) for kind, payload in frames)
    decoder, seen = wire.Decoder(100), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        decoder.feed(stream[:size])
        stream = stream[size:]
        while (frame := decoder.next()) is not None:
            seen.append(frame)
    assert seen == frames


@given(st.dictionaries(st.text(), st.integers()), st.lists(st.binary(max_size=20)))
def test_parts_come_back_as_they_were(meta: dict[str, int], parts: list[bytes]) -> None:
    meta.pop("sizes", None)
    frame = wire.pack_parts(wire.RESULT, meta, *parts)
    assert wire.unpack_parts(frame[wire.HEADER.size :]) == (meta, parts)


@given(st.binary(max_size=60))
def test_any_other_payload_is_a_frame_error(payload: bytes) -> None:
    try:
        meta, parts = wire.unpack_parts(payload)
    except wire.FrameError:
        return
    assert isinstance(meta, dict)
    assert all(isinstance(part, bytes) for part in parts)


@pytest.mark.parametrize("sizes", [[-1], [99], ["1"], None, 3, [0.5]])
def test_sizes_that_do_not_fit_are_a_frame_error(sizes: object) -> None:
    head = json.dumps({"sizes": sizes}).encode()
    with pytest.raises(wire.FrameError):
        wire.unpack_parts(len(head).to_bytes(4, "big") + head + b"abc")


def test_a_frame_beyond_the_limit_is_refused_before_it_arrives() -> None:
    decoder = wire.Decoder(10)
    decoder.feed(wire.HEADER.pack(11, 1))
    with pytest.raises(wire.FrameError, match="at most 10"):
        decoder.next()
