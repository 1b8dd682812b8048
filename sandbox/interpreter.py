"""What it takes to run this interpreter elsewhere: the binary, its standard library, its libraries.

Only these are shown to a guest, read-only and at a neutral path, never a home directory, a
virtual environment or `/`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from .base import SandboxUnavailable

PREFIX = "/usr/local"
"""Where the guest finds its interpreter."""

_LEFT_OUT = re.compile(r"_tkinter|_curses|readline|_?xx|_test|_ctypes_test")
_LIBRARY = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Files and folders to show to a guest."""

    mounts: tuple[tuple[str, str], ...]
    """(path here, path there), folders before what lies in them."""
    masks: tuple[str, ...]
    """Folders there that must be empty: installed packages are not part of the interpreter."""
    executable: str
    library_path: str
    """The guest's LD_LIBRARY_PATH."""


@functools.cache
def this_interpreter() -> Interpreter:
    """Return what a guest needs to run the interpreter that runs this.

    Raises:
        SandboxUnavailable: its libraries can't be found out.
    """
    binary = os.path.realpath(sys.executable)
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # `lib` or, on some distributions, `lib64`: the interpreter looks where it was configured to.
    target = f"{PREFIX}/{sys.platlibdir}/{name}"
    extensions = [
        str(path)
        for path in sorted((stdlib / "lib-dynload").glob("*.so"))
        if not _LEFT_OUT.match(path.name)
    ]
    library_path = f"{PREFIX}/lib"
    mounts = [(str(stdlib), target), (binary, f"{PREFIX}/bin/{name}")]
    for soname, path in (*shared_libraries([binary, *extensions]), *_unwinder()):
        mounts.append((path, f"{library_path}/{soname}" if soname else path))
    masks = tuple(
        f"{target}/{folder}"
        for folder in ("site-packages", "dist-packages")
        if (stdlib / folder).is_dir()
    )
    return Interpreter(tuple(mounts), masks, f"{PREFIX}/bin/{name}", library_path)


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
