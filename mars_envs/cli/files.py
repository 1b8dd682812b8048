"""Files that a command reads or writes, looked at before anything is done with them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import InvalidSetting

_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


def check_input(path: Path, what: str) -> None:
    """Check that there is a plain file to read: a device or a pipe may never end.

    Args:
        path: the file.
        what: what it is, e.g. `submissions file`.

    Raises:
        InvalidSetting: there is none.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidSetting(
            f"cannot read the {what} {path}: {reason}; check the path (it is relative to the "
            "current folder)"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise InvalidSetting(
            f"cannot read the {what} {path}: expected a plain file, got {_kind(found.st_mode)}; "
            "save the records in a file and name that"
        )


def check_output(path: Path, *, option: str = "--output") -> Path:
    """Return where to write results that a later run may go on with, which takes a plain file.

    A link is followed, since the file is replaced as a whole.

    Raises:
        InvalidSetting: it can be no plain file, or its folder is not there.
    """
    advice = f"name a plain file with {option}, or leave it out"
    text = os.path.abspath(path)
    if text.startswith(_STREAMS):
        raise InvalidSetting(f"{option} {path}: expected a file, got a stream; {advice}")
    target = Path(os.path.realpath(path))
    if target.exists():
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InvalidSetting(f"{option} {path}: expected a file, got {_kind(mode)}; {advice}")
    elif not target.parent.is_dir():
        raise InvalidSetting(
            f"{option} {path}: there is no folder {target.parent}; create it (mkdir -p) or name "
            "another file"
        )
    return target


def _kind(mode: int) -> str:
    for test, words in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return words
    return "something else"
