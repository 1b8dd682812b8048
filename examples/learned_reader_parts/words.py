"""Words, and a vocabulary of those that the model knows by their spelling."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

WORD = re.compile(r"\w+|[^\w\s]")
_SHAPES = ("<pad>", "<Name>", "<word>", "<number>", "<mixed>", "<mark>")


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text, in order."""
    return WORD.findall(text)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that are known by their spelling, in lower case; any other has the id of its shape."""

    ids: dict[str, int]

    @classmethod
    def of(
        cls,
        prompts: Iterable[str],
        *,
        always: Iterable[str] = (),
        share: float = 0.02,
        limit: int = 400,
    ) -> Vocabulary:
        """Collect the words that stand in at least `share` of the prompts.

        The names of one task stand in the prompts of that task alone, so they stay unknown.

        Args:
            prompts: of many tasks, one or a few of each.
            always: words that are known in any case.
            share: a word that is rarer is taken for a name.
            limit: the most words, the commonest first.
        """
        texts = [set(words_of(prompt.lower())) for prompt in prompts]
        counts = Counter(word for text in texts for word in text)
        common = {word for word, n in counts.most_common(limit) if n >= share * len(texts)}
        kept = sorted(common.union(always))
        return cls({word: n for n, word in enumerate(kept, start=len(_SHAPES))})

    def __len__(self) -> int:
        return len(_SHAPES) + len(self.ids)

    def id_of(self, word: str) -> int:
        """Return the id of a word, or else of its shape."""
        return self.ids.get(word.lower()) or _SHAPES.index(shape_of(word))


def shape_of(word: str) -> str:
    """Return what can be said of a word without knowing it.

    Example:
        >>> [shape_of(word) for word in ("Mira", "mira", "17", "a7", "%")]
        ['<Name>', '<word>', '<number>', '<mixed>', '<mark>']
    """
    if word.isdigit():
        return "<number>"
    if word.isalpha():
        return "<Name>" if word[0].isupper() else "<word>"
    return "<mixed>" if word[0].isalnum() else "<mark>"
