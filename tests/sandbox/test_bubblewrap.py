"""The embedded backend: what it shows, what it does without root, and when it gives up."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.base import Guarantee, SandboxUnavailable
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.pool import WorkerPool
from sandbox.types import CaseResult, Limits, Status

from .corpus.stage import Played
from .corpus.unprivileged import ATTACKS

LIMITS = Limits(cpu_s=1.0)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def unprivileged(
    as_ordinary_user: Callable[[str], str], repo_dir: Path
) -> dict[str, dict[str, object]]:
    """What programs did in sandboxes started by a user without privileges."""
    script = (repo_dir / "tests" / "sandbox" / "unprivileged.py").read_text()
    return json.loads(as_ordinary_user(script))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("sum", None),
        ("compile", Status.COMPILE_ERROR),
        ("raise", Status.RUNTIME_ERROR),
        ("exit", Status.RUNTIME_ERROR),
        ("crash", Status.RUNTIME_ERROR),
        ("loop", Status.TIME_LIMIT_EXCEEDED),
        ("sleep", Status.TIME_LIMIT_EXCEEDED),
        ("memory", Status.MEMORY_LIMIT_EXCEEDED),
        ("flood", Status.OUTPUT_LIMIT_EXCEEDED),
        ("kill", None),
        ("daemon", None),
    ],
)
def test_an_ordinary_user_gets_the_same_verdicts(
    unprivileged: dict[str, dict[str, object]], program: str, status: Status | None
) -> None:
    assert unprivileged[program]["status"] == status


def test_an_ordinary_user_gets_outputs_codes_signals_and_cpu_times(
    unprivileged: dict[str, dict[str, object]],
) -> None:
    assert unprivileged["sum"]["stdout"] == "42\n"
    assert unprivileged["exit"]["exit_code"] == 7
    assert unprivileged["crash"]["signal"] == signal.SIGSEGV
    assert 1.0 < float(str(unprivileged["loop"]["cpu_s"])) < 2.5
    assert float(str(unprivileged["sum"]["cpu_s"])) < 0.5
    assert "ZeroDivisionError" in str(unprivileged["raise"]["stderr"])
    assert unprivileged["session"] == {"stdout": "ABC", "status": None}


def test_a_fork_bomb_of_an_ordinary_user_ends_with_its_sandbox(
    unprivileged: dict[str, dict[str, object]],
) -> None:
    assert unprivileged["fork bomb"]["status"] in ("time_limit_exceeded", "runtime_error")


def test_without_root_no_result_can_be_forged(unprivileged: dict[str, dict[str, object]]) -> None:
    forged = unprivileged["forge"]
    assert (forged["status"], forged["stdout"], forged["exit_code"]) == ("runtime_error", "0\n", 1)


def test_without_root_every_run_has_a_place_of_its_own(
    unprivileged: dict[str, dict[str, object]],
) -> None:
    first, again = unprivileged["look"]["stdout"], unprivileged["look again"]["stdout"]
    assert str(first).startswith("PermissionError -1 ['dev', 'lib64', 'proc', 'tmp', 'usr'] []")
    assert again == first


@pytest.fixture(scope="module")
def corpus_of_an_ordinary_user(as_ordinary_user: Callable[[str], str]) -> dict[str, Any]:
    """What attacks came to in sandboxes started by a user without privileges."""
    script = "from tests.sandbox.corpus.unprivileged import main; main()"
    return json.loads(as_ordinary_user(script))  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_program_of_an_ordinary_user_harms_itself_alone(
    corpus_of_an_ordinary_user: dict[str, Any], name: str
) -> None:
    attack = ATTACKS[name]
    if attack.needs in corpus_of_an_ordinary_user["missing"]:
        pytest.skip(f"not guaranteed here: {attack.needs and attack.needs.sentence}")
    played = corpus_of_an_ordinary_user["played"][name]
    result = CaseResult(**played.pop("result"))
    assert Played(result=result, **played).complaints(attack) == []


def test_what_root_would_add_is_declared_missing(
    unprivileged: dict[str, dict[str, object]],
) -> None:
    assert unprivileged["capabilities"]["missing"] == ["total_memory", "tmp_files"]


def test_a_guest_sees_an_interpreter_and_little_else() -> None:
    source = (
        b"import os, sys\nprint(sorted(os.listdir('/')), sorted(os.listdir('/dev')))\n"
        b"print(sys.prefix, [p for p in sys.path if 'packages' in p and os.listdir(p)])\n"
        b"print(sorted(os.environ))\n"
        b"print([f'{d}/{name}' for d, _, names in os.walk('/sys') for name in names])\n"
    )
    with WorkerPool(BubblewrapBackend(), size=1) as pool:
        lines = pool.run(source, b"", LIMITS).stdout.decode().splitlines()
    # What counts kills for memory is there where a control group is.
    counters = ast.literal_eval(lines[3])
    assert counters in (
        [],
        ["/sys/fs/cgroup/memory/memory.oom_control"],
        ["/sys/fs/cgroup/memory.events"],
    )
    system = "'sys', " if counters else ""
    assert lines[0].replace("'lib', ", "") == (
        f"['dev', 'lib64', 'proc', {system}'tmp', 'usr'] "
        "['fd', 'full', 'null', 'random', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']"
    )
    assert lines[1] == "/usr/local []"
    assert "USER" not in lines[2]
    assert "PYTHONHASHSEED" in lines[2]


@needs_root
def test_processes_together_stay_below_the_workers_memory() -> None:
    backend = BubblewrapBackend(memory_mb=192)
    if Guarantee.TOTAL_MEMORY in backend.capabilities.missing:
        pytest.skip("no control group can be made here")
    source = (
        b"import os, time\nchildren = [os.fork() for _ in range(1)]\n"
        b"x = bytearray(150 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\ntime.sleep(0.3)\n"
        b"if children[0]:\n    raise SystemExit(os.wait()[1] and 1)"
    )
    with WorkerPool(backend, size=1) as pool:
        result = pool.run(source, b"", Limits(cpu_s=10.0, memory_mb=190))
        assert result.status is Status.MEMORY_LIMIT_EXCEEDED
        assert pool.run(b"print(1)", b"", Limits(memory_mb=64)).stdout == b"1\n"


def test_workers_die_with_the_process_that_started_them(repo_dir: Path) -> None:
    script = (
        "import sys, time\n"
        "from sandbox.bubblewrap import BubblewrapBackend\n"
        "from sandbox.types import Limits\n"
        "worker = BubblewrapBackend().start_worker()\n"
        "session = worker.open(b'import os, time\\nos.write(3, b\"up\")\\ntime.sleep(300)',"
        " Limits(wall_s=300))\n"
        "session.receive(30)\n"
        "print('up', flush=True)\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=repo_dir
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        family = _descendants(owner.pid)
        assert len(family) >= 3
        owner.kill()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(_is_alive, family)):
        time.sleep(0.02)
    assert [pid for pid in family if _is_alive(pid)] == []


def _descendants(root: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found, queue = [], [root]
    while queue:
        parent = queue.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        found += children
        queue += children
    return found


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("rootless", [False, True])
def test_where_bubblewrap_is_refused_the_reason_is_told(tmp_path: Path, rootless: bool) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1"
    )
    refusing.chmod(0o755)
    backend = BubblewrapBackend(bwrap=str(refusing), rootless=rootless)
    with pytest.raises(SandboxUnavailable) as caught:
        backend.start_worker()
    assert "No permissions to create new namespace" in str(caught.value)
    assert "mars-envs sandbox doctor" in str(caught.value)


def test_a_missing_binary_is_told(tmp_path: Path) -> None:
    backend = BubblewrapBackend(bwrap=str(tmp_path / "absent"))
    with pytest.raises(SandboxUnavailable, match="sandbox doctor"):
        backend.start_worker()


def test_the_fingerprint_is_stable_and_tells_modes_apart() -> None:
    one, two = BubblewrapBackend(rootless=False), BubblewrapBackend(rootless=True)
    assert one.fingerprint == BubblewrapBackend(rootless=False).fingerprint
    assert one.fingerprint != two.fingerprint


@needs_root
def test_without_a_control_group_the_limit_on_all_memory_is_declared_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.cgroup.create", lambda *_, **__: None)
    backend = BubblewrapBackend()
    assert backend.capabilities.missing == (Guarantee.TOTAL_MEMORY,)
    with WorkerPool(backend, size=1) as pool:
        assert pool.run(b"print(1)", b"", Limits()).stdout == b"1\n"


@needs_root
def test_files_in_tmp_are_limited_where_root_has_the_tools_and_else_declared_unlimited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = b"for i in range(10**6): open(f'/tmp/{i}', 'w').close()"
    with WorkerPool(BubblewrapBackend(), size=1) as pool:
        result = pool.run(bomb, b"", Limits(cpu_s=5.0))
    assert result.status is Status.RUNTIME_ERROR
    assert b"No space left" in result.stderr
    monkeypatch.setattr("sandbox.private_tmp.works", lambda: False)
    backend = BubblewrapBackend()
    assert Guarantee.TMP_FILES in backend.capabilities.missing
    with WorkerPool(backend, size=1) as pool:
        small = b"open('/tmp/a', 'w').close()\nprint('ok')"
        assert pool.run(small, b"", Limits()).stdout == b"ok\n"
