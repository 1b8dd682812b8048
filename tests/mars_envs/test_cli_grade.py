"""`mars-envs sandbox grade`: what it reads, what it says, and what it never scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mars_envs.cli import grade as command
from mars_envs.cli import main
from mars_envs.judging.code import close_shared_sandboxes
from sandbox import Capabilities, Case, CaseResult, Limits, Program, Report, Status, WorkerDied

ECHO = {
    "task_id": "echo",
    "statement": "Print the number that is read.",
    "public": [{"name": "one", "input": "1\n", "expected": "1\n"}],
    "hidden": [{"name": "two", "input": "2\n", "expected": "2\n"}],
}


def write_lines(path: Path, *records: object) -> Path:
    lines = (r if isinstance(r, str) else json.dumps(r) for r in records)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def program(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"task": "echo", "name": name, "text": text, **fields}


GOOD = program("good", "print(input())", observed="pass")
BAD = program("bad", "print(1)", observed="fail")
LIAR = program("liar", "print(1)", observed="pass")


@pytest.fixture(scope="module", autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """Tests of the sandbox look whether any is left, and may follow these at once."""
    yield
    close_shared_sandboxes()


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "tasks.jsonl", ECHO)


def test_a_problem_package_is_graded_with_its_own_submissions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "problem.yaml": "name: Echo\n",
        "problem_statement/problem.en.md": "Print the number that is read.\n",
        "data/sample/1.in": "1\n",
        "data/sample/1.ans": "1\n",
        "data/secret/2.in": "2\n",
        "data/secret/2.ans": "2\n",
        "submissions/accepted/good.py": "print(input())\n",
        "submissions/wrong_answer/bad.py": "print(1)\n",
    }
    for name, text in files.items():
        path = tmp_path / "echo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert main(["sandbox", "grade", str(tmp_path / "echo"), "--sandbox", "bubblewrap"]) == 0
    assert "2 submissions for 1 task" in " ".join(capsys.readouterr().out.split())


def run(tasks: Path, *records: object, options: str = "") -> int:
    file = write_lines(tasks.with_name("programs.jsonl"), *records)
    return main(
        f"sandbox grade {tasks} --submissions {file} --sandbox bubblewrap {options}".split()
    )


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


class Stub:
    """A sandbox that breaks on the programs that say so; it counts what it is given."""

    capabilities = Capabilities(backend="stub", isolated=True)
    fingerprint = "stub"

    def __init__(self) -> None:
        self.graded = 0

    def grade(
        self,
        program: Program,
        cases: Sequence[Case],
        limits: Limits | None = None,
        *,
        stop_at_first_failure: bool = False,
    ) -> Report:
        self.graded += 1
        if "break" in program.source:
            raise WorkerDied("the engine went away")
        right = "input" in program.source
        status = Status.ACCEPTED if right else Status.WRONG_ANSWER
        results = tuple(CaseResult(name=case.name, status=status) for case in cases)
        return Report(status=status, cases=results, backend="stub", isolated=True)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    sandbox = Stub()
    monkeypatch.setattr(command, "shared_sandbox", lambda *_, **__: sandbox)
    return sandbox


def test_programs_are_graded_and_compared_with_their_record(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tasks, GOOD, BAD) == 0
    text = shown(capsys)
    assert "pass │ 1 │ 1 │ accepted 1" in text
    assert "fail │ 1 │ 1 │ wrong answer 1" in text
    assert "2 submissions, 4 tests run in bubblewrap" in text
    assert "2 of 2 recorded verdicts reproduced (100.00%)" in text


def test_a_verdict_that_differs_is_named_and_sets_the_exit_status(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tasks, GOOD, LIAR) == 1
    text = shown(capsys)
    assert "1 submission got another verdict than the recorded one" in text
    assert "programs: liar (echo) recorded pass, here wrong_answer; two: " in text


def test_a_single_test_that_differs_counts_although_the_program_agrees(
    tasks: Path, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {**BAD, "per_test_observed": ["AC", "WA"]}
    assert run(tasks, record) == 1
    text = shown(capsys)
    assert "1 of 1 recorded verdicts reproduced" in text
    assert "one: recorded AC, here wrong_answer" in text


def test_results_are_written_as_json_lines(tasks: Path, tmp_path: Path) -> None:
    output = tmp_path / "graded.jsonl"
    assert run(tasks, {**BAD, "per_test_observed": ["AC", None]}, options=f"--output {output}") == 0
    (line,) = map(json.loads, output.read_text().splitlines())
    for test in line["tests"]:
        assert test.pop("cpu_s") < 1
    assert line.pop("key")
    why = line["tests"][1]["message"]
    assert why
    assert line == {
        "set": "programs",
        "task_id": "echo",
        "name": "bad",
        "status": "wrong_answer",
        "recorded": "fail",
        "agrees": True,
        "backend": "bubblewrap",
        "total": 2,
        "points": None,
        "max_points": None,
        "message": f"two: {why}",
        "tests": [
            {"name": "one", "status": "accepted", "message": "", "recorded": "AC", "agrees": True},
            {
                "name": "two",
                "status": "wrong_answer",
                "message": why,
                "recorded": None,
                "agrees": None,
            },
        ],
    }


def test_a_failure_of_the_sandbox_is_no_verdict_and_the_others_go_on(
    tasks: Path, stub: Stub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "graded.jsonl"
    broken = program("broken", "break", observed="fail")
    assert run(tasks, broken, GOOD, options=f"--output {output}") == 2
    text = shown(capsys)
    assert "1 submission has no verdict, since the sandbox failed" in text
    assert "programs: broken (echo): WorkerDied: the engine went away" in text
    assert "1 of 1 recorded verdicts reproduced" in text
    first, second = map(json.loads, output.read_text().splitlines())
    assert "status" not in first
    assert first["not_graded"] == "infrastructure"
    assert first["agrees"] is None
    assert second["status"] == "accepted"


def test_a_second_run_grades_only_what_has_no_verdict_yet(
    tasks: Path, stub: Stub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"--output {tmp_path / 'graded.jsonl'}"
    broken = program("broken", "break")
    run(tasks, GOOD, BAD, broken, options=options)
    capsys.readouterr()
    assert run(tasks, GOOD, BAD, broken, options=options) == 2
    assert stub.graded == 4
    assert "2 results of 3 taken from" in shown(capsys)


def test_a_line_that_was_cut_off_is_graded_again(tasks: Path, stub: Stub, tmp_path: Path) -> None:
    output = tmp_path / "graded.jsonl"
    run(tasks, GOOD, BAD, options=f"--output {output}")
    whole = output.read_text()
    output.write_text(whole[:-20])
    assert run(tasks, GOOD, BAD, options=f"--output {output}") == 0
    assert stub.graded == 3
    assert output.read_text() == whole


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"mine": 1}\n', "line 1: expected a result of `sandbox grade`, got something else"),
        ("", "holds a result of another grading (good with another program, tests, limits or"),
    ],
)
def test_a_file_of_something_else_is_not_written_over(
    tasks: Path,
    stub: Stub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    message: str,
) -> None:
    output = tmp_path / "graded.jsonl"
    if content:
        output.write_text(content)
    else:
        run(tasks, GOOD, options=f"--output {output}")
    before = output.read_text()
    assert run(tasks, GOOD, options=f"--output {output} --time-factor 3") == 2
    assert message in capsys.readouterr().err
    assert output.read_text() == before


def test_lines_that_cannot_be_used_are_counted_and_named(
    tasks: Path, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            tasks,
            GOOD,
            "no json",
            program("lost", "print(1)", task="other"),
            program("odd", "print(1)", observed="splendid"),
            program("short", "print(1)", per_test_observed=["AC"]),
            program("headless", "  return 1", form="completion"),
        )
        == 2
    )
    text = shown(capsys)
    assert "5 records cannot be used" in text
    assert "line 2: expected one JSON object, got text that is no JSON" in text
    assert "programs: lost: no task 'other' in" in text
    assert "(its first one is 'echo')" in text
    assert "programs: odd: unknown verdict 'splendid'; the known ones are pass, " in text
    assert "short: 1 verdicts are recorded for the 2 tests of 'echo'" in text
    assert "headless is a completion, but its task 'echo' has no prompt" in text
    assert "1 of 1 recorded verdicts reproduced" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{tmp}/none.jsonl", "cannot read the task file"),
        ("{tasks} --submissions {tmp}/none.jsonl", "none.jsonl: No such file"),
        ("tiny_code", "tiny_code is no file with submissions of its own; name some with"),
        ("{tasks}", "there is nothing to grade"),
        ("{programs}", "holds programs, not problems; name the file of their problems first"),
        ("{tasks} --time-factor 0", "--time-factor must be above 0, got 0"),
        ("{tasks} --workers 0", "--workers must be at least 1, got 0"),
        ("{tasks} --submissions {tasks} {tasks}", "names the same file twice"),
        ("{tasks} --format kattis", "none of its 1 records can be used"),
        ("{tasks} --submissions {tmp}/none.jsonl", "cannot read the submissions file"),
        ("{tasks} --submissions /dev/full", "submissions file /dev/full: expected a plain file"),
        ("/dev/zero", "task file /dev/zero: expected a plain file, got a device; save the"),
        ("{tasks} --submissions {tmp}", "expected a plain file, got a folder"),
        ("{tasks} --submissions {programs} --output /dev/full", "got a device; name a plain file"),
        ("{tasks} --submissions {programs} --output /dev/stdout", "got a stream; name a plain"),
        ("{tasks} --submissions {programs} --output {tmp}", "expected a file, got a folder"),
        ("{tasks} --submissions {programs} --output {tmp}/x/y", "there is no folder {tmp}/x; crea"),
        (
            "{tasks} --submissions {programs} --time-factor 1e9",
            "--time-factor 1e+09 times the 2 s of task 'echo' is no limit: Limits.cpu_s must be",
        ),
        (
            "{tasks} --submissions {programs} --memory-mb 16",
            "--memory-mb 16: Limits.memory_mb must be a whole number from 32",
        ),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    tasks: Path,
    tmp_path: Path,
    stub: Stub,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    message: str,
) -> None:
    programs = write_lines(tmp_path / "programs.jsonl", GOOD)
    words = arguments.format(tmp=tmp_path, tasks=tasks, programs=programs)
    assert main(f"sandbox grade {words}".split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("mars-envs: ")
    assert message.format(tmp=tmp_path) in error
    assert "Traceback" not in error


def test_a_pipe_is_neither_read_nor_written_over(
    tasks: Path, tmp_path: Path, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert run(tasks, GOOD, options=f"--output {pipe}") == 2
    assert "expected a file, got a pipe" in capsys.readouterr().err
    assert main(f"sandbox grade {tasks} --submissions {pipe}".split()) == 2
    assert "expected a plain file, got a pipe" in capsys.readouterr().err
    assert pipe.is_fifo()
    assert not list(tmp_path.glob("*.partial"))


def test_results_go_to_the_file_behind_a_link(tasks: Path, tmp_path: Path, stub: Stub) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to("graded.jsonl")
    assert run(tasks, GOOD, options=f"--output {link}") == 0
    assert link.is_symlink()
    assert len((tmp_path / "graded.jsonl").read_text().splitlines()) == 1


def test_an_engine_that_was_named_is_not_replaced(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "restored when the test has ended")
    programs = write_lines(tmp_path / "programs.jsonl", GOOD)
    words = f"sandbox grade {tasks} --submissions {programs} --docker-host unix://{tmp_path}/none"
    assert main(words.split()) == 2
    assert f"no Docker engine answers at unix://{tmp_path}/none" in capsys.readouterr().err


def test_a_task_whose_limits_cannot_be_set_is_no_verdict(
    tmp_path: Path, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = write_lines(tmp_path / "tasks.jsonl", {**ECHO, "memory_mb": 16})
    assert run(tasks, GOOD) == 2
    assert "Limits.memory_mb must be a whole number from 32" in shown(capsys)
    assert stub.graded == 0


FUNCTION = {
    "task_id": "f",
    "statement": "def f(n):\n    ''' Add one. '''\n",
    "helpers": "from typing import List\ndef f(n):\n    ''' Add one. '''\n",
    "entry_point": "f",
    "public": [{"name": "shown", "body": "assert f(1) == 2"}],
    "hidden": [{"name": "hidden", "body": "assert f(1) == 2\nassert f(2) == 3"}],
}


def test_each_form_of_a_text_becomes_its_program(tmp_path: Path) -> None:
    tasks = write_lines(tmp_path / "functions.jsonl", FUNCTION)
    whole = "def f(n: List[int]):\n    return n + 1\n"
    output = tmp_path / "graded.jsonl"
    status = run(
        tasks,
        {"task": "f", "name": "completion", "text": "    return n + 1\n", "form": "completion"},
        {"task": "f", "name": "both", "text": whole, "form": "completion_or_full"},
        {"task": "f", "name": "reply", "text": f"Here:\n```python\n{whole}```", "form": "reply"},
        {"task": "f", "name": "prose", "text": "I do not know.", "form": "reply"},
        {"task": "f", "name": "alone", "text": whole, "form": "full_program"},
        options=f"--output {output}",
    )
    assert status == 0  # nothing is recorded, so nothing differs
    lines = map(json.loads, output.read_text().splitlines())
    assert {line["name"]: (line["status"], line["total"]) for line in lines} == {
        "completion": ("accepted", 1),
        "both": ("accepted", 1),
        "reply": ("accepted", 1),
        "prose": ("no_code", 1),
        "alone": ("runtime_error", 1),  # List is not defined
    }
    words = ["sandbox", "grade", str(tasks), "--submissions", str(tmp_path / "programs.jsonl")]
    words += ["--sandbox", "bubblewrap", "--preamble", "from typing import List"]
    assert main([*words, "--output", str(tmp_path / "again.jsonl")]) == 0
    *_, alone = map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    assert alone["status"] == "accepted"


@pytest.mark.parametrize(
    ("which", "names"),
    [
        ("auto", ["one", "two"]),
        ("all", ["one", "two"]),
        ("public", ["one"]),
        ("hidden", ["two"]),
        ("recorded", ["two"]),
    ],
)
def test_the_tests_to_be_run_can_be_chosen(
    tasks: Path, stub: Stub, tmp_path: Path, which: str, names: list[str]
) -> None:
    output = tmp_path / "graded.jsonl"
    record = {**GOOD, "per_test_observed": [None, "AC"]}
    assert run(tasks, record, options=f"--tests {which} --output {output}") == 0
    (line,) = map(json.loads, output.read_text().splitlines())
    assert [test["name"] for test in line["tests"]] == names


def test_a_limit_that_no_worker_can_keep_is_no_verdict(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tasks, GOOD, options="--memory-mb 100000") == 2
    text = shown(capsys)
    assert "limits.memory_mb=100000 is more than a worker has" in text
    assert "--worker-memory-mb" in text


def test_workers_can_be_given_more_memory_and_programs_packages(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numeric = program("numeric", "import numpy\nprint(numpy.int64(input()))", observed="pass")
    assert run(tasks, numeric) == 1
    text = shown(capsys)
    assert "1 submission missed the module numpy" in text
    assert "--packages numpy" in text
    more = "--packages numpy --memory-mb 1200 --worker-memory-mb 1300"
    assert run(tasks, numeric, options=more) == 0
    assert "missed the module" not in shown(capsys)


def test_options_of_a_backend_go_to_the_one_that_auto_has_chosen(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, object]]] = []
    sandbox = Stub()

    def open_it(name: str, *, workers: int | None, **options: object) -> Stub:
        asked.append((name, options))
        return sandbox

    monkeypatch.setattr(command, "shared_sandbox", open_it)
    file = write_lines(tasks.with_name("programs.jsonl"), GOOD)
    main(
        ["sandbox", "grade", str(tasks), "--submissions", str(file), "--python", "/usr/bin/python3"]
    )
    assert asked == [("auto", {}), ("stub", {"python": "/usr/bin/python3"})]


def test_a_broken_checker_is_a_fault_of_the_data_set_and_no_disagreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checker = (
        "def check(input, output, expected):\n    return {'2': False, '1': True}[output.strip()]"
    )
    tasks = write_lines(tmp_path / "tasks.jsonl", {**ECHO, "checker": checker})
    broken = program("broken", "print(3)", observed="pass")
    assert run(tasks, GOOD, broken, options="--tests public") == 2
    text = shown(capsys)
    assert "recorded ┃ n ┃ agree ┃ not graded ┃ here" in text
    assert "pass │ 2 │ 1 │ 1 │ accepted 1, checker failed 1" in text
    assert "no verdict, since the task's checker is broken (a fault of the data set)" in text
    assert "KeyError" in text
    assert "1 of 1 recorded verdicts reproduced" in text


def test_a_problem_with_scoring_groups_gives_points_when_all_of_its_tests_ran(
    tmp_path: Path,
) -> None:
    groups = [
        {"name": "easy", "points": 30, "tests": ["one"]},
        {"name": "hard", "points": 70, "tests": ["two"]},
    ]
    tasks = write_lines(tmp_path / "tasks.jsonl", {**ECHO, "groups": groups})
    points = []
    for options in ("", "--tests public"):
        output = tmp_path / f"graded{len(points)}.jsonl"
        assert run(tasks, BAD, options=f"--output {output} {options}") == (1 if options else 0)
        (line,) = map(json.loads, output.read_text().splitlines())
        points.append((line["points"], line["max_points"]))
    assert points == [(30.0, 100.0), (None, None)]
