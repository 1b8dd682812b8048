"""Opening a sandbox: which backend, how many workers.

A weaker backend is never taken silently, and one without isolation never unless it is named.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from . import checks, load
from .base import SandboxUnavailable
from .engine import engine_environment, engine_host, listens
from .grader import Grader, RunCache
from .pool import WorkerPool, check_turns
from .worker import Backend

B = TypeVar("B", bound=Backend)

_log = logging.getLogger(__name__)
_noticed = threading.Event()

_ENGINE_ANSWERS_S = 5
_NAMES = ("auto", "docker", "bubblewrap", "local")


def open_sandbox(
    backend: Literal["auto", "docker", "bubblewrap", "local"] | str = "auto",
    *,
    workers: int | None = None,
    recycle_after: int = 200,
    max_waiting: int | None = None,
    wait_s: float | None = None,
    cache: bool | RunCache = True,
    **options: Any,
) -> Grader:
    """Open a sandbox. Workers start when they are first needed.

    Args:
        backend: `docker`; `bubblewrap`; `local`, which isolates nothing and is for trusted programs
            only; or `auto`: docker where an engine answers, else bubblewrap, with a notice.
        workers: programs that may run at once; None takes the number of cores.
        recycle_after: programs that a worker serves before it is replaced.
        max_waiting: most programs that may wait for a worker, further ones get `QueueFull`; None
            lets everyone wait: a call blocks, an awaited one waits without a thread.
        wait_s: most seconds that a program may wait for a worker before it gets `QueueFull`; None
            waits as long as it takes. Waiting counts against no limit of a program.
        cache: whether to remember what programs did, so that the same run is made once; or a cache
            to share.
        options: of the backend's class, e.g. `runtime="runsc"` for docker.

    Raises:
        SandboxUnavailable: the backend, or every one that `auto` tries, cannot work here.
        ValueError: there is no backend of that name, or a setting is out of range.
        TypeError: the backend knows no such option, or `auto` was given options.
    """
    if backend not in _NAMES:
        raise ValueError(f"there is no backend {backend!r}; choose one of {', '.join(_NAMES)}")
    if backend == "auto" and options:
        raise TypeError(
            f"backend options ({', '.join(options)}) need a backend chosen by name, not 'auto'"
        )
    if workers is not None:
        checks.whole("workers", workers, least=1, why="or None for one per core")
    check_turns(recycle_after, max_waiting, wait_s)
    checks.kind("cache", cache, (bool, RunCache), "True, False or a RunCache()")
    chosen = _choose() if backend == "auto" else _make(backend, options)
    memory = (RunCache() if cache else None) if isinstance(cache, bool) else cache
    pool = WorkerPool(
        chosen,
        size=workers,
        recycle_after=recycle_after,
        max_waiting=max_waiting,
        wait_s=wait_s,
        overloaded=_load_of(chosen),
    )
    return Grader(pool, cache=memory)


def _load_of(backend: Backend) -> Callable[[], bool]:
    """Return what says whether the machine that runs the programs is busy."""
    here = backend.name != "docker" or (engine_host() or "unix:").startswith("unix:")
    return load.overloaded if here else load.always


def _make(name: str, options: dict[str, Any]) -> Backend:
    """Return a backend by name after looking whether it can work."""
    if name == "local":
        from .local import LocalBackend

        return _new(LocalBackend, options)
    if name == "docker":
        from .container import DockerBackend

        docker = _new(DockerBackend, options)
        _log.debug("Docker engine %s answers", ping_engine())
        return docker
    from .bubblewrap import BubblewrapBackend

    bubblewrap = _new(BubblewrapBackend, options)
    # A worker is the only proof that the kernel allows one; it costs a fraction of a second.
    bubblewrap.start_worker().close()
    return bubblewrap


def _new(kind: type[B], options: dict[str, Any]) -> B:
    """Make a backend.

    Raises:
        TypeError: it has no such option.
        ValueError: an option is out of range.
    """
    known = list(inspect.signature(kind).parameters)
    for option in options:
        if option not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise TypeError(f"the backend {kind.name!r} has no option {option!r}; it {takes}")
    return kind(**options)


def _choose() -> Backend:
    try:
        return _make("docker", {})
    except SandboxUnavailable as error:
        no_docker = error
    try:
        bubblewrap = _make("bubblewrap", {})
    except SandboxUnavailable as error:
        raise SandboxUnavailable(
            "no sandbox works here; `mars-envs sandbox doctor` says what is missing "
            f"(docker: {no_docker}; bubblewrap: {error})"
        ) from error
    if not _noticed.is_set():
        _noticed.set()
        _log.warning(
            "no Docker engine answers, so programs run in bubblewrap; not guaranteed there: %s "
            "(`mars-envs sandbox doctor` says more)",
            "; ".join(each.sentence for each in bubblewrap.capabilities.missing) or "nothing",
        )
    return bubblewrap


def ping_engine(timeout_s: int = _ENGINE_ANSWERS_S) -> str:
    """Return the version of the Docker engine.

    Args:
        timeout_s: how long it may take to answer.

    Raises:
        SandboxUnavailable: the SDK is not installed, or no engine answers in time.
    """
    try:
        import docker
        import docker.errors
        import requests
    except ImportError as error:
        raise SandboxUnavailable(
            f"the docker SDK is missing ({error}); pip install 'mars-envs[docker]', or see "
            "`mars-envs sandbox doctor`"
        ) from error
    host = engine_host()
    if host is None:
        raise SandboxUnavailable(
            "no Docker engine listens on the usual sockets; start one (`make engine` on Debian) or "
            "set DOCKER_HOST; `mars-envs sandbox doctor` says more"
        )
    # The SDK leaks the socket where no one listens.
    if host.startswith("unix://") and not listens(host.removeprefix("unix://")):
        raise SandboxUnavailable(
            f"no Docker engine answers at {host}; start one or change DOCKER_HOST (--docker-host); "
            "`mars-envs sandbox doctor` says more"
        )
    try:
        client = docker.from_env(timeout=timeout_s, environment=engine_environment())
        try:
            return str(client.version()["Version"])
        finally:
            client.close()
    # ValueError: an address that is none.
    except (docker.errors.DockerException, requests.RequestException, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"no Docker engine answers at {host} within {timeout_s} s: {error}; "
            "`mars-envs sandbox doctor` says more"
        ) from error
