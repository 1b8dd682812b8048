"""Cutting what is over its budget of tokens, at the end of a sentence where there is one."""

from __future__ import annotations

import re

from ..reading.tokenizers import Tokenizer, offsets_of

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？]|\n")


def cut_to(text: str, tokens: int, tokenizer: Tokenizer) -> tuple[str, bool]:
    """Return a text of at most `tokens` tokens, and whether any of it had to go.

    It ends with the last whole sentence, or line, that fits; where not even one does, with the last
    token.

    Example:
        >>> from mars_envs.reading.tokenizers import WordTokenizer
        >>> cut_to("Ada wrote it. Charles built it.", 6, WordTokenizer())
        ('Ada wrote it.', True)
    """
    if tokenizer.count(text) <= tokens:
        return text, False
    end = int(offsets_of(tokenizer, text)[tokens - 1, 1]) if tokens else 0
    kept = text[:end]
    # One character more is looked at: the blank that makes a full stop the end of a sentence.
    ends = [found.end() for found in _SENTENCE_END.finditer(text[: end + 1]) if found.end() <= end]
    if ends:
        kept = text[: ends[-1]]
    return kept.rstrip(), True
