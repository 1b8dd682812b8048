"""Making forks cheap: a child finds the interpreter's code in its page tables.

A fork leaves out the tables of file mappings that the process has never written to, since page
faults can fill them again. Here each child needs the same pages at once, and a fault costs more
than copying many entries. So one byte of each such mapping is written, as it is, once. What was
needed to start is taken out of the tables; what is used from then on stays.
"""

from __future__ import annotations

import ctypes

_READ, _WRITE, _EXECUTE = 1, 2, 4
_DONT_NEED = 4
_LEAST = 256 << 10


def keep_in_forks() -> None:
    """Do so for the large read-only parts of libraries, as far as the kernel allows."""
    libc = ctypes.CDLL(None)
    for start, end, before in _unchanged_mappings():
        place, size = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
        # Where a policy forbids code that can be written to, nothing has changed.
        if libc.mprotect(place, size, before | _WRITE) == 0:
            ctypes.memmove(start, start, 1)
            libc.mprotect(place, size, before)
            libc.madvise(place, size, _DONT_NEED)


def _unchanged_mappings() -> list[tuple[int, int, int]]:
    """Return (start, end, protection) of large read-only mappings that are as in their files.

    Tables that the loader has filled in and then made read-only are not: they could not be read
    again.
    """
    try:
        with open("/proc/self/smaps") as file:
            lines = file.read().splitlines()
    except OSError:  # not every kernel tells
        return []
    found = []
    for words in map(str.split, lines):
        if not words[0].endswith(":"):
            start, end = (int(address, 16) for address in words[0].split("-"))
            permissions, inode = words[1], words[4]
            wanted = inode != "0" and permissions in ("r-xp", "r--p") and end - start >= _LEAST
        elif wanted and words[:2] == ["Anonymous:", "0"]:
            execute = _EXECUTE if permissions[2] == "x" else 0
            found.append((start, end, _READ | execute))
    return found
