"""Tokenizers: how long a text is, and where one may cut it.

Environments never see tokens; a tokenizer says where a text can be cut so that no piece has more of
them than it should. "words" needs no model. A tokenizer of Hugging Face is asked for its offsets;
one that gives none is asked for counts, piece by piece.

Positions are characters. A byte-level tokenizer may take several tokens for one character: then the
first ones are empty spans where it starts, and the last one is the character, so that no cut at the
start of a token breaks it.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting
from ..importing import import_object, is_importable
from .words import count_words, word_offsets

HUB_PREFIX: Final = "hf:"
"""Of the name or folder of a tokenizer that `transformers` loads."""

_PIECE = re.compile(r"\s{0,8}\S{1,16}|\s{1,8}")
_CACHED = 1 << 16
_EXPECTED = (
    f"'words', '{HUB_PREFIX}NAME-OR-FOLDER', 'module:name', an object with `count` and `offsets`, "
    "a tokenizer of Hugging Face, or a function that counts the tokens of a text"
)


@runtime_checkable
class Tokenizer(Protocol):
    """Counts and places the tokens of a text, without special ones."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        ...

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Return the character spans of the tokens, `[tokens, 2]`, in order, without overlap.

        Characters between spans (blanks, mostly) belong to no token. Tokens of which several make
        one character start where it starts; all but the last of them are empty.
        """
        ...


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """The default: the fixed word tokenizer of `mars_envs.reading.words`.

    Example:
        >>> WordTokenizer().count("Who wrote it?")
        4
    """

    name: str = "words"

    def count(self, text: str) -> int:
        """Return how many words and marks a text has."""
        return count_words(text)

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Return their character spans, `[tokens, 2]`."""
        return word_offsets(text)


@dataclass(frozen=True, slots=True)
class FastTokenizer:
    """A tokenizer of the library `tokenizers`, as fast tokenizers of `transformers` have inside.

    Make one with `resolve_tokenizer`.
    """

    name: str
    backend: Any
    """A `tokenizers.Tokenizer` that neither truncates nor pads."""

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        return len(self.backend.encode(text, add_special_tokens=False).ids)

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Return their character spans, `[tokens, 2]`."""
        encoding = self.backend.encode(text, add_special_tokens=False)
        return tidy_offsets(np.array(encoding.offsets, np.int64).reshape(-1, 2), len(text))


@dataclass(frozen=True, slots=True)
class CountingTokenizer:
    """A tokenizer that can only count: a text is counted piece by piece and cut between pieces.

    Pieces are words with the blanks before them; one of more than 16 characters is several. What a
    text has is the sum over its pieces, close to what the tokenizer says of the whole.
    """

    name: str
    counter: Callable[[str], int]
    _known: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def count(self, text: str) -> int:
        """Return how many tokens the pieces of a text have, all together.

        Raises:
            InvalidSetting: the function returned no number of tokens.
        """
        return sum(map(self._count, _PIECE.findall(text)))

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Return spans of tokens, `[tokens, 2]`; those of one piece start together.

        Raises:
            InvalidSetting: the function returned no number of tokens.
        """
        pieces = _PIECE.findall(text)
        ends = np.fromiter(itertools.accumulate(map(len, pieces)), np.int64, len(pieces))
        counts = np.fromiter(map(self._count, pieces), np.int64, len(pieces))
        starts = np.concatenate([[0], ends[:-1]]) if len(pieces) else ends
        spans = np.repeat(starts, counts)
        last = np.cumsum(counts)[counts > 0] - 1
        result = np.stack([spans, spans], axis=1)
        result[last, 1] = ends[counts > 0]
        return result

    def _count(self, piece: str) -> int:
        count = self._known.get(piece)
        if count is None:
            count = self.counter(piece)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise InvalidSetting(
                    f"the tokenizer {self.name} must return a whole number of tokens, at least 0, "
                    f"got {count!r:.80} for {piece!r}"
                )
            if len(self._known) >= _CACHED:
                self._known.clear()
            self._known[piece] = count
        return count


def offsets_of(tokenizer: Tokenizer, text: str) -> NDArray[np.int64]:
    """Return the character spans of the tokens of a text, `[tokens, 2]`.

    Tokenizers may be anybody's: one that gives a list of pairs will do, as Hugging Face's
    `offset_mapping` is.

    Raises:
        InvalidSetting: what it gives are no spans, or they are out of order.
    """
    given = tokenizer.offsets(text)
    try:
        spans = np.asarray(given)
    except ValueError:  # rows of different lengths
        raise _no_offsets(tokenizer, given) from None
    if spans.shape == (0,):
        spans = np.empty((0, 2), np.int64)
    if spans.ndim != 2 or spans.shape[1] != 2 or not np.issubdtype(spans.dtype, np.integer):
        raise _no_offsets(tokenizer, given)
    starts = spans[:, 0].astype(np.int64, copy=False)
    if len(starts) and (starts[0] < 0 or (starts[1:] < starts[:-1]).any()):
        raise _no_offsets(tokenizer, given)
    return spans.astype(np.int64, copy=False)


def _no_offsets(tokenizer: Tokenizer, given: Any) -> InvalidSetting:
    shape = f" of shape {list(given.shape)}" if isinstance(given, np.ndarray) else ""
    return InvalidSetting(
        f"offsets of the tokenizer {tokenizer.name} must be pairs of whole numbers, [tokens, 2]: "
        "the first character of each token and one beyond its last, in the order of the text, "
        f"without special tokens; got a {type(given).__name__}{shape}: {given!r:.80}"
    )


def tidy_offsets(offsets: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return a tokenizer's offsets in order and without overlap.

    Tokens that share a character (bytes of one, or what a normalisation has mixed up) become empty
    spans where the first of them starts, and the last of them the whole.

    Args:
        offsets: `[tokens, 2]`, as the tokenizer gives them.
        length: of the text.
    """
    if len(offsets) == 0:
        return offsets
    reach = np.maximum.accumulate(np.minimum(offsets[:, 1], length))
    before = np.concatenate([[0], reach[:-1]])
    opens = offsets[:, 0] >= before
    opens[0] = True
    first = np.flatnonzero(opens)
    starts = np.repeat(np.minimum(offsets[first, 0], length), np.diff([*first, len(offsets)]))
    ends = starts.copy()
    last = np.append(first[1:], len(offsets)) - 1
    ends[last] = np.maximum(reach[last], starts[last])
    return np.stack([starts, ends], axis=1)


def resolve_tokenizer(source: Any = "words") -> Tokenizer:
    """Return the tokenizer that is named or given.

    Args:
        source: "words"; "hf:NAME-OR-FOLDER" (needs `transformers`); "module:name" of any of the
            following, or of a function without arguments that returns one; an object with `name`,
            `count` and `offsets`; a tokenizer of `transformers` or `tokenizers`; an object with
            `encode_ordinary`, as tiktoken has; a function that counts the tokens of a text.

    Raises:
        InvalidSetting: none of these; the message says what came.
        ImportError: "hf:" without `transformers`.
    """
    if isinstance(source, str):
        if source == "words":
            return WordTokenizer()
        if source.startswith(HUB_PREFIX):
            return _from_hub(source)
        if not is_importable(source):
            raise InvalidSetting(f"unknown tokenizer {source!r:.80}; expected {_EXPECTED}")
        try:
            found = import_object(source)
        except (ImportError, ValueError) as error:
            raise InvalidSetting(f"no tokenizer at {source!r:.80}: {error}") from error
        return _adapted(found() if _makes_one(found) else found, source)
    return _adapted(source, "")


def _adapted(found: Any, name: str) -> Tokenizer:
    if isinstance(found, Tokenizer) and not isinstance(found, type):
        return found
    name = name or str(getattr(found, "name_or_path", "") or type(found).__name__)
    backend = getattr(found, "backend_tokenizer", found)
    if hasattr(backend, "encode") and hasattr(backend, "no_truncation"):
        return FastTokenizer(name, _unbounded(backend, name))
    if hasattr(found, "encode_ordinary"):
        return CountingTokenizer(name, functools.partial(_length, found.encode_ordinary))
    if hasattr(found, "tokenize") and hasattr(found, "encode"):
        plain = functools.partial(found.encode, add_special_tokens=False)
        return CountingTokenizer(name, functools.partial(_length, plain))
    if callable(found):
        return CountingTokenizer(getattr(found, "__name__", name), found)
    raise InvalidSetting(f"a {type(found).__name__} is no tokenizer; expected {_EXPECTED}")


def _length(encode: Callable[[str], Any], text: str) -> int:
    return len(encode(text))


def _makes_one(found: Any) -> bool:
    """Whether something imported is to be called for the tokenizer: it takes no argument."""
    if isinstance(found, type):
        return True
    if not callable(found) or isinstance(found, Tokenizer) or hasattr(found, "encode"):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    return not any(
        parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in parameters
    )


def _unbounded(backend: Any, name: str) -> Any:
    """Return a tokenizer that takes texts whole: the user's own may truncate, and stays as it is.

    Raises:
        InvalidSetting: it truncates or pads and cannot be copied.
    """
    if backend.truncation is None and backend.padding is None:
        return backend
    try:
        copy = type(backend).from_str(backend.to_str())
    except Exception as error:  # the library's own are plain `Exception`
        raise InvalidSetting(
            f"the tokenizer {name} truncates or pads; call no_truncation() and no_padding() first"
        ) from error
    copy.no_truncation()
    copy.no_padding()
    return copy


def _from_hub(source: str) -> Tokenizer:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ImportError(
            f"the tokenizer {source!r} needs transformers, which is not installed; "
            "pip install 'mars-envs[train]', or use 'words'"
        ) from error
    name = source.removeprefix(HUB_PREFIX)
    try:
        found = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"no tokenizer at {source!r:.80}: {error}") from error
    return _adapted(found, source)
