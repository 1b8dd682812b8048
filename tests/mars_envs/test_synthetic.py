"""Synthetic reading tasks: exact truth, exact lengths, evidence where it was asked for."""

from __future__ import annotations

import itertools
import pickle
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.reading.chunking import chunk_document, chunks_holding, count_tokens
from mars_envs.reading.document import TextDocument
from mars_envs.reading.synthetic import (
    FAMILIES,
    check_evidence,
    filler_passages,
    solve,
    synthetic_tasks,
)
from mars_envs.reading.synthetic.grammar import Style
from mars_envs.reading.synthetic.names import CONSONANTS, FINALS, LENGTH, VOWELS, Names, Numbers
from mars_envs.reading.task import ReadingTask
from mars_envs.reading.words import count_words

EVERY = pytest.mark.parametrize("family", sorted(FAMILIES))
STYLES = pytest.mark.parametrize("style", ["prose", "compact"])


def text_of(task: ReadingTask) -> str:
    return task.document.read(0, len(task.document))


def test_there_are_nine_names_for_the_seven_families() -> None:
    named = "kv vt kg2 kg3 compare count set overwrite none"
    assert sorted(FAMILIES) == sorted(named.split())


@EVERY
@STYLES
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_evidence_determines_the_answer_and_no_part_of_it_does(
    family: str, style: str, split: str
) -> None:
    for task in synthetic_tasks(family, tokens=1500, n=4, style=style, split=split):
        check_evidence(task)


@EVERY
@STYLES
def test_who_reads_the_whole_document_finds_the_same_answer(family: str, style: str) -> None:
    for task in synthetic_tasks(family, tokens=2000, n=1, style=style):
        found = solve(task, [text_of(task)])
        assert found is not None
        assert set(found) == set(task.answers)


@EVERY
@STYLES
@pytest.mark.parametrize("tokens", [1000, 1001, 20_011])
def test_a_document_has_exactly_the_tokens_asked_for(family: str, style: str, tokens: int) -> None:
    task = synthetic_tasks(family, tokens=tokens, n=1, style=style)[0]
    text = text_of(task)
    assert count_words(text) == tokens
    assert len(text) == len(task.document)


def four_characters(text: str) -> int:
    """A tokenizer that only counts."""
    return -(-len(text) // 4)


@pytest.mark.parametrize("family", ["kv", "kg2", "vt", "overwrite"])
@pytest.mark.parametrize("tokens", [1000, 3333, 120_000])
def test_tokens_of_any_tokenizer_are_met_to_one_in_a_hundred(family: str, tokens: int) -> None:
    tasks = synthetic_tasks(family, tokens=tokens, n=4, tokenizer=four_characters)
    for task in tasks[:1] if tokens > 100_000 else tasks:
        counted = count_tokens(task.document, four_characters)
        assert counted == pytest.approx(tokens, rel=0.01)
        check_evidence(task)


SOLVED = [
    (
        "kg2",
        "Who is the heir of the mentor of Bamodun?",
        ["The mentor of Bamodun is Kilatox.", "Kilatox has Zoruben as heir."],
        ("Zoruben",),
    ),
    (
        "kg3",
        "Who is the rival of the heir of the mentor of Bamodun?",
        [
            "rival of Zoruben is Matirol.",
            "As mentor, Bamodun chose Kilatox.",
            "It is Zoruben who acts as heir for Kilatox.",
        ],
        ("Matirol",),
    ),
    (
        "kv",
        "What are all the badge numbers of Bamodun and Kilatox?",
        [
            "Bamodun was given badge number 12345. Bamodun was given locker number 99999.",
            "Badge.\nThe badge number of Kilatox is 54321.",
            "The badge number of Bamodun is 11111.",
        ],
        ("12345", "11111", "54321"),
    ),
    (
        "vt",
        "Which variables have the value 12345? List all of them.",
        [
            "The variable Zoruben takes its value from Kilatox.",
            "Here Bamodun receives the value 12345.",
            "Kilatox copies Bamodun. Matirol is 12346.",
        ],
        ("Bamodun", "Kilatox", "Zoruben"),
    ),
    (
        "compare",
        "Which has the greater debt, Bamodun or Kilatox?",
        ["The debt of Bamodun is 40000.", "They put the debt of Kilatox at 39999."],
        ("Bamodun",),
    ),
    (
        "count",
        "How many are in the guild of Zoruben?",
        [
            "Bamodun belongs to the guild of Zoruben.",
            "Kilatox belongs to the choir of Zoruben.",
            "One of those in the guild of Zoruben is Matirol.",
            "Bamodun in guild of Zoruben.",
        ],
        ("2",),
    ),
    (
        "overwrite",
        "Who is the latest mayor of Bamodun?",
        [
            "In 1500, Kilatox became mayor of Bamodun.",
            "1502 saw Zoruben sworn in as mayor of Bamodun.",
            "Bamodun made Matirol its mayor in 1499.",
            "Bamodun made Pilades its consul in 1700.",
        ],
        ("Zoruben",),
    ),
    ("none", "What is the badge number of Bamodun?", ["The badge number of Bamodur is 12345."], ()),
]


@pytest.mark.parametrize(("family", "question", "passages", "answers"), SOLVED)
def test_the_solver_reads_sentences_written_by_hand(
    family: str, question: str, passages: list[str], answers: tuple[str, ...]
) -> None:
    task = replace(synthetic_tasks(family, n=1, tokens=2000)[0], question=question)
    assert sorted(solve(task, passages) or ()) == sorted(answers or ("unknown",))


def test_contradicting_passages_determine_nothing() -> None:
    task = replace(synthetic_tasks("kg2", n=1)[0], question="Who is the heir of Bamodun?")
    both = ["heir of Bamodun is Kilatox.", "heir of Bamodun is Zoruben."]
    assert solve(task, both[:1]) == ("Kilatox",)
    assert solve(task, both) is None


def test_the_checker_refuses_evidence_that_says_too_much_or_too_little() -> None:
    task = synthetic_tasks("kg2", n=1)[0]
    first, second = task.evidence
    with pytest.raises(InvalidTask, match="does not determine"):
        check_evidence(replace(task, evidence=(first,)))
    other = synthetic_tasks("kg2", n=1, sentences=1)[0]
    assert other.question == task.question
    start = text_of(task).index("\n\n") + 2
    more = replace(first, start=start, end=start + 7, text=text_of(task)[start : start + 7])
    with pytest.raises(InvalidTask, match="2 of 3 passages"):
        check_evidence(replace(task, evidence=(first, more, second)))
    with pytest.raises(InvalidTask, match="is not where"):
        check_evidence(replace(task, evidence=(replace(first, start=first.start + 1), second)))


@EVERY
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_what_is_minimal_without_one_passage_is_so_without_several(family: str, split: str) -> None:
    # The checker leaves out one passage at a time; here all proper subsets are tried.
    for task in synthetic_tasks(family, tokens=3000, n=3, split=split):
        texts = [evidence.text for evidence in task.evidence]
        for size in range(len(texts)):
            for subset in itertools.combinations(texts, size):
                assert set(solve(task, subset) or ()) != set(task.answers)


def test_much_evidence_is_checked_as_fast_as_it_is_read() -> None:
    task = synthetic_tasks("kv", tokens=16_000, n=1, queries=16, values=16)[0]
    assert len(task.evidence) == 256
    before = time.process_time()
    solve(task, [text_of(task)])
    reading = time.process_time() - before
    check_evidence(task)
    assert time.process_time() - before < 50 * reading  # to parse all pairs anew: 10,000 times


def test_the_checker_refuses_a_document_that_says_something_else_than_its_evidence() -> None:
    task = synthetic_tasks("overwrite", tokens=1500, n=1, style="compact")[0]
    check_evidence(task)
    office, place = re.findall(r"latest (\w+) of (\w+)", task.question)[0]
    later = f"in 1999 {office} of {place} is Zoruben.\n"
    check_evidence(
        replace(task, document=TextDocument(text_of(task) + later.replace("1999", "1200")))
    )
    with pytest.raises(InvalidTask, match="the whole document says something else"):
        check_evidence(replace(task, document=TextDocument(text_of(task) + later)))


@EVERY
def test_the_same_questions_are_asked_at_every_length_and_in_every_order(family: str) -> None:
    short = synthetic_tasks(family, tokens=1500, n=4)
    long = synthetic_tasks(family, tokens=60_000, n=4, chunk_tokens=500, order="reverse")
    for a, b in zip(short, long, strict=True):
        assert (a.task_id, a.question, a.answers) == (b.task_id, b.question, b.answers)
        assert [e.text for e in a.evidence] == [e.text for e in b.evidence]


@EVERY
def test_a_task_depends_on_its_index_seed_and_split_alone(family: str) -> None:
    many = synthetic_tasks(family, tokens=1200, n=20)
    few = synthetic_tasks(family, tokens=1200, n=5)
    assert text_of(many[3]) == text_of(few[3]) == text_of(many[3])
    others = [
        synthetic_tasks(family, tokens=1200, n=5, seed=1)[3],
        synthetic_tasks(family, tokens=1200, n=5, split="held_out_names")[3],
        many[4],
    ]
    questions = {many[3].question, *(task.question for task in others)}
    assert len(questions) == 4


def test_held_out_names_and_sentences_never_occur_in_training() -> None:
    def names(split: str) -> set[str]:
        found: set[str] = set()
        for family in ("kg2", "overwrite", "vt"):
            for task in synthetic_tasks(family, tokens=4000, n=5, split=split):
                found |= set(re.findall(r"\b[A-Z][a-z]{6}\b", task.question + text_of(task)))
        return found - {"Whoever"}

    train, held_out = names("train"), names("held_out_names")
    assert len(train) > 1000 < len(held_out)
    assert not train & held_out


def test_held_out_templates_are_others() -> None:
    def shapes(split: str, style: str) -> set[str]:
        tasks = synthetic_tasks("kg2", n=25, tokens=2000, split=split, style=style)
        texts = [evidence.text for task in tasks for evidence in task.evidence]
        masked = (re.sub(r"\b[A-Z][a-z]{6}\b", "N", text) for text in texts)
        relations = "|".join(FAMILIES["kg2"].topic.attributes)
        return {re.sub(relations, "r", text) for text in masked}

    for style, train, held_out in (("prose", 4, 3), ("compact", 1, 1)):
        seen, unseen = shapes("train", style), shapes("held_out_templates", style)
        assert (len(seen), len(unseen), seen & unseen) == (train, held_out, set())


@EVERY
@STYLES
def test_no_template_is_in_both_splits_and_none_has_a_word_that_could_be_a_name(
    family: str, style: Style
) -> None:
    topic = FAMILIES[family].topic
    train = topic.templates(style, held_out=False)
    held_out = topic.templates(style, held_out=True)
    assert not set(train) & set(held_out)
    syllable = f"[{CONSONANTS}][{VOWELS}]"
    name = re.compile(f"(?:{syllable}){{3}}[{FINALS}]", re.IGNORECASE)
    question = synthetic_tasks(family, n=1)[0].question
    for text in (question.lower(), *(template.text for template in (*train, *held_out))):
        words = re.findall(r"\w+", text)
        asked = {word.lower() for word in re.findall(r"[A-Z]\w+", question)}
        assert not [word for word in words if name.fullmatch(word) and word not in asked]


def test_no_name_is_part_of_another_and_none_comes_twice() -> None:
    for split in ("train", "held_out"):
        words = Names(split).words(range(0, 600_000, 7))  # type: ignore[arg-type]
        assert {len(word) for word in words} == {LENGTH}
        assert len(set(words)) == len(words)


def test_numbers_have_five_digits_and_none_comes_twice_whatever_the_vocabulary() -> None:
    for limit in (16, 1000, 90_000, 200_000, None):
        numbers = Numbers(limit)
        values = numbers.values(np.arange(numbers.size)).tolist()
        assert len(set(values)) == len(values) == min(limit or 90_000, 90_000)
        assert 10_000 <= min(values) <= max(values) <= 99_999


def test_the_names_of_the_splits_are_all_there_are() -> None:
    train, held_out = Names("train"), Names("held_out")
    assert train.size == 4 * held_out.size
    assert train.size + held_out.size == (16 * 5) ** 3 * 6
    near = held_out.words(held_out.near(100))
    word = held_out.word(100)
    assert near
    assert all(sum(a != b for a, b in zip(word, other, strict=True)) == 1 for other in near)


@EVERY
def test_no_distractor_names_what_a_passage_is_known_by(family: str) -> None:
    # A decoy of `overwrite` or `kv` may: it is about the same thing and says something else.
    task = synthetic_tasks(family, tokens=20_000, n=1, decoys=0)[0]
    if family == "overwrite":
        task = synthetic_tasks(family, tokens=20_000, n=1, decoys=0, revisions=0)[0]
    holding = {evidence.doc_id for evidence in task.evidence}
    for part in task.document.parts:
        if part.doc_id in holding:
            continue
        text = task.document.read(part.start, part.end)
        for trigger in itertools.chain(*(evidence.triggers for evidence in task.evidence)):
            assert trigger not in text


@pytest.mark.parametrize("family", ["vt", "kg2", "kg3"])
def test_a_hop_is_triggered_by_the_one_before_and_by_nothing_earlier(family: str) -> None:
    for task in synthetic_tasks(family, tokens=3000, n=10):
        assert task.hops == len(task.evidence) > 1
        known = task.question
        for number, evidence in enumerate(task.evidence):
            assert any(trigger in known for trigger in evidence.triggers)
            for later in task.evidence[number + 1 :]:
                assert not any(trigger in known for trigger in later.triggers)
            known += evidence.text


@pytest.mark.parametrize("family", ["kv", "compare", "count", "set", "overwrite"])
def test_evidence_of_one_hop_is_triggered_by_the_question(family: str) -> None:
    for task in synthetic_tasks(family, tokens=3000, n=10):
        assert task.hops == 1
        for evidence in task.evidence:
            assert all(trigger in task.question for trigger in evidence.triggers)


@pytest.mark.parametrize("align", ["token", "sentence", "document"])
@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("kg3", {}),
        ("vt", {"hops": 4}),
        ("compare", {}),
        ("kv", {"queries": 2, "values": 2}),
        ("set", {"matches": 4, "placement": "different"}),
    ],
)
def test_different_chunks_means_different_chunks_however_they_are_cut(
    align: str, family: str, options: dict[str, object]
) -> None:
    tasks = synthetic_tasks(family, tokens=4 * 400, chunk_tokens=400, n=4, **options)
    for task in tasks:
        chunks = chunk_document(task.document, size=400, align=align)  # type: ignore[arg-type]
        holding = chunks_holding(chunks, task.evidence)
        assert all(len(found) == 1 for found in holding)
        assert len(set(holding)) == len(task.evidence)


@pytest.mark.parametrize("align", ["token", "sentence"])
def test_a_seam_spares_evidence_that_stands_early_too(align: str) -> None:
    for task in synthetic_tasks("overwrite", tokens=8000, chunk_tokens=1000, n=100):
        chunks = chunk_document(task.document, size=1000, align=align)  # type: ignore[arg-type]
        (holding,) = chunks_holding(chunks, task.evidence)
        assert holding in [(0,), (1,)]


def test_the_same_chunk_means_one_chunk() -> None:
    for task in synthetic_tasks("kg3", tokens=8000, chunk_tokens=500, n=8, placement="same"):
        chunks = chunk_document(task.document, size=500)
        assert len(set(chunks_holding(chunks, task.evidence))) == 1


@pytest.mark.parametrize("family", ["vt", "kg3"])
def test_hops_stand_forward_or_in_reverse(family: str) -> None:
    for order, sign in (("forward", 1), ("reverse", -1)):
        for task in synthetic_tasks(family, tokens=6000, n=10, order=order, chunk_tokens=500):
            starts = [sign * evidence.start for evidence in task.evidence]
            assert starts == sorted(starts)
    orders = {
        tuple(sorted(range(4), key=[e.start for e in task.evidence].__getitem__))
        for task in synthetic_tasks("vt", tokens=6000, n=40)
    }
    assert len(orders) > 10


def test_a_count_is_not_known_beforehand() -> None:
    tasks = synthetic_tasks("count", tokens=1500, n=60)
    assert {task.answers[0] for task in tasks} == {"4", "5", "6", "7", "8"}
    assert all(int(task.answers[0]) == len(task.evidence) for task in tasks)


def test_depths_say_where_each_passage_stands() -> None:
    task = synthetic_tasks("kg2", tokens=50_000, n=1, depths="0.75,0.1")[0]
    first, second = (evidence.start / len(task.document) for evidence in task.evidence)
    assert first == pytest.approx(0.75, abs=0.01)
    assert second == pytest.approx(0.1, abs=0.01)


_SENTENCE = re.compile(r"[^.\n]*\.")


def mentions(task: ReadingTask) -> list[tuple[int, int, str]]:
    """Where the office that is asked for is mentioned, in which year, and who holds it then.

    Sentences are found by the two words of the question; a year has four digits, and the holder is
    the only other name in them.
    """
    office, place = re.findall(r"latest (\w+) of (\w+)", task.question)[0]
    found = []
    for sentence in _SENTENCE.finditer(text_of(task)):
        words = re.findall(r"\w+", sentence[0])
        if office in words and place in words:
            (year,) = (int(word) for word in words if re.fullmatch("[0-9]{4}", word))
            (name,) = (w for w in words if re.fullmatch("[A-Z][a-z]{6}", w) and w != place)
            found.append((sentence.start(), year, name))
    return found


@STYLES
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_the_latest_revision_stands_early_and_older_ones_around_it(style: str, split: str) -> None:
    nth = set()
    for task in synthetic_tasks("overwrite", tokens=20_000, n=20, style=style, split=split):
        (evidence,) = task.evidence
        found = mentions(task)
        assert len(found) == 4
        assert max(found, key=lambda one: one[1])[2:] == task.answers
        place = [year for _, year, _ in found].index(max(year for _, year, _ in found))
        assert abs(found[place][0] - evidence.start) <= 1
        assert evidence.start < 0.21 * len(task.document)
        nth.add(place)
    # Whoever takes the first mention, the second or the last one is often wrong.
    assert nth == {0, 1, 2}


def test_an_older_revision_stands_in_front_even_of_what_stands_first() -> None:
    tasks = synthetic_tasks("overwrite", tokens=1000, n=30, depths="0", revisions=2)
    nth = {
        [y for _, y, _ in found].index(max(y for _, y, _ in found))
        for found in map(mentions, tasks)
    }
    assert nth == {0, 1}


def test_older_revisions_can_all_stand_behind_the_latest() -> None:
    for options in ({"older": "behind"}, {"revisions": 1}):
        for task in synthetic_tasks("overwrite", tokens=4000, n=10, **options):
            years = [year for _, year, _ in mentions(task)]
            assert max(years) == years[0]
            assert task.evidence[0].start < 0.21 * len(task.document)


def edges(task: ReadingTask) -> list[tuple[str, str, str]]:
    """Subject, attribute and value of every compact sentence of a graph or of keys."""
    form = r"(\w+)(?: number)? of ([A-Z]\w+) is (\w+)\."
    return [(s, a, v) for a, s, v in re.findall(form, text_of(task))]


@pytest.mark.parametrize("queries", [1, 3, 4])
def test_every_key_that_is_asked_for_has_decoys_one_letter_off(queries: int) -> None:
    for task in synthetic_tasks(
        "kv", tokens=1000, n=8, style="compact", queries=queries, decoys=2 * queries
    ):
        (asked,) = re.findall(r"the (\w+) numbers? of", task.question)
        keys = {trigger for evidence in task.evidence for trigger in evidence.triggers}
        assert len(keys) == queries
        named = {subject for subject, attribute, _ in edges(task) if attribute == asked}
        for key in keys:
            near = [n for n in named if sum(a != b for a, b in zip(n, key, strict=True)) == 1]
            assert len(near) >= 2


@pytest.mark.parametrize("family", ["kg2", "kg3"])
def test_every_hop_of_a_bridge_has_decoys(family: str) -> None:
    for task in synthetic_tasks(family, tokens=1500, n=8, style="compact", decoys=3):
        graph = edges(task)
        relations = re.findall(r"the (\w+) of", task.question)[::-1]
        (start,) = re.findall(r"of ([A-Z]\w+)\?", task.question)
        near = {s for s, a, _ in graph if a == relations[0]} - {start}
        assert any(sum(a != b for a, b in zip(n, start, strict=True)) == 1 for n in near)
        person = start
        for relation, following in itertools.pairwise(relations):
            others = {v for s, a, v in graph if s == person and a != relation}
            assert [s for s, a, _ in graph if s in others and a == following]
            (person,) = (v for s, a, v in graph if (s, a) == (person, relation))


def test_a_closed_vocabulary_is_closed() -> None:
    for family in FAMILIES:
        words = set()
        for task in synthetic_tasks(
            family, tokens=2000, n=10, style="compact", vocabulary=96, chunk_tokens=128, sentences=2
        ):
            words |= set(re.findall(r"\w+", text_of(task) + task.question))
        names = {word for word in words if re.fullmatch("[A-Z][a-z]{6}", word)}
        numbers = {word for word in words if re.fullmatch("[0-9]{5}", word)}
        assert len(names) <= 96
        assert len(numbers) <= 96


@pytest.mark.parametrize("chunks", [4, 16, 64])
def test_small_chunks_hold_compact_documents(chunks: int) -> None:
    for family in ("kv", "kg2"):
        tasks = synthetic_tasks(
            family,
            tokens=chunks * 64,
            chunk_tokens=64,
            style="compact",
            sentences=2,
            n=5,
            decoys=1,
        )
        for task in tasks:
            check_evidence(task)
            cut = chunk_document(task.document, size=64)
            assert len(cut) == chunks
            assert len(set(chunks_holding(cut, task.evidence))) == len(task.evidence)


def test_parts_tile_the_document_and_say_what_they_are_about() -> None:
    task = synthetic_tasks("kg2", tokens=40_000, n=1)[0]
    parts = list(task.document.parts)
    assert parts[0].start == 0
    assert parts[-1].end == len(task.document)
    for a, b in itertools.pairwise(parts):
        assert a.end == b.start
    for part in (parts[0], parts[600], parts[-1]):
        assert task.document.read(part.start, part.end).startswith(part.title + "\n")
        assert task.document.parts[int(part.doc_id[1:])] == part
    by_id = {part.doc_id: part for part in parts}
    for evidence in task.evidence:
        part = by_id[evidence.doc_id]
        assert part.start < evidence.start < evidence.end < part.end


def test_any_piece_of_a_document_is_what_the_whole_has_there() -> None:
    task = synthetic_tasks("count", tokens=60_000, n=1)[0]
    text = text_of(task)
    for start in range(0, len(text), 9_973):
        for size in (0, 1, 500, 70_000):
            assert task.document.read(start, start + size) == text[start : start + size]
    assert task.document.read(-5, 10) == text[:10]
    assert task.document.read(len(text) - 3, len(text) + 9) == text[-3:]


def test_tasks_and_documents_travel_as_seeds() -> None:
    tasks = synthetic_tasks("kg2", tokens=400_000, n=3)
    assert len(pickle.dumps(tasks)) < 2_000
    packed = pickle.dumps(tasks[1])
    assert len(packed) < 20_000
    task = pickle.loads(packed)
    assert task.document.digest == tasks[1].document.digest
    assert task.document.read(1000, 1500) == tasks[1].document.read(1000, 1500)


def test_ids_are_known_before_any_task_is_built() -> None:
    tasks = synthetic_tasks("kg3", tokens=1500, n=5, seed=3, split="held_out")
    assert list(tasks.ids) == [task.task_id for task in tasks]
    assert list(tasks[1:3].ids) == [tasks[1].task_id, tasks[2].task_id]


def test_filler_passages_have_titles_of_their_own() -> None:
    passages = filler_passages("seed")
    found = [passages[number] for number in range(0, 3000, 3)]
    assert len({title for title, _ in found}) == len(found)
    assert passages[300] == found[100] != filler_passages("other")[300]
    assert 90 < sum(count_words(text) for _, text in found) / len(found) < 150


@EVERY
def test_the_manual_shows_the_first_task_of_each_family(family: str, repo_dir: Path) -> None:
    task = synthetic_tasks(family, n=1)[0]
    (row,) = (
        line.split(" | ")
        for line in (repo_dir / "docs" / "pi-mem.md").read_text().splitlines()
        if line.startswith((f"| `{family}` | W", f"| `{family}` | How"))
    )
    question, evidence, answers = row[1], row[2], row[3]
    assert task.question == f'{question} If the text does not say, answer "unknown".'
    assert answers.removesuffix(", ...") in ", ".join(task.answers)
    shown = evidence.split(" (and")[0].replace("(none)", "")
    assert " ".join(passage.text for passage in task.evidence).startswith(shown)


BAD = [
    ({"family": "kg9"}, "no synthetic family 'kg9'"),
    ({"tokens": 10}, "tokens is a whole number"),
    ({"tokens": "many"}, "needs a whole number"),
    ({"split": "test"}, "split is one of train"),
    ({"hops": 3}, "kg2 has no 'hops'"),
    ({"speed": 3}, "no option 'speed' here; there are tokens"),
    ({"family": "overwrite", "older": "before"}, "older is one of around, behind"),
    ({"older": "behind"}, "kg2 has no 'older'; it is an option of overwrite"),
    ({"placement": "same"}, "needs chunk_tokens"),
    ({"depths": "0.5,1.5"}, "depths are from 0 to 1"),
    ({"depths": "0.5,x"}, "numbers with commas"),
    ({"vocabulary": 3}, "16 to"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_settings_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    given = {"family": "kg2", "n": 1, **options}
    with pytest.raises(InvalidSetting, match=message):
        list(synthetic_tasks(str(given.pop("family")), **given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 100}, "do not hold the evidence"),
        ({"tokens": 1000, "chunk_tokens": 600}, "need 2 chunks, but 1000 tokens make 1"),
        ({"tokens": 2000, "chunk_tokens": 16, "placement": "same"}, "no layout puts 2 passages"),
        ({"depths": "0.5"}, "1 places for 2 passages"),
        ({"vocabulary": 16}, "too small for this question"),
    ],
)
def test_settings_that_cannot_be_met_together_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        synthetic_tasks("kg2", n=1, **options)[0]
