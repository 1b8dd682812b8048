from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidTask
from mars_envs.tasks import CodeTask, ExpectedCase, FunctionCall, OutputRule, load_tasks
from mars_envs.tasks.packed import unpack

STDIN = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
SECRET = [
    {"input": "5 5\n", "output": "10\n", "testtype": "stdin"},
    {"input": "7 7\n", "output": "14\n", "testtype": "stdin"},
]


def packed(tests: Any, *, protocol: int | None = None) -> str:
    """As the authors pack the private tests of `code_generation_lite`."""
    data = pickle.dumps(json.dumps(tests), protocol)
    return base64.b64encode(zlib.compress(data)).decode("ascii")


def problem(**fields: Any) -> dict[str, Any]:
    """A record in the published layout: every field, every one of them a string."""
    record = {
        "question_title": "Sum",
        "question_content": "Print a + b.",
        "platform": "atcoder",
        "question_id": "abc999_a",
        "contest_id": "abc999",
        "contest_date": "2025-01-04T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(STDIN),
        "private_test_cases": packed(SECRET),
        "metadata": "{}",
    }
    return record | fields


def functional(**fields: Any) -> dict[str, Any]:
    public = [{"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}]
    private = [{"input": '[]\n"x"', "output": "null", "testtype": "functional"}]
    return problem(
        platform="leetcode",
        question_id="3000",
        starter_code="class Solution:\n    def addAll(self, xs: List[int], n: int):\n        ",
        public_test_cases=json.dumps(public),
        private_test_cases=packed(private),
        metadata='{"func_name": "addAll"}',
        **fields,
    )


def load(tmp_path: Path, record: dict[str, Any], **options: Any) -> CodeTask:
    path = tmp_path / "test6.jsonl"
    path.write_text(json.dumps(record) + "\n")
    return load_tasks(path, **options)[0]


def test_public_tests_are_public_and_private_ones_hidden(tmp_path: Path) -> None:
    assert load(tmp_path, problem()) == CodeTask(
        task_id="abc999_a",
        statement="Print a + b.",
        public=(ExpectedCase(name="public/1", input="1 2\n", expected="3\n"),),
        hidden=(
            ExpectedCase(name="hidden/1", input="5 5\n", expected="10\n"),
            ExpectedCase(name="hidden/2", input="7 7\n", expected="14\n"),
        ),
        rule=OutputRule(kind="lines", float_abs=0.0),
        time_limit_s=6.0,
        memory_mb=1024,
        meta={
            "name": "Sum",
            "platform": "atcoder",
            "difficulty": "easy",
            "contest_id": "abc999",
            "date": "2025-01-04",
        },
    )


def test_functional_tests_call_a_method_of_the_starter_code(tmp_path: Path) -> None:
    task = load(tmp_path, functional())
    assert task.entry_point == "Solution.addAll"
    assert task.public == (FunctionCall(name="public/1", arguments="[1, 2]\n3", expected="[4, 5]"),)
    assert task.hidden == (FunctionCall(name="hidden/1", arguments='[]\n"x"', expected="null"),)
    assert "class Solution:\n    def addAll(self, xs: List[int], n: int):\n```" in task.statement


@pytest.mark.parametrize("protocol", range(6))
def test_private_tests_are_unpacked_whatever_the_protocol_of_their_pickle(
    tmp_path: Path, protocol: int
) -> None:
    secret = packed(SECRET, protocol=protocol)
    assert len(load(tmp_path, problem(private_test_cases=secret)).hidden) == 2


def test_private_tests_may_be_plain_json(tmp_path: Path) -> None:
    plain = problem(private_test_cases=json.dumps(SECRET))
    assert load(tmp_path, plain) == load(tmp_path, problem())
    decoded = problem(private_test_cases=SECRET, public_test_cases=STDIN, metadata={})
    assert load(tmp_path, decoded) == load(tmp_path, problem())


@pytest.mark.parametrize("private", ["", "[]", None, packed([])])
def test_without_private_tests_search_and_reward_share_the_public_ones_unseen(
    tmp_path: Path, private: str | None
) -> None:
    task = load(tmp_path, problem(private_test_cases=private))
    assert [test.name for test in task.public] == ["public/1"]
    assert task.hidden == ()
    assert task.oracle
    assert not task.show_tests


class Harmful:
    """What a pickle may do: call anything."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("a pickle was run",)


def zipped(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode("ascii")


PACKED: list[tuple[str, str]] = [
    ("not base64!", "it holds neither JSON nor base64"),
    ("ünïcode", "it holds neither JSON nor base64"),
    ("AAAA", "zlib cannot decompress"),
    (packed(SECRET)[:40], "cut off|neither JSON nor base64"),
    (zipped(b"[]"), "no whole pickle"),
    (zipped(pickle.dumps("[]")[:-1]), "no whole pickle"),
    (zipped(pickle.dumps(Harmful())), "a pickle with the operation .*GLOBAL"),
    (zipped(pickle.dumps(Harmful(), 0)), "a pickle with the operation GLOBAL"),
    (zipped(pickle.dumps(["[]"])), "a pickle with the operation EMPTY_LIST"),
    (zipped(pickle.dumps(b"[]")), "a pickle with the operation SHORT_BINBYTES"),
    (zipped(pickle.dumps(None)), "a pickle with the operation NONE"),
    (zipped(b"\x80\x04."), "a pickle of 0 strings"),
]


@pytest.mark.parametrize(("text", "fault"), PACKED, ids=[fault for _, fault in PACKED])
def test_anything_else_in_the_place_of_packed_tests_is_refused_and_not_run(
    tmp_path: Path, text: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidTask, match=f"line 1, field `private_test_cases`: .*{fault}"):
        load(tmp_path, problem(private_test_cases=text))
    assert capsys.readouterr().out == ""


def test_a_text_that_unpacks_to_more_than_the_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mars_envs.tasks.packed.MAX_BYTES", 1000)
    assert unpack(packed("x" * 100)) == '"' + "x" * 100 + '"'
    with pytest.raises(ValueError, match="more than 1000 bytes when decompressed"):
        unpack(packed("x" * 10_000))


BAD: list[tuple[dict[str, Any], str]] = [
    (problem(public_test_cases="{"), "`public_test_cases`: expected JSON in a string, got the str"),
    (problem(public_test_cases="3"), "`public_test_cases`: expected a list of JSON objects, got 3"),
    (problem(private_test_cases=packed({"a": 1})), "`private_test_cases`: expected a list of JSON"),
    (problem(public_test_cases="[]", private_test_cases="[]"), "expected at least one test"),
    (
        problem(public_test_cases=[{"input": "", "output": "", "testtype": "checker"}]),
        r"`public_test_cases\[0\].testtype`: expected one of stdin, stdin_stdout, functional,",
    ),
    (
        problem(public_test_cases=[{"input": "", "output": ""}]),
        r"`public_test_cases\[0\].testtype`: expected a string, got nothing",
    ),
    (
        problem(public_test_cases=[{"input": 1, "output": "", "testtype": "stdin"}]),
        r"`public_test_cases\[0\].input`: expected a string, got 1",
    ),
    (
        problem(public_test_cases=[{"input": "1", "testtype": "stdin"}]),
        r"`public_test_cases\[0\].output`: expected a string, got nothing",
    ),
    (
        problem(public_test_cases=[{"input": "x", "output": "1", "testtype": "functional"}]),
        r"`public_test_cases\[0\].input`: expected JSON values, one a line",
    ),
    (functional() | {"metadata": "{}"}, "its tests call a function, but nothing says which"),
    (functional() | {"metadata": "[]"}, "`metadata`: expected a JSON object, got a list of 0"),
    (functional() | {"metadata": '{"func_name": 3}'}, "`metadata.func_name`: expected a string"),
    (
        functional() | {"private_test_cases": packed(SECRET)},
        "`private_test_cases`: expected tests of the same kind as the public ones",
    ),
    (problem(contest_date="January"), "`contest_date`: expected a date like 2024-08-31T00:00:00"),
    (problem(question_id=""), "`question_id`: expected a text that is not blank"),
    (problem(question_content=None), "`question_content`: expected a string, got null"),
]


@pytest.mark.parametrize(("record", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_a_bad_problem_is_named_with_its_fault(
    tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=f"test6.jsonl, line 1.*{message}"):
        load(tmp_path, record)


def test_results_are_cut_by_windows_of_contest_days(tmp_path: Path) -> None:
    days = ("2024-12-31", "2025-01-01", "2025-05-01", "2025-05-02")
    path = tmp_path / "lcb.jsonl"
    records = [problem(question_id=day, contest_date=f"{day}T23:00:00") for day in days]
    records.append(problem(question_id="no day", contest_date=None))
    records.append(problem(question_id="hard", difficulty="Hard"))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))

    def ids(**options: Any) -> list[str]:
        return [task.task_id for task in load_tasks(path, **options)]

    window = {"start_date": "2025-01-01", "end_date": "2025-05-01", "difficulty": "easy"}
    assert ids(**window) == ["2025-01-01", "2025-05-01"]
    assert ids(end_date="2024-12-31") == ["2024-12-31"]
    assert ids(difficulty="hard") == ["hard"]
    assert ids(limit=2, start_date="2025-01-01") == ["2025-01-01", "2025-05-01"]
    with pytest.raises(InvalidTask, match=r"no task is from the days .* asked for"):
        load_tasks(path, start_date="2026-01-01")
    with pytest.raises(ValueError, match="start_date must be a day like 2025-01-31, got 'today'"):
        load_tasks(path, start_date="today")
