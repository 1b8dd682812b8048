"""docs/mars2.md names code and tests that exist, and its worked figures are what the code gives."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

from trainers.credit import CreditSettings, tree_credit

PAGE = (Path(__file__).parents[1] / "docs" / "mars2.md").read_text()
REWARDS, PARENTS, AGENTS = [0, 1, 1, 1, 0, 0], [-1, -1, 0, 2, 2, 0], list("abbaab")


def section(title: str) -> str:
    found = re.search(
        rf"^(#+) {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    assert found, f"no section {title!r}"
    return found[2]


def rows(title: str, columns: int) -> list[list[str]]:
    """Return the cells of a section's table rows of that width, without heads and headings."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    bodies = [row for row in cells if len(row) == columns and set(row[0]) != {"-"}]
    return [row for row in bodies[1:] if row[1]]


def number(cell: str) -> float:
    return float(cell.replace("−", "-"))


EQUATIONS = rows("From equation to code", 3)
NAMED = [
    *(row[1] for row in EQUATIONS),
    *(
        name
        for title in ("Metrics", "Diversity")
        for name in re.findall(r"`(?:trainers|mars_envs)\.[\w.]+`", section(title))
    ),
]


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_the_page_names_code_that_exists(name: str) -> None:
    path = re.sub(r"^ts\.", "mars_envs.tree_search.", name.strip("`"))
    assert pkgutil.resolve_name(path).__doc__


@pytest.mark.parametrize("place", sorted({row[2] for row in EQUATIONS}))
def test_every_equation_names_a_test_that_exists(place: str, repo_dir: Path) -> None:
    file, name = place.strip("`").split("::")
    source = (repo_dir / "tests" / file).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), place


def test_the_table_is_read_whole() -> None:
    assert len(EQUATIONS) == section("From equation to code").count("\n| ") - 2 - section(
        "From equation to code"
    ).count("\n| **")


def test_the_worked_example_is_what_the_code_gives() -> None:
    credit = tree_credit(REWARDS, PARENTS)
    for node, cells in enumerate(rows("A worked example", 7)):
        assert int(cells[0]) == node
        assert int(cells[1]) == REWARDS[node]
        assert number(cells[4]) == pytest.approx(
            REWARDS[node] - (credit.shaped[node] - REWARDS[node]) / 0.3
        )
        assert number(cells[5]) == pytest.approx(credit.shaped[node])
        assert number(cells[6]) == pytest.approx(credit.advantages[node], abs=5.1e-4)
    assert node == 5


@pytest.mark.parametrize("cells", rows("Variants", 7), ids=lambda cells: cells[0])
def test_the_table_of_variants_is_what_the_code_gives(cells: list[str]) -> None:
    settings = eval(cells[0].strip("`"), {"CreditSettings": CreditSettings})
    credit = tree_credit(REWARDS, PARENTS, agents=AGENTS, settings=settings)
    np.testing.assert_allclose([number(c) for c in cells[1:]], credit.advantages, atol=5.1e-4)


def test_the_pages_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for example in re.findall(
        r"^```python\n(.*?)^```", section("Variants"), re.DOTALL | re.MULTILINE
    ):
        exec(compile(example, "docs/mars2.md", "exec"), {})
    assert "0.788" in capsys.readouterr().out
