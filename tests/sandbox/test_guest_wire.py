"""The framing between host and guest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.guest import wire


@given(st.lists(st.tuples(st.integers(1, 8), st.binary(max_size=50)), max_size=5), st.data())
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


FACTS = st.builds(
    wire.Facts,
    stage=st.sampled_from([b"-", b"S", b"C", b"R"]),
    status=st.integers(0, 0xFFFF),
    cpu_s=st.floats(0, 1e6),
    wall_s=st.floats(0, 1e6),
    max_rss_kb=st.integers(0, 1 << 31),
    overflow=st.booleans(),
    timed_out=st.booleans(),
    finished=st.booleans(),
    oom=st.booleans(),
    clean=st.booleans(),
)


@given(FACTS, st.binary(max_size=40), st.binary(max_size=40))
def test_a_result_comes_back_as_it_was(facts: wire.Facts, stdout: bytes, stderr: bytes) -> None:
    frame = wire.pack_result(facts, stdout, stderr)
    assert wire.unpack_result(frame[wire.HEADER.size :]) == (facts, stdout, stderr)


@given(st.binary(max_size=60))
def test_a_program_comes_back_with_its_limits(source: bytes) -> None:
    order = wire.Order(3, 1.5, 15.0, 512 << 20, 32 << 20, 16, 1 << 20, 4096)
    frame = wire.pack_load(order, source)
    assert wire.unpack_load(frame[wire.HEADER.size :]) == (order, source)


@given(st.binary(max_size=120))
def test_any_other_payload_is_a_frame_error(payload: bytes) -> None:
    try:
        facts, stdout, stderr = wire.unpack_result(payload)
    except wire.FrameError:
        return
    assert facts.stage in (b"-", b"S", b"C", b"R")
    assert payload.endswith(stdout + stderr)


def test_a_frame_beyond_the_limit_is_refused_before_it_arrives() -> None:
    decoder = wire.Decoder(10)
    decoder.feed(wire.HEADER.pack(11, 1))
    with pytest.raises(wire.FrameError, match="at most 10"):
        decoder.next()
