"""The supervisor's end of the stream to the host. Its end ends this process, and with it the place.

Whenever this waits to write, it also reads, so that a host may send requests ahead.
"""

from __future__ import annotations

import os
import select
import time

from . import wire

_CHUNK = 1 << 16
_POST_S = 0.02
_MOST_POSTED = 1 << 16


class Host:
    """Frames from and to the host."""

    def __init__(self, host_in: int, host_out: int) -> None:
        self.input = host_in
        self.output = host_out
        self.outbox = bytearray()
        """What the host has not taken yet."""
        self._posted_s = 0.0
        self._requests = wire.Decoder(wire.MAX_REQUEST)
        os.set_blocking(host_out, False)

    def post(self, frame: bytes) -> None:
        """Write `frame` soon: together with the next ones while requests are waiting."""
        now_s = time.monotonic()
        if not self.outbox:
            self._posted_s = now_s
        self.outbox += frame
        if len(self.outbox) > _MOST_POSTED or now_s - self._posted_s > _POST_S:
            self.flush()

    def flush(self) -> None:
        """Write all that has not been taken yet."""
        self.say(b"")
        while self.outbox:
            readable, _, _ = select.select([self.input], [self.output], [])
            if readable:
                self.read()
            self.say(b"")

    def say(self, frame: bytes) -> None:
        """Write as much of `frame` as the host takes now; the rest stays in `outbox`."""
        self.outbox += frame
        try:
            while self.outbox:
                del self.outbox[: os.write(self.output, self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)

    def next_request(self) -> tuple[int, bytes]:
        """Wait for the next frame and return it as (kind, payload)."""
        while (frame := self._requests.next()) is None:
            self.flush()
            self.read()
        return frame

    def arrived(self) -> tuple[int, bytes] | None:
        """Return the next frame if it is there."""
        return self._requests.next()

    def read(self) -> None:
        """Take in what the host has sent, at least one byte."""
        data = os.read(self.input, _CHUNK)
        if not data:
            os._exit(0)
        self._requests.feed(data)
