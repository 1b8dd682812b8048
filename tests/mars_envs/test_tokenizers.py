"""Tokenizers: where they say that one may cut a text."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.tokenizers import (
    CountingTokenizer,
    Tokenizer,
    WordTokenizer,
    offsets_of,
    resolve_tokenizer,
    tidy_offsets,
)
from mars_envs.reading.words import WORDS, count_words, word_offsets

MIXED = "Zoë said: “naïve 😀👍🏽 café!” 漢字かな 한글\r\n\tx_1=3.5\u00a0e\u0301  fin\n"
LONG = st.text("a\u00e9 \n漢😀.", max_size=300)


def byte_level() -> Any:
    """A byte-level BPE without merges: every byte is a token."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[])
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return backend


def words_of(text: str) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: i for i, word in enumerate(["[UNK]", *sorted(set(text.split()))])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return backend


def count_halves(text: str) -> int:
    return (len(text.strip()) + 1) // 2


@settings(max_examples=60)
@given(st.text(max_size=80) | LONG | st.text("ab ", min_size=100, max_size=400))
@example("a" * 64 + "b")
@example("x" + " " * 129 + "y")
@example("\ud800 lone")
@example("\U00020000\U0001d7d8a")
def test_words_are_the_matches_of_the_fixed_expression(text: str) -> None:
    expected = [list(match.span()) for match in WORDS.finditer(text)]
    assert word_offsets(text).tolist() == expected
    assert count_words(text) == len(expected)


@given(st.text("abz_09é .,;-\n", max_size=60))
def test_words_of_plain_prose_are_runs_of_letters_and_single_marks(text: str) -> None:
    assert count_words(text) == len(re.findall(r"\w+|[^\w\s]", text))


@pytest.mark.parametrize("text", ["a" * 6400, " " * 6400, "é" * 6400, "字" * 100])
def test_text_without_a_blank_or_a_letter_has_tokens_too(text: str) -> None:
    assert count_words(text) == 100


@pytest.mark.parametrize(
    "tokenizer",
    [
        "words",
        byte_level,
        lambda: words_of(MIXED),
        lambda: count_halves,
        "tests_reading_counter",
    ],
    ids=["words", "byte-level", "word-level", "counting", "named"],
)
def test_offsets_are_in_order_without_overlap_and_as_many_as_the_count(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tokenizer == "tests_reading_counter":
        tokenizer = "os.path:basename"
        monkeypatch.setattr("os.path.basename", count_halves)
    found = resolve_tokenizer(tokenizer() if callable(tokenizer) else tokenizer)
    assert isinstance(found, Tokenizer)
    offsets = found.offsets(MIXED)
    assert offsets.dtype == np.int64
    assert offsets.shape == (found.count(MIXED), 2)
    flat = offsets.ravel()
    assert (np.diff(flat) >= 0).all()
    assert flat[0] >= 0
    assert flat[-1] <= len(MIXED)


def test_bytes_of_a_character_start_where_it_starts_and_the_last_one_holds_it() -> None:
    offsets = resolve_tokenizer(byte_level()).offsets("a😀b")
    assert offsets.tolist() == [[0, 1], [1, 1], [1, 1], [1, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("raw", "tidy"),
    [
        ([], []),
        ([(0, 2), (3, 5)], [(0, 2), (3, 5)]),
        ([(0, 1), (0, 1), (1, 2)], [(0, 0), (0, 1), (1, 2)]),
        ([(0, 3), (2, 5), (5, 6)], [(0, 0), (0, 5), (5, 6)]),
        ([(0, 2), (0, 0), (2, 4)], [(0, 0), (0, 2), (2, 4)]),
        ([(0, 2), (2, 9)], [(0, 2), (2, 6)]),
    ],
)
def test_offsets_that_overlap_become_one_place(raw: list[Any], tidy: list[Any]) -> None:
    found = tidy_offsets(np.array(raw, np.int64).reshape(-1, 2), 6)
    assert found.tolist() == [list(pair) for pair in tidy]


def test_a_tokenizer_that_truncates_is_asked_for_all_and_stays_as_it_is() -> None:
    backend = words_of("a b c")
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    assert resolve_tokenizer(backend).count("a b c") == 3
    assert len(backend.encode("a b c").ids) == 9


def test_fast_tokenizers_of_transformers_are_known_by_their_backend() -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level())
    found = pickle.loads(pickle.dumps(resolve_tokenizer(fast)))
    assert found.offsets("é!").tolist() == [[0, 0], [0, 1], [1, 2]]


class Slow:
    """What a tokenizer of `transformers` without a fast backend offers."""

    name_or_path = "slow"

    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"\w|[^\w\s]", text)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + [1 for _ in self.tokenize(text)]


def test_slow_tokenizers_are_counted_piece_by_piece_without_special_tokens() -> None:
    found = resolve_tokenizer(Slow())
    assert (found.name, found.count("ab c!")) == ("slow", 4)
    assert found.offsets("ab c!").tolist() == [[0, 0], [0, 2], [2, 2], [2, 5]]


def test_encoders_of_ordinary_text_are_counted() -> None:
    class Encoder:
        def encode_ordinary(self, text: str) -> list[int]:
            return list(text.encode())

    assert resolve_tokenizer(Encoder()).count("né e") == 5


@given(LONG)
def test_pieces_of_a_counting_tokenizer_lose_nothing(text: str) -> None:
    tokenizer = CountingTokenizer("bytes", lambda piece: len(piece.encode()))
    assert tokenizer.count(text) == len(text.encode())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("wrods", "unknown tokenizer 'wrods'; expected 'words'"),
        ("os:nothing", "no tokenizer at 'os:nothing'"),
        ("no_such_module:f", "no tokenizer at"),
        (7, "a int is no tokenizer"),
    ],
)
def test_what_is_no_tokenizer_is_refused(source: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        resolve_tokenizer(source)


@pytest.mark.parametrize("count", [-1, 2.0, True, None])
def test_a_function_that_returns_no_count_is_refused(count: Any) -> None:
    tokenizer = resolve_tokenizer(lambda text: count)
    with pytest.raises(InvalidSetting, match="whole number of tokens, at least 0, got"):
        tokenizer.count("a")


def test_a_name_may_stand_for_a_function_that_makes_a_tokenizer() -> None:
    found = resolve_tokenizer("mars_envs.reading.tokenizers:WordTokenizer")
    assert found == WordTokenizer()


class Own:
    """Somebody's tokenizer, which gives its offsets in a form of its own."""

    name = "own"

    def __init__(self, offsets: Any) -> None:
        self._offsets = offsets

    def count(self, text: str) -> int:
        return len(self.offsets(text))

    def offsets(self, text: str) -> Any:
        return self._offsets(text)


@pytest.mark.parametrize("text", ["", "One two.\nThree!  Four"])
def test_offsets_may_be_a_list_of_pairs(text: str) -> None:
    own = Own(lambda text: [found.span() for found in re.finditer(WORDS, text)])
    assert offsets_of(own, text).tolist() == word_offsets(text).tolist()
    assert list(chunk_document(text, size=2, tokenizer=own)) == list(chunk_document(text, size=2))


@pytest.mark.parametrize(
    ("offsets", "got"),
    [
        ([1, 2, 3], r"a list: \[1, 2, 3\]"),
        ([(0, 1), (1, 2, 3)], "a list: "),
        (np.zeros((4, 3), np.int64), r"a ndarray of shape \[4, 3\]"),
        ([(0.0, 1.0)], "a list: "),
        ([("a", "b")], "a list: "),
        ([(0, 3), (4, 7), (0, 0)], "a list: "),
        ([(-1, 3)], "a list: "),
        (None, "a NoneType: None"),
    ],
)
def test_offsets_that_are_no_spans_are_refused_with_what_is_wanted(offsets: Any, got: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"own must be .*\[tokens, 2\].*got {got}"):
        chunk_document("One two.", tokenizer=Own(lambda text: offsets))
