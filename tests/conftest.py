"""Shared fixtures: the recorded data sets and the Docker engine, each absent on some machines."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

# No test fails for the time that it takes: a busy machine is no fault of the code.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repo_dir() -> Path:
    return REPO


@pytest.fixture(scope="session")
def data_dir() -> Path:
    path = Path(os.environ.get("MARS_ENVS_DATA", REPO.parent / "shared" / "data"))
    if not path.is_dir():
        reason = f"the recorded data sets are not at {path}; point MARS_ENVS_DATA at them"
        if os.environ.get("MARS_ENVS_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def docker_engine() -> str:
    """The engine's version. Where MARS_ENVS_REQUIRE_DOCKER=1 its absence is a failure."""
    reason = "no `docker` client on PATH"
    if shutil.which("docker"):
        try:
            answer = subprocess.run(
                ["docker", "version", "-f", "{{.Server.Version}}"],
                capture_output=True,
                text=True,
                timeout=10,
            )
        except subprocess.TimeoutExpired:
            reason = "the Docker engine did not answer within 10 s"
        else:
            if answer.returncode == 0:
                return answer.stdout.strip()
            reason = f"no Docker engine answers ({answer.stderr.strip()}); try `make engine`"
    if os.environ.get("MARS_ENVS_REQUIRE_DOCKER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def load_module() -> Callable[[Path], ModuleType]:
    """From a path to a module: folders of tests and examples are no packages."""

    def load(place: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"loaded_{place.stem}", place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where dataclasses look their annotations up
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def chat_server(load_module: Callable[[Path], ModuleType]) -> ModuleType:
    """The module `chat_server.py`."""
    return load_module(Path(__file__).with_name("chat_server.py"))
