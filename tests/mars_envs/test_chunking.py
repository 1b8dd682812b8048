"""Chunks of documents."""

from __future__ import annotations

import itertools
import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mars_envs.errors import InvalidSetting
from mars_envs.reading import Evidence, Part, TextDocument
from mars_envs.reading.chunking import (
    ALIGNS,
    Align,
    blocks,
    chunk_document,
    chunks_holding,
    count_tokens,
)
from mars_envs.reading.tokenizers import CountingTokenizer
from mars_envs.reading.words import WORDS, count_words

TEXTS = st.text('ab1_ .!?"\n\té漢字。😀e\u0301\u200d', max_size=120)


def titled(text: str, *cuts: int) -> TextDocument:
    bounds = [0, *cuts, len(text)]
    return TextDocument(
        text,
        [
            Part(doc_id=f"d{i}", start=a, end=b)
            for i, (a, b) in enumerate(itertools.pairwise(bounds))
        ],
    )


class Fives:
    """A tokenizer that makes three tokens of every fifth character, and none of some others."""

    name = "fives"

    def count(self, text: str) -> int:
        return len(self.offsets(text))

    def offsets(self, text: str) -> NDArray[np.int64]:
        spans = []
        for i in range(0, len(text), 5):
            spans += [(i, i), (i, i), (i, i + 1), (i + 1, i + 3)]
        return np.minimum(np.array(spans, np.int64).reshape(-1, 2), len(text))


FIVES = Fives()


def bytes_of(text: str) -> int:
    return len(text.encode())


@given(TEXTS, st.integers(1, 9), st.sampled_from(ALIGNS), st.lists(st.integers(0, 120), max_size=4))
@example("   ", 2, "token", [])
@example("e" + "\u0301" * 90, 3, "token", [])
def test_every_character_is_in_exactly_one_chunk(
    text: str, size: int, align: Align, cuts: list[int]
) -> None:
    document = titled(text, *sorted({min(cut, len(text)) for cut in cuts}))
    for tokenizer in ("words", CountingTokenizer("bytes", bytes_of), FIVES):
        chunks = chunk_document(document, size=size, align=align, tokenizer=tokenizer)
        assert "".join(chunks) == text
        assert all(chunks)
        assert sum(chunks.tokens(i) for i in range(len(chunks))) == chunks.tokenizer.count(text)


@given(st.text("ab1_ .!?\n\té漢字。😀", max_size=120), st.integers(1, 9), st.sampled_from(ALIGNS))
def test_no_chunk_of_words_is_longer_than_its_size(text: str, size: int, align: Align) -> None:
    chunks = chunk_document(titled(text, len(text) // 2), size=size, align=align)
    assert [count_words(chunk) for chunk in chunks] == chunks.counts.tolist()
    assert all(count <= size for count in chunks.counts)


@given(st.text("ab. \n", max_size=200), st.integers(1, 12))
def test_chunks_by_tokens_are_the_windows_of_the_token_list(text: str, size: int) -> None:
    tokens = [match.group() for match in WORDS.finditer(text)]
    chunks = chunk_document(text, size=size)
    found = [[match.group() for match in WORDS.finditer(chunk)] for chunk in chunks]
    expected = [tokens[i : i + size] for i in range(0, len(tokens), size)]
    assert found == (expected or [[]] * bool(text))


@given(TEXTS, st.integers(2, 9), st.data(), st.sampled_from(ALIGNS))
def test_an_overlap_repeats_at_most_so_many_tokens_and_skips_nothing(
    text: str, size: int, data: st.DataObject, align: Align
) -> None:
    overlap = data.draw(st.integers(1, size - 1))
    document = titled(text, len(text) // 3, len(text) // 2)
    chunks = chunk_document(document, size=size, align=align, overlap=overlap)
    spans = [chunks.span(i) for i in range(len(chunks))]
    assert not text or (spans[0][0], spans[-1][1]) == (0, len(text))
    for (a, b), (c, d) in itertools.pairwise(spans):
        assert a < c <= b < d
        assert count_words(text[c:b]) <= overlap


def test_marks_on_a_blank_before_the_first_token_lose_nothing() -> None:
    chunks = chunk_document("  \u0301\u03011?", size=2, overlap=1)
    assert [chunks.span(i) for i in range(len(chunks))] == [(0, 4), (3, 5), (4, 6)]


def test_an_overlap_by_tokens_is_exact() -> None:
    chunks = chunk_document("a b c d e f g", size=4, overlap=2)
    assert [chunk.split() for chunk in chunks] == [
        ["a", "b", "c", "d"],
        ["c", "d", "e", "f"],
        ["e", "f", "g"],
    ]


def test_sentences_stay_whole_where_they_fit() -> None:
    text = 'He said "no." Then he went. It rained\nAll day long and night. Why? 終わり。はい。'
    chunks = chunk_document(text, size=9, align="sentence")
    assert list(chunks) == [
        'He said "no." ',
        "Then he went. It rained\n",
        "All day long and night. Why? ",
        "終わり。はい。",
    ]


def test_a_sentence_goes_on_in_the_next_line_and_ends_before_an_empty_one() -> None:
    text = "He went. The notes were\nwritten by\r\n  éclairs. A list\n\nit begins"
    assert list(chunk_document(text, size=8, align="sentence")) == [
        "He went. ",
        "The notes were\nwritten by\r\n  éclairs. ",
        "A list\n\nit begins",
    ]
    assert list(chunk_document(text, size=3, align="sentence"))[-2:] == ["A list\n\n", "it begins"]


def test_a_sentence_longer_than_a_chunk_is_cut_between_its_lines() -> None:
    text = "a b c\nd e f\ng h i\nj"
    chunks = chunk_document(text, size=7, align="sentence")
    assert list(chunks) == ["a b c\nd e f\n", "g h i\nj"]


def test_a_sentence_longer_than_a_chunk_is_cut_by_tokens() -> None:
    chunks = chunk_document("One. a b c d e f. Two.", size=4, align="sentence")
    assert list(chunks) == ["One. ", "a b c d ", "e f. ", "Two."]


def test_parts_stay_whole_where_they_fit_and_are_packed() -> None:
    text = "aa bb\n\ncc dd\n\nee ff gg hh ii\n\njj"
    document = titled(text, 7, 14, 30)
    chunks = chunk_document(document, size=4, align="document")
    assert list(chunks) == ["aa bb\n\ncc dd\n\n", "ee ff gg hh ", "ii\n\njj"]


def test_overlapping_sentences_are_repeated_whole() -> None:
    chunks = chunk_document("A b. C d. E f. G h.", size=6, align="sentence", overlap=4)
    assert list(chunks) == ["A b. C d. ", "C d. E f. ", "E f. G h."]


def test_an_overlap_that_leaves_no_room_is_dropped() -> None:
    chunks = chunk_document("A b. C d e f. G h.", size=5, align="sentence", overlap=4)
    assert list(chunks) == ["A b. ", "C d e f. ", "G h."]


@given(st.text("ab. \n漢", max_size=200), st.integers(1, 30), st.integers(1, 9))
def test_a_limit_keeps_the_first_and_the_last_half(text: str, limit: int, size: int) -> None:
    tokens = [match.group() for match in WORDS.finditer(text)]
    chunks = chunk_document(text, size=size, limit=limit)
    found = [match.group() for chunk in chunks for match in WORDS.finditer(chunk)]
    half = limit // 2
    whole = len(tokens) <= limit
    assert found == (tokens if whole else tokens[: limit - half] + tokens[len(tokens) - half :])


def test_an_empty_document_has_no_chunks() -> None:
    for align in ALIGNS:
        assert len(chunk_document("", align=align)) == 0


def test_a_document_of_blanks_is_one_chunk_without_tokens() -> None:
    chunks = chunk_document(" \n ", size=3)
    assert (list(chunks), chunks.tokens(0)) == ([" \n "], 0)


def test_a_document_shorter_than_a_chunk_is_one_chunk() -> None:
    chunks = chunk_document("Short.", size=5000)
    assert (list(chunks), chunks.tokens(0), chunks.span(0)) == (["Short."], 2, (0, 6))


@pytest.mark.parametrize("size", range(1, 7))
def test_a_seam_never_parts_the_bytes_or_marks_of_a_character(size: int) -> None:
    text = "a😀é漢e\u0301👍🏽👩\u200d🚀\r\nb"
    chunks = chunk_document(text, size=size, tokenizer=bytes_of)
    assert "".join(chunks) == text
    chunks = chunk_document("x y e\u0301 👍🏽 z", size=3)
    assert list(chunks) == ["x y ", "e\u0301 ", "👍🏽 z"]


def test_a_character_with_more_tokens_than_a_chunk_is_a_chunk() -> None:
    tokenizer = CountingTokenizer("bytes", bytes_of)
    chunks = chunk_document("a 😀 b", size=2, tokenizer=tokenizer)
    assert list(chunks) == ["a", " 😀", " b"]
    assert [chunks.tokens(i) for i in range(3)] == [1, 5, 2]


class Watched(TextDocument):
    """A document that says how much of it is read at once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.longest = 0

    def read(self, start: int, end: int) -> str:
        self.longest = max(self.longest, end - start)
        return super().read(start, end)


def test_a_document_is_read_in_blocks_and_chunks_are_read_when_asked_for() -> None:
    document = Watched("word " * 1_000_000)
    chunks = chunk_document(document, size=1000)
    assert len(chunks) == 1000
    assert document.longest <= 1 << 20
    document.longest = 0
    assert chunks[999] == "word " * 1000
    assert document.longest == 5000


@given(st.text("ab \n", max_size=400), st.integers(1, 40))
def test_blocks_are_the_document_and_end_before_a_blank(text: str, size: int) -> None:
    found = list(blocks(TextDocument(text), size))
    assert "".join(block for _, block in found) == text
    assert all(text[start : start + len(block)] == block for start, block in found)
    assert all(block and len(block) <= size for _, block in found)


def test_tokens_of_a_long_document_are_those_of_its_text() -> None:
    text = "no way, José. " * 200_000
    assert count_tokens(TextDocument(text)) == count_words(text) == 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 50_000_000, id="one word"),
        pytest.param("x, " * 17_000_000, id="words", marks=pytest.mark.slow),
    ],
)
def test_a_line_of_fifty_megabytes_is_cut_in_memory_for_its_spans(text: str) -> None:
    tracemalloc.start()
    chunks = chunk_document(text, size=5000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert chunks.span(len(chunks) - 1)[1] == len(text)
    assert max(len(chunks[i]) for i in range(len(chunks))) <= 128 * 5001
    assert peak < 16 * int(chunks.counts.sum()) + 100_000_000


@pytest.mark.parametrize(
    "text", ["." * 300_000, " " * 300_000, ".'" * 200_000, ". " * 200_000, "。" * 300_000]
)
def test_sentences_of_odd_text_take_time_in_proportion(text: str) -> None:
    assert "".join(chunk_document(text, size=5000, align="sentence")) == text


def test_evidence_is_in_the_chunks_that_its_span_touches() -> None:
    text = "aa bb cc dd ee ff"
    chunks = chunk_document(text, size=2)  # [0, 6), [6, 12), [12, 17)
    spans = [(0, 2), (3, 8), (6, 12), (0, 17), (15, 17), (4, 4)]
    evidence = [Evidence(start=a, end=b, text=text[a:b]) for a, b in spans]
    assert chunks_holding(chunks, evidence) == [(0,), (0, 1), (1,), (0, 1, 2), (2,), ()]
    assert chunks_holding(chunk_document(text, size=1, limit=2), evidence[1:3]) == [(), ()]
    overlapping = chunk_document(text, size=4, overlap=2)  # aa..dd, cc..ff
    assert chunks_holding(overlapping, evidence[2:3]) == [(0, 1)]


def test_chunks_are_slices_values_and_can_be_pickled() -> None:
    chunks = chunk_document("a b c d e", size=2)
    assert list(chunks[1:]) == ["c d ", "e"]
    assert chunks[-1] == "e"
    again = pickle.loads(pickle.dumps(chunks))
    assert again == chunks
    assert hash(again) == hash(chunks)
    assert chunks != chunk_document("a b c d e", size=3)
    with pytest.raises(IndexError):
        chunks[3]
    with pytest.raises(ValueError, match="read-only"):
        chunks.spans[0, 0] = 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be a whole number of tokens, at least 1, got 0"),
        ({"size": 2.5}, "size must be"),
        ({"size": True}, "size must be"),
        ({"size": 3, "overlap": 3}, r"overlap must be .* less than a chunk has \(3\), got 3"),
        ({"overlap": -1}, "overlap must be"),
        ({"limit": 0}, "limit must be None or"),
        ({"align": "page"}, "align must be one of token, sentence, document, got 'page'"),
        ({"tokenizer": "none"}, "unknown tokenizer"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        chunk_document("text", **options)


def test_whole_numbers_of_numpy_are_sizes() -> None:
    assert len(chunk_document("a b c", size=np.int64(2))) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 5, 15, 16, 40])
def test_only_a_single_piece_of_a_tokenizer_that_counts_may_be_above_the_size(size: int) -> None:
    text = "It is so. " + "x" * 50 + " 漢字漢字 end" + " " * 30
    chunks = chunk_document(text, size=size, tokenizer=lambda piece: len(piece.encode()))
    assert "".join(chunks) == text
    pieces = [len(piece) for piece in re.findall(r"\s{0,8}\S{1,16}|\s{1,8}", text)]
    for i, chunk in enumerate(chunks):
        assert chunks.tokens(i) == len(chunk.encode())
        assert chunks.tokens(i) <= size or len(chunk) in pieces
