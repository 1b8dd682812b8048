"""A transport over a container's standard streams, through the engine's attach call."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from . import autopsy
from .docker_client import is_away, remove_or_remember

if TYPE_CHECKING:
    import docker

_STREAM_HEADER = struct.Struct(">BxxxI")
_STDOUT = 1
_STDERR_KEPT = 4096


class ContainerTransport:
    """A container's standard streams, through the engine's attach call."""

    def __init__(self, client: docker.DockerClient, engine: str, name: str, stream: Any) -> None:
        self._client = client
        self._engine = engine
        self._name = name
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._owner = os.getpid()
        self._raw = bytearray()
        self._stderr = bytearray()
        self._closed = False

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send all of `data`."""
        self._socket.settimeout(timeout_s)
        self._socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Return the next bytes of its standard output; none at the end of the stream."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            data = self._cut()
            if data:
                return data
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            more = self._socket.recv(1 << 18)
            if not more:
                return b""
            self._raw += more

    def _cut(self) -> bytes:
        """Take the whole packets out of what came, and return those of standard output."""
        out = bytearray()
        while len(self._raw) >= _STREAM_HEADER.size:
            stream, size = _STREAM_HEADER.unpack_from(self._raw)
            end = _STREAM_HEADER.size + size
            if len(self._raw) < end:
                break
            packet = self._raw[_STREAM_HEADER.size : end]
            del self._raw[:end]
            if stream == _STDOUT:
                out += packet
            else:
                self._stderr += packet
                del self._stderr[:-_STDERR_KEPT]
        return bytes(out)

    def hung_up(self) -> bool:
        """Return whether anything came unasked."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        return bool(self._raw) or bool(poll.poll(0))

    def lost_from_outside(self) -> bool:
        """Return whether the engine knows nothing that speaks against the program."""
        return is_away(self._engine) or autopsy.lost_from_outside(self._client, self._name)

    def diagnosis(self) -> str:
        """Return the last of what was said on standard error."""
        return self._stderr.decode("utf-8", "replace").strip()

    def abort(self) -> None:
        """Hang up, which ends the container."""
        # A forked copy shares the connection: it may only close its own end.
        if os.getpid() == self._owner:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Remove the container."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() == self._owner:
            remove_or_remember(self._client, self._engine, self._name)
        hang_up(self._stream)
        self._client.close()


def hang_up(stream: Any) -> None:
    """Close an attached stream: the SDK's response, its reader and the socket in it."""
    # In this order: what is read through must not find what it reads from closed (ValueError).
    for end in (getattr(stream, "_response", None), stream, getattr(stream, "_sock", None)):
        with contextlib.suppress(OSError, ValueError):
            if end is not None:
                end.close()
