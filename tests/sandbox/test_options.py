"""Settings of sandboxes are refused when they are given, by name and with what would do."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest

from sandbox import Program, Status, StdioCase, open_sandbox
from sandbox.base import SandboxUnavailable
from sandbox.bubblewrap import BubblewrapBackend, find_bwrap
from sandbox.container import DockerBackend
from sandbox.interpreter import find_python
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.types import LEAST_WORKER_MB, Limits


@pytest.mark.parametrize("name", ["workers", "recycle_after", "max_waiting"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
def test_counts_are_whole_numbers_of_at_least_one(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be a whole number of at least 1.*got"):
        open_sandbox("local", **{name: value})


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "5", 2 * threading.TIMEOUT_MAX])
def test_the_time_to_wait_is_a_finite_number(value: Any) -> None:
    with pytest.raises(ValueError, match="wait_s must be a positive number of seconds, or None"):
        open_sandbox("local", wait_s=value)


def test_a_pool_checks_its_own_settings() -> None:
    with pytest.raises(ValueError, match="size must be a whole number of at least 1, got 0"):
        WorkerPool(LocalBackend(), size=0)
    with pytest.raises(ValueError, match="recycle_after must be a whole number"):
        WorkerPool(LocalBackend(), recycle_after=0)


def test_a_cache_is_a_cache_or_a_switch() -> None:
    cache: Any = None
    with pytest.raises(TypeError, match=r"cache is True, False or a RunCache\(\), got None"):
        open_sandbox("local", cache=cache)


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("docker", "has no option 'colour'; it takes image, memory_mb, tmp_mb, cpus, runtime"),
        ("bubblewrap", "has no option 'colour'; it takes memory_mb, tmp_mb, bwrap, rootless"),
        ("local", "has no option 'colour'; it takes no options"),
    ],
)
def test_an_unknown_option_is_told_the_known_ones(backend: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        open_sandbox(backend, colour="red")


@pytest.mark.parametrize("kind", [BubblewrapBackend, DockerBackend])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"memory_mb": 63}, ValueError, "memory_mb must be a whole number from 64 to .*, got 63"),
        ({"memory_mb": "1g"}, ValueError, "memory_mb must be a whole number .*, got '1g'"),
        ({"tmp_mb": 0}, ValueError, "tmp_mb must be a whole number from 1 .*, got 0"),
        ({"packages": "numpy"}, TypeError, r"got 'numpy' .*; write \('numpy',\)"),
        ({"packages": [3]}, TypeError, "a name in packages is text, like 'numpy', got 3"),
        ({"python": 3}, TypeError, "python is the path of an interpreter, .* got 3"),
    ],
)
def test_an_option_of_a_backend_that_cannot_be_is_named(
    kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"userns": "keep"}, "userns is 'remap', 'host' or None .*, got 'keep'"),
        ({"cpus": 0}, "cpus must be a positive number of cores, got 0"),
        ({"cpus": "two"}, "cpus must be a positive number of cores, got 'two'"),
        ({"cpus": 1e-10}, "cpus must be at least 0.01 cores, got 1e-10"),
    ],
)
def test_an_option_of_docker_that_cannot_be_is_named(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DockerBackend(**options)


def test_a_binary_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "bwrap")
    with pytest.raises(SandboxUnavailable, match=f"bwrap='{path}'; give the path of a bwrap"):
        open_sandbox("bubblewrap", bwrap=path)
    assert find_bwrap(find_bwrap()) == find_bwrap()


@pytest.mark.parametrize("path", ["", "/no/such/python", "a\0b"])
def test_a_path_without_an_interpreter_is_named(path: str) -> None:
    with pytest.raises(SandboxUnavailable, match="is no interpreter that runs"):
        find_python(path)


def test_the_smallest_worker_runs_programs() -> None:
    with open_sandbox("bubblewrap", workers=1, memory_mb=LEAST_WORKER_MB) as sandbox:
        case = StdioCase(name="one", stdin="", expected="1")
        limits = Limits(memory_mb=LEAST_WORKER_MB)
        report = sandbox.grade(Program("import json\nprint(1)"), [case], limits)
    assert report.status is Status.ACCEPTED, report.cases


@pytest.mark.docker
def test_an_engine_that_refuses_an_option_is_quoted_with_what_was_asked(docker_engine: str) -> None:
    asked = r"with memory_mb=1088, tmp_mb=32, cpus=9999: .*CPUs.*; change these options"
    with pytest.raises(SandboxUnavailable, match=asked):
        DockerBackend(cpus=9999).start_worker()
