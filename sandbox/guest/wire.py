"""The framing between host and supervisor, used on both sides.

A frame is a length, a kind and a payload. Payloads have fixed layouts, so that reading what a
hostile place might send takes no parser.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct(">IB")

HELLO = 1  # guest: ready; its Python version
LOAD = 2  # host: the program, and its limits, that the runs after this are about; not answered
RUN = 3  # host: run it on this input to its end
OPEN = 4  # host: run it with a channel
DATA = 5  # both: bytes of the channel
CLOSED = 6  # guest: the program closed its channel
FINISH = 7  # host: end the session
RESULT = 8  # guest: the facts about a run

MOST_WALLS = 3
"""How many times its wall-clock limit a run may take that waits for a busy processor."""

KILLED_EXIT = 79
"""Exit status of a guest that has lost a process of its own by no doing of a program."""

MAX_REQUEST = 256 << 20
"""Most bytes of one frame from the host."""

_ORDER = struct.Struct(">IddQQIQQ")
_FACTS = struct.Struct(">cIddI?????I")  # the last is the length of standard output


class Order(NamedTuple):
    """The limits of a run in the guest's terms: seconds, bytes, counts."""

    kernel_cpu_s: int
    cpu_s: float
    wall_s: float
    memory: int
    file_size: int
    processes: int
    output_bytes: int
    stderr_bytes: int


class Facts(NamedTuple):
    """What the guest knows about a run."""

    stage: bytes
    """`-` not confined, `S` confined, `C` does not compile, `R` reached its first line."""
    status: int
    """As `os.wait4` returns it."""
    cpu_s: float
    wall_s: float
    max_rss_kb: int
    overflow: bool
    timed_out: bool
    finished: bool
    oom: bool
    """Whether the memory controller has killed, as far as the guest can tell."""
    clean: bool


class FrameError(Exception):
    """The peer broke the framing."""


def pack(kind: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEADER.pack(len(payload), kind) + payload


def pack_load(order: Order, source: bytes) -> bytes:
    """Return a frame with limits and a program."""
    return pack(LOAD, _ORDER.pack(*order) + source)


def unpack_load(payload: bytes) -> tuple[Order, bytes]:
    """Undo `pack_load`."""
    return Order(*_ORDER.unpack_from(payload)), payload[_ORDER.size :]


def pack_result(facts: Facts, stdout: bytes, stderr: bytes) -> bytes:
    """Return a frame with all that is known about a run."""
    return pack(RESULT, b"".join((_FACTS.pack(*facts, len(stdout)), stdout, stderr)))


def unpack_result(payload: bytes) -> tuple[Facts, bytes, bytes]:
    """Undo `pack_result`; return facts, standard output and standard error.

    Raises:
        FrameError: the payload is not what `pack_result` makes.
    """
    if len(payload) < _FACTS.size:
        raise FrameError(f"a result of {len(payload)} bytes; it has at least {_FACTS.size}")
    *fields, size = _FACTS.unpack_from(payload)
    facts = Facts(*fields)
    middle = _FACTS.size + size
    if facts.stage not in (b"-", b"S", b"C", b"R") or middle > len(payload):
        raise FrameError("a malformed result")
    return facts, payload[_FACTS.size : middle], payload[middle:]


class Decoder:
    """Cuts a byte stream into frames."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Longest payload that is let in, in bytes."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes that came in."""
        self._buffer += data

    def next(self) -> tuple[int, bytes] | None:
        """Return the next whole frame as (kind, payload), or None if there is none yet.

        Raises:
            FrameError: the next frame is longer than the limit.
        """
        if len(self._buffer) < HEADER.size:
            return None
        size, kind = HEADER.unpack_from(self._buffer)
        if size > self.limit:
            raise FrameError(f"a frame of {size} bytes; at most {self.limit} are let in")
        end = HEADER.size + size
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[HEADER.size : end])
        del self._buffer[:end]
        return kind, payload
