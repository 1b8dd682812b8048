"""Lengths by any tokenizer: how many words make so many tokens.

Generated text is counted in words, which takes no scan. Another tokenizer has some tokens to a
word, the same all through a family: measured on one document, it holds for long ones. Short
documents are counted whole and built again until they are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import InvalidSetting
from ..chunking import count_tokens
from ..task import ReadingTask
from ..tokenizers import Tokenizer

TOLERANCE: Final = 0.01
_SAMPLE: Final = 20_000  # words
_COUNTED: Final = 50_000  # tokens: longer documents are not counted
_ROUNDS: Final = 12


def tokens_per_word(build: Callable[[int], ReadingTask], tokenizer: Tokenizer) -> float:
    """Return how many tokens a word of a family's text has.

    Args:
        build: builds a task with a document of so many words.
        tokenizer: counts.
    """
    return count_tokens(build(_SAMPLE).document, tokenizer) / _SAMPLE


def build_to_length(
    build: Callable[[int], ReadingTask], tokens: int, tokenizer: Tokenizer, ratio: float
) -> ReadingTask:
    """Build a task whose document has so many tokens, to 1 %.

    Args:
        build: builds a task with a document of so many words.
        tokens: wanted.
        tokenizer: counts them.
        ratio: tokens of a word.

    Raises:
        InvalidSetting: no length of the document comes so close.
    """
    words = round(tokens / ratio)
    task = build(words)
    if tokens > _COUNTED:
        return task
    for _ in range(_ROUNDS):
        excess = count_tokens(task.document, tokenizer) - tokens
        if abs(excess) <= TOLERANCE * tokens:
            return task
        words -= round(excess / ratio) or (1 if excess > 0 else -1)
        task = build(words)
    raise InvalidSetting(
        f"no document of about {words} words has {tokens} tokens of {tokenizer.name!r}, to 1 %; "
        "ask for more tokens"
    )
