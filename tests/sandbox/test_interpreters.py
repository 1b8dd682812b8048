"""Other interpreters of this machine: as a guest's, and as the one that runs the sandbox."""

from __future__ import annotations

import glob
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Program, SandboxUnavailable, StdioCase, open_sandbox
from sandbox import interpreter as module
from sandbox.bubblewrap import find_bwrap
from sandbox.interpreter import OLDEST, Python, ask, find_python, guest_interpreter

VERSION = "import sys; print(*sys.version_info[:2], input())"


def usable_pythons() -> dict[tuple[int, int], Python]:
    """One other CPython of each version, from PATH, the system and pyenv, by version."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], 16)]
    paths = [path for name in ("python3", *names) if (path := shutil.which(name))]
    paths += [path for name in ("python3", *names) if os.path.exists(path := f"/usr/bin/{name}")]
    paths += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    found: dict[tuple[int, int], Python] = {}
    for path in paths:
        try:
            python = ask(path)
        except SandboxUnavailable:
            continue  # a launcher of pyenv's with no version behind it
        if not python.trouble and python.binary != os.path.realpath(sys.executable):
            found.setdefault(python.version, python)
    return found


@pytest.fixture(scope="module")
def others() -> list[Python]:
    found = list(usable_pythons().values())
    if not found:
        pytest.skip("no other CPython of 3.11 or newer on this machine (PATH, /usr/bin, pyenv)")
    return found


def expected(python: Python) -> StdioCase:
    output = f"{python.version[0]} {python.version[1]} hello"
    return StdioCase(name="version", stdin="hello", expected=output)


@pytest.mark.slow
@pytest.mark.parametrize("rootless", [False, True])
def test_programs_run_in_another_interpreter_in_bubblewrap(
    others: list[Python], rootless: bool
) -> None:
    if not rootless and os.geteuid() != 0:
        pytest.skip("needs root")
    for python in others:
        with open_sandbox(
            "bubblewrap", workers=1, python=python.command, rootless=rootless
        ) as sandbox:
            report = sandbox.grade(Program(VERSION), [expected(python)])
        assert report.accepted, (python, report.cases)


@pytest.mark.docker
@pytest.mark.slow
def test_programs_run_in_another_interpreter_in_docker(
    docker_engine: str, others: list[Python]
) -> None:
    # The newest: the more versions lie between, the likelier is something to have moved.
    python = max(others, key=lambda python: python.version)
    with open_sandbox("docker", workers=1, python=python.command) as sandbox:
        report = sandbox.grade(Program(VERSION), [expected(python)])
    assert report.accepted, (python, report.cases)


@pytest.mark.slow
def test_another_interpreter_can_run_the_sandbox(others: list[Python], repo_dir: Path) -> None:
    script = (
        "import json, sys\n"
        "from sandbox import Program, StdioCase, open_sandbox\n"
        "source, bwrap = sys.argv[1:]\n"
        "case = StdioCase(name='', stdin='hello', expected='%d %d hello' % sys.version_info[:2])\n"
        "with open_sandbox('bubblewrap', workers=1, bwrap=bwrap) as sandbox:\n"
        "    report = sandbox.grade(Program(source), [case])\n"
        "print(json.dumps([report.status, report.cases[0].message]))\n"
    )
    for python in others:
        answer = subprocess.run(
            [python.command, "-B", "-W", "error", "-c", script, VERSION, find_bwrap()],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(repo_dir)},
        )
        assert answer.returncode == 0, (python, answer.stderr)
        assert json.loads(answer.stdout) == ["accepted", ""], python


def test_an_interpreter_that_will_not_do_is_told_why(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="is no interpreter that runs"):
        find_python(str(tmp_path / "python"))
    with pytest.raises(SandboxUnavailable, match=r"does not say which Python.*3\.11 or newer"):
        find_python(shutil.which("true"))
    assert find_python(sys.executable).version == sys.version_info[:2]


def launcher(folder: Path, name: str, implementation: str, version: tuple[int, int]) -> None:
    """Put an interpreter on a path that says of itself what it is told to."""
    facts = {
        **module.python_facts.facts("/usr/local"),
        "implementation": implementation,
        "version": version,
        "command": str(folder / name),
    }
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(facts)}\nEND\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_where_another_implementation_runs_the_first_cpython_on_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(module, "_NAMES", ("python3", "python3.13", "python3.12"))
    launcher(tmp_path, "python3", "cpython", (3, 9))
    launcher(tmp_path, "python3.13", "pypy", (3, 13))
    launcher(tmp_path, "python3.12", "cpython", (3, 12))
    assert find_python().command == str(tmp_path / "python3.12")
    assert guest_interpreter().executable == "/usr/local/bin/python3.12"
    (tmp_path / "python3.12").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"it is pypy, not CPython; and PATH.*install one"):
        find_python()
