"""Scripted speakers: the oracle, its noise, and the gold-free one that goes by words."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting
from mars_envs.judging.answers import score_answer
from mars_envs.parallel_memory.gated_replies import Update, parse_gated
from mars_envs.parallel_memory.lexical_answers import choose_answer
from mars_envs.parallel_memory.lexical_words import Line, lines_of, mentioned_elsewhere, mentions
from mars_envs.parallel_memory.methods import make_workflow
from mars_envs.parallel_memory.play import play, write_selected
from mars_envs.parallel_memory.replies import Answer, Read
from mars_envs.parallel_memory.scripted import holds, lexical, oracle
from mars_envs.parallel_memory.workflow import Note
from mars_envs.reading import Evidence, ReadingTask, TextDocument
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.synthetic import synthetic_tasks

FIRST = "Mera lives in Tolu."
SECOND = "The mayor of Tolu is Sarn."
THIRD = "Sarn likes figs."
CHAIN = (FIRST, SECOND, THIRD)
NOISE = "Nobody knows why the river turns north."


def chain_task(*, match: str = "any", triggers: bool = True) -> ReadingTask:
    """What does the mayor of the town like where Mera lives?"""
    text = "\n".join((THIRD, NOISE, SECOND, NOISE, FIRST))
    known = ("Mera", "Tolu", "Sarn") if triggers else ((),) * 3
    evidence = tuple(
        Evidence(
            start=text.index(passage),
            end=text.index(passage) + len(passage),
            text=passage,
            triggers=(trigger,) if isinstance(trigger, str) else (),
        )
        for passage, trigger in zip(CHAIN, known, strict=True)
    )
    return ReadingTask(
        task_id="chain",
        question="What does the mayor of the town like where Mera lives?",
        document=TextDocument(text),
        answers=("figs", "dates"),
        match=match,  # type: ignore[arg-type]
        evidence=evidence,
    )


def seen(role: str = "reader", **parts: Any) -> Mapping[str, Any]:
    base = {
        "role": role,
        "turn": 1,
        "question": chain_task().question,
        "memory": "",
        "chunk": "",
        "chunk_index": 0,
        "selected": "",
        "gated": 0,
    }
    return base | parts


def notes(*texts: str) -> str:
    return write_selected([Note(text=text, first=i, last=i) for i, text in enumerate(texts)])


# The oracle reads.


def test_the_oracle_finds_what_the_question_leads_to_and_nothing_else() -> None:
    speak = oracle(chain_task())
    assert speak(seen(chunk=f"{NOISE}\n{FIRST}\n{NOISE}")) == Read.yes(FIRST)
    assert speak(seen(chunk=SECOND)) == Read.no()
    assert speak(seen(chunk=NOISE)) == Read.no()


def test_the_oracle_finds_what_the_memory_leads_to_and_does_not_say_what_it_has() -> None:
    speak = oracle(chain_task())
    assert speak(seen(chunk=SECOND, memory=FIRST)) == Read.yes(SECOND)
    assert speak(seen(chunk=FIRST, memory=f"{NOISE} {FIRST}")) == Read.no()


def test_the_oracle_follows_a_chain_within_a_chunk_as_far_as_it_goes() -> None:
    backwards = "\n".join(reversed(CHAIN))
    assert oracle(chain_task())(seen(chunk=backwards)) == Read.yes("\n".join(CHAIN))


def test_a_passage_without_triggers_needs_only_the_question() -> None:
    assert oracle(chain_task(triggers=False))(seen(chunk=THIRD)) == Read.yes(THIRD)


def test_a_trigger_is_a_whole_word() -> None:
    speak = oracle(chain_task())
    assert speak(seen(chunk=SECOND, memory="Toluene is no town.")) == Read.no()
    assert speak(seen(chunk=SECOND, memory="Is it Tolu?")) == Read.yes(SECOND)


@pytest.mark.parametrize("size", range(3, 60))
def test_each_passage_is_held_by_exactly_one_chunk_however_seams_fall(size: int) -> None:
    task = chain_task()
    text = task.document.read(0, len(task.document))
    for evidence in task.evidence:
        holders = [
            start
            for start in range(0, len(text), size)
            if holds(text[start : start + size], evidence, task.document)
        ]
        middle = (evidence.start + evidence.end - 1) // 2
        assert holders == [middle // size * size]


def test_a_cut_passage_is_reported_whole_and_a_lookalike_is_not() -> None:
    text = "Red. The code of ab is 71. Blue. The code of ac is 72. The end."
    gold = "The code of ac is 72."
    start = text.index(gold)
    task = ReadingTask(
        task_id="codes",
        question="What is the code of ac?",
        document=TextDocument(text),
        answers=("72",),
        evidence=(Evidence(start=start, end=start + len(gold), text=gold),),
    )
    speak = oracle(task)
    assert speak(seen(chunk=text[: start + 13])) == Read.yes(gold)
    assert speak(seen(chunk=text[start + 13 :])) == Read.no()
    # As much of another code, at the end of another chunk.
    assert speak(seen(chunk=text[:18])) == Read.no()


def test_a_passage_is_no_part_of_a_longer_number() -> None:
    text = "x = 17 y = 2 x = 1"
    gold = Evidence(start=13, end=18, text="x = 1")
    task = ReadingTask(
        task_id="part", question="x?", document=TextDocument(text), answers=("1",), evidence=(gold,)
    )
    speak = oracle(task)
    assert speak(seen(chunk="x = 17 ")) == Read.no()
    assert speak(seen(chunk="y = 2 x = 1", memory="x = 17")) == Read.yes("x = 1")
    assert speak(seen("answerer", memory="x = 17")) == Answer("unknown")


def test_a_passage_that_the_document_glues_to_a_word_is_held_all_the_same() -> None:
    document = TextDocument("xTolu is hersy and so on")
    gold = Evidence(start=1, end=13, text="Tolu is hers")
    assert holds(document.read(0, 20), gold, document)
    # Elsewhere it would be part of something else.
    assert not holds("again xTolu is hersy", gold, document)


# The oracle merges, remembers and answers.


def test_the_oracle_merges_evidence_in_order_and_puts_the_rest_behind_it() -> None:
    merged = oracle(chain_task())(
        seen("merger", memory=f"{SECOND}\nold", selected=notes(f"new\n{THIRD}", FIRST, "new"))
    )
    assert merged == "\n".join((*CHAIN, "old", "new"))


def test_the_oracle_answers_only_when_all_evidence_is_in_what_it_sees() -> None:
    speak = oracle(chain_task())
    for size in range(4):
        for known in itertools.combinations(CHAIN, size):
            expected = Answer("figs" if size == 3 else "unknown")
            assert speak(seen("answerer", memory="\n".join(known))) == expected
            assert speak(seen("answerer", selected=notes(*known))) == expected
    assert speak(seen("answerer", memory=FIRST, selected=notes(SECOND, THIRD))) == Answer("figs")


def test_where_all_answers_are_wanted_the_oracle_gives_them_all() -> None:
    speak = oracle(chain_task(match="all"))
    assert speak(seen("answerer", memory="\n".join(CHAIN))) == Answer("figs, dates")


def test_without_evidence_the_oracle_does_not_know() -> None:
    task = ReadingTask(
        task_id="none", question="Why?", document=TextDocument(NOISE), answers=("unknown",)
    )
    assert oracle(task)(seen(chunk=NOISE)) == Read.no()
    assert oracle(task)(seen("answerer", memory=NOISE)) == Answer("unknown")


def test_the_oracle_as_memorizer_writes_its_whole_memory_anew() -> None:
    assert oracle(chain_task())(seen("memorizer", memory=FIRST, chunk=SECOND)) == (
        f"{FIRST}\n{SECOND}"
    )


def test_the_oracle_opens_the_update_gate_for_evidence_and_the_exit_gate_for_the_last_of_it() -> (
    None
):
    speak = oracle(chain_task())
    gated: Mapping[str, Any] = {"role": "memorizer", "gated": 1}
    assert speak(seen(chunk=FIRST) | gated) == Update(FIRST)
    assert speak(seen(chunk=THIRD) | gated) == Update(None)
    everything = "\n".join(CHAIN)
    assert speak(seen(chunk=everything) | gated) == Update(everything, end=True)


# Noise.


def replies(turns: int, miss: float, false_yes: float, chunk: str, seed: int = 0) -> Sequence[str]:
    speak = oracle(chain_task(), miss=miss, false_yes=false_yes, seed=seed)
    return [
        speak(seen(chunk=chunk, chunk_index=index, turn=turn))
        for turn in range(1, turns + 1)
        for index in range(500)
    ]


def test_a_noisy_oracle_misses_and_invents_as_often_as_it_is_told() -> None:
    n, four_errors = 2000, 4 * (0.3 * 0.7 / 2000) ** 0.5
    assert replies(4, 0.3, 0.0, FIRST).count(Read.no()) / n == pytest.approx(0.3, abs=four_errors)
    invented = replies(4, 0.0, 0.3, f"{NOISE}\n{SECOND}")
    assert set(invented) == {Read.no(), Read.yes(NOISE)}
    assert invented.count(Read.yes(NOISE)) / n == pytest.approx(0.3, abs=four_errors)


def test_a_forgetful_oracle_loses_lines_of_the_old_memory_when_it_writes_a_new_one() -> None:
    speak = oracle(chain_task(), forget=0.3)
    lines = [f"line {number}" for number in range(2000)]
    memory = "\n".join(lines)
    kept = speak(seen("merger", memory=memory, selected=notes("new"))).splitlines()
    assert kept == [line for line in lines if line in set(kept)] + ["new"]
    assert len(kept) / 2000 == pytest.approx(0.7, abs=4 * (0.3 * 0.7 / 2000) ** 0.5)
    then = speak(seen("memorizer", memory="\n".join(kept), chunk=NOISE, chunk_index=5)).splitlines()
    assert len(then) / len(kept) == pytest.approx(0.7, abs=4 * (0.3 * 0.7 / len(kept)) ** 0.5)
    # A shut gate writes nothing, so nothing is lost.
    gated = seen("memorizer", memory=memory, chunk=NOISE) | {"gated": 1}
    assert speak(gated) == Update(None)


def test_noise_depends_on_seed_chunk_and_turn_and_not_on_what_was_asked_before() -> None:
    once = replies(2, 0.5, 0.0, FIRST)
    assert once == replies(2, 0.5, 0.0, FIRST)
    assert once[:500] != once[500:]
    assert once != replies(2, 0.5, 0.0, FIRST, seed=1)
    speak = oracle(chain_task(), miss=0.5)
    assert (
        once[:500]
        == [speak(seen(chunk=FIRST, chunk_index=index)) for index in reversed(range(500))][::-1]
    )


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_noise_is_a_chance(chance: float) -> None:
    with pytest.raises(InvalidSetting, match="miss is a chance"):
        oracle(chain_task(), miss=chance)
    with pytest.raises(InvalidSetting, match="false_yes is a chance"):
        oracle(chain_task(), false_yes=chance)
    with pytest.raises(InvalidSetting, match="forget is a chance"):
        oracle(chain_task(), forget=chance)


# Gated replies.


@pytest.mark.parametrize(
    "text", ["Ada.", "", "a </update> <next>end</next> b", "<check>no</check>"]
)
@pytest.mark.parametrize("end", [False, True])
def test_a_gated_reply_says_what_it_was_made_of(text: str, end: bool) -> None:
    parsed = parse_gated(Update(text, end=end))
    assert (parsed.update, parsed.end, parsed.malformed) == (text, end, False)


@pytest.mark.parametrize(
    ("reply", "update", "end", "malformed"),
    [
        (Update(None), None, False, False),
        (Update(None, end=True), None, True, False),
        ("<CHECK> Yes </CHECK> <update>Ada.</update> <next> END </next>", "Ada.", True, False),
        ("<check>no</check><update>Ada.</update>", None, False, False),
        ("<check>yes</check><update>cut he", "cut he", False, False),
        ("<check>yes</check><update>Ada.<next>end</next>", "Ada.", True, False),
        ("<check>yes</check>", "", False, False),
        ("<think><check>yes</check><next>end</next></think><check>no</check>", None, False, False),
        ("<update>Ada.</update>", None, False, True),
        ("Ada.", None, False, True),
        ("", None, False, True),
    ],
)
def test_a_gated_reply_is_read_by_the_first_tags_outside_of_its_update(
    reply: str, update: str | None, end: bool, malformed: bool
) -> None:
    parsed = parse_gated(reply)
    assert (parsed.update, parsed.end, parsed.malformed) == (update, end, malformed)


# Words.


def test_sentences_are_read_under_their_headings() -> None:
    text = (
        "Document 1:\nShirley Temple\nShe acted. Dr. J. Lee saw her! In 1999?\n\nAlone it stands."
    )
    assert lines_of(text) == [
        Line("Shirley Temple", "She acted."),
        Line("Shirley Temple", "Dr. J. Lee saw her!"),
        Line("Shirley Temple", "In 1999?"),
        Line("", "Alone it stands."),
    ]


def test_a_line_of_a_memory_is_read_back_as_it_was_written() -> None:
    lines = [Line("Kiss and Tell (film)", "It is a film."), Line("", "It stands alone.")]
    assert lines_of("\n".join(map(str, lines))) == lines


def test_text_without_sentences_is_cut_and_nothing_of_it_is_lost() -> None:
    lines = lines_of("x" * 100_000)
    assert len(lines) > 100
    assert "".join(line.text for line in lines) == "x" * 100_000


@pytest.mark.parametrize("piece", ["A. ", "x", '."', "A-", "Ann\n", "[", "(1, "])
def test_text_that_is_no_prose_is_read_in_time_that_grows_with_its_length(piece: str) -> None:
    # Anything that grows faster would hit the time limit of all tests.
    assert lexical()(seen(chunk=piece * 100_000))


def test_the_lexical_speaker_gets_from_one_passage_to_the_next() -> None:
    question = "Which position was held by the woman who played Corliss Archer in Kiss and Tell?"
    film = "Kiss and Tell\nKiss and Tell is a film with Shirley Temple as Corliss Archer."
    star = "Shirley Temple\nShe was an actress. She served as Chief of Protocol."
    other = "Ada Lovelace\nShe wrote programs. She was a countess."
    speak = lexical()
    found = speak(seen(question=question, chunk=f"{other}\n\n{film}"))
    assert found == Read.yes(
        "[Kiss and Tell] Kiss and Tell is a film with Shirley Temple as Corliss Archer."
    )
    assert speak(seen(question=question, chunk=star)) == Read.no()
    memory = speak(
        seen("merger", question=question, selected=notes(found.partition("\n")[2], "Noise."))
    )
    then = speak(seen(question=question, chunk=f"{other}\n\n{star}", memory=memory))
    assert "[Shirley Temple] She was an actress." in then
    assert "Lovelace" not in then
    assert speak(seen(question=question, chunk=f"{other}\n\n{film}", memory=memory)) == Read.no()


@pytest.mark.parametrize(
    ("question", "memory", "answer"),
    [
        (
            "Were Ann Lee and Bo Ray both American singers?",
            ["[Ann Lee] She is an American singer.", "[Bo Ray] He is an American singer."],
            "yes",
        ),
        (
            "Were Ann Lee and Bo Ray both American singers?",
            ["[Ann Lee] She is an American singer.", "[Bo Ray] He was a French baker."],
            "no",
        ),
        (
            "Were Ann Lee and Bo Ray of the same nationality?",
            ["[Ann Lee] Ann Lee is an American singer.", "[Bo Ray] Bo Ray was a French baker."],
            "no",
        ),
        (
            "Who is older, Ann Lee or Bo Ray?",
            ["[Ann Lee] Ann Lee (born 1970) sings.", "[Bo Ray] Bo Ray (born 1965) bakes."],
            "Bo Ray",
        ),
        (
            "Who is younger, Ann Lee or Bo Ray?",
            ["[Ann Lee] Ann Lee (born 1970) sings.", "[Bo Ray] Bo Ray (born 1965) bakes."],
            "Ann Lee",
        ),
        (
            "Which writer was from England, Ann Lee or Bo Ray?",
            ["[Ann Lee] She wrote in France.", "[Bo Ray] He was a writer from England."],
            "Bo Ray",
        ),
        ("In which year was Tolu founded?", ["[Tolu] Tolu was founded in 1832 by 40 men."], "1832"),
        ("How many people live in Tolu?", ["[Tolu] In Tolu live 9,984 people."], "9,984"),
        ("Who is the mayor of Tolu?", ["[Tolu] The mayor of Tolu is Sarn Oke."], "Sarn Oke"),
        ("Who is the mayor of Tolu?", [], "unknown"),
        ("Who is the mayor of Tolu?", ["nothing to see"], "unknown"),
    ],
)
def test_answers_are_chosen_by_the_form_of_the_question(
    question: str, memory: list[str], answer: str
) -> None:
    assert choose_answer(question, lines_of("\n".join(memory))) == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is A or " + " " * 100_000 + "x,?", "no"),
        ("Who is older, " + "Ana " * 100_000 + "?", "unknown"),
        ("Who is older, " + "or " * 100_000 + "?", "unknown"),
        ("Which is bigger, Tolu" + " " * 100_000 + "or Sarn?", "Tolu"),
    ],
    ids=range(4),
)
def test_a_question_is_read_in_linear_time(question: str, answer: str) -> None:
    """Where each word is tried as the start of a choice, these would take hours."""
    assert choose_answer(question, lines_of("Tolu lies north. Sarn Oke lies south.")) == answer


def test_a_memory_of_any_length_is_searched_once() -> None:
    """Looking for each heading in each line, or at each word from each, would take hours."""
    lines = [Line(f"Town {i}", f"The twin of it is Town {i + 1}.") for i in range(20_000)]
    assert mentioned_elsewhere(lines) == {f"Town {i}" for i in range(1, 20_000)}
    assert choose_answer("Which town is the twin?", lines).startswith("Town ")
    assert choose_answer("Who is the twin?", [Line("", "Sarn, twin " * 20_000)]) == "Sarn"


@given(
    st.lists(
        st.builds(
            Line,
            st.sampled_from(["", "Ana", "Ana Bo", "Bo", "Ana (film)", "(x)y", '"Bo"', "Bo (", "c"]),
            st.text('AnaBo c(x)y"film ', max_size=40),
        ),
        max_size=8,
    )
)
def test_headings_that_other_lines_mention_are_found_as_one_by_one(lines: list[Line]) -> None:
    headings = {line.heading for line in lines if line.heading}
    assert mentioned_elsewhere(lines) == {
        heading
        for heading in headings
        if any(line.heading != heading and mentions(line.text, heading) for line in lines)
    }


def test_the_lexical_speaker_answers_from_passages_as_from_a_memory() -> None:
    question = "Who is the mayor of Tolu?"
    said = lexical()(
        seen("answerer", question=question, selected=notes(NOISE, "The mayor of Tolu is Sarn Oke."))
    )
    assert said == Answer("Sarn Oke")


def test_without_any_truth_two_hops_against_the_order_of_reading_take_a_second_turn() -> None:
    right = dict.fromkeys(("pi_mem", "recurrent"), 0)
    for task in synthetic_tasks("kg2", tokens=3200, chunk_tokens=200, order="reverse", n=12):
        chunks = chunk_document(task.document, size=200, align="document")
        for method in right:
            workflow = play(make_workflow(method, task.question, chunks), lexical())
            right[method] += score_answer(workflow.answer, task).em == 1.0
    # Guessing is right once in hundreds of names.
    assert right["recurrent"] == 0
    assert right["pi_mem"] >= 4


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_is_above_nothing_and_at_most_all(share: float) -> None:
    with pytest.raises(InvalidSetting, match="share is above 0"):
        lexical(share=share)
