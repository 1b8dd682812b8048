"""How long a text is, for budgets in tokens, where no tokenizer is at hand.

Environments never see tokens: what a text costs depends on the model. `count_words` is a stand-in
that needs no model; give `count_tokens=` your tokenizer's count where the budget must be exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..importing import import_object
from ..reading.words import count_words

__all__ = ["TokenCounter", "count_words", "counted", "resolve_counter"]

TokenCounter = Callable[[str], int]


def resolve_counter(source: str | TokenCounter) -> TokenCounter:
    """Return the counter that is named or given: "words", "module:name", or a callable.

    Raises:
        ValueError: neither of these.
    """
    found: Any = source
    if source == "words":
        found = count_words
    elif isinstance(source, str):
        found = import_object(source)
    if not callable(found):
        raise ValueError(
            f"count_tokens must be 'words', 'module:name' or a callable of a text, got {source!r}"
        )
    counter: TokenCounter = found
    return counter


def counted(counter: TokenCounter, text: str) -> int:
    """Return the tokens of a text.

    Raises:
        ValueError: the counter returned no number of tokens.
    """
    count = counter(text)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"count_tokens must return a whole number, at least 0, got {count!r}")
    return count
