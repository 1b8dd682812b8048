"""The dependency rule: who may import whom, and when."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

OURS = {"mars_envs", "sandbox", "trainers"}
STDLIB_ONLY = {"sandbox"}
IMPORT_TIME = {"gymnasium", "pettingzoo", "numpy"}
COMPOSITION_ROOT = "mars_envs/cli/"


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the top-level name of every absolute import and whether it runs at import time."""
    tree = ast.parse(path.read_text())
    late = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            late.update(id(inner) for inner in ast.walk(node))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            late.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], id(node) not in late
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0], id(node) not in late


def modules(repo_dir: Path, package: str) -> list[Path]:
    found = sorted((repo_dir / package).rglob("*.py"))
    assert found, f"no modules below {package}"
    return found


def test_sandbox_imports_nothing_of_ours(repo_dir: Path) -> None:
    for path in modules(repo_dir, "sandbox"):
        assert not {name for name, _ in imports(path)} & (OURS - {"sandbox"}), path


def test_trainers_know_environments_only_by_their_interface(repo_dir: Path) -> None:
    for path in modules(repo_dir, "trainers"):
        assert not {name for name, _ in imports(path)} & (OURS - {"trainers"}), path


def test_mars_envs_imports_the_sandbox_late_and_in_one_module_only(repo_dir: Path) -> None:
    for path in modules(repo_dir, "mars_envs"):
        place = path.relative_to(repo_dir).as_posix()
        if place.startswith(COMPOSITION_ROOT):
            continue
        for name, at_import_time in imports(path):
            assert name != "trainers", place
            if name == "sandbox":
                assert place == "mars_envs/judging/code.py", place
                assert not at_import_time, place


def test_the_command_line_imports_the_other_packages_late(repo_dir: Path) -> None:
    for path in modules(repo_dir, "mars_envs/cli"):
        early = {name for name, at_import_time in imports(path) if at_import_time}
        assert not early & {"sandbox", "trainers", "torch"}, path


@pytest.mark.parametrize("package", ["mars_envs", "sandbox"])
def test_heavy_libraries_are_imported_late(repo_dir: Path, package: str) -> None:
    heavy = {"torch", "transformers", "trl", "vllm", "docker", "matplotlib", "PIL", "scipy"}
    heavy |= {"bm25s", "bs4", "httpx", "pypdf"}
    for path in modules(repo_dir, package):
        early = {name for name, at_import_time in imports(path) if at_import_time}
        assert not early & heavy, path


def test_packages_import_themselves_relatively(repo_dir: Path) -> None:
    for package in OURS:
        for path in modules(repo_dir, package):
            if "guest" in path.parts:
                continue
            assert package not in {name for name, _ in imports(path)}, path
