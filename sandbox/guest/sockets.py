"""Unix sockets that pass descriptors.

On the C module: the standard library's layer over it would fill a megabyte that every fork copies.
"""

from __future__ import annotations

import struct
from _socket import (
    AF_UNIX,
    CMSG_LEN,
    MSG_DONTWAIT,
    SCM_RIGHTS,
    SHUT_WR,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections.abc import Sequence

__all__ = ["MSG_DONTWAIT", "SHUT_WR", "message_pair", "receive", "send", "socket", "stream_pair"]


def message_pair() -> tuple[socket, socket]:
    """Return two connected ends that keep messages apart."""
    return socketpair(AF_UNIX, SOCK_SEQPACKET)


def stream_pair() -> tuple[socket, socket]:
    """Return two connected ends of a byte stream."""
    return socketpair(AF_UNIX, SOCK_STREAM)


def send(end: socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Send a message with descriptors."""
    rights = struct.pack(f"{len(descriptors)}i", *descriptors)
    end.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, rights)])


def receive(end: socket, size: int, most: int) -> tuple[bytes, tuple[int, ...]]:
    """Wait for a message of up to `size` bytes and `most` descriptors; empty: the end is gone."""
    message, ancillary, _, _ = end.recvmsg(size, CMSG_LEN(4 * most))
    rights = ancillary[0][2] if ancillary else b""
    return message, struct.unpack(f"{len(rights) // 4}i", rights)
