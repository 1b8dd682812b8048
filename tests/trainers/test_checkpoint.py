"""Checkpoints: whole or not at all, and never of another run."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import trainers.checkpoint
from trainers.checkpoint import FORMAT, CheckpointStore
from trainers.errors import CheckpointError

IDENTITY = {"seed": 1, "lr": 0.1, "betas": (0.9, 0.99), "steps": 5}


def state(value: float) -> dict[str, Any]:
    return {"w": torch.full((3,), value), "rows": [{"ids": (1, 2), "text": "é"}]}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "checkpoints")
    for step in (2, 4):
        store.save(step, state(step), identity=IDENTITY)
    return store


def test_the_newest_checkpoint_comes_back(store: CheckpointStore) -> None:
    step, loaded = store.load(identity=IDENTITY)
    assert step == 4
    assert loaded["w"].tolist() == [4, 4, 4]
    assert loaded["rows"] == state(4)["rows"]


def test_only_the_last_ones_are_kept_and_nothing_else_is_left(store: CheckpointStore) -> None:
    store.save(6, state(6), identity=IDENTITY)
    assert store.steps() == [4, 6]
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "step-000004.json", "step-000004.pt", "step-000006.json", "step-000006.pt",
    ]  # fmt: skip


def test_a_checkpoint_can_be_written_again(store: CheckpointStore) -> None:
    store.save(4, state(5), identity=IDENTITY)
    assert store.load(identity=IDENTITY)[1]["w"].tolist() == [5, 5, 5]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "suffix"),
    [(cut, ".pt"), (flip, ".pt"), (Path.unlink, ".pt"), (cut, ".json"), (Path.unlink, ".json")],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    store: CheckpointStore, caplog: pytest.LogCaptureFixture, damage: Any, suffix: str
) -> None:
    damage(store.folder / f"step-000004{suffix}")
    with caplog.at_level(logging.WARNING):
        assert store.load(identity=IDENTITY)[0] == 2
    if (damage, suffix) != (Path.unlink, ".json"):  # then there is no sign of it left
        assert "checkpoint of step 4 is damaged" in caplog.text
    store.save(3, state(3), identity=IDENTITY)
    assert store.steps() == [2, 3]  # the damaged one no longer counts


def test_when_all_are_damaged_that_is_said(store: CheckpointStore) -> None:
    for step in (2, 4):
        cut(store.folder / f"step-00000{step}.pt")
    with pytest.raises(CheckpointError, match=r"those of steps \[2, 4\] are damaged"):
        store.load(identity=IDENTITY)


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        CheckpointStore(tmp_path).load(identity=IDENTITY)


def test_a_checkpoint_of_another_configuration_names_the_differing_fields(
    store: CheckpointStore,
) -> None:
    other = {**IDENTITY, "lr": 0.2, "steps": 9, "group": "agent"}
    with pytest.raises(CheckpointError) as caught:
        store.load(identity=other, may_differ={"steps"})
    message = str(caught.value)
    assert "group: '(nothing)' there, 'agent' here; lr: 0.1 there, 0.2 here" in message
    assert "steps" not in message.split("(", 1)[1].split("; use")[0]
    assert store.load(identity={**IDENTITY, "steps": 9}, may_differ={"steps"})[0] == 4


def test_a_checkpoint_of_another_format_is_refused(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainers.checkpoint, "FORMAT", 2)
    with pytest.raises(CheckpointError, match="has format 1, this release reads 2"):
        store.load(identity=IDENTITY)


@pytest.mark.parametrize("rename", [1, 2])
def test_a_writer_that_dies_leaves_the_checkpoint_before(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    really, calls = Path.replace, [0]

    def die(self: Path, target: Path) -> Path:
        calls[0] += 1
        if calls[0] == rename:
            raise KeyboardInterrupt
        return really(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            store.save(6, state(6), identity=IDENTITY)
    assert store.load(identity=IDENTITY)[0] == 4
    store.save(8, state(8), identity=IDENTITY)
    assert {path.name[:11] for path in store.folder.iterdir()} == {"step-000004", "step-000008"}


def test_loading_runs_no_code_from_the_file(
    store: CheckpointStore, capsys: pytest.CaptureFixture[str]
) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (print, ("code was run",))

    torch.save({"w": Evil()}, store.folder / "step-000004.pt")
    label = store.folder / "step-000004.json"
    old = trainers.checkpoint._sha256(store.folder / "step-000002.pt")
    text = (store.folder / "step-000002.json").read_text()
    new = trainers.checkpoint._sha256(store.folder / "step-000004.pt")
    label.write_text(text.replace(old, new))
    assert store.load(identity=IDENTITY)[0] == 2
    assert "code was run" not in capsys.readouterr().out


@pytest.mark.parametrize("identity", [5, []])
def test_a_label_that_holds_something_else_is_damaged(tmp_path: Path, identity: object) -> None:
    store = CheckpointStore(tmp_path)
    store.save(1, {"x": 1}, identity={"a": 1})
    label = {"format": FORMAT, "sha256": "x", "identity": identity}
    (tmp_path / "step-000002.json").write_text(json.dumps(label))
    (tmp_path / "step-abc.json").write_text("{}")
    assert store.load(identity={"a": 1}) == (1, {"x": 1})
