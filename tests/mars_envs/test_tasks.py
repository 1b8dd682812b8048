from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidTask
from mars_envs.tasks import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    OutputRule,
    ScoringGroup,
    load_tasks,
    save_tasks,
    task_from_json,
    task_to_json,
)

TASK = CodeTask(
    task_id="double",
    statement="Print twice n.",
    public=(ExpectedCase(name="a", input="1\n", expected="2\n"),),
)
LINE = {
    "task_id": "double",
    "statement": "Print twice n.",
    "public": [{"name": "a", "input": "1\n", "expected": "2\n"}],
}


def write(path: Path, *records: Any) -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {**LINE, **fields}.items() if value is not ...}


texts = st.text(min_size=1).filter(lambda text: text.strip() != "")
tests = st.one_of(
    st.builds(ExpectedCase, name=texts, input=st.text(), expected=st.text()),
    st.builds(AssertBody, name=texts, body=texts),
    st.builds(
        FunctionCall,
        name=texts,
        arguments=st.lists(st.integers() | st.text()).map(
            lambda values: "\n".join(map(json.dumps, values))
        ),
        expected=(st.none() | st.text()).map(json.dumps),
    ),
)
tolerances = st.none() | st.floats(min_value=1e-12, max_value=1)


@given(
    st.builds(
        CodeTask,
        task_id=texts,
        statement=texts,
        public=st.lists(tests, min_size=1, max_size=3).map(tuple),
        hidden=st.lists(tests, max_size=3).map(tuple),
        entry_point=texts,
        helpers=st.text(),
        rule=st.builds(
            OutputRule,
            kind=st.just("tokens"),
            case_sensitive=st.booleans(),
            space_change_sensitive=st.booleans(),
            float_abs=tolerances,
            float_rel=tolerances,
            order=st.sampled_from(["given", "outer", "any"]),
        )
        | st.builds(OutputRule, kind=st.sampled_from(["lines", "auto"])),
        time_limit_s=st.floats(min_value=0.01, max_value=100),
        memory_mb=st.integers(1, 4096),
        oracle=st.booleans(),
        show_tests=st.booleans(),
        meta=st.dictionaries(st.text(), st.text(), max_size=3),
    )
)
def test_a_task_survives_json(task: CodeTask) -> None:
    assert task_from_json(json.loads(json.dumps(task_to_json(task)))) == task


def test_scoring_groups_survive_json_and_name_tests_of_their_task() -> None:
    name = TASK.public[0].name
    groups = (ScoringGroup(name="easy", points=0.0, tests=(name,)),)
    task = replace(TASK, groups=groups)
    assert task_from_json(json.loads(json.dumps(task_to_json(task)))) == task
    for wrong in ({"tests": ("another",)}, {"points": -1.0}):
        with pytest.raises(InvalidTask, match="the scoring group 'easy' must name tests of"):
            replace(TASK, groups=(replace(groups[0], **wrong),))


def test_saved_tasks_are_loaded_again(tmp_path: Path) -> None:
    save_tasks(tmp_path / "t.jsonl", [TASK])
    assert tuple(load_tasks(tmp_path / "t.jsonl")) == (TASK,)


UNSEEN = replace(TASK, oracle=True, show_tests=False)
"""What a line without hidden tests is."""


def test_three_fields_make_a_task(tmp_path: Path) -> None:
    assert tuple(load_tasks(str(write(tmp_path / "t.jsonl", LINE)))) == (UNSEEN,)


def test_tasks_pass_through() -> None:
    assert tuple(load_tasks([TASK])) == (TASK,)


def test_a_module_function_makes_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "my_made_tasks.py").write_text(
        "from mars_envs.tasks import load_tasks\n"
        "empty = list\nnumber = 3\n"
        f"def make():\n    return load_tasks({str(tmp_path / 't.jsonl')!r})\n"
    )
    write(tmp_path / "t.jsonl", LINE)
    monkeypatch.syspath_prepend(tmp_path)
    assert tuple(load_tasks("my_made_tasks:make")) == (UNSEEN,)
    with pytest.raises(InvalidTask, match="expected at least one task, got none"):
        load_tasks("my_made_tasks:empty")
    with pytest.raises(InvalidTask, match="is a int; expected a function that returns tasks"):
        load_tasks("my_made_tasks:number")
    with pytest.raises(InvalidTask, match=r"nothing named 'other'.*`module:function`"):
        load_tasks("my_made_tasks:other")
    with pytest.raises(InvalidTask, match="No module named"):
        load_tasks("no_such_module_here:make")


@pytest.mark.parametrize("name", ["tiny_code", "tiny_code:train", "tiny_code:held_out"])
def test_built_in_tasks_have_names(name: str) -> None:
    assert isinstance(load_tasks(name)[0], CodeTask)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(InvalidTask, match="no split 'dev'; expected tiny_code:train or"):
        load_tasks("tiny_code:dev")


def test_objects_that_are_no_tasks_are_refused() -> None:
    with pytest.raises(InvalidTask, match="entry 1: expected a CodeTask, got a dict"):
        load_tasks([TASK, {}])  # type: ignore[list-item]
    with pytest.raises(InvalidTask, match="expected at least one task"):
        load_tasks([])
    with pytest.raises(InvalidTask, match="entry 1: the task id 'double' came before"):
        load_tasks([TASK, TASK])


BAD: list[tuple[Any, str]] = [
    (changed(public=[]), r"line 1, field `public`: expected at least one entry, got a list of 0"),
    (changed(statement=" "), "field `statement`: expected a text that is not blank"),
    (changed(statement=None), "field `statement`: expected a string, got null"),
    (changed(task_id=7), "field `task_id`: expected a string, got 7"),
    (changed(statement="\ud800"), "field `statement`: expected text that UTF-8 can encode"),
    (changed(public={"a": 1}), r"field `public`: expected a list of JSON objects, got an object"),
    (changed(public=[{"name": "a", "input": 1}]), r"field `public\[0\].input`: expected a string"),
    (changed(public=[{"kind": "x", "name": "a"}]), r"`public\[0\].kind`: expected \"stdio\", "),
    (changed(rule={"kind": "set"}), '`rule.kind`: expected "lines", "tokens" or "auto"'),
    (changed(rule={"float_abs": -1}), "`rule.float_abs`: expected a number above 0, got -1"),
    (changed(rule={"order": "none"}), '`rule.order`: expected "given", "outer" or "any"'),
    (changed(rule={"space_change_sensitive": True}), "has the kind `tokens`"),
    (changed(rule={"kind": "auto", "float_abs": 0.1}), "has tolerances of its own"),
    (changed(rule="tokens"), "`rule`: expected a JSON object, got the string 'tokens'"),
    (changed(time_limit_s="2"), "`time_limit_s`: expected a number above 0, got the string '2'"),
    (changed(time_limit_s=0), "`time_limit_s`: expected a number above 0, got 0"),
    (changed(memory_mb=True), "`memory_mb`: expected a number above 0, got true"),
    (changed(oracle="yes"), "`oracle`: expected true or false, got the string 'yes'"),
    (changed(meta={"a": 1}), "`meta.a`: expected a string, got 1"),
    (changed(tests=[]), "`tests`: expected one of .*public.*; rename or remove the field"),
    (changed(public=[{"name": "a", "body": "assert f()"}]), "no `entry_point`"),
    (changed(public=[{"name": "a", "arguments": "1", "expected": "1"}]), "no `entry_point`"),
    (changed(public=[{"name": "a", "arguments": "1\nx", "expected": "1"}]), "got x .*quote"),
    (
        changed(
            public=[{"name": "a", "body": "assert f()"}], entry_point="f", checker="def check(): 1"
        ),
        "assert tests judge for themselves",
    ),
    (
        changed(statement=...),
        r"unknown task format; got the fields task_id, public;.*\(code_task lacks statement;",
    ),
    ({}, "unknown task format; .*got the fields none"),
    ('{"task_id": "a"', "line 1: expected one JSON object, got text that is no JSON"),
    ("[" * 100_000, "line 1: expected one JSON object, got text that is no JSON"),
    ([LINE], "line 1: expected one JSON object, got a list of 1; write one object per line"),
]


@pytest.mark.parametrize(("record", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_bad_record_is_named_with_its_fault(tmp_path: Path, record: Any, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        load_tasks(write(tmp_path / "t.jsonl", record))


def test_a_missing_field_is_named_when_the_format_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", changed(statement=...))
    with pytest.raises(InvalidTask, match="field `statement`: expected a string, got nothing"):
        load_tasks(path, format="code_task")


def test_every_bad_record_is_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", LINE, "{", changed(task_id="b", public=[]))
    with pytest.raises(InvalidTask) as raised:
        load_tasks(path)
    message = str(raised.value)
    assert "2 of 3 records cannot be used" in message
    assert "line 2" in message
    assert "line 3, field `public`" in message
    assert 'on_error="skip"' in message


def test_the_list_of_bad_records_is_bounded(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", *["{"] * 300)
    with pytest.raises(InvalidTask, match="… and 290 more"):
        load_tasks(path)


def test_bad_records_can_be_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "t.jsonl", LINE, "{", changed(task_id="b"))
    with caplog.at_level(logging.WARNING, "mars_envs"):
        tasks = load_tasks(path, on_error="skip")
    assert [task.task_id for task in tasks] == ["double", "b"]
    assert "left out 1 of 3 records" in caplog.text


def test_skipping_everything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match="2 of 2 records cannot be used"):
        load_tasks(write(tmp_path / "t.jsonl", "{", "{"), on_error="skip")


def test_an_id_may_come_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"line 3: the task id 'double' came before, in line 1"):
        load_tasks(write(tmp_path / "t.jsonl", LINE, changed(task_id="b"), LINE))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match=r"cannot read the task file .*nothing.jsonl: No such"):
        load_tasks(tmp_path / "nothing.jsonl")


def test_an_unknown_name_is_taken_for_a_file() -> None:
    with pytest.raises(InvalidTask, match="cannot read the task file humanevil"):
        load_tasks("humanevil")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match="expected one JSON object per line, got an empty file"):
        load_tasks(write(tmp_path / "t.jsonl", ""))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b"\n\xff\xfe\n")
    with pytest.raises(InvalidTask, match="line 2: expected UTF-8 text, got the byte 0xff"):
        load_tasks(tmp_path / "t.jsonl")


def test_line_separators_inside_a_record_do_not_split_it(tmp_path: Path) -> None:
    record = changed(statement="a\u2028b\x85c")
    (tmp_path / "t.jsonl").write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    assert load_tasks(tmp_path / "t.jsonl")[0].statement == "a\u2028b\x85c"


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="on_error must be"):
        load_tasks([TASK], on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="format must be auto, code_task, humaneval, humanevalpack"
    ):
        load_tasks([TASK], format="codecontests")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "oracle", "show_tests"),
    [
        ({}, True, False),
        ({"hidden": LINE["public"]}, False, True),
        ({"oracle": False}, False, True),
        ({"show_tests": True}, True, True),
    ],
)
def test_a_task_without_hidden_tests_is_an_unseen_oracle_one_unless_it_says_otherwise(
    tmp_path: Path, fields: dict[str, Any], oracle: bool, show_tests: bool
) -> None:
    task = load_tasks(str(write(tmp_path / "t.jsonl", LINE | fields)))[0]
    assert (task.oracle, task.show_tests) == (oracle, show_tests)


def test_tolerances_of_zero_are_loaded_again(tmp_path: Path) -> None:
    exact = replace(TASK, rule=OutputRule(float_abs=0.0, float_rel=0.0))
    save_tasks(tmp_path / "t.jsonl", [exact])
    assert tuple(load_tasks(tmp_path / "t.jsonl")) == (exact,)


def test_a_task_that_cannot_be_saved_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    save_tasks(path, [TASK])
    with pytest.raises(UnicodeEncodeError):
        save_tasks(path, [TASK, replace(TASK, task_id="\ud800")])
    assert tuple(load_tasks(path)) == (TASK,)
