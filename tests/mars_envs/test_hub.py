"""Data sets of a hub: from a folder in its layout, from the cache, and where it cannot be reached.

No hub can be reached by the tests. What the libraries read when they are imported (where the cache
is, whether to ask the hub at all) is set for a process of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import load_tasks
from mars_envs.tasks.hub import HubName, parse_name

LOAD = """
import json, sys
from mars_envs.errors import InvalidTask
from mars_envs.tasks import load_tasks
for source, options in json.loads(sys.argv[1]):
    try:
        answer = [[task.task_id for task in load_tasks(source, **options)], ""]
    except InvalidTask as error:
        answer = [[], str(error)]
    print(json.dumps(answer))
"""
CARD = """---
configs:
- config_name: main
  default: true
  data_files:
  - split: train
    path: main/train-*.jsonl
  - split: test
    path: main/test-*.jsonl
- config_name: other
  data_files:
  - split: test
    path: other/*.jsonl
---
"""


def record(task_id: str | None, **fields: Any) -> dict[str, Any]:
    data = {"question": "Add.", "input_output": '{"inputs": ["1"], "outputs": ["2"]}', **fields}
    return data if task_id is None else {"task_id": task_id, **data}


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def ask(place: Path, *sources: Any, offline: bool = True) -> list[tuple[list[str], str]]:
    """Load sources, each a name or a name with options, in a process of their own."""
    asked = [one if isinstance(one, tuple) else (one, {}) for one in sources]
    env = {**os.environ, "HF_HOME": str(place / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    env |= {"HF_HUB_OFFLINE": "1"} if offline else {"HF_ENDPOINT": "http://127.0.0.1:9"}
    answer = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(asked)],
        capture_output=True,
        text=True,
        cwd=place,
        env=env,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return [(ids, error) for ids, error in map(json.loads, answer.stdout.splitlines())]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the hub's layout, one with a script, and a cache with a file that was loaded."""
    pytest.importorskip("datasets")
    import pyarrow as pa
    import pyarrow.parquet

    place = tmp_path_factory.mktemp("hub")
    for folder in ("ds/main", "table", "damaged", "ds/other", "scripted"):
        (place / folder).mkdir(parents=True)
    (place / "ds/README.md").write_text(CARD)
    (place / "ds/main/train-0.jsonl").write_text(lines(record("t0"), record("t1")))
    (place / "ds/main/test-0.jsonl").write_text(lines(record("t2")))
    (place / "damaged/test.jsonl").write_text("{")
    rows = [record(None, difficulty=word) for word in ("EASY", "HARD", "EASY")]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), place / "table/test-0.parquet")
    (place / "ds/other/a.jsonl").write_text(lines(record("o0"), record("o1", question=" ")))
    (place / "scripted/scripted.py").write_text("raise SystemExit('code from a hub was run')\n")
    cache = place / "home/hub/datasets--org--set"
    snapshot = cache / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text("0" * 40)
    for number in (2, 10):
        (snapshot / f"test{number}.jsonl").write_text(lines(record(f"c{number}")))
    return place


GOOD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("hf:./ds#train", {}, ["t0", "t1"]),
    ("hf:./table", {"split": "test", "limit": 2}, ["table/test/1", "table/test/2"]),
    ("hf:./table#test?difficulty=easy", {}, ["table/test/1", "table/test/3"]),
    ("hf:./ds", {"name": "other", "on_error": "skip"}, ["o0"]),
    ("hf:org/set/test2.jsonl", {}, ["c2"]),
    ("hf:org/set/test*.jsonl", {}, ["c2", "c10"]),
    ("hf:org/set/test2.jsonl@main", {}, ["c2"]),
]
BAD = {
    "hf:./ds": "expected a split, since there are several; write one of hf:./ds#train, hf:./ds",
    "hf:./ds#dev": "Available splits: ['train', 'test']",
    "hf:./ds:third#test": "'third' not found. Available: ['main', 'other']",
    "hf:./ds:other": "hf:./ds:other, row 2, field `question`: expected a text that is not blan",
    "hf:./damaged#test": "row 1: expected a row of data, got an error (",
    "hf:./nowhere#test": "there is no folder ./nowhere; check the path",
    "hf:./scripted#test": "holds a loading script, and code from a hub is never run",
    "hf:org/unknown#test": "set HF_HUB_OFFLINE=1 so that nothing waits for the hub,",
    "hf:org/unknown/t.jsonl": "cannot be reached, and the file is not in the cache; to",
    "hf:org/unknown/*.jsonl": "cannot be reached",
    "hf:org/set/dev*.jsonl": "no file of the repository is called so; it has",
}


@pytest.fixture(scope="module")
def answers(place: Path) -> list[tuple[list[str], str]]:
    """What came of each source: the libraries take seconds to import, so one process asks all."""
    return ask(place, *((source, options) for source, options, _ in GOOD), *BAD)


def test_a_data_set_is_read_by_its_config_and_split(answers: list[tuple[list[str], str]]) -> None:
    for (ids, error), (source, _, expected) in zip(answers, GOOD, strict=False):
        assert (ids, error) == (expected, ""), source


def test_what_cannot_be_read_is_named_with_a_way_out(answers: list[tuple[list[str], str]]) -> None:
    for (ids, error), (source, message) in zip(answers[len(GOOD) :], BAD.items(), strict=True):
        assert message in error, source
        assert error.startswith(source), source
        assert ids == []


@pytest.mark.slow  # the libraries try six times each, with seconds between
def test_a_hub_that_does_not_answer_is_named(place: Path) -> None:
    ((ids, error),) = ask(place, "hf:org/unknown#test", offline=False)
    assert ids == []
    assert "the hub http://127.0.0.1:9 cannot be reached, and the data set is not in the" in error


def test_without_the_library_the_extra_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    for source in ("hf:org/set#test", "hf:org/set/test.jsonl"):
        with pytest.raises(InvalidTask, match=r"pip install 'mars-envs\[hub\]', or download"):
            load_tasks(source)


NAMES = {
    "hf:squad": HubName(repo="squad"),
    "hf:org/name": HubName(repo="org/name"),
    "hf:org/name#test": HubName(repo="org/name", split="test"),
    "hf:org/name:a-b.c@v1.0#test[:5%]": HubName(
        repo="org/name", config="a-b.c", revision="v1.0", split="test[:5%]"
    ),
    "hf:org/name/data/x*.jsonl@main": HubName(
        repo="org/name", file="data/x*.jsonl", revision="main"
    ),
    "hf:/a/b c/d:x": HubName(repo="/a/b c/d", config="x"),
    "hf:./d": HubName(repo="./d"),
    "hf:~/d#test": HubName(repo="~/d", split="test"),
}


@pytest.mark.parametrize("text", NAMES)
def test_a_name_says_repository_file_config_revision_and_split(text: str) -> None:
    assert parse_name(text) == NAMES[text]
    assert str(NAMES[text]) == text


def test_keywords_say_what_the_name_leaves_out() -> None:
    assert parse_name("hf:org/name:c", name="c", revision="r", split="s") == HubName(
        repo="org/name", config="c", revision="r", split="s"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hf:", "expected a data set as hf:ORG/NAME"),
        ("hf:org/name#", "expected a data set as hf:ORG/NAME"),
        ("hf:org/na me", "expected a data set as hf:ORG/NAME"),
        ("hf:org/name#a@b:c#d", "expected a data set as hf:ORG/NAME"),
        ("hf:org/name/file.jsonl:config", "a file of a repository has neither a config nor a spl"),
        ("hf:org/name#train", "names the split 'train', the keyword 'test'; say it once"),
    ],
)
def test_a_name_that_says_something_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        parse_name(text, split="test" if text.endswith("train") else None)
