"""Importing the packages is cheap and has no side effect but registration."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "docker", "scipy", "matplotlib", "jsonargparse")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


@pytest.mark.parametrize("package", ["mars_envs", "sandbox", "trainers"])
def test_import_loads_no_heavy_library(package: str) -> None:
    assert not loaded_by(f"import {package}") & set(HEAVY)


def test_importing_the_environments_does_not_load_the_sandbox_or_the_trainers() -> None:
    assert not loaded_by("import mars_envs") & {"sandbox", "trainers"}


def test_the_command_line_shows_its_help_without_torch() -> None:
    statement = "import mars_envs.cli\ntry: mars_envs.cli.main(['--help'])\nexcept SystemExit: pass"
    assert "torch" not in loaded_by(statement)
