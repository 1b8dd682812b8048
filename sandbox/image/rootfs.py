"""A root file system made of the interpreter that runs here: a tar archive, no registry, no root.

It holds the binary, the standard library with compiled bytecode, the shared libraries that these
need, and the installed packages that were asked for. Everything is world-readable and dated 0, so
equal inputs give equal archives. Tracebacks of the guest name its own paths, not this machine's.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import py_compile
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..base import ImageError, SandboxUnavailable
from ..interpreter import PREFIX, Interpreter, shared_libraries, this_interpreter

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


def write_rootfs(file: IO[bytes], *, packages: tuple[str, ...] = ()) -> Interpreter:
    """Write the archive.

    Args:
        file: where to, open for binary writing.
        packages: names of installed distributions to take along (not what they depend on).

    Returns:
        Where the interpreter lies in the archive.

    Raises:
        ImageError: a package is not installed here, or a library cannot be found.
    """
    try:
        interpreter = this_interpreter()
    except SandboxUnavailable as error:
        raise ImageError(f"this interpreter cannot be copied into an image: {error}") from error
    with tarfile.open(fileobj=file, mode="w") as tar, tempfile.TemporaryDirectory() as scratch:
        root = _Root(tar, Path(scratch))
        for directory in _DIRECTORIES:
            root.directory(directory, 0o1777 if directory == "tmp" else 0o755)
        for name, text in _ETC.items():
            root.data(f"etc/{name}", text.encode())
        stdlib = ""
        for here, there in interpreter.mounts:
            if os.path.isdir(here):
                stdlib = there
                root.tree(Path(here), there)
            else:
                root.file(Path(here), there)
        root.link(f"{PREFIX}/bin/python3", os.path.basename(interpreter.executable))
        known = {there for _, there in interpreter.mounts}
        _add_packages(root, packages, f"{stdlib}/site-packages", known, interpreter.library_path)
    return interpreter


class _Root:
    """Adds entries to the archive, with the directories above them."""

    def __init__(self, tar: tarfile.TarFile, scratch: Path) -> None:
        self._tar = tar
        self._scratch = scratch
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

    def tree(self, here: Path, there: str) -> None:
        for path in _files(here):
            self.python_file(path, f"{there}/{path.relative_to(here)}")

    def python_file(self, here: Path, there: str) -> None:
        """Add a file; beside a module goes its bytecode, which need not be checked against it."""
        self.file(here, there)
        if not there.endswith(".py"):
            return
        compiled = self._scratch / "module.pyc"
        try:
            py_compile.compile(
                str(here),
                str(compiled),
                dfile=there,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except py_compile.PyCompileError:
            return  # data that looks like a module, e.g. for another version
        folder, name = os.path.split(there)
        name = f"{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
        self.data(f"{folder}/__pycache__/{name}", compiled.read_bytes())


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _LEFT_OUT.search(str(path.relative_to(folder))):
            yield path


def _add_packages(
    root: _Root, packages: tuple[str, ...], target: str, known: set[str], library_path: str
) -> None:
    extensions: list[str] = []
    for name in packages:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError as error:
            raise ImageError(
                f"package {name!r} is not installed here, so it cannot go into the guest image; "
                f"pip install {name}"
            ) from error
        for file in sorted(distribution.files or (), key=str):
            path = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or "__pycache__" in file.parts or not path.is_file():
                continue
            root.python_file(path, f"{target}/{file}")
            if ".so" in path.suffixes:
                extensions.append(str(path))
    if not extensions:
        return
    try:
        libraries = shared_libraries(extensions)
    except SandboxUnavailable as error:
        raise ImageError(str(error)) from error
    for soname, library in libraries:
        there = f"{library_path}/{soname}" if soname else library
        if there not in known and "site-packages" not in library:
            root.file(Path(library), there)
