"""The Docker backend: a warm container for each worker, reached through the engine alone.

Everything travels over the attached standard streams, the guest's code too, so a remote engine
works as well as a local one: nothing is mounted, no path is shared.
Containers have no network, a read-only root, a small /tmp without executables, three
capabilities, and limits on memory, processes and CPU. They carry their owner's name, so that
those whose owner is gone can be found (`reaper`); and their supervisor ends, and the engine
removes them, once the stream breaks.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import checks
from .attached import ContainerTransport, hang_up
from .base import Capabilities, Guarantee, SandboxUnavailable
from .channel import GuestWorker
from .docker_client import address, connect, remove_leftovers, remove_or_remember
from .guest import ENVIRONMENT, FLAGS, bootstrap, fingerprint
from .options import check_python, check_sizes, package_names
from .owner import this_owner
from .worker import Worker

if TYPE_CHECKING:
    import docker

OWNER_LABEL = "sbx.owner"
RUN_LABEL = "sbx.run"

_START_S = 60.0
_API_S = 60
"""How long it may take to make and start a container."""
_PROCESSES = 64
_LEAST_CPUS = 0.01
"""What engines accept; they take less than a billionth for no limit at all."""
_SHARED_KERNEL_RUNTIMES = ("runc", "io.containerd.runc.v2", "crun")
_run = uuid.uuid4().hex[:8]
_counter = itertools.count()


class DockerBackend:
    """Makes workers out of containers.

    Args:
        image: tag of a guest image; None builds ours on first use.
        memory_mb: what the processes of one worker may use together, in MiB; also the most that
            `Limits.memory_mb` may ask for.
        tmp_mb: size of a worker's private /tmp, in MiB.
        cpus: cores that a worker may use.
        runtime: the engine's runtime, e.g. `runsc` (gVisor); None takes its default.
        userns: `remap` insists on an engine that maps user ids away from the machine's (dockerd
            with `--userns-remap`); `host` turns that off; None takes the engine as it is.
        packages: names of distributions, installed here, that programs may import; part of the
            image that is built, so not with `image`.
        python: path of the interpreter that the image is built from; None takes the one that runs
            here. Not with `image` either.
    """

    name = "docker"

    def __init__(
        self,
        *,
        image: str | None = None,
        memory_mb: int = 1088,
        tmp_mb: int = 32,
        cpus: float = 1.0,
        runtime: str | None = None,
        userns: Literal["host", "remap"] | None = None,
        packages: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        if image is not None and (packages or python is not None):
            raise ValueError(
                f"packages and python go into an image that is built; {image!r} is there already: "
                "give one or the other"
            )
        check_sizes(memory_mb, tmp_mb)
        check_python(python)
        checks.positive("cpus", cpus, unit="cores")
        if cpus < _LEAST_CPUS:
            raise ValueError(f"cpus must be at least {_LEAST_CPUS} cores, got {cpus!r}")
        if userns not in (None, "remap", "host"):
            raise ValueError(
                f"userns is 'remap', 'host' or None for the engine as it is, got {userns!a:.60}"
            )
        for name, value in (("image", image), ("runtime", runtime)):
            if value is not None:
                checks.kind(name, value, str, "text (str), or None")
        self._image = image
        self._packages = package_names(packages)
        self._python = python
        self._memory_mb = memory_mb
        self._tmp_mb = tmp_mb
        self._cpus = cpus
        self._runtime = runtime
        self._userns = userns
        self._lock = threading.Lock()
        self._reaped = False
        self._lacks: frozenset[Guarantee] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What its workers guarantee on this machine. The engine is asked once.

        Raises:
            SandboxUnavailable: no engine answers.
        """
        missing = self._missing()
        return Capabilities(
            backend=self.name, isolated=True, guarantees=frozenset(Guarantee) - missing
        )

    @property
    def fingerprint(self) -> str:
        """A short hash of guest code and image."""
        text = f"{self.name} {self._runtime} {fingerprint()} {self.image()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def image(self) -> str:
        """Return the image's tag; the first call builds the image if it has to.

        Raises:
            ImageError: it is missing and can't be built.
            SandboxUnavailable: no engine answers.
        """
        with self._lock:
            if self._image is None:
                from .image.build import ensure_image

                client = connect()
                try:
                    self._image = ensure_image(client, packages=self._packages, python=self._python)
                finally:
                    client.close()
            return self._image

    def _missing(self) -> frozenset[Guarantee]:
        import docker.errors
        import requests

        with self._lock:
            if self._lacks is None:
                client = connect()
                try:
                    info = client.info()
                except (docker.errors.DockerException, requests.RequestException) as error:
                    raise SandboxUnavailable(
                        f"the engine does not describe itself: {error}; "
                        "`mars-envs sandbox doctor` says more"
                    ) from error
                finally:
                    client.close()
                self._lacks = missing_guarantees(info, self._runtime)
            return self._lacks

    def start_worker(self) -> Worker:
        """Start one worker.

        Raises:
            SandboxUnavailable: no engine answers, or it refuses.
            ImageError: the guest image could not be had.
        """
        image = self.image()
        name = f"sbx-{_run}-{os.getpid()}-{next(_counter)}"
        engine, client = address(), connect()
        try:
            self._check_remap(client)
            self._reap_once(client)
            remove_leftovers(client, engine)
            transport = self._launch(client, engine, name, image)
        except BaseException:
            remove_or_remember(client, engine, name)
            client.close()
            raise
        worker = GuestWorker(name, transport, memory_mb=self._memory_mb)
        worker.wait_ready(_START_S)
        return worker

    def _check_remap(self, client: docker.DockerClient) -> None:
        import docker.errors
        import requests

        if self._userns == "remap" and not self._reaped:
            try:
                options = client.info().get("SecurityOptions") or ()
            except (docker.errors.DockerException, requests.RequestException) as error:
                raise SandboxUnavailable(f"the engine says nothing of itself: {error}") from error
            if "name=userns" not in options:
                raise SandboxUnavailable(
                    "the engine does not map user ids away from the machine's, as userns='remap' "
                    "asks; start dockerd with --userns-remap=default, or leave the option out"
                )

    def _reap_once(self, client: docker.DockerClient) -> None:
        """Remove what earlier processes were killed too suddenly to remove."""
        from .reaper import reap_containers

        with self._lock:
            if self._reaped:
                return
            self._reaped = True
        reap_containers(client)

    def _launch(
        self, client: docker.DockerClient, engine: str, name: str, image: str
    ) -> ContainerTransport:
        import docker.errors
        import requests

        client.api.timeout = _API_S
        stream = None
        try:
            client.api.create_container(
                image,
                ["python3", *FLAGS, "-c", bootstrap("supervisor")],
                entrypoint="",
                name=name,
                user="0:0",
                hostname="sandbox",
                stdin_open=True,
                working_dir="/tmp",
                environment=dict(ENVIRONMENT),
                labels={OWNER_LABEL: this_owner(), RUN_LABEL: _run},
                host_config=self._host_config(client),
            )
            # Attached before the start, so that nothing of what it says is lost.
            stream = client.api.attach_socket(
                name, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            transport = ContainerTransport(client, engine, name, stream)
            client.api.start(name)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            if stream is not None:
                hang_up(stream)
            reason = getattr(error, "explanation", None) or error
            raise SandboxUnavailable(
                f"the engine did not start a container from {image} with {self._asked()}: "
                f"{reason}; change these options, or see `mars-envs sandbox doctor`"
            ) from error
        return transport

    def _asked(self) -> str:
        """Return the options that an engine may refuse, as they were given."""
        asked: dict[str, object] = {
            "memory_mb": self._memory_mb,
            "tmp_mb": self._tmp_mb,
            "cpus": self._cpus,
            "runtime": self._runtime,
            "userns": self._userns,
        }
        return ", ".join(f"{name}={value!r}" for name, value in asked.items() if value is not None)

    def _host_config(self, client: docker.DockerClient) -> Any:
        from docker.types import LogConfig, Ulimit

        memory = f"{self._memory_mb}m"
        return client.api.create_host_config(
            auto_remove=True,
            runtime=self._runtime,
            userns_mode="host" if self._userns == "host" else None,
            network_mode="none",
            read_only=True,
            tmpfs={
                "/tmp": f"rw,size={self._tmp_mb}m,nr_inodes=4096,noexec,nosuid,nodev,mode=1777",
                # The engine's own mount there takes files from everyone and keeps them.
                "/dev/mqueue": "ro,size=4k,nr_inodes=1,noexec,nosuid,nodev",
            },
            cap_drop=["ALL"],
            cap_add=["SETUID", "SETGID", "KILL"],
            security_opt=["no-new-privileges"],
            pids_limit=_PROCESSES,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=int(self._cpus * 1e9),
            ipc_mode="none",
            ulimits=[
                Ulimit(name="core", soft=0, hard=0),
                Ulimit(name="nofile", soft=4096, hard=4096),
            ],
            # A log would copy all that a guest says onto the engine's disk.
            log_config=LogConfig(type="none", config={}),
        )


def missing_guarantees(info: dict[str, Any], runtime: str | None) -> frozenset[Guarantee]:
    """Return what containers lack, given what the engine says of itself.

    An engine that cannot limit memory starts containers all the same. Runtimes with a kernel of
    their own have not been shown to keep the limits that ours is asked to keep.
    """
    missing = set()
    if not info.get("MemoryLimit", True):
        missing.add(Guarantee.TOTAL_MEMORY)
    if (runtime or info.get("DefaultRuntime", "runc")) not in _SHARED_KERNEL_RUNTIMES:
        missing |= {Guarantee.TOTAL_MEMORY, Guarantee.TMP_SIZE, Guarantee.TMP_FILES}
    return frozenset(missing)
