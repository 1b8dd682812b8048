"""The guest image: what is in it, when it is built, and what happens where it can't be."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox import ImageError
from sandbox.container import DockerBackend
from sandbox.image import build, rootfs
from sandbox.image.build import ensure_image, image_tag
from sandbox.image.rootfs import write_rootfs
from sandbox.interpreter import Interpreter, guest_interpreter
from sandbox.packages import Package


@pytest.fixture(scope="module")
def tree() -> tarfile.TarFile:
    return archive(guest_interpreter(packages=["iniconfig"]))


def archive(interpreter: Interpreter) -> tarfile.TarFile:
    file = io.BytesIO()
    write_rootfs(file, interpreter)
    file.seek(0)
    return tarfile.open(fileobj=file)


PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
LIB = f"usr/local/{sys.platlibdir}/{PYTHON}"


def test_the_archive_holds_an_interpreter_and_its_library(tree: tarfile.TarFile) -> None:
    names = tree.getnames()
    assert f"usr/local/bin/{PYTHON}" in names
    assert tree.getmember("usr/local/bin/python3").linkname == PYTHON
    assert f"{LIB}/json/__init__.py" in names
    assert f"{LIB}/json/__pycache__/__init__.{sys.implementation.cache_tag}.pyc" in names
    assert any("ld-linux" in name or "ld-musl" in name for name in names)
    assert len(names) == len(set(names))


def test_the_archive_holds_no_shell_no_installer_and_no_tests(tree: tarfile.TarFile) -> None:
    names = tree.getnames()
    assert not [name for name in names if name.endswith(("/sh", "/bash", "/apt", "/pip"))]
    for part in ("ensurepip", "tkinter", "idlelib", "test", "site-packages/pip"):
        assert f"{LIB}/{part}" not in names


def test_everything_is_readable_by_all_owned_by_root_and_not_setuid(
    tree: tarfile.TarFile,
) -> None:
    for entry in tree.getmembers():
        assert (entry.uid, entry.gid, entry.mtime) == (0, 0, 0)
        if entry.issym():
            continue
        assert entry.mode == (0o1777 if entry.name == "tmp" else entry.mode & 0o755)
        assert entry.mode & 0o444 == 0o444
        assert not entry.isdir() or entry.mode & 0o111 == 0o111


def test_every_folder_comes_before_what_lies_in_it(tree: tarfile.TarFile) -> None:
    seen = {""}
    for entry in tree.getmembers():
        assert str(Path(entry.name).parent).strip(".") in seen
        if entry.isdir():
            seen.add(entry.name)


def test_bytecode_names_paths_of_the_guest(tree: tarfile.TarFile) -> None:
    name = f"{LIB}/json/__pycache__/decoder.{sys.implementation.cache_tag}.pyc"
    file = tree.extractfile(name)
    assert file is not None
    data = file.read()
    assert f"/{LIB}/json/decoder.py".encode() in data
    assert sys.base_prefix.encode() not in data or sys.base_prefix == "/usr/local"


def test_packages_that_were_asked_for_come_along(tree: tarfile.TarFile) -> None:
    assert f"{LIB}/site-packages/iniconfig/__init__.py" in tree.getnames()


def test_tags_tell_recipes_apart() -> None:
    tags = {
        image_tag("host"),
        image_tag("registry"),
        image_tag("host", ["iniconfig"]),
        image_tag("host", ["iniconfig", "pluggy"]),
    }
    assert len(tags) == 4
    assert image_tag("host") == image_tag("host", [])
    assert image_tag("host", ["iniconfig", "pluggy"]) == image_tag("host", ["Pluggy", "iniconfig"])


_opened: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(arguments[0]))


def opened_by(work: Callable[[], object]) -> list[str]:
    """Return the paths of the files that `work` opens."""
    global _opened
    sys.addaudithook(_note)  # there for good, and silent but in here
    _opened = found = []
    try:
        work()
    finally:
        _opened = None
    return list(dict.fromkeys(found))


def test_the_tag_follows_what_the_image_holds_and_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image_tag("host", ["iniconfig"])
    ours = str(Path(build.__file__).parents[1])
    assert [path for path in opened_by(lambda: image_tag("host")) if path.startswith(ours)] == []
    registry = [path for path in opened_by(lambda: image_tag("registry")) if path.startswith(ours)]
    assert registry == [f"{ours}/image/Dockerfile"]
    for name, value in (
        ("LAYOUT", rootfs.LAYOUT + 1),
        ("_ETC", {}),
        ("_LEFT_OUT", re.compile("nothing")),
        ("PREFIX", "/opt"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(rootfs, name, value)
            assert image_tag("host", ["iniconfig"]) != before, name
    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata.Distribution, "version", "99.0")
        assert image_tag("host", ["iniconfig"]) != before
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "3.11.99 (another build)")
        assert image_tag("host", ["iniconfig"]) != before
    assert image_tag("host", ["iniconfig"]) == before


def test_what_goes_into_an_archive_changes_only_with_its_layout_number(tmp_path: Path) -> None:
    stdlib, package = tmp_path / "lib", tmp_path / "package.py"
    for name in (
        "os.py",
        "json/decoder.py",
        "test/regrtest.py",
        "idlelib/help.html",
        "site-packages/pip/main.py",
        "config-3.11-x/Makefile",
        "lib-dynload/_json.cpython-311.so",
        "lib-dynload/_tkinter.cpython-311.so",
        "lib-dynload/_testcapi.cpython-311.so",
        "ensurepip/__init__.py",
        "encodings/utf_8.py",
        "unittest/__init__.py",
    ):
        (stdlib / name).parent.mkdir(parents=True, exist_ok=True)
        (stdlib / name).write_text("pass\n")
    package.write_text("pass\n")
    (tmp_path / "binary").write_text("ELF")
    (tmp_path / "binary").chmod(0o755)
    real = guest_interpreter()
    made = Interpreter(
        python=replace(real.python, cache_tag="cpython-311"),
        mounts=(
            (str(stdlib), "/usr/local/lib/python3.11"),
            (str(tmp_path / "binary"), "/usr/local/bin/python3.11"),
        ),
        masks=(),
        packages=(Package(name="p", version="1", files=((str(package), "p/__init__.py"),)),),
        packages_folder="/usr/local/lib/python3.11/site-packages",
        package_mounts=(),
        executable="/usr/local/bin/python3.11",
        library_path="/usr/local/lib",
    )
    digest = hashlib.sha256()
    with archive(made) as tar:
        files = [entry.name for entry in tar.getmembers() if entry.isfile()]
        for entry in tar.getmembers():
            member = tar.extractfile(entry) if entry.isfile() else None
            # Bytecode differs from one interpreter to the next; that it is there counts.
            data = member.read() if member and not entry.name.endswith(".pyc") else b""
            digest.update(repr((entry.name, entry.type, entry.mode, entry.linkname, data)).encode())
    lib = "usr/local/lib/python3.11"
    assert [name for name in files if not name.startswith("etc/")] == [
        f"{lib}/encodings/utf_8.py",
        f"{lib}/json/decoder.py",
        f"{lib}/lib-dynload/_json.cpython-311.so",
        f"{lib}/os.py",
        f"{lib}/unittest/__init__.py",
        "usr/local/bin/python3.11",
        f"{lib}/site-packages/p/__init__.py",
        f"{lib}/encodings/__pycache__/utf_8.cpython-311.pyc",
        f"{lib}/json/__pycache__/decoder.cpython-311.pyc",
        f"{lib}/__pycache__/os.cpython-311.pyc",
        f"{lib}/unittest/__pycache__/__init__.cpython-311.pyc",
        f"{lib}/site-packages/p/__pycache__/__init__.cpython-311.pyc",
    ]
    known = {1: "0229464a912c3b30"}
    assert digest.hexdigest()[:16] == known.get(rootfs.LAYOUT), (
        "the image has another content: raise rootfs.LAYOUT and add its digest here"
    )


class FakeEngine:
    """An engine that remembers; `pull_s` is how long its registry hangs, None: it has none."""

    def __init__(self, *, arch: str, pull_s: float | None = None) -> None:
        self.arch = arch
        self.pull_s = pull_s
        self.tags: set[str] = set()
        self.did: list[str] = []
        self.buildargs: dict[str, str] = {}
        self.images = self
        self.api = self

    def version(self) -> dict[str, str]:
        return {"Arch": self.arch, "Os": "linux"}

    def get(self, tag: str) -> None:
        import docker.errors

        if tag not in self.tags:
            raise docker.errors.ImageNotFound(tag)

    def import_image(self, *, src: str, repository: str, tag: str, changes: list[str]) -> None:
        self.did.append("import")
        self.tags.add(f"{repository}:{tag}")

    def pull(self, name: str) -> None:
        import docker.errors

        self.did.append(f"pull {name}")
        if self.pull_s is None:
            raise docker.errors.APIError("no route to registry")
        time.sleep(self.pull_s)
        self.tags.add(name)

    def build(self, *, fileobj: Any, tag: str, buildargs: dict[str, str], **_: Any) -> None:
        self.did.append("build")
        self.buildargs = buildargs
        self.tags.add(tag)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the writing of the archive out."""

    monkeypatch.setattr(rootfs, "write_rootfs", lambda file, interpreter: None)


THIS_ARCH = build._ARCHITECTURES.get(build.platform.machine(), build.platform.machine())


def test_an_engine_of_this_kind_gets_this_interpreter_once(quick: None) -> None:
    engine: Any = FakeEngine(arch=THIS_ARCH)
    assert ensure_image(engine) == ensure_image(engine) == image_tag("host")
    assert engine.did == ["import"]


def test_another_architecture_gets_the_registrys_python(quick: None) -> None:
    engine: Any = FakeEngine(arch="s390x", pull_s=0.0)
    assert ensure_image(engine, packages=["iniconfig"]) == image_tag("registry", ["iniconfig"])
    version = PYTHON.removeprefix("python")
    assert engine.did == [f"pull python:{version}-slim", "build"]
    assert engine.buildargs["PYTHON"] == version
    assert engine.buildargs["PACKAGES"].startswith("iniconfig==")


def test_a_failing_copy_falls_back_to_the_registry(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ImageError("no ldd")

    monkeypatch.setattr(build, "_from_host", fail)
    engine: Any = FakeEngine(arch=THIS_ARCH, pull_s=0.0)
    assert ensure_image(engine) == image_tag("registry")
    with pytest.raises(ImageError, match="from host: no ldd"):
        ensure_image(engine, source="host")


def test_without_a_registry_the_error_says_what_was_tried() -> None:
    engine: Any = FakeEngine(arch="s390x")
    with pytest.raises(ImageError, match=r"from registry: .*no route.*sandbox doctor"):
        ensure_image(engine)


def test_a_registry_that_hangs_is_given_up() -> None:
    engine: Any = FakeEngine(arch="s390x", pull_s=1.0)
    start = time.monotonic()
    with pytest.raises(ImageError, match=r"within 0\.1 s"):
        ensure_image(engine, source="registry", pull_timeout_s=0.1)
    assert time.monotonic() - start < 0.9


def test_builders_at_the_same_time_build_once(quick: None) -> None:
    engine: Any = FakeEngine(arch=THIS_ARCH)
    threads = [threading.Thread(target=ensure_image, args=(engine,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.did == ["import"]


def test_arguments_are_checked() -> None:
    engine: Any = FakeEngine(arch=THIS_ARCH)
    with pytest.raises(ValueError, match="source"):
        ensure_image(engine, source="web")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="list of names"):
        ensure_image(engine, packages="numpy")
    with pytest.raises(ImageError, match="-m pip install no-such-package"):
        ensure_image(engine, packages=["no-such-package"])
    with pytest.raises(ImageError, match="bare name"):
        ensure_image(engine, packages=["numpy==2.0"])
    with pytest.raises(ValueError, match="one or the other"):
        DockerBackend(image="mine", packages=["numpy"])


def test_the_dockerfile_takes_the_arguments_that_the_builder_gives(repo_dir: Path) -> None:
    text = (repo_dir / "sandbox" / "image" / "Dockerfile").read_text()
    assert "ARG PYTHON" in text
    assert "ARG PACKAGES" in text
    assert "a-s" in text


def test_a_package_that_cannot_be_installed_fails_the_build(repo_dir: Path, tmp_path: Path) -> None:
    text = (repo_dir / "sandbox" / "image" / "Dockerfile").read_text()
    steps = re.findall(r"^RUN (.*pip (?:.*\\\n)*.*)$", text, re.MULTILINE)
    pip = tmp_path / "pip"
    for status in (0, 1):
        pip.write_text(f'#!/bin/sh\n[ "$1" = install ] && exit {status}\nexit 0\n')
        pip.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "PACKAGES": "numpy==1.0"}
        done = [subprocess.run(["sh", "-c", step], env=environment).returncode for step in steps]
        assert done == [status, 0]


@pytest.mark.docker
def test_the_built_image_runs_and_holds_only_python(docker_engine: str) -> None:
    script = (
        "import json, os, sqlite3, ssl, ctypes, decimal, lzma, sys; "
        "setuid = [f for d, _, fs in os.walk('/') if not d.startswith(('/proc', '/sys')) "
        "for f in fs if os.lstat(os.path.join(d, f)).st_mode & 0o6000]; "
        "print(json.dumps([sys.version, setuid, os.path.exists('/bin/sh'), sys.path[1:]]))"
    )
    tag = ensure_image()
    answer = subprocess.run(
        ["docker", "run", "--rm", "--network=none", "--user=12345", tag, "python3", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    version, setuid, shell, path = json.loads(answer.stdout)
    assert version == sys.version
    assert setuid == []
    assert shell is False
    assert all(entry.startswith("/usr/local/") for entry in path)
