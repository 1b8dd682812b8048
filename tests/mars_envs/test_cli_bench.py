"""`mars-envs sandbox bench`: a tiny run of everything, what it prints and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mars_envs.cli import main
from mars_envs.cli.console import console


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setattr(console, "width", 80)


@pytest.mark.docker
@pytest.mark.slow
def test_five_ways_are_measured_and_written_down(
    docker_engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.environ.get("DOCKER_HOST")
    out = tmp_path / "bench.json"
    size = ["--rounds", "1", "--programs", "2", "--tests", "2", "--clients", "1"]
    assert main(["sandbox", "bench", *size, "--profile", "--output", str(out)]) == 0
    shown = capsys.readouterr().out
    ways = ("host subprocess", "docker run", "docker exec", "ours (docker)", "ours (bubblewrap)")
    for way in ways:
        assert way in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    written = json.loads(out.read_text())
    assert written["left_out"] == {}
    assert [row["mode"] for row in written["rows"]] == [
        *("host", "docker-run", "docker-exec", "docker", "bubblewrap")
    ]
    for row in written["rows"]:
        assert row["programs_per_s"]["low"] > 0
        if os.geteuid() == 0:
            assert row["cpu_ms"]["median"] > 0
    assert os.environ.get("DOCKER_HOST") == before


def test_a_way_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "bench", "--modes", "host,podman"]) == 2
    assert "cannot measure podman; choose from host," in capsys.readouterr().err


def test_uptime_prints_the_first_tests_beside_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "uptime.json"
    options = ["--uptime", "20", "--sandbox", "bubblewrap", "--output", str(out)]
    assert main(["sandbox", "bench", *options]) == 0
    shown = capsys.readouterr().out
    for label in ("20 tests in one pool of bubblewrap", "CPU ms per test", "RSS of the guests"):
        assert label in shown
    assert json.loads(out.read_text())["tests"] == 20
