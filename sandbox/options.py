"""Options that several backends take, checked when one is made, not at its first worker."""

from __future__ import annotations

from . import checks
from .types import LEAST_WORKER_MB

_MOST_MB = (1 << 40) - 1


def check_sizes(memory_mb: object, tmp_mb: object) -> None:
    """Check the sizes of a worker, in MiB.

    Raises:
        ValueError: one is no whole number, or too small for a worker to start.
    """
    checks.whole(
        "memory_mb",
        memory_mb,
        least=LEAST_WORKER_MB,
        most=_MOST_MB,
        why="MiB, for a worker and what runs in it",
    )
    checks.whole("tmp_mb", tmp_mb, least=1, most=_MOST_MB, why="MiB")


def check_python(python: object) -> None:
    """Check what names an interpreter.

    Raises:
        TypeError: it is no text.
    """
    if python is not None:
        wanted = "the path of an interpreter, like '/usr/bin/python3.12', or None"
        checks.kind("python", python, str, wanted)


def package_names(packages: object) -> tuple[str, ...]:
    """Return the names of packages.

    Raises:
        TypeError: it is no list or tuple of names; a single one is a likely slip.
    """
    names = checks.sequence("packages", packages, "names of installed packages")
    for name in names:
        checks.kind("a name in packages", name, str, "text, like 'numpy'")
    return names
