"""docs/sandbox.md says what the code does: its tables, commands, links and example are checked."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import sandbox
from mars_envs.cli import main
from mars_envs.cli.parser import build_parser
from mars_envs.judging.agreement import WORDS
from mars_envs.judging.code import close_shared_sandboxes
from mars_envs.tasks.code import CodeTask
from sandbox import Limits, Status, factory
from sandbox.base import Guarantee
from sandbox.bench.report import MARKDOWN_HEAD, MAX_CPU_MS, MIN_DOCKER_RUN_RATIO, MIN_HOST_RATIO
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.container import DockerBackend, missing_guarantees
from sandbox.local import LocalBackend

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"
TEXT = PAGE.read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [body for name, body in FENCE.findall(TEXT) if name == "python"]


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this heading."""
    rows: list[list[str]] = []
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith(f"| {heading} "):
            rows = [cells]
        elif rows and not line.startswith("|"):
            break
        elif rows and not line.startswith("| ---"):
            rows.append(cells)
    assert rows, f"no table {heading!r}"
    return rows


def test_the_table_of_guarantees_is_what_backends_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("sandbox.bubblewrap.limits_processes", lambda: True)
    monkeypatch.setattr(BubblewrapBackend, "_probe_group", lambda self: True)
    monkeypatch.setattr("sandbox.private_tmp.works", lambda: True)
    every = frozenset(Guarantee)
    best = {
        "docker": every - missing_guarantees({"MemoryLimit": True}, None),
        "bubblewrap, root": BubblewrapBackend(rootless=False).capabilities.guarantees,
        "bubblewrap, user": BubblewrapBackend(rootless=True).capabilities.guarantees,
        "local": LocalBackend().capabilities.guarantees,
    }
    # The same on machines that lack what a footnote names.
    monkeypatch.setattr("sandbox.bubblewrap.limits_processes", lambda: False)
    monkeypatch.setattr(BubblewrapBackend, "_probe_group", lambda self: False)
    monkeypatch.setattr("sandbox.private_tmp.works", lambda: False)
    worst = {
        "docker": every - missing_guarantees({"MemoryLimit": False}, None),
        "bubblewrap, root": BubblewrapBackend(rootless=False).capabilities.guarantees,
        "bubblewrap, user": BubblewrapBackend(rootless=True).capabilities.guarantees,
        "local": LocalBackend().capabilities.guarantees,
    }
    head, *rows = table("guarantee")
    assert head[2:] == list(best)
    assert [(row[0].strip("`"), row[1]) for row in rows] == [
        (each.value, each.sentence) for each in Guarantee
    ]
    for row, guarantee in zip(rows, Guarantee, strict=True):
        for backend, cell in zip(head[2:], row[2:], strict=True):
            held = guarantee in best[backend], guarantee in worst[backend]
            expected = {(True, True): "yes", (False, False): "no"}.get(held, r"\(\d\)")
            assert re.fullmatch(expected, cell), (guarantee, backend)


def test_other_runtimes_lack_what_the_page_says() -> None:
    missing = missing_guarantees({}, "runsc")
    for guarantee in Guarantee:
        sentence = f"`{guarantee.value}`" in TEXT.partition("With a `runtime`")[2].split("\n\n")[0]
        assert sentence == (guarantee in missing), guarantee


def test_every_status_has_its_place_in_the_table_of_verdicts() -> None:
    told = [row[1].strip("`") for row in table("what happened")[1:]]
    assert set(told) - {"none: the worker is at fault"} == set(Status)


def test_the_default_limits_are_the_documented_ones() -> None:
    documented = {row[0].strip("`"): row[1] for row in table("limit")[1:]}
    defaults = Limits()
    assert documented.pop("wall_s") == "`max(5, 10 * cpu_s)`"
    assert defaults.wall_s is None
    assert documented == {
        name: str(getattr(defaults, name)) for name in Limits.__slots__ if name != "wall_s"
    }


def test_the_documented_options_of_docker_exist() -> None:
    names = [name for row in table("option")[1:] for name in re.findall(r"`(\w+)`", row[0])]
    code = DockerBackend.__init__.__code__
    known = code.co_varnames[1 : 1 + code.co_kwonlyargcount]
    assert sorted(names) == sorted(known)


def test_commands_on_the_page_parse() -> None:
    text = "\n".join(body for name, body in FENCE.findall(TEXT) if not name)
    lines = [line for line in text.splitlines() if line.startswith("mars-envs ")]
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if "--help" in words:
            words.remove("--help")
            with pytest.raises(SystemExit):
                build_parser().parse_args([*words, "--help"])
        else:
            build_parser().parse_args(words)


def test_links_on_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert "://" in target or (PAGE.parent / target).exists(), target


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_run(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_here(backend: str = "auto", **options: Any) -> sandbox.Grader:
        return factory.open_sandbox("bubblewrap", **options)

    monkeypatch.setattr(sandbox, "open_sandbox", open_here)
    exec(compile(EXAMPLES[number], "docs/sandbox.md", "exec"), {})


def test_the_listed_fields_are_the_fields() -> None:
    rows = table("kind")[1:]
    for kind, text in rows:
        record = getattr(sandbox, kind.strip("`"))
        listed = re.findall(r"`(\w+)`", re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", text))
        known = [field.name for field in dataclasses.fields(record)]
        assert listed[: len(known)] == known, kind
        assert all(hasattr(record, name) for name in listed), kind
    assert len(rows) == 9


def test_the_files_for_grading_are_graded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems, programs = (body for name, body in FENCE.findall(TEXT) if name == "json")
    (tmp_path / "problems.jsonl").write_text(problems)
    (tmp_path / "programs.jsonl").write_text(programs)
    output = tmp_path / "graded.jsonl"
    words = [str(tmp_path / "problems.jsonl"), "--submissions", str(tmp_path / "programs.jsonl")]
    options = ["--output", str(output), "--sandbox", "bubblewrap", "--tests", "all"]
    try:
        assert main(["sandbox", "grade", *words, *options]) == 0
    finally:
        close_shared_sandboxes()
    assert "2 of 2 recorded verdicts reproduced" in capsys.readouterr().out
    good, bad = map(json.loads, output.read_text().splitlines())
    assert good["status"] == "accepted"
    assert [test["status"] for test in bad["tests"]] == ["accepted", "runtime_error"]
    told = set(re.findall(r"`(\w+)`", TEXT.partition("`--output` has one")[2].split("\n\n")[0]))
    assert {*good, *good["tests"][0]} <= told


def test_every_field_of_a_problem_is_on_the_page() -> None:
    named = {name for row in table("field of a problem")[1:] for name in re.findall(r"\w+", row[0])}
    assert named == {field.name for field in dataclasses.fields(CodeTask)}


def test_every_word_for_a_verdict_is_on_the_page() -> None:
    passage = TEXT.partition("Words of recorded verdicts")[2].split("\n\n")[0]
    told = {word.lower() for word in re.findall(r"`(\w+)`", passage)}
    assert told == set(WORDS) - {*Status, "no_code"}


def test_the_table_of_costs_is_the_one_that_the_benchmark_prints() -> None:
    assert MARKDOWN_HEAD in TEXT.splitlines()
    for goal in (MAX_CPU_MS, MIN_HOST_RATIO, MIN_DOCKER_RUN_RATIO):
        assert f" {goal:g}" in TEXT.partition("The goals are")[2].partition("Missed")[0]
