"""The parent of an engine of our own: `python engine_host.py FOLDER CONTAINERD DOCKERD`.

It runs for as long as its standard input stays open, and leaves nothing behind. It is a subreaper:
the engine's helpers detach themselves, and their CPU time would be lost with the first process of
the machine as their parent. Imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MNT_DETACH = 2
_STARTS_S = 30.0
_STOPS_S = 10.0
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_libc = ctypes.CDLL(None, use_errno=True)


def main(folder: str, containerd: str, dockerd: str) -> None:
    """Run the engine until standard input ends or the engine does."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)  # the end of standard input is what ends this
    alive: dict[int, str] = {}
    try:
        address = f"{folder}/containerd.sock"
        alive[_start(folder, [containerd, *_containerd_options(folder, address)])] = "containerd"
        deadline_s = time.monotonic() + _STARTS_S
        while alive and not os.path.exists(address) and time.monotonic() < deadline_s:
            time.sleep(0.02)
            _reap(alive)
        if alive:
            alive[_start(folder, [dockerd, *_dockerd_options(folder, address)])] = "dockerd"
        while len(alive) == 2:
            ready, _, _ = select.select([0, wake], [], [])
            if 0 in ready and not os.read(0, 64):
                break
            if wake in ready:
                os.read(wake, 4096)
                _reap(alive)
    finally:
        for name in ("dockerd", "containerd"):
            _stop(name, alive)
        _kill_children()
        _unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _containerd_options(folder: str, address: str) -> list[str]:
    config = f"{folder}/containerd.toml"
    with open(config, "w") as file:
        file.write('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    return [
        *("--config", config, "--address", address),
        *("--root", f"{folder}/containerd", "--state", f"{folder}/containerd-state"),
    ]


def _dockerd_options(folder: str, address: str) -> list[str]:
    return [
        *("--containerd", address, "--host", f"unix://{folder}/docker.sock"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        *("--pidfile", f"{folder}/docker.pid", "--config-file", f"{folder}/none.json"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false", "--log-driver=none"),
        "--shutdown-timeout=2",
    ]


def _start(folder: str, command: list[str]) -> int:
    if os.path.basename(command[0]).startswith("dockerd"):
        with open(f"{folder}/none.json", "w") as file:
            file.write("{}")  # the machine's own settings are not for this engine
    with open(f"{folder}/engine.log", "ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": os.environ.get("PATH", "") + ":" + _SYSTEM_PATH, "HOME": folder},
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0),
        )
    pid = process.pid
    process.returncode = 0  # waited for below, with all others
    return pid


def _reap(alive: dict[int, str]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            alive.pop(pid, None)


def _stop(name: str, alive: dict[int, str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline_s = time.monotonic() + _STOPS_S
        for pid in [pid for pid, known in alive.items() if known == name]:
            os.kill(pid, number)
        while name in alive.values() and time.monotonic() < deadline_s:
            _reap(alive)
            time.sleep(0.02)


def _kill_children() -> None:
    """Kill what the engine has left: shims, which are children of this process, and theirs."""
    deadline_s = time.monotonic() + _STOPS_S
    while time.monotonic() < deadline_s:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = file.read().split()
        if not children:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _reap({})
        time.sleep(0.02)


def _unmount_below(folder: str) -> None:
    with open("/proc/self/mounts") as file:
        places = [line.split()[1] for line in file]
    for place in reversed([place for place in places if place.startswith(folder)]):
        _libc.umount2(place.encode(), _MNT_DETACH)


if __name__ == "__main__":
    main(*sys.argv[1:])
