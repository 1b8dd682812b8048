"""Decoding LiveCodeBench's packed tests: base64 of zlib of a pickle of one string of JSON.

A pickle is a program, so none is ever run here: it is read opcode by opcode, and only one that does
nothing but push a single string is accepted.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib
from collections.abc import Iterator
from typing import Any

MAX_BYTES = 1 << 30
"""The largest decompressed text; a few kilobytes can unpack to any size."""

_STRINGS = frozenset(
    {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"}  # of protocols 0 to 5
)
_HARMLESS = frozenset(
    {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}  # book-keeping
)


def unpack(text: str) -> str:
    """Return the text that was packed.

    Raises:
        ValueError: `text` is packed in another way, is damaged, or holds a pickle of anything but
            one string; the message says which.
    """
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError(f"neither JSON nor base64 ({error})") from error
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"base64 of something that zlib cannot decompress ({error})") from error
    if unpacker.unconsumed_tail:
        raise ValueError(f"more than {MAX_BYTES} bytes when decompressed")
    if not unpacker.eof:
        raise ValueError("zlib data that is cut off")
    return pickled_string(data)


def pickled_string(data: bytes) -> str:
    """Return the string that a pickle holds, without running it.

    Raises:
        ValueError: it is no pickle, or does anything but hold one string.
    """
    found: list[str] = []
    for name, argument in _operations(data):
        if name in _STRINGS:
            found.append(argument)
        elif name not in _HARMLESS:
            raise ValueError(
                f"a pickle with the operation {name}, which may run code or make objects; only a "
                "single string is accepted"
            )
    if len(found) != 1:
        raise ValueError(f"a pickle of {len(found)} strings; expected exactly one")
    return found[0]


def _operations(data: bytes) -> Iterator[tuple[str, Any]]:
    try:
        for opcode, argument, _ in pickletools.genops(data):
            yield opcode.name, argument
    except (ValueError, IndexError, EOFError) as error:
        raise ValueError(f"no whole pickle ({error})") from error
