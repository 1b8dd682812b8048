"""Replies are data: what each says, and that none of them breaks anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting
from mars_envs.parallel_memory.budgets import cut_to
from mars_envs.parallel_memory.gated_replies import GatedReply, Update, parse_gated
from mars_envs.parallel_memory.relevance import most_relevant
from mars_envs.parallel_memory.replies import (
    Answer,
    Merge,
    Read,
    parse_answer,
    parse_memory,
    parse_read,
    parse_summary,
    quiet,
)
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.reading.tokenizers import WordTokenizer

REPLIES = [
    ("<check>no</check>", "no", None),
    ("<check>yes</check> Ada.", "yes", "Ada."),
    (" < CHECK >\nYes < / Check >\n\nAda. ", "yes", "Ada."),
    ("Let me see. <check>yes</check>Ada.", "yes", "Ada."),
    ("<check>yes</check>Ada. <check>no</check>", "yes", "Ada. <check>no</check>"),
    ("<check>no</check>Ada. <check>yes</check>", "no", None),
    ("<check>yes</check>", "empty", None),
    ("<check>yes</check> \n\t", "empty", None),
    ("Ada.", "malformed", "Ada."),
    ("", "malformed", None),
    (" \n", "malformed", None),
    ("<check>maybe</check> Ada.", "malformed", "<check>maybe</check> Ada."),
    ("<check>yes Ada.", "malformed", "<check>yes Ada."),
    ("<think><check>yes</check> or not?</think><check>no</check>", "no", None),
    ("<check>yes</check> It says </think>.", "yes", "It says ‹/think>."),
    ("Or not?</think>\n<check>no</check>", "no", None),
    ("<think>It never ends <check>yes</check>", "malformed", None),
    ("<check>yes</check>It says <think>a</think>.", "yes", "It says ‹think>a‹/think>."),
]


@pytest.mark.parametrize(("reply", "status", "note"), REPLIES)
def test_the_first_well_formed_tag_decides(reply: str, status: str, note: str | None) -> None:
    check = parse_read(reply)
    assert (check.status, check.note) == (status, note)


@pytest.mark.parametrize(("reply", "status", "note"), REPLIES)
def test_strict_reading_keeps_nothing_without_a_tag(
    reply: str, status: str, note: str | None
) -> None:
    check = parse_read(reply, strict=True)
    assert check.status == status
    assert (check.note is None) == (note is None or status == "malformed")


def test_well_formed_replies_say_what_they_mean() -> None:
    assert parse_read(Read.yes("Ada.")).note == "Ada."
    assert parse_read(Read.no()).status == "no"
    assert parse_read(Read.yes("Ada."), grammar="released").note == Read.yes("Ada.")
    assert parse_memory(Merge("Ada.")) == "Ada."
    assert parse_answer(Answer("Ada")) == "Ada"


def test_a_summary_is_all_of_the_reply_but_its_thinking() -> None:
    assert parse_summary("<think>hm</think> Ada.\nBob.").note == "Ada.\nBob."
    assert parse_summary("<think>hm</think> ").status == "empty"


@pytest.mark.parametrize(
    ("reply", "memory"),
    [
        (" Ada.\n", "Ada."),
        ("<think>hm\n</think>\nAda.", "Ada."),
        ("hm\n</think>\nAda.", "Ada."),
        ("Ada. <think>hm</think>Bob.", "Ada. Bob."),
        ("Ada. <think>hm", "Ada."),
        ("<check>no</check> Ada.", "<check>no</check> Ada."),
        ("", None),
        (" \n", None),
        ("<think>hm</think>", None),
    ],
)
def test_a_merger_s_reply_is_the_memory_without_thinking(reply: str, memory: str | None) -> None:
    assert parse_memory(reply) == memory


PIECES = [
    *("<check>", "</check>", "yes", "no", "<think>", "</think>", "<", ">", "/", " ", "\n"),
    *("\\boxed{", "\\boxed ", "}", "{", "Ada", "\x00", "\u2028", "</part>", "é", "🙂", "\\"),
]
TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES)).map("".join))


@given(reply=TEXTS, strict=st.booleans())
def test_no_reply_breaks_the_parsers(reply: str, strict: bool) -> None:
    check = parse_read(reply, strict=strict)
    assert (check.note is not None) <= (check.status in ("yes", "malformed"))
    assert check.note is None or check.note.strip() == check.note != ""
    released = parse_read(reply, grammar="released")
    assert (released.note is None) == ("<check>no</check>" in reply.lower())
    memory = parse_memory(reply)
    assert memory is None or (memory and "</think>" not in memory)
    assert parse_answer(reply) == parse_answer(reply).strip()


@pytest.mark.parametrize(
    "piece",
    [
        *("<", "< ", "<check", "<check>", "<think>", "</think>", "\\boxed{", "{", "}", " ", "."),
        *("<update>", "</update>", "<update><next>", "<next>end</next> ", "<check>yes </check>"),
    ],
)
def test_megabytes_of_anything_are_read_in_one_go(piece: str) -> None:
    reply = piece * (2**20 // len(piece))
    parse_read(reply)
    parse_memory(reply)
    parse_answer(reply)
    parse_gated(reply)
    text, cut = cut_to(reply, 10, WordTokenizer())
    assert cut == (WordTokenizer().count(reply) > 10)
    assert WordTokenizer().count(text) <= 10


@pytest.mark.parametrize(
    ("reply", "update", "end", "malformed"),
    [
        ("<check>yes</check><update>A</update>", "A", False, False),
        ("<think><next>end</next></think><check>no</check>", None, False, False),
        ("<check>no</check> or</think><CHECK>yes</CHECK><UPDATE>A</UPDATE>", "A", False, False),
        ("<check>yes</check><think><update>A</update><next>end</next>", "", False, False),
        (
            "<check>yes</check><update>A<next>end</next> B\n<next>END</next> ",
            "A<next>end</next> B",
            True,
            False,
        ),
        ("<check>yes</check><update>A", "A", False, False),
        (
            "<update><update>A</update></update><check>yes</check>",
            "<update>A</update>",
            False,
            False,
        ),
        ("<update><check>yes</check>", None, False, True),
    ],
)
def test_gates_are_read_outside_of_thinking_and_of_the_update(
    reply: str, update: str | None, end: bool, malformed: bool
) -> None:
    assert parse_gated(reply) == GatedReply(update=update, end=end, malformed=malformed)


@pytest.mark.parametrize("text", ["</think>", "<think>", "a <THINK> b </Think> c"])
def test_well_formed_replies_carry_tags_of_thinking_quietly(text: str) -> None:
    said = quiet(text)
    assert len(said) == len(text)
    assert parse_read(Read.yes(text)).note == parse_memory(Merge(text)) == said
    assert parse_gated(Update(text)).update == parse_answer(Answer(text)) == said


@pytest.mark.parametrize(
    ("text", "tokens", "kept"),
    [
        ("One two. Three four.", 6, "One two. Three four."),
        ("One two. Three four.", 5, "One two."),
        ("One two. Three four.", 3, "One two."),
        ("One two. Three four.", 2, "One two"),
        ("One two.\nThree four", 4, "One two."),
        ("One: 3.14 and more text here", 6, "One: 3.14 and"),
        ('He said "no." Then he left.', 7, 'He said "no."'),
        ("一二。三四。", 4, "一二。"),
        ("One", 0, ""),
    ],
)
def test_what_is_over_its_budget_ends_with_a_whole_sentence(
    text: str, tokens: int, kept: str
) -> None:
    assert cut_to(text, tokens, WordTokenizer()) == (kept, kept != text)


@given(text=st.text(alphabet="ab .!\n漢。é", max_size=60), tokens=st.integers(0, 20))
def test_a_cut_text_is_a_beginning_within_the_budget(text: str, tokens: int) -> None:
    kept, cut = cut_to(text, tokens, WordTokenizer())
    assert text.startswith(kept)
    assert WordTokenizer().count(kept) <= tokens
    assert cut == (WordTokenizer().count(text) > tokens)


def test_a_cap_keeps_what_is_most_like_the_query_in_order() -> None:
    texts = ["the cat", "red lima", "the dog", "red", "lima lima red kilo"]
    assert most_relevant(texts, "Where is red lima?", 2) == [1, 4]
    assert most_relevant(texts, "zulu", 2) == [0, 1], "of equals the earlier ones"
    assert most_relevant([], "zulu", 2) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"max_turns": 0},
        {"max_turns": 1.5},
        {"max_turns": True},
        {"memory_tokens": 0},
        {"window": 0},
        {"max_notes": 0},
        {"retries": -1},
        {"order": "chunk"},
        {"strict": 1},
        {"strict": True, "grammar": "released"},
        {"window": 4096, "budgets": False},
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        memory_settings(**changes)


def test_an_unknown_preset_says_which_there_are() -> None:
    with pytest.raises(InvalidSetting, match=r"default.*reference"):
        memory_settings("paper")
