"""docs/pi-mem.md names code and tests that exist, and settings with the defaults that they have."""

from __future__ import annotations

import dataclasses
import pkgutil
import re
from pathlib import Path

import pytest

import mars_envs
from mars_envs.parallel_memory import prompts
from mars_envs.parallel_memory.methods import METHODS
from mars_envs.parallel_memory.settings import MemorySettings
from mars_envs.registration import TABLE as REGISTERED

PAGE = (Path(__file__).parents[1] / "docs" / "pi-mem.md").read_text()
TABLE = "From the equations to the code"


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"no section {title!r}"
    return found[1]


def rows(title: str) -> list[list[str]]:
    """Return the cells of a section's table, without its head and the headings within."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells[2:] if not row[0].startswith("**")]


EQUATIONS = rows(TABLE)
SETTINGS = rows("Method")


def test_the_table_is_read_whole() -> None:
    headings = section(TABLE).count("\n| **")
    assert len(EQUATIONS) == section(TABLE).count("\n| ") - 2 - headings
    assert all(len(row) == 3 and all(row) for row in EQUATIONS)


@pytest.mark.parametrize("name", sorted({row[1] for row in EQUATIONS}))
def test_the_page_names_code_that_exists(name: str) -> None:
    path = re.sub(r"^pm\.", "parallel_memory.", name.strip("`"))
    path = path if path.startswith(("mars_envs", "trainers")) else f"mars_envs.{path}"
    assert pkgutil.resolve_name(path).__doc__


@pytest.mark.parametrize("place", sorted({row[2] for row in EQUATIONS}))
def test_every_mechanism_names_a_test_that_exists(place: str, repo_dir: Path) -> None:
    file, name = place.strip("`").split("::")
    file = file if "/" in file else f"mars_envs/{file}"
    source = (repo_dir / "tests" / file).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), place


def test_every_setting_is_in_the_table_and_has_the_default_that_it_says() -> None:
    told = {"none": None, "on": True, "off": False}
    named = []
    for cells in SETTINGS:
        names = re.findall(r"`(\w+)`", cells[0])
        values = [value.strip("` ").replace(",", "") for value in cells[1].split(", ")]
        values = values * len(names) if len(values) == 1 else values
        for name, value in zip(names, values, strict=True):
            assert str(getattr(MemorySettings(), name)) == str(told.get(value, value)), name
        named += names
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(MemorySettings))


def test_every_function_of_a_set_of_prompts_is_told_with_the_fields_of_its_view() -> None:
    told = {row[0].strip("`"): row[2] for row in rows("Prompts of your own")}
    assert list(told) == list(prompts.FUNCTIONS)
    for function, cell in told.items():
        view, *fields = re.findall(r"`(\w+)`", cell)
        assert prompts.Prompts.__annotations__[function] == f"Callable[[{view}], str]"
        if fields:  # once for each view
            known = dataclasses.fields(getattr(prompts, view))
            assert fields == [field.name for field in known], view


def test_every_method_and_every_id_of_reading_has_its_place_among_the_names() -> None:
    methods, ids = set(), set()
    for _, method, environment, known in rows("Names")[: len(METHODS)]:
        methods.add(method.strip("`"))
        ids.update(re.findall(r"`([\w-]+)`", known))
        assert hasattr(mars_envs, environment.strip("`").partition("(")[0])
    assert methods == set(METHODS)
    trees = ("TreeSearch", "TreeControl", "tree_search")
    every = {row.id.removeprefix("mars_envs/") for row in REGISTERED}
    assert ids == {name for name in every if not name.startswith(trees)}
