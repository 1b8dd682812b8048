"""What the README shows works: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mars_envs.cli.parser import build_parser

README = Path(__file__).resolve().parents[1] / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    found = [body for name, body in FENCE.findall(README.read_text()) if name == language]
    assert found, f"no {language or 'plain'} blocks in the README"
    return found


def commands() -> list[str]:
    """Every `mars-envs` command line, continued lines joined and comments dropped."""
    text = "\n".join(blocks("")).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith("mars-envs ")]


def test_the_readme_starts_with_the_two_commands() -> None:
    assert [line.split()[:2] for line in blocks("")[0].splitlines()] == [
        ["make", "demo"],
        ["make", "test"],
    ]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_in_the_readme_runs(number: int) -> None:
    code = blocks("python")[number]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", commands())
def test_commands_in_the_readme_parse(line: str) -> None:
    build_parser().parse_args(shlex.split(line, comments=True)[1:])


def test_links_in_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    local = [target for target in targets if "://" not in target]
    assert local
    for target in local:
        assert (README.parent / target).exists(), target
