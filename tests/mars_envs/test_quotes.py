"""Where in a document the words stand that somebody quotes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.reading.quotes import find_quotes

TEXT = "It rained in Olm. The mayor of Olm is\n  Tia Nor. She was born in 1912! Café Ürün closed."


@pytest.mark.parametrize(
    ("said", "passages"),
    [
        ("The mayor of Olm is Tia Nor.", ["The mayor of Olm is\n  Tia Nor."]),
        ("the MAYOR of olm is tia nor.", ["The mayor of Olm is\n  Tia Nor."]),
        (
            "Chunk 3 says much. She was born in 1912! It rained in Olm.",
            ["It rained in Olm.", "She was born in 1912!"],
        ),
        ('The text has "mayor of Olm is Tia" in it.', ["mayor of Olm is\n  Tia"]),
        ("- It rained in Olm.\n- Café Ürün closed.", ["It rained in Olm.", "Café Ürün closed."]),
        ("[weather] It rained in Olm.", ["It rained in Olm."]),
        ("It rained in Olm. The mayor", ["It rained in Olm. The mayor"]),
        ("Tia governs the town of Olm.", []),
        ("Olm.", []),
        ("", []),
        ("...", []),
    ],
)
def test_passages_are_found_whatever_their_case_and_line_breaks(
    said: str, passages: list[str]
) -> None:
    found = find_quotes(said, TEXT, offset=1000)
    assert [quote.text for quote in found] == passages
    for quote in found:
        assert TEXT[quote.start - 1000 : quote.end - 1000] == quote.text


@given(st.text(min_size=40, max_size=200), st.data())
def test_what_is_copied_is_found_where_it_stands(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 20))
    end = data.draw(st.integers(start + 10, len(text)))
    copied = text[start:end]
    found = find_quotes(copied, text)
    if sum(map(len, copied.split())) >= 8:
        assert len(found) == 1
        assert found[0].start <= start + len(copied) - len(copied.lstrip())
        assert text[found[0].start : found[0].end] == found[0].text
    for quote in found:
        assert 0 <= quote.start < quote.end <= len(text)


def test_every_sentence_of_a_long_memory_is_looked_for() -> None:
    sentences = [f"The number of   house {i} is {i * 7}." for i in range(3_000)]
    said = "\n".join(" ".join(one.upper().split()) for one in reversed(sentences))
    found = find_quotes(said, " Nothing.\n".join(sentences))
    assert [quote.text for quote in found] == sentences


def test_a_long_passage_is_found_whatever_its_line_breaks() -> None:
    passage = " ".join(f"word{i}" for i in range(2_000))
    text = f"Before. {passage.replace(' ', chr(10))} After."
    (quote,) = find_quotes(passage, text)
    assert quote.text.split() == passage.split()


def test_letters_that_change_their_length_with_their_case_move_nothing() -> None:
    text = "İSTANBUL ŞEHRİ ẞ ΟΔΟΣ\nis the last word."
    (quote,) = find_quotes("İstanbul Şehrİ ẞ οδος IS the last word", text)
    assert quote.text == text[:-1]


@pytest.mark.parametrize("unit", ["a ", " ", "\n", '"', "a.", ". ", "b a a a a a "])
def test_the_time_stays_small_whatever_is_said(unit: str) -> None:
    begin = time.process_time()
    find_quotes(unit * (20_000 // len(unit)) + "x", unit * (20_000 // len(unit)))
    assert time.process_time() - begin < 5  # far below one second
