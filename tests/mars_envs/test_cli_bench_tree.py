"""`mars-envs bench tree`: a grid of trees from recorded answers, its results, and its errors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mars_envs.cli import main
from mars_envs.cli.config import BenchTreeConfig
from mars_envs.cli.teams import budgets_of, read_teams
from mars_envs.errors import InvalidSetting
from mars_envs.tree_search import SelectorPolicy, TreeControlEnv, play_control

PROGRAMS = {  # for tasks that ask to print n more than what is read: right; public only; wrong
    "right": "print(int(input()) + {n})",
    "public": "print(int(input()) + {n} if True else 0)",
    "narrow": "print(1 + {n})",
    "wrong": "print(input())",
}


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of four tasks, recordings of three models, and verdicts judged once."""
    folder = tmp_path_factory.mktemp("bench")
    tasks, recordings = [], []
    for n in range(1, 5):
        tasks.append(
            {
                "task_id": f"add/{n}",
                "statement": f"Add {n}.",
                "public": [{"name": "one", "input": "1\n", "expected": f"{1 + n}\n"}],
                "hidden": [{"name": "two", "input": "2\n", "expected": f"{2 + n}\n"}],
            }
        )
        for model, kinds in {
            "good": ("right", "public", "wrong"),
            "narrow, mostly": ("narrow", "wrong", "right" if n == 1 else "wrong"),
            "bad": ("wrong",),
        }.items():
            for number, kind in enumerate(kinds):
                text = f"{PROGRAMS[kind].format(n=n)}\n# {model} {number}"
                recordings.append(
                    {"task": f"add/{n}", "text": text, "form": "full_program", "model": model}
                )
    write_lines(folder / "tasks.jsonl", *tasks)
    write_lines(folder / "pool.jsonl", *recordings)
    return folder


Kill = Callable[[list[str], Callable[[], bool]], int]


def command(place: Path, out: Path, *more: str, agents: Sequence[str] = ()) -> list[str]:
    return [
        *("bench", "tree", "--tasks", str(place / "tasks.jsonl"), "--sandbox", "bubblewrap"),
        *("--verdicts", str(place / "verdicts.jsonl"), "--out", str(out)),
        *("--agents", *(agents or [f"mixed=models:{place}/pool.jsonl"])),
        *("--seeds", "8", "--workers", "1", *more),
    ]


def results(out: Path) -> dict[str, Any]:
    found = json.loads((out / "results.json").read_text())
    assert isinstance(found, dict)
    return found


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def comparable(out: Path) -> dict[str, Any]:
    return {key: value for key, value in results(out).items() if key != "provenance"}


@pytest.fixture(scope="module")
def finished(place: Path) -> Path:
    """A run with the default settings."""
    out = place / "finished"
    assert main(command(place, out, "--alone")) == 0
    return out


def test_a_run_leaves_results_tables_and_a_figure(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} >= {
        *("config.json", "results.json", "tables.md", "trees.jsonl", "curves.png", "timings.json")
    }
    tables = (finished / "tables.md").read_text()
    assert "| selector | 1 | 2 | 3 | 5 | 7 |" in tables
    assert "narrow, mostly" in tables


def test_judged_recordings_are_pools_that_a_learner_can_search(finished: Path) -> None:
    path = finished / "pools.jsonl"
    first = json.loads(path.read_text().splitlines()[0])
    # A program that knows the public test only passes it and is not solved.
    assert first["pools"]["narrow, mostly"] == [[1.0, False], [0.0, False], [1.0, True]]
    env = TreeControlEnv(coders=str(path), budget=3)
    env.reset(seed=0, options={"task": 0})
    assert env.agents == ("good", "narrow, mostly", "bad")
    assert play_control(env, SelectorPolicy("best_of_n"), seed=0).nodes == 3


def test_results_say_what_they_rest_on(finished: Path) -> None:
    found = results(finished)
    assert (found["schema"], found["schema_version"]) == ("mars-envs/bench-tree", 1)
    assert found["complete"]
    assert found["failed_cells"] == 0
    assert found["tasks"] == [f"add/{n}" for n in range(1, 5)]
    assert found["provenance"].keys() == {"command", "mars_envs", "numpy", "python"}
    assert list(found["teams"]) == ["mixed", "good", "narrow, mostly", "bad"]
    assert found["teams"]["mixed"]["pool"] == 7
    assert [team["budgets"] for team in found["teams"].values()] == [
        *([1, 2, 3, 5, 7], [1, 2, 3], [1, 2, 3], [1])
    ]
    for cell in found["cells"]:
        assert cell["trees"] == 4 * 8
        for name in ("pass_at_1", "pass_at_1_mcts", "pass_at_n"):
            rate = cell[name]
            assert rate["n"] == cell["tasks"] == 4
            assert 0 <= rate["low"] <= rate["mean"] <= rate["high"] <= 1
        assert sum(agent["share"]["mean"] for agent in cell["agents"].values()) == pytest.approx(1)
    text = (finished / "results.json").read_text()
    assert "NaN" not in text
    assert str(finished) not in json.dumps(found["cells"])


def test_what_is_in_the_pool_is_found_once_all_of_it_is_drawn(finished: Path) -> None:
    by = {
        (cell["team"], cell["selector"], cell["budget"]): cell
        for cell in results(finished)["cells"]
    }
    for selector in results(finished)["selectors"]:
        # The good model solves each task with two of three; the narrow one the first, with one.
        assert by["mixed", selector, 7]["pass_at_n"]["mean"] == 1
        assert by["mixed", selector, 7]["node_success"]["mean"] == pytest.approx(9 / 28)
    assert by["good", "best_of_n", 3]["pass_at_n"]["mean"] == 1
    assert by["narrow, mostly", "best_of_n", 3]["pass_at_n"]["mean"] == 0.25
    assert by["bad", "best_of_n", 1]["pass_at_n"]["mean"] == 0
    assert results(finished)["recorded"]["good"]["pass_at_1"]["mean"] == pytest.approx(2 / 3)
    assert results(finished)["recorded"]["narrow, mostly"]["public"]["mean"] == pytest.approx(
        5 / 12
    )


def test_how_different_recorded_answers_are_is_told_for_each_team(finished: Path) -> None:
    found = results(finished)["diversity"]
    assert list(found) == list(results(finished)["teams"])
    mixed = found["mixed"]
    # Seven answers: `print(input())` four or five times, three other programs on each task.
    assert mixed["shapes"] == {"mean": 4.0, "se": 0.0, "n": 4}
    assert 0 < mixed["syntax_distance"]["mean"] < 1
    assert found["bad"]["syntax_distance"]["mean"] is None  # one answer, no pair
    for cell in results(finished)["cells"]:
        parts = sum(agent["credit"]["mean"] for agent in cell["agents"].values())
        assert parts == pytest.approx(cell["pass_at_n"]["mean"])


def test_a_reward_model_is_compared_with_the_released_choice_on_the_same_trees(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--score-fn", "agreement", "--probes", str(place / "probes.jsonl")]
    write_lines(place / "probes.jsonl", {"task_id": "add/1", "plus_input": [["4\n"]]})
    assert main(command(place, place / "scored", *more, "--preset", "best_of_n")) == 0
    assert "Answers chosen by agreement" in capsys.readouterr().out
    found = results(place / "scored")
    rows = [row for row in found["comparisons"] if row["of"] == "choice"]
    assert [row["budget"] for row in rows] == [2, 3, 5, 7]
    assert {row["against"] for row in rows} == {"pass_at_1_mcts"}
    assert all(cell["pass_at_1_scored"]["n"] == 4 for cell in found["cells"])


def test_one_recorded_agent_has_one_curve_whatever_is_selected(finished: Path) -> None:
    found = results(finished)
    selectors: dict[str, set[str]] = {}
    for cell in found["cells"]:
        selectors.setdefault(cell["team"], set()).add(cell["selector"])
    assert selectors.pop("mixed") == set(found["selectors"])
    assert set(map(tuple, selectors.values())) == {("best_of_n",)}
    compared = {row["team"] for row in found["comparisons"] if row["of"] == "selector"}
    assert compared == {"mixed"}


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(finished: Path, place: Path) -> None:
    out = place / "two-workers"
    assert main(command(place, out, "--alone", "--workers", "2")) == 0
    assert comparable(out) == comparable(finished)
    assert (out / "tables.md").read_bytes() == (finished / "tables.md").read_bytes()


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_results(
    finished: Path, place: Path, kill_command: Kill
) -> None:
    out = place / "killed"
    arguments = command(place, out, "--alone", "--workers", "2")
    log = out / "trees.jsonl"
    killed = kill_command(arguments, lambda: lines(log) >= 3)
    assert not (out / "results.json").exists()
    assert lines(log) >= 3
    with log.open("a") as file:
        file.write('{"cell": "mixed | pa')
    assert main([*arguments, "--resume"]) == 0
    assert comparable(out) == comparable(finished)
    deadline = time.monotonic() + 60
    while _alive(killed) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(killed), "workers of the killed run are left"


def _alive(session: int) -> bool:
    """Whether any process of a session is left."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return True
    return False


def test_a_run_is_resumed_with_its_own_settings_and_files_only(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "pool.jsonl"
    pool.write_bytes((place / "pool.jsonl").read_bytes())
    arguments = command(place, tmp_path / "run", agents=[f"replay:{pool}"])
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "is not empty; add --resume" in capsys.readouterr().err
    assert main([*arguments, "--resume", "--seeds", "9"]) == 2
    assert "other settings: --seeds is 8 there and 9 here" in capsys.readouterr().err
    pool.write_bytes((place / "pool.jsonl").read_bytes() + b"\n")
    assert main([*arguments, "--resume"]) == 2
    assert f"{pool} has changed since" in capsys.readouterr().err


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model of a few thousand weights."""
    from trainers.tiny_coders import build_coder, save_coder

    folder = tmp_path_factory.mktemp("model")
    save_coder(*build_coder("qwen3", seed=0), folder)
    return folder


@pytest.mark.slow
def test_models_grow_trees_in_the_environment(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bench", "tree", "--tasks", "tiny_code", "--limit", "2", "--seeds", "2"]
    arguments += ["--agents", f"hf:{model},hf:{model}", "--budgets", "1,3", "--max-tokens", "8"]
    arguments += ["--preset", "default,best_of_n", "--sandbox", "bubblewrap"]
    out = tmp_path / "run"
    # The prose is longer than what the model can read: no answer comes, and none is scored.
    assert main([*arguments, "--out", str(out)]) == 2
    assert "no tree could be grown" in capsys.readouterr().err
    assert not (out / "results.json").exists()
    arguments += ["--prompts", "compact", "--out", str(tmp_path / "compact")]
    assert main(arguments) == 0
    found = results(tmp_path / "compact")
    for cell in found["cells"]:
        assert (cell["tasks"], cell["trees"]) == (2, 4)
        assert cell["pass_at_1_scored"] is None or cell["pass_at_1_scored"]["mean"] is None
        assert sum(agent["share"]["mean"] for agent in cell["agents"].values()) == pytest.approx(1)
    assert len(found["cells"][0]["agents"]) == 2


def test_trees_whose_models_failed_are_told_counted_and_tried_again(
    place: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = place / "partly"
    arguments = command(place, out, "--budgets", "2", "--seeds", "1", "--preset", "default")
    arguments += ["--agents", f"replay:{place}/pool.jsonl", f"hf:{model}"]
    assert main(arguments) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "4 of 8 cells failed and are in no figure above" in said
    assert results(out)["failed_cells"] == 4
    assert not results(out)["complete"]
    assert {cell["team"] for cell in results(out)["cells"]} == {"pool"}
    assert main([*arguments, "--resume"]) == 1
    assert "4 of 8 cells were finished before" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--preset", "nonsense"], "--preset: unknown selector 'nonsense'"),
        (["--prompts", "nonsense"], "--prompts: "),
        (["--score-fn", "nonsense"], "unknown score_fn 'nonsense'"),
        (["--probes", "/no/such/file"], "cannot read the file of probes /no/such/file"),
        (["--preset", ","], "--preset is empty"),
        (["--preset", "no_module:nothing"], "--preset: "),
        (["--budgets", "0"], "--budgets: expected numbers of nodes of at least 1"),
        (["--budgets", "1,two"], "--budgets: expected numbers of nodes"),
        (["--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        (["--agents", "oracle:x"], "unknown agent 'oracle:x'"),
        (["--agents", " ; "], "--agents is empty"),
        (["--agents", "models:/no/such/file"], "cannot read the recordings"),
        (["--out", "/proc/nothing/here"], "/proc/nothing"),
        (["--out", "/dev/null"], "--out /dev/null: expected a folder, got a file"),
        (["--verdicts", "/tmp"], "--verdicts /tmp: expected a file, got a folder"),
        (["--baseline", "nope"], "--baseline: expected one of the selectors of --preset (default,"),
        (["--resume"], "holds no run to resume"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    more: list[str], message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(place, place / "unused", *more)) == 2
    error = capsys.readouterr().err
    assert error.startswith("mars-envs: ")
    assert message in error
    assert "Traceback" not in error
    assert not (place / "unused").exists()


def test_a_reward_model_that_fails_is_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(place, place / "failed", "--preset", "default", "--score-fn", "os:getcwd")
    assert main(arguments) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "no tree could be grown; the first one because: --score-fn os:getcwd failed" in error


def test_a_record_without_its_contents_is_worked_out_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(place, place / "emptied", "--preset", "default", "--seeds", "2")
    assert main(arguments) == 0
    before = results(place / "emptied")
    log = place / "emptied" / "trees.jsonl"
    first, *rest = log.read_text().splitlines(keepends=True)
    name = json.loads(first)["cell"]
    log.write_text("".join([json.dumps({"cell": name, "record": {}}) + "\n", *rest]))
    capsys.readouterr()
    assert main([*arguments, "--resume"]) == 0
    assert "1 damaged lines are worked out again" in " ".join(capsys.readouterr().out.split())
    assert results(place / "emptied")["cells"] == before["cells"]


def test_a_run_notices_that_a_folder_of_tasks_has_changed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "all.jsonl").write_text((place / "tasks.jsonl").read_text())
    arguments = command(place, tmp_path / "run", "--preset", "default", "--seeds", "2")
    arguments += ["--tasks", f"{folder}"]
    assert main(arguments) == 0
    changed = (folder / "all.jsonl").read_text().replace('"statement": "', '"statement": "New. ')
    (folder / "all.jsonl").write_text(changed)
    assert main([*arguments, "--resume"]) == 2
    assert "the set of tasks has changed since" in capsys.readouterr().err


def test_several_benchmarks_are_drawn_side_by_side(
    finished: Path, repo_dir: Path, tmp_path: Path
) -> None:
    output = tmp_path / "curves.png"
    example = [sys.executable, str(repo_dir / "examples" / "plot_bench_tree.py")]
    runs = [str(finished), str(finished), "--titles", "A,B", "--output", str(output)]
    subprocess.run([*example, *runs], check=True, stdout=subprocess.DEVNULL)
    assert output.read_bytes().startswith(b"\x89PNG")


def test_a_model_that_is_not_recorded_is_an_error_that_lists_those_that_are(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = [f"replay:{place}/pool.jsonl#gpt-5"]
    assert main(command(place, place / "unused", agents=agents)) == 2
    error = capsys.readouterr().err
    assert "expected recordings by 'gpt-5', got only those by 'good', 'narrow, mostly'" in error


def test_teams_are_read_with_their_names_models_and_commas(place: Path) -> None:
    pool = place / "pool.jsonl"
    teams = read_teams(
        [f"models:{pool}; one = replay:{pool}#narrow, mostly", f"replay:{pool},replay:{pool}#g*"],
        alone=True,
    )
    assert {team.name: [agent.label for agent in team.agents] for team in teams} == {
        "good + narrow, mostly + bad": ["good", "narrow, mostly", "bad"],
        "one": ["narrow, mostly"],
        "pool + g*": ["pool", "g*"],
        "good": ["good"],
        "bad": ["bad"],
        "pool": ["pool"],
        "g*": ["g*"],
    }


def test_two_teams_of_one_name_are_refused(place: Path) -> None:
    pool = place / "pool.jsonl"
    with pytest.raises(InvalidSetting, match="two teams are called 'a'"):
        read_teams([f"a=replay:{pool}; a=models:{pool}"])


def test_a_curve_ends_where_the_recordings_do() -> None:
    assert budgets_of("", 12) == [1, 2, 3, 5, 8, 12]
    assert budgets_of("", 4) == [1, 2, 3, 4]
    assert budgets_of("4, 1,40,60", 12) == [1, 4, 12]
    assert budgets_of("4,1,40", None) == [1, 4, 40]


def test_settings_have_defaults_that_work() -> None:
    config = BenchTreeConfig()
    assert (config.preset, config.baseline, config.seeds) == ("all", "best_of_n", 20)


@pytest.mark.slow
@pytest.mark.data
def test_recorded_generations_of_two_models_are_benchmarked(data_dir: Path, tmp_path: Path) -> None:
    generations = data_dir / "generations"
    arguments = ["bench", "tree", "--tasks", str(generations / "mbpp_multipl_e_tasks.jsonl")]
    arguments += ["--agents", f"models:{generations}/mbpp_multipl_e.jsonl", "--alone"]
    arguments += ["--preset", "default,best_of_n", "--limit", "6", "--seeds", "6"]
    arguments += ["--sandbox", "bubblewrap", "--out", str(tmp_path / "run")]
    assert main(arguments) == 0
    found = results(tmp_path / "run")
    published: dict[str, list[bool]] = {}
    for line in (generations / "mbpp_multipl_e.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["task"] in found["tasks"]:
            published.setdefault(record["model"], []).append(record["observed"] == "pass")
    assert len(published) == 2
    for model, passed in published.items():
        assert found["recorded"][model]["pass_at_1"]["mean"] == pytest.approx(sum(passed) / 6)
    both = [any(pair) for pair in zip(*published.values(), strict=True)]
    for cell in found["cells"]:
        if cell["budget"] == 2:
            assert cell["pass_at_n"]["mean"] == pytest.approx(sum(both) / 6)
