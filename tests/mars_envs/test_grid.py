"""A grid of cells gives the same records however often and by however many it is worked through."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from mars_envs.cli.grid import CellFailed, CellLog, Finished, Record, WorkerLost, run_grid

CELLS = {f"cell {n}": n for n in range(6)}


def square(n: int) -> Record:
    return {"square": n * n}


def square_of_even(n: int) -> Record:
    if n % 2:
        raise CellFailed(f"{n} is odd")
    return {"square": n * n}


def killed_at_three(n: int) -> Record:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": n * n}


def test_every_cell_gets_its_record_whatever_the_number_of_workers() -> None:
    alone, together = (
        {done.name: done.record for done in run_grid(CELLS, square, workers=workers)}
        for workers in (1, 2)
    )
    assert alone == together == {f"cell {n}": {"square": n * n} for n in range(6)}


def test_a_cell_whose_infrastructure_fails_has_no_record_and_the_others_go_on() -> None:
    found = {done.name: done for done in run_grid(CELLS, square_of_even, workers=1)}
    assert found["cell 3"] == Finished("cell 3", None, "3 is odd")
    assert [name for name, done in found.items() if done.record is not None] == [
        "cell 0",
        "cell 2",
        "cell 4",
    ]


def test_a_killed_worker_is_an_error_that_says_how_to_go_on() -> None:
    with pytest.raises(WorkerLost, match="go on with --resume, perhaps with fewer --workers"):
        list(run_grid(CELLS, killed_at_three, workers=2))


def test_a_log_gives_back_the_wanted_records(tmp_path: Path) -> None:
    log = CellLog(tmp_path / "log.jsonl")
    assert log.resume(CELLS.keys()) == ({}, 0)
    for n in range(3):
        log.append(f"cell {n}", square(n))
    assert log.resume({"cell 1", "cell 5"}) == ({"cell 1": {"square": 1}}, 0)
    assert len(log.resume(CELLS.keys())[0]) == 3


def test_a_line_that_lacks_only_its_end_is_kept_and_not_glued_to_the_next(tmp_path: Path) -> None:
    log = CellLog(tmp_path / "log.jsonl")
    log.append("cell 1", square(1))
    log.path.write_bytes(log.path.read_bytes().rstrip(b"\n"))
    assert log.resume(CELLS.keys()) == ({"cell 1": {"square": 1}}, 0)
    log.append("cell 2", square(2))
    assert log.resume(CELLS.keys()) == ({f"cell {n}": square(n) for n in (1, 2)}, 0)


@pytest.mark.parametrize(
    "damage",
    [
        b'{"cell": "cell 2", "reco',  # a process was killed while it wrote
        b"\0\0\0\0\n",  # a machine went down
        b'{"cell": 2, "record": {}}\n',
        b'{"cell": "cell 2", "record": 4}\n',
        b"[]\n",
        b"\xff\xfe\n",
    ],
)
def test_a_damaged_line_costs_its_own_cell_only(tmp_path: Path, damage: bytes) -> None:
    log = CellLog(tmp_path / "log.jsonl")
    log.append("cell 1", square(1))
    with log.path.open("ab") as file:
        file.write(damage)
    assert log.resume(CELLS.keys()) == ({"cell 1": {"square": 1}}, 1)
    log.append("cell 2", square(2))  # must not be glued to the torn line
    assert log.resume(CELLS.keys()) == ({f"cell {n}": square(n) for n in (1, 2)}, 0)
    assert all(json.loads(line) for line in log.path.read_text().splitlines())
