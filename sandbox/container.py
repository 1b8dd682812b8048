"""The Docker backend: a warm container for each worker, reached through the engine alone.

The guest's code travels in the command line and everything else over the attached standard
streams, so a remote engine works as well as a local one: nothing is mounted, no path is shared.
Containers have no network, a read-only root, a small /tmp without executables, three
capabilities, and limits on memory, processes and CPU. They carry their owner's name, so that
those whose owner is gone can be found (`reaper`); and their supervisor ends, and the engine
removes them, once the stream breaks.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import autopsy
from .base import Capabilities, Guarantee, SandboxUnavailable
from .channel import GuestWorker
from .engine import engine_environment, listens
from .guest import ENVIRONMENT, FLAGS, bootstrap, fingerprint
from .owner import this_owner
from .worker import Worker

if TYPE_CHECKING:
    import docker

OWNER_LABEL = "sbx.owner"
RUN_LABEL = "sbx.run"

_START_S = 60.0
_ANSWER_S = 15
"""How long an engine may take to say who it is, or to remove a container."""
_API_S = 60
"""How long it may take to make and start a container."""
_DEFAULT_HOST = "unix:///var/run/docker.sock"
_PROCESSES = 64
_SHARED_KERNEL_RUNTIMES = ("runc", "io.containerd.runc.v2", "crun")
_STREAM_HEADER = struct.Struct(">BxxxI")
_STDOUT = 1
_STDERR_KEPT = 4096
_run = uuid.uuid4().hex[:8]
_counter = itertools.count()


def connect() -> docker.DockerClient:
    """Return a client for the engine that DOCKER_HOST names, or that is found (see `engine`).

    Raises:
        SandboxUnavailable: the SDK is not installed, or no engine answers.
    """
    try:
        import docker
        import docker.errors
        import requests
    except ImportError as error:
        raise SandboxUnavailable(
            f"the docker SDK is missing ({error}): pip install 'mars-envs[docker]'; "
            "`mars-envs sandbox doctor` says what else can be tried"
        ) from error
    environment = engine_environment()
    host = environment.get("DOCKER_HOST", _DEFAULT_HOST)
    try:
        if _is_away(host):
            raise ConnectionRefusedError("nothing listens on that socket")
        # Asks for the engine's version, so an engine that hangs is found out here.
        return docker.from_env(timeout=_ANSWER_S, environment=environment)
    # ValueError: an address that is none.
    except (docker.errors.DockerException, requests.RequestException, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"no Docker engine answers at {host}: {error}; start one or set DOCKER_HOST; "
            "`mars-envs sandbox doctor` says what else can be tried"
        ) from error


def _engine() -> str:
    return engine_environment().get("DOCKER_HOST", _DEFAULT_HOST)


def _is_away(host: str) -> bool:
    """Whether no one listens at that address, as far as is known without asking.

    The SDK would leave its socket open behind a failure.
    """
    return host.startswith("unix://") and not listens(host.removeprefix("unix://"))


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
        self._image = image
        self._packages = tuple(packages)
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
        engine, client = _engine(), connect()
        try:
            self._check_remap(client)
            self._reap_once(client)
            _remove_leftovers(client, engine)
            transport = self._launch(client, engine, name, image)
        except BaseException:
            _remove_or_remember(client, engine, name)
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
                _hang_up(stream)
            raise SandboxUnavailable(
                f"the engine did not start a container from {image}: {error}; "
                "`mars-envs sandbox doctor` says more"
            ) from error
        return transport

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


class ContainerTransport:
    """A container's standard streams, through the engine's attach call."""

    def __init__(self, client: docker.DockerClient, engine: str, name: str, stream: Any) -> None:
        self._client = client
        self._engine = engine
        self._name = name
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._owner = os.getpid()
        self._raw = bytearray()
        self._stderr = bytearray()
        self._closed = False

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send all of `data`."""
        self._socket.settimeout(timeout_s)
        self._socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Return the next bytes of its standard output; none at the end of the stream."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            data = self._cut()
            if data:
                return data
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            more = self._socket.recv(1 << 18)
            if not more:
                return b""
            self._raw += more

    def _cut(self) -> bytes:
        """Take the whole packets out of what came, and return those of standard output."""
        out = bytearray()
        while len(self._raw) >= _STREAM_HEADER.size:
            stream, size = _STREAM_HEADER.unpack_from(self._raw)
            end = _STREAM_HEADER.size + size
            if len(self._raw) < end:
                break
            packet = self._raw[_STREAM_HEADER.size : end]
            del self._raw[:end]
            if stream == _STDOUT:
                out += packet
            else:
                self._stderr += packet
                del self._stderr[:-_STDERR_KEPT]
        return bytes(out)

    def hung_up(self) -> bool:
        """Return whether anything came unasked."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        return bool(self._raw) or bool(poll.poll(0))

    def lost_from_outside(self) -> bool:
        """Return whether the engine knows nothing that speaks against the program."""
        return _is_away(self._engine) or autopsy.lost_from_outside(self._client, self._name)

    def diagnosis(self) -> str:
        """Return the last of what was said on standard error."""
        return self._stderr.decode("utf-8", "replace").strip()

    def abort(self) -> None:
        """Hang up, which ends the container."""
        # A forked copy shares the connection: it may only close its own end.
        if os.getpid() == self._owner:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Remove the container."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() == self._owner:
            _remove_or_remember(self._client, self._engine, self._name)
        _hang_up(self._stream)
        self._client.close()


def _hang_up(stream: Any) -> None:
    """Close an attached stream: the SDK's response, its reader and the socket in it."""
    # In this order: what is read through must not find what it reads from closed (ValueError).
    for end in (getattr(stream, "_response", None), stream, getattr(stream, "_sock", None)):
        with contextlib.suppress(OSError, ValueError):
            if end is not None:
                end.close()


_leftovers: set[tuple[str, str]] = set()
"""Engine and name of each container that could not be removed when it was due."""


def _remove_or_remember(client: docker.DockerClient, engine: str, name: str) -> None:
    """Remove a container; if the engine is away or hangs, do it when the next one is made."""
    client.api.timeout = _ANSWER_S
    if _is_away(engine) or remove_container(client, name) is None:
        _leftovers.add((engine, name))


def _remove_leftovers(client: docker.DockerClient, engine: str) -> None:
    for place, name in tuple(_leftovers):
        if place == engine and remove_container(client, name) is not None:
            _leftovers.discard((place, name))


def remove_container(client: docker.DockerClient, name: str) -> bool | None:
    """Kill and remove a container by name. Never raises.

    Returns:
        Whether it was there; None if the engine did not do it.
    """
    import docker.errors
    import requests

    try:
        client.api.remove_container(name, force=True)
    except docker.errors.NotFound:
        return False
    except docker.errors.APIError as error:
        # The engine is removing it already.
        return True if error.status_code == 409 else None
    except (docker.errors.DockerException, requests.RequestException, OSError):
        return None
    return True
