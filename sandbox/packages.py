"""Installed packages by name: their files, those of what they depend on, and nothing else.

What a guest gets is what is installed for its interpreter on this machine, in these versions, so
that a program meets the same library wherever it is judged.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

from .base import ImageError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed distribution."""

    name: str
    """In its normal form."""
    version: str
    files: tuple[tuple[str, str], ...]
    """(path here, path below the folder for packages), in order of the latter."""

    @property
    def pin(self) -> str:
        """It and its version, as pip takes it."""
        return f"{self.name}=={self.version}"


def resolve(
    names: Iterable[str], *, search_path: Sequence[str], command: str
) -> tuple[Package, ...]:
    """Return the packages of these names and all that they depend on, in order of their names.

    Args:
        names: of installed distributions.
        search_path: folders in which they are looked for.
        command: path of the interpreter that they are installed for; errors name it.

    Raises:
        ImageError: one is not installed, or is not made of files that could be copied.
    """
    found: dict[str, Package] = {}
    queue = [(name, True) for name in names]
    while queue:
        name, needed = queue.pop()
        if not _NAME.fullmatch(name):
            raise ImageError(
                f"{name!r} is not the name of a package; give the bare name of one that is "
                "installed, like numpy: the guest gets the version that is installed"
            )
        normal = _normal(name)
        if normal in found:
            continue
        distribution = next(iter(Distribution.discover(name=name, path=list(search_path))), None)
        if distribution is not None:
            found[normal] = _package(normal, distribution, command)
            queue += _requirements(distribution)
        elif needed:
            remedy = shlex.join([command, "-m", "pip", "install", name])
            raise ImageError(
                f"package {name!r} is not installed here; guests get the packages of this "
                f"machine, so install it first: {remedy}"
            )
    return tuple(found[name] for name in sorted(found))


def mounts(packages: Iterable[Package]) -> list[tuple[str, str]]:
    """Return few (path here, path below the folder for packages) that show exactly these packages.

    A folder is shown as a whole where nothing lies in it that is not part of them.
    """
    files = dict(file for package in packages for file in package.files)
    wanted: dict[str, str] = {there: here for here, there in files.items()}
    found: list[tuple[str, str]] = []
    _cover("", wanted, found)
    return found


def _cover(folder: str, wanted: dict[str, str], found: list[tuple[str, str]]) -> None:
    inside: dict[str, dict[str, str]] = {}
    for there, here in wanted.items():
        name = PurePosixPath(there).relative_to(folder).parts[0]
        inside.setdefault(name, {})[there] = here
    for name, members in sorted(inside.items()):
        path = f"{folder}/{name}".lstrip("/")
        first_there, first_here = next(iter(members.items()))
        if first_there == path:
            found.append((first_here, path))
            continue
        here = first_here.removesuffix(first_there.removeprefix(path))
        if set(_files(here)) <= set(members.values()):
            found.append((here, path))
        else:
            _cover(path, members, found)


def _files(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (f"{parent}/{name}" for name in names)


def _package(name: str, distribution: Distribution, command: str) -> Package:
    origin = distribution.read_text("direct_url.json") or ""
    listed = distribution.files
    if listed is None or re.search(r'"editable":\s*true', origin):
        remedy = shlex.join([command, "-m", "pip", "install", "--force-reinstall", name])
        raise ImageError(
            f"package {name!r} is installed as a link to its sources or without a list of its "
            f"files, so it cannot be shown to guests; install it in full: {remedy}"
        )
    files = []
    for file in listed:
        # Not commands, which lie elsewhere; not what the interpreter would run at its start.
        if ".." in file.parts or "__pycache__" in file.parts or file.suffix == ".pth":
            continue
        path = Path(str(distribution.locate_file(file)))
        if path.is_file():
            files.append((str(path), file.as_posix()))
    return Package(
        name=name, version=distribution.version, files=tuple(sorted(files, key=lambda f: f[1]))
    )


def _requirements(distribution: Distribution) -> Iterator[tuple[str, bool]]:
    """Yield the name of everything it depends on, and whether it surely needs that.

    A condition (an environment marker) is not evaluated: what is needed under it is there if the
    condition holds, as the package was installed with it. What only an extra needs is left out.
    """
    for requirement in distribution.requires or ():
        spec, _, condition = requirement.partition(";")
        name = _NAME.match(spec.strip())
        if name is not None and "extra" not in condition:
            yield name[0].rstrip("._-"), not condition.strip()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
