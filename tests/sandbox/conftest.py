"""Pools of real workers, on every backend that this machine offers."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mars_envs.judging.code import close_shared_sandboxes
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.container import DockerBackend
from sandbox.owner import this_owner
from sandbox.pool import WorkerPool
from sandbox.worker import Backend

from .leftovers import left_by


def make_backend(name: str) -> Backend:
    return BubblewrapBackend() if name == "bubblewrap" else DockerBackend()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """When all tests of the sandbox have run, none of their sandboxes is there any more."""
    yield
    close_shared_sandboxes()  # tests of judges, in the same process, share theirs
    gc.collect()
    deadline_s = time.monotonic() + 30  # the engine removes containers at its leisure
    while left := left_by(this_owner(), os.getpid()):
        assert time.monotonic() < deadline_s, f"left behind: {left}"
        time.sleep(0.2)


@pytest.fixture(
    scope="session", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]
)
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
    with WorkerPool(make_backend(request.param), size=4) as pool:
        yield pool


@pytest.fixture(scope="session")
def as_ordinary_user(
    repo_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Run a script as a user without privileges and return what it printed.

    The interpreter, the checkout and the installed packages may lie in folders that are closed to
    such a user, so root shows them at another place, in a mount namespace of the script's own.
    """
    if os.geteuid() != 0:

        def run_as_self(script: str) -> str:
            return _output([sys.executable, "-c", script], {"PYTHONPATH": str(repo_dir)})

        return run_as_self

    binary = Path(sys.executable).resolve().relative_to(sys.base_prefix)
    setup = """
        set -e
        mount --make-rprivate /
        mount -t tmpfs -o mode=755 none /mnt
        mkdir /mnt/base /mnt/repo /mnt/packages
        mount --bind "$0" /mnt/base
        mount --bind "$1" /mnt/repo
        mount --bind "$2" /mnt/packages
        cd /mnt/repo
        shift 2
        shift
        exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"
    """

    def run_as_nobody(script: str) -> str:
        command = ["unshare", "--mount", "sh", "-c", setup, sys.base_prefix, str(repo_dir)]
        command += [sysconfig.get_path("purelib"), "-", f"/mnt/base/{binary}", "-B", "-c", script]
        return _output(
            command,
            {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": "/mnt/repo:/mnt/packages",
                "LD_LIBRARY_PATH": "/mnt/base/lib",
                "HOME": "/tmp",
            },
        )

    return run_as_nobody


def _output(command: list[str], environment: dict[str, str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
