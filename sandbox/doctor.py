"""What works on this machine, what does not, and the command that mends it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import remedies
from .base import Capabilities, Guarantee, SandboxError, SandboxUnavailable
from .worker import Backend

if TYPE_CHECKING:
    import docker

_PROBE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Something that is missing here."""

    what: str
    remedy: str
    """A command, or a short instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known about one backend."""

    backend: str
    usable: bool
    isolated: bool
    """Whether untrusted programs may run in it."""
    facts: tuple[tuple[str, str], ...] = ()
    """What answers and how it is set up, as pairs of a label and a description."""
    guarantees: frozenset[Guarantee] = frozenset()
    """Protections that programs run under; none where it is not usable."""
    lacks: tuple[Lack, ...] = ()
    """Missing protections, or what keeps the backend from working."""


def diagnose() -> list[Finding]:
    """Look at every backend, by running a program where that builds nothing; raises nothing."""
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
            lack = Lack(what=f"{type(error).__name__}: {error}", remedy="report this as a bug")
            finding = Finding(backend=name, usable=False, isolated=isolated, lacks=(lack,))
        findings.append(finding)
    return findings


def _docker() -> Finding:
    from .container import DockerBackend
    from .docker_client import connect
    from .factory import ping_engine

    try:
        version = ping_engine()
        with contextlib.closing(connect()) as client:
            info = client.info()
            image = _image(client)
    except SandboxUnavailable as error:
        return _unusable("docker", (), Lack(what=_reason(error), remedy=remedies.for_engine()))
    facts = (*_engine_facts(version, info), ("guest image", image or "is not built yet"))
    backend = DockerBackend(image=image or None)
    if not image:
        lack = Lack(
            what="the guest image; the first use builds it, in about ten seconds",
            remedy=remedies.BUILD_IMAGE,
        )
        return _usable(backend.capabilities, facts, lack)
    try:
        _try_out(backend)
    except SandboxError as error:
        return _unusable("docker", facts, Lack(what=_reason(error), remedy=remedies.BUILD_IMAGE))
    return _usable(backend.capabilities, facts)


def _image(client: docker.DockerClient) -> str:
    """Return the tag of the guest image, empty if the engine has none."""
    from .image.build import has_image, image_tag

    tags = (image_tag("host"), image_tag("registry"))
    return next((tag for tag in tags if has_image(client, tag)), "")


def _engine_facts(version: str, info: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    from .engine import engine_host

    default = info.get("DefaultRuntime", "")
    # Names with dots are runc's own, by the way in which containerd calls it.
    runtimes = sorted(name for name in info.get("Runtimes") or () if "." not in name)
    named = [f"{name} (default)" if name == default else name for name in runtimes]
    if "runsc" not in runtimes:
        named.append("no gVisor (runsc)")
    mapped = any("userns" in option for option in info.get("SecurityOptions") or ())
    groups = (f"v{info.get('CgroupVersion') or '1'}", info.get("CgroupDriver") or "no driver")
    return (
        ("version", version),
        ("address", str(engine_host())),
        ("control groups", ", ".join(groups)),
        ("runtimes", ", ".join(named)),
        ("user ids", "mapped away (userns-remap)" if mapped else "the machine's (no userns-remap)"),
    )


def _bubblewrap() -> Finding:
    from .bubblewrap import BubblewrapBackend, find_bwrap

    try:
        binary = find_bwrap()
    except SandboxUnavailable as error:
        return _unusable("bubblewrap", (), Lack(what=_reason(error), remedy=remedies.INSTALL_BWRAP))
    root = os.geteuid() == 0
    way = (
        "root: one sandbox for many programs" if root else "ordinary user: a sandbox for each test"
    )
    facts = (("version", _version(binary)), ("binary", binary), ("run by", way))
    backend = BubblewrapBackend()
    try:
        _try_out(backend)
    except SandboxError as error:
        troubles = (_reason(error), *remedies.namespace_trouble())
        remedy = remedies.for_namespaces()
        return _unusable("bubblewrap", facts, *(Lack(what=t, remedy=remedy) for t in troubles))
    return _usable(backend.capabilities, facts)


def _local() -> Finding:
    from .local import LocalBackend

    version = f"Python {sys.version.split()[0]}"
    return _usable(LocalBackend().capabilities, (("version", version),))


def _usable(
    capabilities: Capabilities, facts: tuple[tuple[str, str], ...], *lacks: Lack
) -> Finding:
    name = capabilities.backend
    missing = (
        Lack(what=each.sentence, remedy=remedies.for_guarantee(name, each))
        for each in capabilities.missing
    )
    return Finding(
        backend=name,
        usable=True,
        isolated=capabilities.isolated,
        facts=facts,
        guarantees=capabilities.guarantees,
        lacks=(*lacks, *missing),
    )


def _unusable(backend: str, facts: tuple[tuple[str, str], ...], *lacks: Lack) -> Finding:
    return Finding(backend=backend, usable=False, isolated=True, facts=facts, lacks=lacks)


def _reason(error: SandboxError) -> str:
    """Return what an error says, less the advice to ask the doctor."""
    return re.sub(r"(; |, or see )`mars-envs sandbox doctor`( says more)?", "", str(error))


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
