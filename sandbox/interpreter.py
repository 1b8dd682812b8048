"""What it takes to run an interpreter elsewhere: the binary, its standard library, its libraries.

Only these, and packages that were asked for by name, are shown to a guest, read-only and at a
neutral path, never a home directory, a virtual environment or `/`. The interpreter is the one that
runs here or, where that is none that can be copied (not CPython, or too old for the guest's code),
the first on PATH that can.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import python_facts
from .base import SandboxUnavailable
from .options import check_python
from .packages import Package, mounts, resolve

PREFIX = "/usr/local"
"""Where the guest finds its interpreter."""
OLDEST = (3, 11)
"""The oldest version that the guest's code runs on."""

_NAMES = ("python3", "python", *(f"python3.{minor}" for minor in range(15, OLDEST[1] - 1, -1)))
_ASK_S = 30
_LEFT_OUT = re.compile(r"_tkinter|_curses|readline|_?xx|_test|_ctypes_test")
_LIBRARY = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """An interpreter of this machine."""

    implementation: str
    version: tuple[int, int]
    build: str
    """`sys.version`: tells builds of one version apart."""
    cache_tag: str
    command: str
    """Its path as it was started: in a virtual environment, the link there."""
    binary: str
    """The file behind that."""
    stdlib: str
    platlibdir: str
    packages: tuple[str, ...]
    """Folders below `PREFIX` where a guest would look for installed packages."""
    search_path: tuple[str, ...]
    """Where it finds its own installed packages here."""

    @property
    def name(self) -> str:
        """The usual name of its binary, e.g. `python3.11`."""
        return f"python{self.version[0]}.{self.version[1]}"

    @property
    def trouble(self) -> str:
        """What keeps it from being a guest's interpreter; empty if nothing is known to."""
        if self.implementation != "cpython":
            return f"it is {self.implementation}, not CPython"
        if self.version < OLDEST:
            return f"it is Python {self.version[0]}.{self.version[1]}"
        if not self.binary or not os.path.isdir(self.stdlib):
            return "its binary or its standard library is not a plain file or folder"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """Files and folders to show to a guest."""

    python: Python
    mounts: tuple[tuple[str, str], ...]
    """(path here, path there), folders before what lies in them."""
    masks: tuple[str, ...]
    """Folders there that must be empty but for `package_mounts`: what happens to be installed
    here is not part of the interpreter."""
    packages: tuple[Package, ...]
    packages_folder: str
    """The folder there that packages lie in."""
    package_mounts: tuple[tuple[str, str], ...]
    """(path here, path there) of the packages."""
    executable: str
    library_path: str
    """The guest's LD_LIBRARY_PATH."""

    @property
    def identity(self) -> str:
        """What tells it apart from others: its build and its packages with their versions."""
        return repr((self.python.build, [package.pin for package in self.packages]))


def guest_interpreter(*, packages: Sequence[str] = (), python: str | None = None) -> Interpreter:
    """Return what a guest needs to run an interpreter of this machine.

    Args:
        packages: names of installed distributions that programs may import; what they depend on
            comes along.
        python: path of an interpreter; None takes the one that runs this, or the first on PATH
            that will do.

    Raises:
        SandboxUnavailable: there is no interpreter that will do, or its libraries can't be found.
        ImageError: a package is not installed for it.
    """
    return _guest_interpreter(tuple(packages), find_python(python))


@functools.cache
def _guest_interpreter(packages: tuple[str, ...], python: Python) -> Interpreter:
    # `lib` or, on some distributions, `lib64`: the interpreter looks where it was configured to.
    target = f"{PREFIX}/{python.platlibdir}/{python.name}"
    extensions = [
        str(path)
        for path in sorted(Path(python.stdlib, "lib-dynload").glob("*.so"))
        if not _LEFT_OUT.match(path.name)
    ]
    library_path = f"{PREFIX}/lib"
    libraries = [*shared_libraries([python.binary, *extensions]), *_unwinder()]
    taken = resolve(packages, search_path=python.search_path, command=python.command)
    own = {os.path.realpath(here) for package in taken for here, _ in package.files}
    needed = [here for here in sorted(own) if ".so" in Path(here).suffixes]
    if needed:
        libraries += [each for each in shared_libraries(needed) if _is_outside(each[1], own)]
    found = {target: python.stdlib, f"{PREFIX}/bin/{python.name}": python.binary}
    for soname, path in libraries:
        found.setdefault(f"{library_path}/{soname}" if soname else path, path)
    folder = _packages_folder(python, target)
    return Interpreter(
        python=python,
        mounts=tuple((here, there) for there, here in found.items()),
        masks=tuple(
            f"{target}/{name}"
            for name in ("site-packages", "dist-packages")
            if Path(python.stdlib, name).is_dir()
        ),
        packages=taken,
        packages_folder=folder,
        package_mounts=tuple((here, f"{folder}/{there}") for here, there in mounts(taken)),
        executable=f"{PREFIX}/bin/{python.name}",
        library_path=library_path,
    )


def _is_outside(path: str, own: set[str]) -> bool:
    return os.path.realpath(path) not in own


def _packages_folder(python: Python, target: str) -> str:
    """Return a folder in which the guest looks for packages and that can be made there.

    The standard library is shown read-only: below it only folders that are there already will do.
    """
    for folder in python.packages:
        inside = os.path.relpath(folder, target)
        if inside.startswith("..") or Path(python.stdlib, inside).is_dir():
            return folder
    return f"{target}/site-packages"


def find_python(path: str | None = None) -> Python:
    """Return the interpreter at `path`; for None the one that runs this, or one on PATH.

    Raises:
        SandboxUnavailable: it is none that a guest can use, or there is none.
    """
    check_python(path)
    if path is not None:
        python = ask(path)
        if python.trouble:
            raise SandboxUnavailable(
                f"{path} cannot be a guest's interpreter: {python.trouble}; "
                f"CPython {OLDEST[0]}.{OLDEST[1]} or newer is needed"
            )
        return python
    running = _python(python_facts.facts(PREFIX))
    if not running.trouble:
        return running
    for python in _on_path():
        if not python.trouble:
            return python
    raise SandboxUnavailable(
        f"the interpreter that runs this cannot be a guest's: {running.trouble}; and PATH holds no "
        f"CPython {OLDEST[0]}.{OLDEST[1]} or newer: install one (`apt-get install python3`, "
        "`uv python install 3.11`) and put it on PATH"
    )


def _on_path() -> Iterator[Python]:
    for name in _NAMES:
        path = shutil.which(name)
        if path is not None:
            try:
                yield ask(path)
            except SandboxUnavailable:
                continue  # a launcher without anything behind it


@functools.cache
def ask(path: str) -> Python:
    """Ask an interpreter what it is.

    Raises:
        SandboxUnavailable: it does not answer.
    """
    command = [path, "-I", "-B", python_facts.__file__, PREFIX]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{path!r} is no interpreter that runs: {error}") from error
    try:
        return _python(json.loads(answer.stdout))
    except (ValueError, KeyError, TypeError) as error:
        said = answer.stderr.strip()[-200:] or answer.stdout.strip()[-200:] or "nothing"
        raise SandboxUnavailable(
            f"{path} does not say which Python it is; a CPython {OLDEST[0]}.{OLDEST[1]} or newer "
            f"is needed; it said: {said}"
        ) from error


def _python(facts: dict[str, Any]) -> Python:
    major, minor = facts.pop("version")
    for name in ("packages", "search_path"):
        facts[name] = tuple(facts[name])
    return Python(version=(major, minor), **facts)


def _unwinder() -> list[tuple[str, str]]:
    """Return the library that the C library loads by itself when a thread is cancelled."""
    soname = "libgcc_s.so.1"
    try:
        ctypes.CDLL(soname)
    except OSError:
        return []
    for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        path = line.partition("/")[2]
        if path.endswith(f"/{soname}"):
            return [(soname, f"/{path}")]
    return []


def shared_libraries(files: list[str]) -> list[tuple[str, str]]:
    """Return (soname, path) of every shared library that `files` need; no soname: the loader."""
    ldd = shutil.which("ldd") or "/usr/bin/ldd"
    # The loader's search path as it was for this process: the same name may be found elsewhere.
    environment = {"LC_ALL": "C", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    try:
        answer = subprocess.run(
            [ldd, *files], capture_output=True, text=True, timeout=60, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(
            f"cannot find out which libraries {files[0]} needs: {error}; install `ldd` "
            "(`mars-envs sandbox doctor` lists what is missing)"
        ) from error
    found = {
        (Path(soname).name, path) if soname and not soname.startswith("/") else ("", path)
        for soname, path in _LIBRARY.findall(answer.stdout)
    }
    if not found:
        raise SandboxUnavailable(
            f"`ldd {files[0]}` names no libraries: {answer.stderr.strip()[:200]}; "
            "`mars-envs sandbox doctor` says what else can be tried"
        )
    return sorted(found)
