"""A document that stays in its file.

When it is first asked for anything, the file is decoded once, a block at a time: this checks the
encoding and notes where each block starts, in bytes and in characters. Reading decodes the blocks
that a piece touches, and no others. Memory is one block and the notes.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting, InvalidTask
from .document import Part
from .pieces import PiecedDocument

_BLOCK: Final = 1 << 16
_MARKS: Final = (  # the longer ones first: a mark of UTF-32 starts like one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class _Index:
    """What one pass over a file has found."""

    encoding: str
    bytes: NDArray[np.int64]
    """Where each block starts, and where the last one ends."""
    characters: NDArray[np.int64]
    """Likewise."""
    stamp: tuple[int, int]


class FileDocument(PiecedDocument):
    """A text file as a document.

    Characters are those of the file, ends of lines included. A byte order mark at the front is no
    character and decides the encoding. Nothing of the file is kept open, so a document can be
    pickled and shared by threads and forks; a file that has changed since is found out.

    Args:
        path: of the file.
        encoding: of the text.
        errors: what becomes of bytes that are not in the encoding: "strict" refuses the file and
            says where they are; "replace" reads U+FFFD for them.
        parts: see `Document.parts`.

    Raises:
        InvalidSetting: no such value of `errors`. What is wrong with the file is said when it is
            first asked for anything: InvalidTask where it cannot be read or its bytes are not in
            the encoding, InvalidSetting where there is no such encoding.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoding: str = "utf-8",
        errors: Literal["strict", "replace"] = "strict",
        parts: Sequence[Part] = (),
    ) -> None:
        if errors not in ("strict", "replace"):
            raise InvalidSetting(f'errors must be "strict" or "replace", got {errors!r:.80}')
        self.path = Path(path).absolute()
        self.encoding = encoding
        self.errors = errors
        self._parts = parts

    @cached_property
    def _index(self) -> _Index:
        try:
            refuse_special(self.path)
            with self.path.open("rb") as file:
                mark, encoding = _marked(file.read(4), self.encoding)
                blocks = list(self._scan(file.fileno(), len(mark), encoding))
                return _Index(
                    encoding,
                    np.array([block[0] for block in blocks], np.int64),
                    np.array([block[1] for block in blocks], np.int64),
                    _stamp(file.fileno()),
                )
        except OSError as error:
            raise InvalidTask(
                f"cannot read the document {self.path}: {error.strerror or error}; check the path"
            ) from error

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts in order."""
        return self._parts

    @property
    def _bounds(self) -> NDArray[np.int64]:
        return self._index.characters

    def _join(self, first: int, last: int) -> str:
        """Decode the blocks from `first` up to `last`.

        Raises:
            InvalidTask: the file has changed since it was opened, or is gone.
        """
        index = self._index
        begin, end = int(index.bytes[first]), int(index.bytes[last])
        try:
            with self.path.open("rb") as file:
                raw = os.pread(file.fileno(), end - begin, begin)
                unchanged = _stamp(file.fileno()) == index.stamp
        except OSError as error:
            raise InvalidTask(
                f"cannot read the document {self.path} any more: {error.strerror or error}"
            ) from error
        if not unchanged:
            raise InvalidTask(
                f"the document {self.path} has changed since it was opened; load it again"
            )
        return raw.decode(index.encoding, self.errors)

    def _scan(self, descriptor: int, position: int, encoding: str) -> Iterator[tuple[int, int]]:
        """Yield where each block starts, in bytes and characters, and where the last one ends."""
        _check_encoding(encoding)
        decoder = codecs.getincrementaldecoder(encoding)(self.errors)
        clean = decoder.getstate()[1]
        characters = 0
        yield position, 0
        while raw := os.pread(descriptor, _BLOCK, position):
            decoder.reset()
            try:
                # A character that the block's end cuts goes into the next block.
                characters += len(decoder.decode(raw, final=len(raw) < _BLOCK))
                rest, state = decoder.getstate()
            except UnicodeDecodeError as error:
                raise _undecodable(str(self.path), encoding, error, position) from error
            if state != clean:
                raise InvalidTask(
                    f"{self.path}: text in {encoding} cannot be read from its middle; save "
                    "it as UTF-8"
                )
            position += len(raw) - len(rest)
            yield position, characters

    def __repr__(self) -> str:
        return f"FileDocument({str(self.path)!r})"


def decoded(
    data: bytes, *, encoding: str = "utf-8", errors: Literal["strict", "replace"], name: str
) -> str:
    """Return bytes as text, by the rules of a `FileDocument`.

    Args:
        data: all of the text.
        encoding: of the text, unless a byte order mark says otherwise.
        errors: see `FileDocument`.
        name: what errors call it.

    Raises:
        InvalidTask: bytes that are not in the encoding.
        InvalidSetting: no such encoding.
    """
    mark, encoding = _marked(data, encoding)
    _check_encoding(encoding)
    try:
        return data[len(mark) :].decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise _undecodable(name, encoding, error, len(mark)) from error


def refuse_special(path: Path) -> None:
    """Refuse a pipe, a terminal or another thing that cannot be read twice.

    Raises:
        InvalidTask: it is such a thing.
        OSError: there is nothing there.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a folder says what it is
        raise InvalidTask(
            f"cannot read the document {path}: a document is a regular file, which this is not (a "
            "pipe, or a device); on the command line, `-` reads text from standard input"
        )


def _marked(head: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the byte order mark, and the encoding that it says or else the one given."""
    found = ((mark, name) for mark, name in _MARKS if head.startswith(mark))
    return next(found, (b"", encoding))


def _check_encoding(encoding: str) -> None:
    try:
        b"x".decode(encoding, "replace")
    except LookupError as error:
        raise InvalidSetting(
            f"no encoding of text is called {encoding!r:.80}; try utf-8"
        ) from error


def _undecodable(name: str, encoding: str, error: UnicodeDecodeError, position: int) -> InvalidTask:
    return InvalidTask(
        f"{name}: expected text in {encoding}, got the byte 0x{error.object[error.start]:02x} at "
        f"byte {position + error.start} ({error.reason}); save it as UTF-8, name its encoding "
        '(encoding=, --encoding), or have such bytes replaced (errors="replace", --errors replace)'
    )


def _stamp(descriptor: int) -> tuple[int, int]:
    state = os.fstat(descriptor)
    return state.st_size, state.st_mtime_ns
