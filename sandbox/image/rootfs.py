"""A root file system made of an interpreter of this machine: a tar archive, no registry, no root.

It holds the binary, the standard library with compiled bytecode, the shared libraries that these
need, and the installed packages that were asked for. Everything is world-readable and dated 0, so
equal inputs give equal archives. Tracebacks of the guest name its own paths, not this machine's.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..base import ImageError
from ..interpreter import PREFIX, Interpreter

LAYOUT = 1
"""Raised whenever the code in here comes to put other things into an archive: part of the image's
tag, where the code is not. (A test holds a small archive against what it was.)"""

# Parts of the standard library that need a display, a network or a compiler, or are tests.
_LEFT_OUT = re.compile(
    r"(^|/)(__pycache__|tests?|idlelib|tkinter|turtledemo|turtle\.py|ensurepip|lib2to3|"
    r"config-\d.*|(site|dist)-packages)(/|$)|_tkinter|_test\w*\.\w*\.?.*\.so$|_xx\w+\.\w*.*\.so$"
)
_DIRECTORIES = ("dev", "etc", "home", "proc", "run", "sys", "usr", "usr/bin", "var", "tmp")
_ETC = {
    "passwd": "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_COMPILE = """\
import json, py_compile, sys
for number, (here, there) in enumerate(json.load(sys.stdin)):
    try:
        py_compile.compile(here, f"{sys.argv[1]}/{number}", dfile=there, doraise=True,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except (py_compile.PyCompileError, OSError, ValueError):
        pass
"""


def recipe() -> tuple[object, ...]:
    """Return what decides, besides the interpreter, what is in the archive."""
    return (LAYOUT, PREFIX, _LEFT_OUT.pattern, _DIRECTORIES, sorted(_ETC.items()))


def write_rootfs(file: IO[bytes], interpreter: Interpreter) -> None:
    """Write the archive.

    Args:
        file: where to, open for binary writing.
        interpreter: what to take along.

    Raises:
        ImageError: the interpreter does not compile its library.
    """
    with tarfile.open(fileobj=file, mode="w") as tar:
        root = _Root(tar)
        for directory in _DIRECTORIES:
            root.directory(directory, 0o1777 if directory == "tmp" else 0o755)
        for name, text in _ETC.items():
            root.data(f"etc/{name}", text.encode())
        modules: list[tuple[str, str]] = []
        for here, there in _contents(interpreter):
            root.file(Path(here), there)
            if there.endswith(".py"):
                modules.append((here, there))
        root.link(f"{PREFIX}/bin/python3", os.path.basename(interpreter.executable))
        for there, code in _compiled(modules, interpreter):
            folder, name = os.path.split(there)
            name = f"{name.removesuffix('.py')}.{interpreter.python.cache_tag}.pyc"
            root.data(f"{folder}/__pycache__/{name}", code)


def _contents(interpreter: Interpreter) -> Iterator[tuple[str, str]]:
    """Yield (path here, path there) of every file."""
    for here, there in interpreter.mounts:
        if os.path.isdir(here):
            for path in _files(Path(here)):
                yield str(path), f"{there}/{path.relative_to(here)}"
        else:
            yield here, there
    for package in interpreter.packages:
        for here, there in package.files:
            yield here, f"{interpreter.packages_folder}/{there}"


def _compiled(
    modules: list[tuple[str, str]], interpreter: Interpreter
) -> Iterator[tuple[str, bytes]]:
    """Yield the bytecode of each module, which need not be checked against its source.

    Bytecode belongs to a version, so the interpreter of the image makes it.

    Raises:
        ImageError: it cannot.
    """
    with tempfile.TemporaryDirectory(prefix="mars-envs-image-") as scratch:
        answer = subprocess.run(
            [interpreter.python.binary, "-I", "-S", "-B", "-c", _COMPILE, scratch],
            input=json.dumps(modules),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if answer.returncode:
            raise ImageError(
                f"{interpreter.python.binary} does not compile its library: "
                f"{answer.stderr.strip()[-300:]}"
            )
        for number, (_, there) in enumerate(modules):
            path = Path(scratch, str(number))
            if path.exists():  # else it is data that looks like a module, e.g. for another version
                yield there, path.read_bytes()


class _Root:
    """Adds entries to the archive, with the directories above them."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._seen: set[str] = set()

    def directory(self, path: str, mode: int = 0o755) -> None:
        path = path.strip("/")
        if not path or path in self._seen:
            return
        self.directory(os.path.dirname(path))
        self._seen.add(path)
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(entry)

    def data(self, path: str, data: bytes, mode: int = 0o644) -> None:
        path = path.strip("/")
        self.directory(os.path.dirname(path))
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode = len(data), mode
        self._tar.addfile(entry, io.BytesIO(data))

    def link(self, path: str, target: str) -> None:
        entry = tarfile.TarInfo(path.strip("/"))
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(entry)

    def file(self, here: Path, there: str) -> None:
        mode = 0o755 if os.access(here, os.X_OK) else 0o644
        self.data(there, here.read_bytes(), mode)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _LEFT_OUT.search(str(path.relative_to(folder))):
            yield path
