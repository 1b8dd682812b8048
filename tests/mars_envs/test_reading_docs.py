"""docs/reading.md: each record in it is read as the format that it shows, each option is there."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path

import pytest

from mars_envs.reading import chunk_document, load_reading_tasks
from mars_envs.reading.evidence import verify_evidence
from mars_envs.reading.load import REQUIRED, ReadingOptions


@pytest.fixture(scope="module")
def page(repo_dir: Path) -> str:
    return (repo_dir / "docs" / "reading.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REQUIRED)
def test_the_record_of_a_format_is_read_as_such(name: str, page: str, tmp_path: Path) -> None:
    records = dict(re.findall(r"^### (\w+)\n(?:(?!^#).)*?^```json\n(.*?)^```$", page, re.M | re.S))
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps([json.loads(records[name])]))
    (task,) = load_reading_tasks(path)
    (named,) = load_reading_tasks(path, format=name)
    assert (task.task_id, task.question, task.evidence) == (
        named.task_id,
        named.question,
        named.evidence,
    )
    verify_evidence(task)
    assert bool(task.evidence) == (name not in ("longbench", "memagent"))


def test_the_table_of_formats_has_their_fields_in_their_order(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\| ((?:[^|]|(?<=\\)\|)+) \|", page, re.M)
    found = {name: fields.replace("\\", "").split(", ") for name, fields in rows}
    assert [(name, found[name]) for name in found if name in REQUIRED] == [
        (name, list(fields)) for name, fields in REQUIRED.items()
    ]


def test_every_option_is_explained(page: str) -> None:
    options = [field.name for field in dataclasses.fields(ReadingOptions)]
    options += list(inspect.signature(chunk_document).parameters)[1:]
    for name in options:
        assert re.search(rf"^\| [^|]*`{name}`", page, re.M), name


@pytest.mark.data
def test_the_page_counts_the_bridges_of_the_recorded_items(page: str, data_dir: Path) -> None:
    tasks = load_reading_tasks(data_dir / "hotpotqa")
    bridges = [task for task in tasks if task.kind == "bridge"]
    linked = [task for task in bridges if any(piece.triggers for piece in task.evidence)]
    others = [task for task in tasks if task.kind == "comparison"]
    assert all(task.hops == 1 for task in others)
    assert all(task.hops == (2 if task in linked else 0) for task in bridges)
    said = (
        f"Of the {len(tasks)} recorded items, {len(linked)} of the {len(bridges)} bridge questions "
        f"have such a link, and the {len(others)} comparisons"
    )
    assert said in " ".join(page.split())
