"""The framing between host and supervisor, used on both sides.

A frame is a length, a kind and a payload. A payload that carries several byte strings is a JSON
object, whose "sizes" cut what follows it.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEADER = struct.Struct(">IB")
_META = struct.Struct(">I")

HELLO = 1  # guest: ready
RUN = 2  # host: run a program to its end
OPEN = 3  # host: run a program with a channel
DATA = 4  # both: bytes of the channel
CLOSED = 5  # guest: the program closed its channel
FINISH = 6  # host: end the session
RESULT = 7  # guest: the facts about a run

MAX_REQUEST = 256 << 20
"""Most bytes of one frame from the host."""


class FrameError(Exception):
    """The peer broke the framing."""


def pack(kind: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEADER.pack(len(payload), kind) + payload


def pack_parts(kind: int, meta: dict[str, Any], *parts: bytes) -> bytes:
    """Return a frame that carries `meta` and byte strings."""
    head = json.dumps({**meta, "sizes": [len(part) for part in parts]}).encode()
    return pack(kind, b"".join((_META.pack(len(head)), head, *parts)))


def unpack_parts(payload: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Undo `pack_parts`.

    Raises:
        FrameError: the payload is not what `pack_parts` makes.
    """
    try:
        start = _META.size + _META.unpack_from(payload)[0]
        meta = json.loads(payload[_META.size : start])
        parts = []
        for size in meta.pop("sizes"):
            if not 0 <= size <= len(payload) - start:
                raise FrameError(f"a part of {size} bytes does not fit its frame")
            parts.append(payload[start : start + size])
            start += size
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FrameError(f"malformed frame: {error!r}") from error
    if start != len(payload):
        raise FrameError(f"{len(payload) - start} bytes too many in a frame")
    return meta, parts


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
