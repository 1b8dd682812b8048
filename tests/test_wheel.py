"""What a user installs: the wheel, in a clean environment, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FIRST_USE = """
import gymnasium as gym
env = gym.make("mars_envs:mars_envs/TreeSearch-v0")
prompt = env.reset(seed=0)[0]["prompt"]
assert len(prompt) > 20, prompt
reward, terminated, truncated, info = env.step("print(1)")[1:]
assert reward in (0.0, 1.0) and info["status"] != "no_code", info
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DOCKER_HOST")},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(repo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, cwd=repo_dir)
    (built,) = out.glob("mars_envs-*.whl")
    return built


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=home)
    return python


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"mars_envs", "sandbox", "trainers"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)


def test_all_three_packages_import_from_an_empty_directory(
    clean_python: Path, tmp_path: Path
) -> None:
    where = run(
        clean_python,
        "-c",
        "import mars_envs, sandbox, trainers; print(mars_envs.__file__, sandbox.__distribution__)",
        cwd=tmp_path,
    )
    assert "site-packages" in where
    assert where.split()[1] == "mars-envs"


def test_the_default_environment_judges_code_straight_after_installation(
    clean_python: Path, tmp_path: Path
) -> None:
    run(clean_python, "-c", FIRST_USE, cwd=tmp_path)


def test_the_command_is_on_the_path(clean_python: Path, tmp_path: Path) -> None:
    assert "sandbox" in run(clean_python.with_name("mars-envs"), "--help", cwd=tmp_path)
