"""RULER's tasks, generated: what is asked for is in the text, once, and nothing else is like it."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading.chunking import chunk_document, count_tokens
from mars_envs.reading.haystacks import CodedWords
from mars_envs.reading.ruler_settings import RULER_TASKS
from mars_envs.reading.ruler_tasks import ruler_tasks
from mars_envs.reading.synthetic import solve
from mars_envs.reading.task import ReadingTask
from mars_envs.reading.words import count_words

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
NEEDLE = re.compile(r"One of the special magic (\w+) for (\S+) is: (\S+)\.\n")


def text_of(task: ReadingTask) -> str:
    return task.document.read(0, len(task.document))


@pytest.mark.parametrize("name", sorted(RULER_TASKS))
@pytest.mark.parametrize("tokens", [1000, 30_001])
def test_a_text_has_exactly_the_tokens_asked_for(name: str, tokens: int) -> None:
    task = ruler_tasks(name, tokens=tokens, n=1)[0]
    assert count_words(text_of(task)) == tokens
    assert len(text_of(task)) == len(task.document)
    for evidence in task.evidence:
        assert text_of(task)[evidence.start : evidence.end] == evidence.text


NIAH: list[tuple[str, int, int, str, str]] = [
    # name, needles among the distractors' kind, answers, key, value
    ("niah_single_1", 1, 1, r"[A-Z]\w{6}", r"\d{7}"),
    ("niah_single_2", 1, 1, r"[A-Z]\w{6}", r"\d{7}"),
    ("niah_single_3", 1, 1, r"[A-Z]\w{6}", UUID),
    ("niah_multikey_1", 4, 1, r"[A-Z]\w{6}", r"\d{7}"),
    ("niah_multikey_2", 0, 1, r"[A-Z]\w{6}", r"\d{7}"),
    ("niah_multikey_3", 0, 1, UUID, UUID),
    ("niah_multivalue", 4, 4, r"[A-Z]\w{6}", r"\d{7}"),
    ("niah_multiquery", 4, 4, r"[A-Z]\w{6}", r"\d{7}"),
]


@pytest.mark.parametrize(("name", "needles", "answers", "key", "value"), NIAH)
def test_the_needles_of_a_text_answer_its_question(
    name: str, needles: int, answers: int, key: str, value: str
) -> None:
    for task in ruler_tasks(name, tokens=4000, n=5):
        found = NEEDLE.findall(text_of(task))
        assert len(found) == needles or (needles == 0 and len(found) > 100)
        assert all(re.fullmatch(key, k) and re.fullmatch(value, v) for _, k, v in found)
        asked = [(k, v) for _, k, v in found if k in task.question]
        assert sorted(v for _, v in asked) == sorted(task.answers)
        assert len(asked) == len(task.evidence) == answers
        assert task.match == ("all" if answers > 1 else "any")


def test_no_other_needle_has_the_key_that_is_asked_for() -> None:
    task = ruler_tasks("niah_multikey_2", tokens=400_000, n=1)[0]
    keys = Counter(key for _, key, _ in NEEDLE.findall(text_of(task)))
    (asked,) = (key for key in keys if key in task.question)
    assert keys[asked] == 1
    assert len(keys) > 30_000


def test_needles_stand_at_forty_depths() -> None:
    tasks = ruler_tasks("niah_single_1", tokens=4000, n=120)
    steps = [task.evidence[0].start / len(task.document) * 39 for task in tasks]
    assert all(abs(step - round(step)) < 0.3 for step in steps)
    assert len({round(step) for step in steps}) > 30


def test_variables_of_a_chain_have_the_value_and_others_do_not() -> None:
    for task in ruler_tasks("vt", tokens=3000, n=5, chains=3):
        lines = re.findall(r"VAR (\w{5}) = (?:VAR )?(\w{5})\n", text_of(task))
        assert len(lines) == 3 * 5
        value = re.findall(r"\d{5}", task.question)[0]
        known = [value]
        for source in known:
            known += [name for name, of in lines if of == source]
        assert sorted(known[1:]) == sorted(task.answers)
        assert task.hops == len(task.evidence) == 5
        starts = [evidence.start for evidence in task.evidence]
        assert starts == sorted(starts)
        known_text = task.question
        for evidence in task.evidence:
            assert any(trigger in known_text for trigger in evidence.triggers)
            known_text += evidence.text


def test_a_chain_of_variables_is_not_taken_for_the_synthetic_family_of_that_name() -> None:
    task = ruler_tasks("vt", tokens=1000, n=1)[0]
    assert task.kind == "ruler:vt"
    with pytest.raises(InvalidTask, match="'ruler:vt' is no synthetic family"):
        solve(task, text_of(task))


def test_a_chain_may_stand_in_reverse() -> None:
    task = ruler_tasks("vt", tokens=3000, n=1, order="reverse")[0]
    starts = [evidence.start for evidence in task.evidence]
    assert starts == sorted(starts, reverse=True)


def test_the_most_frequent_words_are_what_counting_says() -> None:
    for task in ruler_tasks("fwe", tokens=2500, n=5):
        counts = Counter(text_of(task).split())
        assert sum(counts.values()) == 2500
        (first, a), (second, b), (third, c), (_, d) = counts.most_common(4)
        assert task.answers == (first, second, third)
        assert a > b > c > d


def test_words_follow_the_law_of_zipf() -> None:
    law = CodedWords("seed", 1000, 2.0)
    bits = np.random.default_rng(0).integers(0, 2**64, size=200_000, dtype=np.uint64)
    counts = np.bincount(law.ids(bits), minlength=1000)
    weights = np.arange(1, 1001) ** -2.0
    shares = weights / weights.sum()
    for k in range(10):  # four standard errors of a binomial share
        error = 4 * np.sqrt(shares[k] * (1 - shares[k]) / len(bits))
        assert counts[k] / len(bits) == pytest.approx(shares[k], abs=error)


def test_a_file_can_be_the_haystack(tmp_path: Path) -> None:
    path = tmp_path / "essay.txt"
    path.write_text("Writing is thinking.\n\n  So they say, naïvely: 思考.  \n", encoding="utf-8")
    task = ruler_tasks("niah_single_2", tokens=500, n=1, haystack=f"file:{path}")[0]
    assert count_words(text_of(task)) == 500
    assert text_of(task).count("So they say, naïvely: 思考.\n") > 20
    with pytest.raises(InvalidSetting, match="cannot read the haystack"):
        ruler_tasks("niah", n=1, haystack=f"file:{tmp_path}/none.txt")[0]
    path.write_text("\n \n")
    with pytest.raises(InvalidSetting, match="has no text"):
        ruler_tasks("niah", n=1, haystack=f"file:{path}")[0]


def test_lengths_in_tokens_of_another_tokenizer() -> None:
    def characters(text: str) -> int:
        return len(text)

    task = ruler_tasks("niah_multikey_1", tokens=9000, n=1, tokenizer=characters)[0]
    assert count_tokens(task.document, characters) == pytest.approx(9000, rel=0.01)


def test_texts_travel_as_seeds() -> None:
    for name in ("niah_multikey_3", "vt", "fwe"):
        tasks = ruler_tasks(name, tokens=200_000, n=2)
        packed = pickle.dumps(tasks[1])
        assert len(packed) < 100_000
        assert text_of(pickle.loads(packed)) == text_of(tasks[1]) != text_of(tasks[0])
        assert list(tasks.ids) == [f"ruler-{name}-0-0", f"ruler-{name}-0-1"]
        assert len(chunk_document(tasks[0].document, size=5000)) == 40


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("cwe", {}, "no task 'cwe'"),
    ("vt", {"keys": 3}, "vt has no 'keys'"),
    ("niah", {"keys": 2, "queries": 3}, "3 queries need as many keys"),
    ("niah", {"haystack": "essay"}, "haystack is repeat"),
    ("niah", {"key_type": "names"}, "key_type is one of words"),
    ("fwe", {"alpha": "1"}, "alpha is from 1.1"),
    ("fwe", {"alpha": "x"}, "alpha needs a number"),
    ("niah", {"depths": "2"}, "depths are from 0 to 1"),
]


@pytest.mark.parametrize(("name", "options", "message"), BAD)
def test_settings_that_cannot_be_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        ruler_tasks(name, **options)
