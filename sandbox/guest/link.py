"""The channel of a session: bytes between the host and a program, as fast as both take them."""

from __future__ import annotations

import contextlib
import select

from . import sockets, wire
from .host import Host

_CHUNK = 1 << 16
_BACKLOG = 64 << 20  # most bytes waiting for a program that does not read


class Link:
    """One end of a socket pair; `theirs` is the program's until it is handed over."""

    def __init__(self, host: Host, poll: select.poll) -> None:
        self.open = True
        """Whether the program may still say something."""
        self._host = host
        self._poll = poll
        self._backlog = bytearray()
        self._socket, theirs = sockets.stream_pair()
        self._socket.setblocking(False)
        self.theirs = theirs.detach()
        poll.register(self.fileno(), select.POLLIN)
        poll.register(host.output, 0)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def write(self, data: bytes) -> bool:
        """Send bytes to the program; return False where it lets too many of them wait."""
        self._backlog += data
        try:
            while self._backlog:
                del self._backlog[: self._socket.send(self._backlog)]
        except BlockingIOError:
            if len(self._backlog) > _BACKLOG:
                self._backlog.clear()
                return False
        except OSError:
            self._backlog.clear()
        self._choose_events()
        return True

    def read(self) -> bool:
        """Pass on what the program says; return whether there was anything."""
        if self._backlog:
            self.write(b"")
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._host.say(wire.pack(wire.DATA, data))
            self._choose_events()
        else:
            self._poll.unregister(self.fileno())
            self.open = False
            self._host.say(wire.pack(wire.CLOSED))
        return True

    def flush_host(self) -> None:
        """Write on what the host has not taken yet."""
        self._host.say(b"")
        self._choose_events()

    def finish(self) -> None:
        """Tell the program that nothing more will come."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(sockets.SHUT_WR)

    def close(self) -> None:
        """Pass on the last that the ended program has said."""
        while self.open and self.read():
            self._host.flush()
        self._socket.close()

    def _choose_events(self) -> None:
        """Wait for what can go on: the program is not heard while the host lags behind."""
        lagging = bool(self._host.outbox)
        self._poll.modify(self._host.output, select.POLLOUT if lagging else 0)
        if self.open:
            events = (0 if lagging else select.POLLIN) | (select.POLLOUT if self._backlog else 0)
            self._poll.modify(self.fileno(), events)
