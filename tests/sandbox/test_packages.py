"""Packages for guests: which files, what a missing one is told, and that numpy works in there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import ImageError, Program, SandboxUnavailable, StdioCase, open_sandbox
from sandbox.packages import Package, mounts, resolve


def install(folder: Path, name: str, *files: str, requires: tuple[str, ...] = ()) -> None:
    """Lay out an installed distribution as pip does."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}")
    listed = [*files, f"{name}-1.0.dist-info/METADATA", f"{name}-1.0.dist-info/RECORD"]
    (info / "RECORD").write_text("".join(f"{each},,\n" for each in listed))
    for each in files:
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found(folder: Path, *names: str) -> tuple[Package, ...]:
    return resolve(names, search_path=[str(folder)], command="/opt/python")


def there(package: Package) -> list[str]:
    return [path for _, path in package.files if "dist-info" not in path]


def test_a_package_brings_its_files_and_what_it_depends_on(tmp_path: Path) -> None:
    install(tmp_path, "Top_Name", "top.py", requires=("middle>=1 ; python_version>'3'", "leaf"))
    install(tmp_path, "middle", "middle/__init__.py", "middle/lib.so", requires=("leaf (<3)",))
    install(tmp_path, "leaf", "leaf.py", requires=("middle",))  # in a circle
    install(tmp_path, "other", "other.py")
    packages = found(tmp_path, "top.name")
    assert [package.pin for package in packages] == ["leaf==1.0", "middle==1.0", "top-name==1.0"]
    assert [there(package) for package in packages] == [
        ["leaf.py"],
        ["middle/__init__.py", "middle/lib.so"],
        ["top.py"],
    ]


def test_extras_and_what_holds_only_elsewhere_are_not_needed(tmp_path: Path) -> None:
    install(
        tmp_path,
        "top",
        "top.py",
        requires=("pytest; extra == 'test'", "colorama; sys_platform == 'win32'"),
    )
    install(tmp_path, "pytest", "pytest.py")
    assert [package.name for package in found(tmp_path, "top")] == ["top"]


def test_commands_and_startup_hooks_stay_out(tmp_path: Path) -> None:
    install(tmp_path, "top", "top.py", "evil.pth", "../../bin/top", "__pycache__/top.pyc")
    assert there(found(tmp_path, "top")[0]) == ["top.py"]


def test_a_missing_package_is_told_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="install it first: /opt/python -m pip install numpy"):
        found(tmp_path, "numpy")
    install(tmp_path, "top", "top.py", requires=("leaf",))
    with pytest.raises(ImageError, match="pip install leaf"):
        found(tmp_path, "top")


@pytest.mark.parametrize("name", ["numpy==2.0", "./numpy", "", "numpy; rm", "-r x"])
def test_only_names_are_taken(tmp_path: Path, name: str) -> None:
    with pytest.raises(ImageError, match="bare name"):
        found(tmp_path, name)


def test_a_link_to_sources_is_no_package(tmp_path: Path) -> None:
    install(tmp_path, "top", "top.py")
    url = tmp_path / "top-1.0.dist-info" / "direct_url.json"
    url.write_text('{"dir_info": {"editable": true}, "url": "file:///src"}')
    with pytest.raises(ImageError, match=r"install it in full: .* --force-reinstall top"):
        found(tmp_path, "top")
    url.unlink()
    (tmp_path / "top-1.0.dist-info" / "RECORD").unlink()
    with pytest.raises(ImageError, match="without a list of its files"):
        found(tmp_path, "top")


def test_folders_are_shown_whole_where_nothing_else_is_in_them(tmp_path: Path) -> None:
    install(tmp_path, "one", "one/a.py", "one/deep/b.py", "shared/one/c.py", "single.py")
    install(tmp_path, "two", "shared/two/d.py")
    (tmp_path / "one" / "__pycache__").mkdir()
    (tmp_path / "one" / "__pycache__" / "a.pyc").write_text("")
    shown = [
        (here.removeprefix(f"{tmp_path}/"), path)
        for here, path in mounts(found(tmp_path, "one"))
        if "dist-info" not in path
    ]
    assert shown == [("one", "one"), ("shared/one", "shared/one"), ("single.py", "single.py")]


NUMPY = """\
import numpy
print(numpy.arange(3).sum(), int(round(numpy.linalg.det(numpy.eye(50)))))
try:
    import pytest
except ImportError:
    print("nothing else")
"""


def check_numpy(backend: str, **options: object) -> None:
    with open_sandbox(backend, workers=1, packages=["numpy"], **options) as sandbox:
        report = sandbox.grade(
            Program(NUMPY), [StdioCase(name="sum", stdin="", expected="3 1\nnothing else\n")]
        )
    assert report.accepted, report.cases


@pytest.mark.parametrize("options", [{}, {"rootless": True}])
def test_numpy_works_under_the_default_limits_in_bubblewrap(options: dict[str, object]) -> None:
    check_numpy("bubblewrap", **options)


@pytest.mark.docker
@pytest.mark.slow
def test_numpy_works_under_the_default_limits_in_docker(docker_engine: str) -> None:
    check_numpy("docker")


def test_without_being_asked_for_no_package_is_there() -> None:
    with open_sandbox("bubblewrap", workers=1) as sandbox:
        report = sandbox.grade(Program("import numpy"), [StdioCase(name="", stdin="", expected="")])
    assert report.cases[0].message == "ModuleNotFoundError: No module named 'numpy'"


def test_a_missing_package_is_noticed_when_the_sandbox_is_opened() -> None:
    with pytest.raises((ImageError, SandboxUnavailable), match="pip install no-such-package"):
        open_sandbox("bubblewrap", packages=["no-such-package"])
