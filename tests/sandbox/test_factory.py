"""Opening a sandbox: what `auto` takes, and what it refuses to take."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Program, RunCache, SandboxUnavailable, Status, StdioCase, factory, open_sandbox

CASE = StdioCase(name="double", stdin="21", expected="42")
DOUBLE = Program("print(int(input()) * 2)")


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    factory._noticed.clear()


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str | None = None) -> str:
        raise SandboxUnavailable("no bwrap binary")

    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", fail)


@pytest.mark.parametrize("name", ["local", "bubblewrap"])
def test_a_named_backend_grades(name: str) -> None:
    with open_sandbox(name, workers=1) as sandbox:
        report = sandbox.grade(DOUBLE, [CASE])
    assert (report.status, report.backend) == (Status.ACCEPTED, name)
    assert report.isolated is (name != "local")


@pytest.mark.docker
def test_docker_grades_and_auto_prefers_it(docker_engine: str) -> None:
    with open_sandbox("auto", workers=1) as sandbox:
        report = sandbox.grade(DOUBLE, [CASE])
    assert (report.status, report.backend, report.isolated) == (Status.ACCEPTED, "docker", True)


def test_auto_falls_back_to_bubblewrap_with_one_notice(
    no_engine: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "sandbox.factory"):
        for _ in range(2):
            with open_sandbox(workers=1) as sandbox:
                assert sandbox.capabilities.backend == "bubblewrap"
    notices = [record.getMessage() for record in caplog.records]
    assert len(notices) == 1
    assert "no Docker engine answers" in notices[0]


def test_auto_never_falls_back_to_local(no_engine: None, no_bubblewrap: None) -> None:
    with pytest.raises(SandboxUnavailable, match="mars-envs sandbox doctor"):
        open_sandbox()


def test_a_named_backend_that_cannot_work_is_not_replaced(
    no_engine: None, no_bubblewrap: None
) -> None:
    with pytest.raises(SandboxUnavailable, match="no Docker engine answers"):
        open_sandbox("docker")
    with pytest.raises(SandboxUnavailable, match="no bwrap"):
        open_sandbox("bubblewrap")


def test_an_unknown_backend_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match="auto, docker, bubblewrap, local"):
        open_sandbox("podman")


def test_options_need_a_backend_by_name() -> None:
    with pytest.raises(TypeError, match="runtime"):
        open_sandbox("auto", runtime="runsc")
    with pytest.raises(TypeError):
        open_sandbox("local", runtime="runsc")


def test_the_cache_can_be_left_out_or_shared() -> None:
    with open_sandbox("local", cache=False) as sandbox:
        assert [sandbox.grade(DOUBLE, [CASE]).cached for _ in range(2)] == [0, 0]
    shared = RunCache()
    cached = []
    for _ in range(2):
        with open_sandbox("local", cache=shared) as sandbox:
            cached.append(sandbox.grade(DOUBLE, [CASE]).cached)
    assert cached == [0, 1]


def test_importing_the_package_imports_neither_docker_nor_the_machinery(repo_dir: Path) -> None:
    script = (
        "import sys, sandbox; sandbox.Status; "
        "late = ('docker', 'requests', 'asyncio', 'sandbox.grader'); "
        "print([name for name in late if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(repo_dir)},
    )
    assert answer.stdout.strip() == "[]"


def test_every_exported_name_exists() -> None:
    import sandbox

    for name in sandbox.__all__:
        assert getattr(sandbox, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        sandbox.nothing  # noqa: B018
