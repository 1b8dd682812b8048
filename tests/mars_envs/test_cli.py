"""The command line: what it accepts, what it refuses, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mars_envs.cli import main
from mars_envs.cli.config import DemoConfig, SolveConfig
from mars_envs.cli.parser import COMMANDS
from mars_envs.errors import InvalidSetting

TASK = {
    "task_id": "echo",
    "statement": "Print the number that is read.",
    "public": [{"name": "one", "input": "1\n", "expected": "1\n"}],
    "hidden": [{"name": "two", "input": "2\n", "expected": "2\n"}],
}


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def recording(text: str) -> dict[str, str]:
    return {"task": "echo", "text": text, "form": "full_program", "observed": "pass"}


@pytest.fixture
def echo(tmp_path: Path) -> tuple[Path, Path]:
    tasks = write_lines(tmp_path / "tasks.jsonl", TASK)
    pool = write_lines(tmp_path / "pool.jsonl", recording("print(input())"), recording("print(1)"))
    return tasks, pool


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "example:" in shown
    assert f"mars-envs {command}" in shown


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"budget": 1}, "--budget must be at least 2, got 1"),
        ({"agent_mix": 1.5}, "--agent-mix is a share from 0 to 1, got 1.5"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        DemoConfig(**settings)  # type: ignore[arg-type]


def test_settings_load_from_yaml_and_options_win(
    tmp_path: Path, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, pool = echo
    config = tmp_path / "solve.yaml"
    config.write_text(f"tasks: {tasks}\nagents: replay:{pool}\nbudget: 1\nsandbox: bubblewrap\n")
    assert main(["solve", "--config", str(config), "--budget", "2"]) == 0
    assert "2 nodes judged" in capsys.readouterr().out


def test_solve_takes_a_folder_and_options_behind_its_name(
    tmp_path: Path, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    write_lines(folder / "a.jsonl", TASK, {})
    (folder / "b.json").write_text(json.dumps([{**TASK, "task_id": "other"}]))
    arguments = ["--agents", f"replay:{echo[1]}", "--budget", "2", "--sandbox", "bubblewrap"]
    assert main(["solve", "--tasks", str(folder), *arguments]) == 2
    assert "a.jsonl, line 2: unknown task format" in capsys.readouterr().err
    assert main(["solve", "--tasks", f"{folder}?on_error=skip&limit=1", *arguments]) == 0
    assert "2 nodes judged" in capsys.readouterr().out


def test_solve_reports_pass_rates_and_agreement_with_the_recordings(
    echo: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, pool = echo
    out = tmp_path / "rollouts.jsonl"
    status = main(
        f"solve --tasks {tasks} --agents replay:{pool} --budget 5 --sandbox bubblewrap "
        f"--out {out}".split()
    )
    shown = " ".join(capsys.readouterr().out.split())
    assert status == 0
    assert "1 of 1 tasks, for which 2 generations are recorded" in shown
    assert "0.500" in shown  # one of the two samples is right
    assert "1/2" in shown
    (line,) = out.read_text().splitlines()
    assert len(json.loads(line)["turns"]) == 2


def test_solve_searches_as_at_inference_when_told_to(
    echo: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = "print(input())"
    pool = write_lines(tmp_path / "right.jsonl", recording(right), recording(f"{right}  # again"))
    command = f"solve --tasks {echo[0]} --agents replay:{pool} --budget 5 --sandbox bubblewrap"
    assert main(command.split()) == 0
    assert "2 nodes judged" in capsys.readouterr().out
    t_plus = "--selector t_plus --score-fn agreement --feedback summary --leave-solved"
    assert main([*command.split(), *t_plus.split(), "--stop-on-solved"]) == 0
    assert "1 nodes judged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--score-fn nonsense", "--score-fn: "),
        ("--score-weight 0.5", "needs a --score-fn to blend with"),
        ("--score-weight 1.5", "--score-weight is a share from 0 to 1"),
        ("--probes /no/such/file", "file of probes"),
    ],
)
def test_settings_of_inference_that_cannot_work_are_refused(
    options: str, message: str, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"solve --tasks {echo[0]} --agents replay:{echo[1]} {options}"
    assert main(command.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ("", "--agents is empty; name at least one of replay:FILE"),
        ("oracle:x", "unknown agent 'oracle:x'; expected one of replay:FILE"),
        ("replay:", "unknown agent 'replay:'"),
        ("replay:/no/such/file.jsonl", "cannot read the recordings"),
        ("hf:/no/such/model", "there is no model folder at '/no/such/model'"),
    ],
)
def test_an_agent_that_cannot_play_is_an_error_in_one_line(
    agents: str, message: str, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", "--tasks", str(echo[0]), "--agents", agents]) == 2
    error = capsys.readouterr().err
    assert error.startswith("mars-envs: ")
    assert message in error
    assert "Traceback" not in error


def test_recordings_of_other_tasks_are_refused(
    echo: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_lines(tmp_path / "other.jsonl", {**recording("print(1)"), "task": "another"})
    assert main(["solve", "--tasks", str(echo[0]), "--agents", f"replay:{other}"]) == 2
    assert "have no task in common: recordings are for another" in capsys.readouterr().err


@pytest.mark.parametrize("selector", ["nonsense", "no_module:nothing"])
def test_an_unknown_selector_is_refused_before_anything_runs(
    selector: str, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, pool = echo
    arguments = ["solve", "--tasks", str(tasks), "--agents", f"replay:{pool}"]
    assert main([*arguments, "--selector", selector]) == 2
    assert "--selector" in capsys.readouterr().err


def test_an_unknown_code_extraction_is_refused_before_anything_runs(
    echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, pool = echo
    arguments = ["solve", "--tasks", str(tasks), "--agents", f"replay:{pool}"]
    assert main([*arguments, "--extract", "cpp"]) == 2
    assert "--extract: unknown code extraction 'cpp'" in capsys.readouterr().err


def test_a_file_of_unknown_format_is_refused(
    tmp_path: Path, echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = write_lines(tmp_path / "odd.jsonl", {"question": "?"})
    assert main(["solve", "--tasks", str(odd), "--agents", f"replay:{echo[1]}"]) == 2
    assert "unknown task format" in capsys.readouterr().err


def test_a_missing_engine_is_an_error_that_names_the_doctor(
    echo: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    tasks, pool = echo
    arguments = ["solve", "--tasks", str(tasks), "--agents", f"replay:{pool}"]
    assert main([*arguments, "--sandbox", "docker", "--workers", "3"]) == 2
    assert "mars-envs sandbox doctor" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_noticed_before_the_work(
    echo: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, pool = echo
    arguments = ["solve", "--tasks", str(tasks), "--agents", f"replay:{pool}"]
    assert main([*arguments, "--out", "/no/such/folder/rollouts.jsonl"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("mars-envs: ")
    assert "/no/such/folder/rollouts.jsonl" in shown.err
    assert shown.out == ""


def test_the_settings_of_solve_have_the_documented_defaults() -> None:
    assert (SolveConfig().budget, SolveConfig().selector) == (20, "default")
