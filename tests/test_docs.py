"""What the pages show works: Python runs, commands parse, scripts and links exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mars_envs.cli.parser import build_parser

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
# Two pages have test files of their own; the blocks of the contract are fragments.
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
RUNNABLE = [page for page in PAGES if page.name not in ("sandbox.md", "tasks.md", "contract.md")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text()) if name == language]


def lines(page: Path, start: str) -> list[str]:
    """Every command line that begins with `start`, continued lines joined."""
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith(start)]


def anchors(page: Path) -> set[str]:
    """The fragments that headings get where pages are rendered."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in kept}


def named(pages: list[Path], find: str) -> list[object]:
    return [
        pytest.param(line, id=f"{page.name}: {line[:60]}")
        for page in pages
        for line in lines(page, find)
    ]


def test_the_readme_starts_with_the_two_commands() -> None:
    assert [line.split()[:2] for line in blocks(README, "")[0].splitlines()] == [
        ["make", "demo"],
        ["make", "test"],
    ]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=f"{page.name}-{number}")
        for page in RUNNABLE
        for number, code in enumerate(blocks(page, "python"), start=1)
        if "model.learn(" not in code  # a minute; test_tree_control_ppo.py runs it, shortened
    ],
)
def test_python_on_the_pages_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", named(RUNNABLE, "mars-envs "))
def test_commands_on_the_pages_parse(line: str) -> None:
    build_parser().parse_args(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("line", named(PAGES, "python "))
def test_scripts_on_the_pages_exist(line: str) -> None:
    assert (ROOT / shlex.split(line)[1]).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_on_the_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        if fragment:
            assert fragment in anchors(there), target
