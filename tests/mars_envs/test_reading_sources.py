"""Reading tasks from every source."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading import (
    Evidence,
    Part,
    ReadingTask,
    TextDocument,
    load_reading_tasks,
    save_reading_tasks,
)
from mars_envs.reading.evidence import as_written, rounds, stands_in, verify_evidence
from mars_envs.reading.file_document import FileDocument

HOTPOT: dict[str, Any] = {
    "_id": "a1",
    "question": "Where was the director of Low Tide born?",
    "answer": "Ghent",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Ida Maes (director)", 1], ["Low Tide", 0]],
    "context": [
        ["Ida Maes (director)", ["Ida Maes is a director.", " She was born in Ghent."]],
        ["Ostend", ["Ostend is a town.", " "]],
        ["Low Tide", ["Low Tide is a film by Ida Maes.", " It was shot in Ostend."]],
    ],
}
MUSIQUE: dict[str, Any] = {
    "id": "3hop1__1_2_3",
    "question": "In which country is the town where the director of Low Tide was born?",
    "answer": "Belgium",
    "answer_aliases": ["Kingdom of Belgium", "Belgium"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Ghent", "paragraph_text": "GHENT lies in Belgium."},
        {"idx": 1, "title": "Low Tide", "paragraph_text": "A film by Ida Maes."},
        {"idx": 2, "title": "Ida Maes", "paragraph_text": "She was born in Ghent."},
    ],
    "question_decomposition": [
        {"question": "Low Tide >> director", "answer": "Ida Maes", "paragraph_support_idx": 1},
        {"question": "#1 >> place of birth", "answer": "ghent", "paragraph_support_idx": 2},
        {"question": "Where is #2?", "answer": "Belgium", "paragraph_support_idx": 0},
    ],
}


def write(path: Path, *records: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def load(tmp_path: Path, record: Mapping[str, Any], name: str = "data.jsonl") -> ReadingTask:
    (task,) = load_reading_tasks(write(tmp_path / name, record))
    return task


def text_of(task: ReadingTask) -> str:
    return task.document.read(0, len(task.document))


# HotpotQA


def test_hotpotqa_evidence_follows_the_bridge_from_the_question(tmp_path: Path) -> None:
    task = load(tmp_path, HOTPOT)
    assert [item.text for item in task.evidence] == [
        "Low Tide is a film by Ida Maes.",
        "She was born in Ghent.",
    ]
    assert [item.triggers for item in task.evidence] == [(), ("Ida Maes",)]
    assert [item.doc_id for item in task.evidence] == ["Low Tide", "Ida Maes (director)"]
    assert (task.task_id, task.answers, task.hops, task.kind) == ("a1", ("Ghent",), 2, "bridge")
    assert task.source["licence"] == "CC BY-SA 4.0"
    assert text_of(task).startswith("Ida Maes (director)\nIda Maes is a director. She was")


def test_both_layouts_of_hotpotqa_are_the_same_task(tmp_path: Path) -> None:
    titles, sentences = zip(*HOTPOT["context"], strict=True)
    facts = list(zip(*HOTPOT["supporting_facts"], strict=True))
    hub = {
        **{key: value for key, value in HOTPOT.items() if key != "_id"},
        "id": "a1",
        "context": {"title": titles, "sentences": sentences},
        "supporting_facts": {"title": facts[0], "sent_id": facts[1]},
    }
    one, other = load(tmp_path, HOTPOT), load(tmp_path, hub)
    assert text_of(one) == text_of(other)
    assert (one.evidence, one.answers, one.task_id) == (other.evidence, other.answers, "a1")


def test_both_paragraphs_of_a_comparison_can_be_found_at_once(tmp_path: Path) -> None:
    task = load(
        tmp_path,
        {
            **HOTPOT,
            "type": "comparison",
            "question": "Is Low Tide or Ostend older?",
            "supporting_facts": [["Low Tide", 1], ["Ostend", 0], ["Low Tide", 1]],
        },
    )
    assert [item.text for item in task.evidence] == ["It was shot in Ostend.", "Ostend is a town."]
    assert ([item.triggers for item in task.evidence], task.hops) == ([(), ()], 1)


@pytest.mark.parametrize("number", [2, -1])
def test_a_fact_without_a_sentence_leaves_the_evidence_unknown(number: int, tmp_path: Path) -> None:
    facts = [["Low Tide", 0], ["Low Tide", number]]
    task = load(tmp_path, {**HOTPOT, "supporting_facts": facts})
    assert (task.evidence, task.hops, task.source["unresolved_facts"]) == ((), 0, "1")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "records", "kinds"),
    [
        ("hotpot_dev_distractor_head.json", 165, {"bridge": 134, "comparison": 31}),
        ("hotpot_train_100.json", 100, {"bridge": 78, "comparison": 22}),
    ],
)
def test_every_recorded_hotpotqa_item_loads_and_its_facts_resolve(
    name: str, records: int, kinds: Mapping[str, int], data_dir: Path
) -> None:
    path = data_dir / "hotpotqa" / name
    tasks = load_reading_tasks(path)
    assert len(tasks) == records
    assert Counter(task.kind for task in tasks) == kinds
    for task, item in zip(tasks, json.loads(path.read_text()), strict=True):
        verify_evidence(task)
        by_title = dict(map(tuple, item["context"]))
        wanted = {by_title[title][number].strip() for title, number in item["supporting_facts"]}
        assert {piece.text for piece in task.evidence} == wanted
        assert [part.title for part in task.document.parts] == [t for t, _ in item["context"]]
        for piece in task.evidence:
            assert piece.text in "".join(by_title[piece.doc_id])


# MuSiQue


def test_musique_evidence_goes_along_the_decomposition(tmp_path: Path) -> None:
    task = load(tmp_path, MUSIQUE)
    assert [(item.text, item.triggers) for item in task.evidence] == [
        ("A film by Ida Maes.", ()),
        ("She was born in Ghent.", ("Ida Maes",)),
        ("GHENT lies in Belgium.", ("Ghent",)),
    ]
    assert (task.hops, task.kind) == (3, "3hop1")
    assert task.answers == ("Belgium", "Kingdom of Belgium")


def test_a_musique_question_without_an_answer_is_answered_unknown(tmp_path: Path) -> None:
    task = load(tmp_path, {**MUSIQUE, "answerable": False})
    assert (task.answers, task.evidence, task.kind) == (("unknown",), (), "unanswerable")


@pytest.mark.data
def test_every_recorded_musique_item_loads_and_its_hops_are_the_published_ones(
    data_dir: Path,
) -> None:
    tasks = load_reading_tasks(data_dir / "qa" / "musique_ans_train_sample.jsonl")
    assert len(tasks) == 59
    for task in tasks:
        verify_evidence(task)
        assert len(task.evidence) == int(task.kind[0])
        # Two of the steps of 3hop2, and of the steps of 4hop3, can be taken at once.
        depth = {"2hop": 2, "3hop1": 3, "3hop2": 2, "4hop1": 4, "4hop3": 3}[task.kind]
        assert task.hops == depth == max(rounds(task.question, task.evidence))


# RULER, LongBench, MemAgent


def test_a_ruler_needle_is_question_document_and_evidence(tmp_path: Path) -> None:
    text = (
        "Some special magic numbers are hidden within the following text. Make sure to memorize "
        "it.\nThe grass is green. One of the special magic numbers for tired-fox is: 4511.\n"
        "The sky is blue. One of the special magic numbers for tired-fox is: 907.\n"
        "What are all the special magic numbers for tired-fox mentioned in the provided text?"
    )
    record = {"index": 3, "input": text, "outputs": ["4511", "907"], "answer_prefix": " The ..."}
    task = load(tmp_path, record, "niah_multivalue.jsonl")
    assert task.question.startswith("What are all the special magic numbers for tired-fox")
    assert [item.text for item in task.evidence] == [
        "One of the special magic numbers for tired-fox is: 4511.",
        "One of the special magic numbers for tired-fox is: 907.",
    ]
    assert (task.answers, task.match) == (("4511", "907"), "all")
    assert (task.task_id, task.kind) == ("niah_multivalue/3", "ruler:niah_multivalue")
    assert task.source["answer_prefix"] == "The ..."
    assert "What are all" not in text_of(task)


def test_the_last_line_that_begins_with_question_is_ruler_s_question(tmp_path: Path) -> None:
    text = "Track.\n\nVAR A = 1\nQuestion: Which for 2?\nVAR B = A\nQuestion: Which for 1?"
    task = load(tmp_path, {"input": text, "outputs": ["A", "B"]})
    assert (task.question, task.match, task.evidence) == ("Which for 1?", "all", ())
    assert text_of(task) == "Track.\n\nVAR A = 1\nQuestion: Which for 2?\nVAR B = A\n"


def test_outputs_of_a_ruler_question_about_documents_are_alternatives(tmp_path: Path) -> None:
    asked = "Answer the question based on the given documents. Only give me the answer."
    text = f"{asked}\n\nDocument 1:\nGhent is old.\n\n{asked}\n\nQuestion: What is old?"
    task = load(tmp_path, {"input": text, "outputs": ["Ghent", "Gent"]})
    assert (task.question, task.match) == ("What is old?", "any")
    assert text_of(task) == f"{asked}\n\nDocument 1:\nGhent is old.\n"


def test_a_record_with_a_context_has_its_question_in_input(tmp_path: Path) -> None:
    record = {"input": "What is old?", "context": "Ghent is old.", "answers": ["Ghent", "Gent"]}
    task = load(tmp_path, {**record, "_id": "7", "dataset": "hotpotqa"})
    assert (task.task_id, task.question, task.match) == ("7", "What is old?", "any")
    assert (text_of(task), task.kind) == ("Ghent is old.", "hotpotqa")


def test_longbench_choices_stand_below_the_question(tmp_path: Path) -> None:
    choices = {"choice_A": "One", "choice_B": "Two", "choice_C": "Three", "choice_D": "Four"}
    record = {"_id": "x", "question": "How many?", "answer": "B", "context": "Two.", **choices}
    task = load(tmp_path, {**record, "domain": "Single-Document QA", "difficulty": "easy"})
    assert task.question.splitlines()[:3] == ["How many?", "(A) One", "(B) Two"]
    assert (task.choices, task.answers) == (("One", "Two", "Three", "Four"), ("B",))
    assert task.source["difficulty"] == "easy"


def test_rows_in_memagents_layout_have_their_passages_as_parts(tmp_path: Path) -> None:
    record = {
        "data_source": "hotpotqa",
        "prompt": [{"role": "user", "content": "What is old?"}],
        "context": "Document 1:\nGhent\nGhent is old.\n\nDocument 2:\nOstend\nOstend is new.\n\n",
        "reward_model": {"ground_truth": ["Ghent"], "style": "rule"},
        "extra_info": {"index": 5, "num_docs": 2},
    }
    task = load(tmp_path, record, "eval_2.jsonl")
    assert (task.task_id, task.question, task.answers) == ("eval_2/5", "What is old?", ("Ghent",))
    parts = [(p.title, task.document.read(p.start, p.end)) for p in task.document.parts]
    assert parts == [
        ("Ghent", "Document 1:\nGhent\nGhent is old."),
        ("Ostend", "Document 2:\nOstend\nOstend is new."),
    ]


# Our own format


def own(**changes: Any) -> dict[str, Any]:
    document = {"text": "Ghent is old. Bruges is, too."}
    record = {"task_id": "t", "question": "Old?", "document": document, "answers": ["Ghent"]}
    return {**record, **changes}


def full() -> ReadingTask:
    text = "Gent\nGent ist alt.\n\nOstende\nOstende — neu."
    return ReadingTask(
        task_id="t/1",
        question="Was ist alt?",
        document=TextDocument(
            text,
            [
                Part(doc_id="a", start=0, end=18, title="Gent"),
                Part(doc_id="b", start=20, end=42, title="Ostende"),
            ],
        ),
        answers=("Gent", "Ghent"),
        match="all",
        evidence=(
            Evidence(start=5, end=18, text="Gent ist alt.", doc_id="a"),
            Evidence(start=28, end=42, text="Ostende — neu.", doc_id="b", triggers=("alt",)),
        ),
        hops=2,
        kind="test",
        choices=("Gent", "Ostende"),
        source={"licence": "CC0"},
    )


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    save_reading_tasks([full()], tmp_path / "tasks.jsonl")
    (again,) = load_reading_tasks(tmp_path / "tasks.jsonl")
    assert text_of(again) == text_of(full())
    assert list(again.document.parts) == list(full().document.parts)
    for field in ("task_id", "question", "answers", "match", "evidence", "hops", "kind", "choices"):
        assert getattr(again, field) == getattr(full(), field)
    assert dict(again.source) == {"licence": "CC0"}
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]


def test_that_there_is_no_evidence_is_kept_and_is_not_the_same_as_not_known(tmp_path: Path) -> None:
    known = dataclasses.replace(full(), task_id="known", evidence=(), no_evidence=True)
    unknown = dataclasses.replace(full(), task_id="unknown", evidence=())
    save_reading_tasks([known, unknown], tmp_path / "tasks.jsonl")
    assert [t.no_evidence for t in load_reading_tasks(tmp_path / "tasks.jsonl")] == [True, False]
    with pytest.raises(InvalidTask, match="no_evidence says that there is none, but it has 2"):
        dataclasses.replace(full(), no_evidence=True)


def test_a_document_may_stay_in_a_file_or_be_made_of_a_pool(tmp_path: Path) -> None:
    write(
        tmp_path / "pool.jsonl",
        {"doc_id": "a", "title": "Ghent", "text": "Old."},
        {"doc_id": "b", "text": "New."},
    )
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "1.txt").write_text("Ghent is old.", encoding="utf-8")
    path = write(
        tmp_path / "tasks.jsonl",
        own(task_id="file", document={"file": "texts/1.txt"}),
        own(
            task_id="pool",
            document={"pool": "pool.jsonl", "order": [1, 0], "header": "[{number}] "},
            evidence=[{"start": 20, "end": 24}],
        ),
    )
    in_file, in_pool = load_reading_tasks(path)
    assert isinstance(in_file.document, FileDocument)
    assert text_of(in_file) == "Ghent is old."
    assert text_of(in_pool) == "[1] New.\n\n[2] Ghent\nOld."
    assert in_pool.evidence[0].text == "Old."


@pytest.mark.parametrize(
    "way", ["../data/tasks.jsonl", "link/tasks.jsonl", "link/../data/tasks.jsonl"]
)
def test_a_document_in_a_file_is_found_by_any_path_to_its_record(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("data", "here"):
        (tmp_path / folder).mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "data")
    write(tmp_path / "data" / "tasks.jsonl", own(document={"file": "1.txt"}))
    (tmp_path / "data" / "1.txt").write_text("Ghent is old.", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    for path in (way, str(tmp_path / "here" / way)):
        (task,) = load_reading_tasks(path)
        assert text_of(task) == "Ghent is old."


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (own(extra=1), r"field `extra`: expected one of answers, .*got 1"),
        (own(answers=[]), "field `answers`: expected at least one entry"),
        (own(answers="Ghent"), "field `answers`: expected a list of strings"),
        (own(question=" "), "field `question`: expected a text that is not blank"),
        (own(document="text"), "field `document`: expected a JSON object"),
        (own(document={}), "field `document.text`: expected one of `text`, `file` and `pool`"),
        (own(document={"text": "a", "file": "b"}), "expected one of `text`, `file` and `pool`"),
        (own(document={"file": "none.txt"}), "field `document.file`: expected a file that can"),
        (own(document={"file": "../up.txt"}), "expected a file beside the record's, or below"),
        (own(document={"file": "/etc/hosts"}), "expected a file beside the record's, or below"),
        (own(match="some"), 'field `match`: expected "any" or "all"'),
        (own(hops=-1), "field `hops`: expected a whole number, at least 0"),
        (own(source={"a": 1}), "field `source.a`: expected a string"),
        (own(evidence=[{"start": 3}]), r"field `evidence\[0\].end`: expected a number"),
        (own(evidence=[{"start": 3, "end": 2}]), "expected at least `start`, 3"),
        (own(evidence=[{"start": 0, "end": 5, "text": "Gent."}]), "evidence 0 should be 'Gent.'"),
        (own(evidence=[{"start": 0, "end": 5, "triggers": ["x"]}]), "nobody can recognise"),
        (
            own(document={"text": "ab", "parts": [{"doc_id": "a", "start": 1, "end": 3}]}),
            r"field `document.parts\[0\].start`: expected parts in order",
        ),
        ({**HOTPOT, "answer": None}, "field `answer`: expected a string"),
        ({**HOTPOT, "context": [["a", "b"]]}, "field `context`: expected .title, .sentence"),
        ({**HOTPOT, "supporting_facts": [["None", 0]]}, "'None' is none"),
        ({**HOTPOT, "supporting_facts": [["Ostend"]]}, "field `supporting_facts`: expected"),
        ({**MUSIQUE, "paragraphs": []}, "field `paragraphs`: expected at least one entry"),
        (
            {
                **MUSIQUE,
                "question_decomposition": [
                    {"question": "#1?", "answer": "a", "paragraph_support_idx": 0}
                ],
            },
            r"field `question_decomposition\[0\].question`: expected no reference",
        ),
        (
            {
                **MUSIQUE,
                "question_decomposition": [
                    {"question": "?", "answer": "a", "paragraph_support_idx": 3}
                ],
            },
            r"paragraph_support_idx`: expected the number of a paragraph, 0 to 2, got 3",
        ),
        ({"input": "one line", "outputs": ["a"]}, "field `input`: expected a text and, on a line"),
        ({"input": "a\nb", "outputs": []}, "field `outputs`: expected at least one entry"),
        ({"question": "a"}, "unknown format of reading tasks; got the fields question"),
    ],
)
def test_errors_say_where_and_what(record: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", record)
    with pytest.raises(InvalidTask, match=message) as caught:
        load_reading_tasks(path)
    assert re.search(r"data.jsonl, line 1", str(caught.value))


def test_bad_records_are_all_listed_or_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "data.jsonl", own(), {"x": 1}, own(), own(task_id="u", hops="2"))
    with pytest.raises(InvalidTask, match="3 of 4 records cannot be used") as caught:
        load_reading_tasks(path)
    for line in ("line 2: unknown format", "line 3: the task id 't' came before", "line 4, field"):
        assert line in str(caught.value)
    assert [task.task_id for task in load_reading_tasks(f"{path}?on_error=skip")] == ["t"]
    assert "left out 3 of 4 records" in caplog.text


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", {"question": "?", "input": "a\nb"})
    with pytest.raises(InvalidTask, match="field `context`"):
        load_reading_tasks(path, format="hotpotqa")


def test_a_limit_stops_in_front_of_what_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", own(), {"x": 1})
    assert len(load_reading_tasks(path, limit=1)) == 1
    assert len(load_reading_tasks(f"{path}?limit=1")) == 1


# Other sources


def test_synthetic_families_are_made_on_demand() -> None:
    tasks = load_reading_tasks("kg2?tokens=2000&n=5&limit=3", seed=4)
    assert (len(tasks), type(tasks).__name__) == (3, "SyntheticTasks")
    assert tasks[0].kind == "kg2"
    assert tasks[0].task_id != load_reading_tasks("kg2", n=5)[0].task_id


def test_the_name_of_a_family_means_the_family_whatever_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kg2").mkdir()
    write(Path("kg2/data.jsonl"), own())
    assert load_reading_tasks("kg2?tokens=2000&n=2")[0].kind == "kg2"
    assert "kg2 is the built-in family; what lies here is ./kg2" in caplog.text
    for path in ("./kg2", Path("kg2")):
        assert [task.task_id for task in load_reading_tasks(path)] == [own()["task_id"]]


def test_generators_of_ruler_are_made_on_demand() -> None:
    tasks = load_reading_tasks("ruler:niah_multivalue?tokens=1000&n=4", limit=2)
    assert len(tasks) == len(tasks.ids) == 2  # type: ignore[attr-defined]
    verify_evidence(tasks[1])
    with pytest.raises(InvalidSetting, match="no task 'none' of RULER"):
        load_reading_tasks("ruler:none")


def test_tasks_may_be_given_or_made_by_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_reading_tasks([full()])[0].task_id == "t/1"
    monkeypatch.setattr("os.path.curdir", lambda: [full()])
    assert load_reading_tasks("os:path.curdir")[0].task_id == "t/1"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("none.jsonl", InvalidTask, "no reading tasks at 'none.jsonl'; .*kg2"),
        ("", InvalidTask, "name a file or a folder, or a built-in family"),
        ([], InvalidTask, "expected at least one reading task, got none"),
        ([full(), full()], InvalidTask, "entry 1: the task id 't/1' came before"),
        (["task"], InvalidTask, "entry 0: expected a ReadingTask, got a str"),
        ("no_module:f", InvalidTask, "cannot find the reading tasks 'no_module:f'"),
        ("os:sep", InvalidTask, "'os:sep' is a str; expected a function"),
        ("kg2?tokens", InvalidTask, "expected key=value behind the `.`"),
        ("kg2?limit=0", InvalidSetting, "limit must be a whole number of at least 1"),
        ("kg2?wrong=1", InvalidSetting, "wrong"),
        ("a.json?colour=1", InvalidTask, "unknown option 'colour=1'"),
        ("a.json?headers=maybe", InvalidTask, "needs true or false"),
        ("a.json?seed=one", InvalidTask, "needs a whole number"),
        ("a.json?pool=b", InvalidTask, "say how long, with tokens or documents"),
        ("a.json?format=csv", InvalidTask, "format must be auto"),
        ("a.json?on_error=hide", InvalidTask, "on_error must be"),
        ("a.json?limit=0", InvalidTask, "limit must be"),
        ("a.json?tokens=9&documents=9", InvalidTask, "needs `tokens` or `documents`, one of"),
    ],
)
def test_sources_that_cannot_be_used_are_refused(
    source: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_reading_tasks(source)


def test_an_option_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="load_reading_tasks has no option 'size'; it has format"):
        load_reading_tasks("a.jsonl", size=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"answers": "Ghent"},
            r"answers are a tuple of texts, e.g. \('Ghent',\), got a str: 'Ghent'",
        ),
        ({"answers": ["Ghent"]}, "answers are a tuple of texts, .*got a list"),
        ({"answers": ("Ghent", 3)}, "answers are a tuple of texts, .*got a tuple"),
        ({"choices": "AB"}, "choices are a tuple of texts, .*got a str: 'AB'"),
        ({"document": ...}, "a document has `read` and a length, got a ellipsis: Ellipsis; wrap"),
        ({"document": "text"}, "a document .*got a str: 'text'; wrap a text in TextDocument"),
    ],
)
def test_a_task_whose_fields_mean_something_else_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=f"t/1: {message}"):
        dataclasses.replace(full(), **change)


# Evidence


def test_words_stand_in_a_text_as_whole_words() -> None:
    assert stands_in("Ann", "to Ann.")
    assert not stands_in("Ann", "to Anna, to ann")
    assert not stands_in("", "any")
    assert as_written("ann b", "to Ann B.") == "Ann B"
    assert as_written("ann", "to Joanna") == ""


def test_evidence_beyond_its_hops_is_refused() -> None:
    task = full()
    wrong = ReadingTask(
        task_id="t",
        question="?",
        document=task.document,
        answers=("a",),
        evidence=task.evidence,
        hops=1,
    )
    with pytest.raises(InvalidTask, match="hops is 1, but its evidence takes 2 rounds"):
        verify_evidence(wrong)
