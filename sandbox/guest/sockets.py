"""Unix sockets that pass descriptors.

On the C module: the standard library's layer over it would fill a megabyte that every fork copies.
"""

from __future__ import annotations

import struct
from _socket import (
    AF_UNIX,
    CMSG_LEN,
    CMSG_SPACE,
    MSG_DONTWAIT,
    SCM_CREDENTIALS,
    SCM_RIGHTS,
    SHUT_WR,
    SO_PASSCRED,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections.abc import Sequence

__all__ = [
    "MSG_DONTWAIT",
    "SHUT_WR",
    "hear",
    "message_pair",
    "receive",
    "room_for",
    "send",
    "socket",
    "stream_pair",
]

_CREDENTIALS = struct.Struct("3i")  # process, user and group id


def message_pair() -> tuple[socket, socket]:
    """Return two connected ends that keep messages apart; the first can tell who has sent them."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
    return ours, theirs


def stream_pair() -> tuple[socket, socket]:
    """Return two connected ends of a byte stream."""
    return socketpair(AF_UNIX, SOCK_STREAM)


def send(end: socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Send a message, and perhaps descriptors."""
    rights = struct.pack(f"{len(descriptors)}i", *descriptors)
    end.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, rights)] if descriptors else [])


def room_for(descriptors: int) -> int:
    """Return the size of the ancillary data of so many descriptors."""
    return int(CMSG_LEN(4 * descriptors))


def receive(end: socket, size: int, most: int) -> tuple[bytes, tuple[int, ...]]:
    """Wait for a message of up to `size` bytes and `most` descriptors; empty: the end is gone."""
    message, ancillary, _, _ = end.recvmsg(size, room_for(most))
    rights = ancillary[0][2] if ancillary else b""
    return message, struct.unpack(f"{len(rights) // 4}i", rights)


def hear(end: socket, size: int, flags: int = 0) -> tuple[bytes, int]:
    """Return a message and, by word of the kernel, its sender's process id; empty at the end."""
    message, ancillary, _, _ = end.recvmsg(size, CMSG_SPACE(_CREDENTIALS.size), flags)
    for _, kind, data in ancillary:
        if kind == SCM_CREDENTIALS:
            return message, _CREDENTIALS.unpack(data)[0]
    return message, 0
