"""`mars-envs bench memory`: lengths × methods × agents × seeds, its results, and its errors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mars_envs.cli import main
from mars_envs.cli.bench_memory import make_results
from mars_envs.cli.bench_memory_config import BenchMemoryConfig
from mars_envs.cli.changes import read_changes, split_changes
from mars_envs.cli.grid import Finished, run_grid
from mars_envs.cli.memory_live import play_models
from mars_envs.cli.memory_plan import MemoryCell, inputs_of, make_plan
from mars_envs.cli.memory_play import Episodes
from mars_envs.cli.memory_results import gather, points_table
from mars_envs.cli.memory_tables import sheets
from mars_envs.cli.reading_models import ReadingModel
from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.cost import MACHINES
from mars_envs.reading.task import ReadingTask

METHODS = ("pi_mem", "pi_mem:max_turns=1", "no_merge", "recurrent")

Kill = Callable[[list[str], Callable[[], bool]], int]


def command(out: Path, *more: str) -> list[str]:
    return [
        *("bench", "memory", "--tasks", "kg2", "--lengths", "600", "1200", "--items", "4"),
        *("--chunk-tokens", "100", "--methods", *METHODS, "--agents", "oracle", "noisy:0.3,0.1"),
        *("--seeds", "2", "--workers", "1", "--out", str(out), *more),
    ]


def results(out: Path) -> dict[str, Any]:
    found = json.loads((out / "results.json").read_text())
    assert isinstance(found, dict)
    return found


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def comparable(out: Path) -> dict[str, Any]:
    return {key: value for key, value in results(out).items() if key != "provenance"}


def by_place(out: Path) -> dict[tuple[int, str, str], dict[str, Any]]:
    return {
        (point["length"], point["agent"], point["method"]): point
        for point in results(out)["points"]
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench-memory") / "finished"
    assert main(command(out)) == 0
    return out


def test_a_run_leaves_results_tables_and_a_figure(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} >= {
        *("config.json", "results.json", "tables.md", "episodes.jsonl", "curves.png")
    }
    tables = (finished / "tables.md").read_text()
    assert "**kg2, oracle: accuracy, %**" in tables
    assert "simulated machine 35b-moe" in tables


def test_results_say_what_they_rest_on(finished: Path) -> None:
    found = results(finished)
    assert (found["schema"], found["schema_version"]) == ("mars-envs/bench-memory", 1)
    assert found["complete"]
    assert found["failed_episodes"] == 0
    assert found["machines"]["7b"]["prefill_rate"] == MACHINES["7b"].prefill_rate
    assert found["methods"]["no_merge"]["settings"]["merging"] is False
    assert found["methods"]["pi_mem:max_turns=1"]["settings"]["max_turns"] == 1
    assert len(found["points"]) == 2 * 2 * len(METHODS)
    for point in found["points"]:
        # The oracle draws nothing, so one seed says it all.
        seeds = 1 if point["agent"] == "oracle" else 2
        assert (point["questions"], point["episodes"], point["failed"]) == (4, 4 * seeds, 0)
        for name in ("em", "f1", "sub_em", "sub_em_bidirectional"):
            assert point[name]["n"] == 4
            assert 0 <= point[name]["low"] <= point[name]["mean"] <= point[name]["high"] <= 1
        assert sum(point["exit_reasons"].values()) == point["episodes"]
    assert "NaN" not in (finished / "results.json").read_text()


def test_two_hops_take_two_productive_turns_and_one_turn_is_not_enough(finished: Path) -> None:
    for length in (600, 1200):
        enough = by_place(finished)[length, "oracle", "pi_mem"]
        assert enough["em"]["mean"] == 1
        assert enough["k_productive"] == {"mean": 2.0, "se": 0.0, "n": 4}
        assert enough["k_used"]["mean"] == 3
        assert [turn["mean"] for turn in enough["gold_recall"]] == [0.5, 1.0, 1.0]
        assert enough["yes_rate"]["other"]["mean"] == 0
        # Each of two gold chunks is read in three turns, and new in one of them.
        assert enough["yes_rate"]["gold"]["mean"] == pytest.approx(2 / 6)
        assert enough["yes_rate"]["gold"]["low"] < 2 / 6 < enough["yes_rate"]["gold"]["high"]
        one = by_place(finished)[length, "oracle", "pi_mem:max_turns=1"]
        assert one["em"]["mean"] == 0
        assert one["exit_reasons"] == {"max_turns": 4}


def test_methods_are_compared_on_the_same_questions_and_corrected_for_being_many(
    finished: Path,
) -> None:
    rows = [row for row in results(finished)["comparisons"] if row["metric"] == "em"]
    single = [row for row in rows if row["length"] is not None]
    assert len(single) == single[0]["family"] == 2 * 2 * (len(METHODS) - 1)
    assert len(rows) == len(single) + 2 * (len(METHODS) - 1), "and over both lengths"
    for row in rows:
        assert row["against"] == "recurrent"
        assert row["difference"]["n"] == 4
        assert row["p_value"] <= row["p_holm"] <= 1
        # Four questions never prove that there is no other.
        assert row["difference"]["low"] < row["difference"]["high"]
        if row["agent"] == "oracle" and row["length"] is not None:
            assert row["test"] == "mcnemar"
            mean = (row["gained"] - row["lost"]) / 4
            assert row["difference"]["mean"] == pytest.approx(mean)


def test_costs_are_tokens_latency_and_work_of_every_machine(finished: Path) -> None:
    parallel = by_place(finished)[1200, "oracle", "pi_mem"]
    assert parallel["chunks"]["mean"] == 12
    assert parallel["calls"]["mean"] == 3 * 12 + 2 + 1, "three turns, two merges, one answer"
    recurrent = by_place(finished)[1200, "oracle", "recurrent"]
    assert recurrent["calls"]["mean"] == 13
    assert parallel["prompt_tokens"]["mean"] > 2 * recurrent["prompt_tokens"]["mean"]
    assert parallel["machines"]["35b-moe"]["cached_tokens"]["mean"] == 0
    cached = parallel["machines"]["7b"]["cached_tokens"]["mean"]
    assert cached > 2 * 12 * 80, "the second and third turn find most of every chunk"
    # Machine 7b has room for everything: what is read is what is not cached.
    work = (parallel["prompt_tokens"]["mean"] - cached) / 40_000
    work += parallel["output_tokens"]["mean"] / 3_000
    assert parallel["machines"]["7b"]["work_s"]["mean"] == pytest.approx(work)


def test_replies_can_be_taken_to_be_as_long_as_a_models(tmp_path: Path) -> None:
    lengths = "no=7,yes=100,memory=300,answer=50"
    arguments = command(tmp_path / "run", "--reply-lengths", lengths, "--agents", "oracle")
    assert main([*arguments, "--methods", "recurrent", "pi_mem", "--lengths", "600"]) == 0
    at = by_place(tmp_path / "run")
    machine = at[600, "oracle", "recurrent"]["machines"]["7b"]
    decoding = (6 * 300 + 50) * 0.012
    assert decoding < machine["latency_s"]["mean"] < decoding + 0.2
    parallel = at[600, "oracle", "pi_mem"]["machines"]["7b"]
    # Two turns wait for a hundred tokens and a merge, the third for seven tokens.
    assert parallel["latency_s"]["mean"] > (2 * (100 + 300) + 7 + 50) * 0.012
    assert parallel["latency_s"]["mean"] < 0.6 * machine["latency_s"]["mean"]


def test_evidence_that_a_method_leaves_out_counts_as_not_found() -> None:
    plan = make_plan(
        small(lengths="1200", methods=["direct:context_tokens=100"], agents=["oracle"])
    )
    work = Episodes(plan=plan)
    records = [work(cell) for cell in plan.cells().values()]
    assert [record["gold_chunks"] for record in records] == [2, 2, 2]
    assert all(record["turns"][0]["gold_recall"] < 1 for record in records)
    assert all(record["scores"]["em"] == 0 for record in records)


def test_an_interrupted_run_goes_on_and_ends_with_the_same_results(
    finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "torn"
    out.mkdir()
    (out / "config.json").write_bytes((finished / "config.json").read_bytes())
    lines = (finished / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (out / "episodes.jsonl").write_bytes(b"".join(lines[::2]) + lines[1][:50])
    assert main(command(out, "--resume")) == 0
    assert comparable(out) == comparable(finished)
    assert (out / "tables.md").read_bytes() == (finished / "tables.md").read_bytes()


def test_a_run_is_resumed_with_its_own_settings_only(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(finished)) == 2
    assert "is not empty; add --resume" in capsys.readouterr().err
    assert main(command(finished, "--resume", "--seed", "9")) == 2
    assert "--seed is 0 there and 9 here" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_run_with_two_workers_ends_with_the_same_results(
    finished: Path, tmp_path: Path, kill_command: Kill
) -> None:
    out = tmp_path / "killed"
    log = out / "episodes.jsonl"
    kill_command(command(out, "--workers", "2"), lambda: lines(log) >= 5)
    assert not (out / "results.json").exists()
    assert main(command(out, "--workers", "2", "--resume")) == 0
    assert comparable(out) == comparable(finished)


@pytest.mark.data
def test_hotpotqa_is_read_at_its_own_length_and_among_more_passages(
    data_dir: Path, tmp_path: Path
) -> None:
    file = data_dir / "hotpotqa" / "hotpot_train_100.json"
    arguments = ["bench", "memory", "--tasks", str(file), "--lengths", "0,4000", "--items", "3"]
    arguments += ["--agents", "oracle", "lexical", "--methods", "pi_mem", "recurrent"]
    arguments += ["--chunk-tokens", "500", "--workers", "1", "--out", str(tmp_path / "run")]
    assert main(arguments) == 0
    at = by_place(tmp_path / "run")
    assert at[4000, "oracle", "pi_mem"]["chunks"]["mean"] == 8
    assert at[4000, "oracle", "pi_mem"]["em"]["mean"] == 1
    assert at[0, "oracle", "pi_mem"]["chunks"]["mean"] < 8
    assert list(results(tmp_path / "run")["inputs"]) == [str(file)]


def small(**changes: Any) -> BenchMemoryConfig:
    values: dict[str, Any] = {
        "lengths": "300",
        "items": 3,
        "chunk_tokens": 100,
        "methods": ["pi_mem", "recurrent"],
        "agents": ["http://localhost:1/v1#none"],
    }
    return BenchMemoryConfig(**{**values, **changes})


async def says_no(prompt: str, *, max_tokens: int) -> str:
    return "<check>no</check>" if "<check>" in prompt else "\\boxed{unknown}"


def played(model: ReadingModel, concurrency: int = 4) -> dict[str, Finished[MemoryCell]]:
    plan = make_plan(small())
    found: dict[str, Finished[MemoryCell]] = {}
    play_models(
        plan.cells(),
        plan,
        lambda one: found.__setitem__(one.name, one),
        model=model,
        concurrency=concurrency,
        delay_s=0.0,
    )
    return found


def test_models_read_with_several_calls_in_flight() -> None:
    found = played(ReadingModel(label="model", generate=says_no))
    assert len(found) == 3 * 2
    for name, one in found.items():
        assert one.record is not None, one.failure
        assert one.record["answer"] == "unknown"
        if "pi_mem" in name:
            assert (one.record["exit_reason"], one.record["k_used"]) == ("no_new_evidence", 1)


def test_a_model_behind_an_address_reads(chat_server: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("httpx")

    def answer(body: dict[str, Any], number: int) -> Any:
        prompt = body["messages"][0]["content"]
        return chat_server.said("<check>no</check>" if "<check>" in prompt else r"\boxed{unknown}")

    with chat_server.Server() as server:
        server.answer = answer
        arguments = command(tmp_path / "run", "--methods", "pi_mem", "--seeds", "2")
        arguments += ["--items", "1", "--lengths", "300", "--agents", f"{server.url}#the-model"]
        assert main(arguments) == 0
        asked = server.asked
    assert {body["model"] for body in asked} == {"the-model"}
    assert len(asked) == 2 * (3 + 1), "two seeds, three chunks that have nothing, one answer"
    assert len({body["seed"] for body in asked}) == len(asked)
    (point,) = results(tmp_path / "run")["points"]
    assert (point["episodes"], point["em"]["mean"]) == (2, 0)


def test_episodes_whose_model_fails_are_counted_apart_and_never_scored() -> None:
    async def fails(prompt: str, *, max_tokens: int) -> str:
        raise ConnectionError("the server is gone")

    found = played(ReadingModel(label="model", generate=fails, failures=(ConnectionError,)))
    failures = {name: one.failure for name, one in found.items() if one.record is None}
    assert len(failures) == len(found) == 3 * 2
    assert all("the server is gone" in reason for reason in failures.values())
    plan, config = make_plan(small()), small()
    kept = played(ReadingModel(label="model", generate=says_no))
    first = next(iter(plan.cells()))
    records = {n: one.record for n, one in kept.items() if one.record is not None and n != first}
    made = make_results(config, plan, inputs_of(plan), records, {first: "gone"})
    point = next(p for p in made["points"] if p["method"] == "pi_mem")
    assert (point["questions"], point["episodes"], point["failed"]) == (2, 2, 1)
    assert point["em"]["n"] == 2
    compared = [row for row in made["comparisons"] if row["metric"] == "em"]
    assert [row["difference"]["n"] for row in compared] == [2], "questions that both have"
    accuracy = sheets(made)[0]
    assert "left out of every mean and reported apart" in accuracy.note
    assert "2, 1 failed" in [row[-1] for row in accuracy.rows]
    assert "Episodes that failed" in sheets(made)[-1].title
    assert sheets(made)[-1].rows[0][1:] == ["1", "3"]


class SecondCannotBeMade(Sequence[ReadingTask]):
    """Tasks that are made on demand, of which one cannot be made."""

    def __init__(self, tasks: Sequence[ReadingTask]) -> None:
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: Any) -> Any:
        if index == 1:
            raise InvalidSetting("no room")
        return self._tasks[index]


@pytest.mark.parametrize("agent", ["oracle", "http://localhost:1/v1#none"])
def test_a_task_that_cannot_be_made_is_a_failure_and_the_others_are_read(agent: str) -> None:
    plan = make_plan(small(agents=[agent]))
    tasks = {place: SecondCannotBeMade(found) for place, found in plan.tasks.items()}
    plan = dataclasses.replace(plan, tasks=tasks)
    found: list[Finished[MemoryCell]] = []
    if agent == "oracle":
        found += run_grid(plan.cells(), Episodes(plan=plan), workers=1)
    else:
        model = ReadingModel(label="model", generate=says_no)
        play_models(plan.cells(), plan, found.append, model=model, concurrency=1)
    failures = {one.name: one.failure for one in found if one.record is None}
    assert len(found) == 3 * 2
    assert failures.keys() == {name for name, cell in plan.cells().items() if cell.item == 1}
    assert set(failures.values()) == {"the task cannot be made: no room"}


def test_what_the_model_does_not_call_a_failure_ends_it_all() -> None:
    async def broken(prompt: str, *, max_tokens: int) -> str:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        played(ReadingModel(label="m", generate=broken, failures=(ConnectionError,)), concurrency=1)


def test_a_point_without_any_episode_has_no_figures() -> None:
    assert points_table({}) == []
    plan = make_plan(small())
    cells = list(plan.cells().values())
    (point,) = points_table(gather([], cells[:1]))
    assert (point["episodes"], point["failed"]) == (0, 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tasks", " "], "--tasks is empty"),
        (["--tasks", "/no/such/file.json"], "/no/such/file.json"),
        (["--tasks", "kg2?tokens=500"], "give that with --lengths"),
        (
            ["--lengths", "1200,600", "--chunk-tokens", "600"],
            "--tasks kg2 with 600 tokens (--lengths): 2 passages of evidence need 2 chunks",
        ),
        (["--lengths", "1200,600", "--chunk-tokens", "600"], "--tasks 'kg2?placement=any'"),
        (["--lengths", "many"], "--lengths: expected numbers of tokens"),
        (["--lengths", "-5"], "--lengths: expected numbers of 0 or more"),
        (["--methods", "magic"], "--methods: expected some of pi_mem, recurrent"),
        (["--methods", "pi_mem:turns=2"], "--methods pi_mem:turns=2: no settings ['turns']"),
        (["--methods", "pi_mem:max_turns"], "expected SETTING=VALUE, got 'max_turns'"),
        (["--methods", "recurrent:passes=0"], "passes must be a whole number"),
        (["--settings", "order=shuffled"], "order is one of"),
        (["--agents", "magic"], "--agents: expected `oracle`"),
        (["--agents", "noisy:0.1"], "expected noisy:MISS,FALSE_YES"),
        (["--agents", "noisy:2,0"], "chances are from 0 to 1"),
        (["--agents", "oracle", "oracle"], "oracle is given twice"),
        (["--machines", "70b"], "--machines: expected some of 7b, 35b-moe"),
        (["--machines", "7b:slots=0"], "--machines 7b:slots=0: slots is 1 or more"),
        (["--reply-lengths", "maybe=3"], "--reply-lengths: expected some of no, yes"),
        (["--reply-lengths", "no=few"], "no is a whole number of tokens"),
        (["--baseline", "nope"], "--baseline: expected one of --methods"),
        (["--prompts", "nonsense"], "--prompts: "),
        (["--items", "0"], "--items must be at least 1, got 0"),
        (["--resume"], "holds no run to resume"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command(tmp_path / "run"), *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists(), "nothing was begun"


@pytest.mark.parametrize(
    "lengths",
    [
        ["600", "1_200"],
        ["600,1200"],
        ["600,", "1200"],
        "600,1200",
        [600, 1200],
    ],  # YAML has the last
)
def test_lengths_have_blanks_or_commas_between_them_or_are_a_list(lengths: Any) -> None:
    assert [length for _, length in make_plan(small(lengths=lengths)).tasks] == [600, 1200]


def test_settings_behind_a_name_are_taken_for_what_they_are() -> None:
    name, changes = split_changes("pi_mem: max_turns=2, check=false,window=none", option="--x")
    assert (name, changes) == ("pi_mem", {"max_turns": 2, "check": False, "window": None})
    assert read_changes("a=0.5,b=word", option="--x") == {"a": 0.5, "b": "word"}
    with pytest.raises(InvalidSetting, match="a is given twice"):
        read_changes("a=1,a=2", option="--x")


def test_settings_of_all_methods_hold_for_each() -> None:
    plan = make_plan(small(settings="max_turns=5,memory_tokens=77", methods=["pi_mem", "no_check"]))
    for method in plan.methods.values():
        assert (method.settings.max_turns, method.settings.memory_tokens) == (5, 77)
    assert not plan.methods["no_check"].settings.check
    assert plan.baseline == "pi_mem", "the usual one is not among the methods"
    assert dataclasses.asdict(plan.machines["7b"]) == dataclasses.asdict(MACHINES["7b"])
