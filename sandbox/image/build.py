"""Making sure that the guest image is there.

The tag is a hash of the recipe: the interpreter's build, the packages with their versions, and the
rules by which files are chosen (`rootfs.recipe`) or the Dockerfile. So another Python or another
version of a package gives another image, and an image that is there already is the right one. The
guest's own code is no part of it: each worker is sent it. Nor is the code that makes the image, so
that most changes of this package leave the image that is there in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..base import ImageError, SandboxError, SandboxUnavailable
from ..interpreter import Python, find_python, guest_interpreter
from ..packages import Package, resolve
from . import rootfs

if TYPE_CHECKING:
    import docker

REPOSITORY = "mars-envs-sandbox"
Source = Literal["auto", "registry", "host"]

_FOLDER = Path(__file__).parent
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


def ensure_image(
    client: docker.DockerClient | None = None,
    *,
    packages: Sequence[str] = (),
    python: str | None = None,
    source: Source = "auto",
    pull_timeout_s: float = 60.0,
) -> str:
    """Return the tag of the guest image; build it if the engine has none.

    Args:
        client: of the engine; None connects to the one that is found.
        packages: names of distributions, installed here, that programs may import; what they
            depend on comes along.
        python: path of the interpreter that programs run in; None takes the one that runs here, or
            the first usable one on PATH.
        source: `host` copies that interpreter and needs no network; `registry` starts from the
            registry's Python image of the same version; `auto` takes `host` where the engine runs
            the same kind of machine, else `registry`.
        pull_timeout_s: how long the registry may take.

    Raises:
        ImageError: it can't be built.
        SandboxUnavailable: no engine answers.
    """
    if source not in ("auto", "registry", "host"):
        raise ValueError(f"source must be 'auto', 'registry' or 'host', got {source!r}")
    if isinstance(packages, str):
        raise ValueError(f"packages must be a list of names, got the string {packages!r}")
    if client is None:
        from ..docker_client import connect

        with contextlib.closing(connect()) as client:
            return ensure_image(
                client,
                packages=packages,
                python=python,
                source=source,
                pull_timeout_s=pull_timeout_s,
            )
    recipe = _Recipe.of(packages, python)
    builders: dict[str, Callable[[docker.DockerClient, str], None]] = {
        "host": lambda client, tag: _from_host(client, tag, recipe),
        "registry": lambda client, tag: _from_registry(client, tag, recipe, pull_timeout_s),
    }
    sources = [source] if source != "auto" else _suitable(client)
    failures: list[str] = []
    for kind in sources:
        tag = recipe.tag(kind)
        try:
            with _one_builder():
                if not has_image(client, tag):
                    builders[kind](client, tag)
        except ImageError as error:
            failures.append(f"from {kind}: {error}")
        else:
            return tag
    raise ImageError(
        "the guest image can't be built; "
        + "; ".join(failures)
        + "; `mars-envs sandbox doctor` says what else can be tried"
    )


def image_tag(kind: str, packages: Sequence[str] = (), python: str | None = None) -> str:
    """Return the tag of the image that this recipe gives.

    Args:
        kind: `host` or `registry`.
        packages: as for `ensure_image`.
        python: as for `ensure_image`.

    Raises:
        ImageError: a package is not installed here, or there is no interpreter for guests.
    """
    return _Recipe.of(packages, python).tag(kind)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """All that decides what an image holds."""

    path: str | None
    python: Python
    names: tuple[str, ...]
    packages: tuple[Package, ...]

    @classmethod
    def of(cls, names: Sequence[str], path: str | None) -> _Recipe:
        try:
            python = find_python(path)
        except SandboxUnavailable as error:
            raise ImageError(f"no interpreter can be copied into an image: {error}") from error
        wanted = tuple(sorted(set(names)))
        packages = resolve(wanted, search_path=python.search_path, command=python.command)
        return cls(path, python, wanted, packages)

    @property
    def pins(self) -> list[str]:
        return [package.pin for package in self.packages]

    def tag(self, kind: str) -> str:
        version = ".".join(map(str, self.python.version))
        content: tuple[object, ...] = (kind, platform.machine(), self.pins)
        if kind == "host":
            content += (self.python.build, rootfs.recipe(), _config(""))
        else:
            content += (version, (_FOLDER / "Dockerfile").read_text("utf-8"))
        digest = hashlib.sha256(repr(content).encode()).hexdigest()
        return f"{REPOSITORY}:py{version}-{kind}-{digest[:12]}"


def has_image(client: docker.DockerClient, tag: str) -> bool:
    """Return whether the engine has an image of that tag.

    Raises:
        SandboxError: the engine does not say.
    """
    import docker.errors
    import requests

    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        return False
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise SandboxError(f"the engine does not answer about image {tag}: {error}") from error
    return True


def _suitable(client: docker.DockerClient) -> list[Literal["host", "registry"]]:
    """Return the ways that may work, best first."""
    import docker.errors
    import requests

    try:
        engine = client.version()
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise SandboxError(f"the engine does not say what it runs on: {error}") from error
    machine = platform.machine()
    same = engine.get("Arch") == _ARCHITECTURES.get(machine, machine)
    if sys.platform == "linux" and engine.get("Os") == "linux" and same:
        return ["host", "registry"]
    return ["registry"]


def _config(library_path: str) -> list[str]:
    """Return the image's configuration, as lines of a Dockerfile."""
    return ["ENV PATH=/usr/local/bin", f"ENV LD_LIBRARY_PATH={library_path}", 'CMD ["python3"]']


def _from_host(client: docker.DockerClient, tag: str, recipe: _Recipe) -> None:
    """Import an interpreter of this machine as an image."""
    import docker.errors
    import requests

    try:
        interpreter = guest_interpreter(packages=recipe.names, python=recipe.path)
    except SandboxUnavailable as error:
        raise ImageError(f"{recipe.python.binary} cannot be copied: {error}") from error
    repository, _, version = tag.partition(":")
    with tempfile.NamedTemporaryFile(prefix="mars-envs-image-", suffix=".tar") as file:
        rootfs.write_rootfs(file, interpreter)
        file.flush()
        try:
            client.api.import_image(
                src=file.name,
                repository=repository,
                tag=version,
                changes=_config(interpreter.library_path),
            )
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise ImageError(f"the engine refused the import: {error}") from error
    if not has_image(client, tag):
        raise ImageError("the engine took the import and has no such image")


def _from_registry(
    client: docker.DockerClient, tag: str, recipe: _Recipe, timeout_s: float
) -> None:
    """Build the Dockerfile on top of the registry's Python image."""
    import docker.errors
    import requests

    version = ".".join(map(str, recipe.python.version))
    base = f"python:{version}-slim"
    if not has_image(client, base):
        _pull(client, base, timeout_s)
    arguments = {"PYTHON": version, "PACKAGES": " ".join(recipe.pins)}
    try:
        client.images.build(
            fileobj=io.BytesIO((_FOLDER / "Dockerfile").read_bytes()),
            tag=tag,
            buildargs=arguments,
            rm=True,
            forcerm=True,
        )
    except docker.errors.BuildError as error:
        log = "".join(str(line.get("stream", "")) for line in error.build_log)
        raise ImageError(f"the build from {base} failed: {error}: {log[-500:]}") from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise ImageError(f"the build from {base} failed: {error}") from error


def _pull(client: docker.DockerClient, base: str, timeout_s: float) -> None:
    """Pull an image, or give up after `timeout_s`: an unreachable registry may never answer."""
    failures: list[Exception] = []

    def pull() -> None:
        try:
            client.images.pull(base)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=pull, name="sandbox-image-pull", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        raise ImageError(f"the registry did not deliver {base} within {timeout_s:g} s")
    if failures:
        raise ImageError(f"{base} can't be pulled: {failures[0]}") from failures[0]


@contextlib.contextmanager
def _one_builder() -> Iterator[None]:
    """Keep processes of this installation from building the same image side by side."""
    # The lock is on a file that is there anyway, so that none is left behind.
    descriptor = os.open(__file__, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # no locks on this file system; two builds do no harm
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
