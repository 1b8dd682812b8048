"""Sentences that say one fact each, and back: what is written can be read without the writer.

A fact is a subject, an attribute and a value, and of some topics a year. A topic has several
templates; the split by template holds some of them back. Every value of a kind is equally long and
one token (names have seven letters, numbers five digits, years four), so the tokens and characters
of a sentence follow from its template and attribute alone: lengths are sums, not scans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from ..words import count_words
from .names import LENGTH

ValueKind = Literal["name", "number"]
Style = Literal["prose", "compact"]

DIGITS: Final = 5
YEAR_DIGITS: Final = 4

_NAME = rf"[A-Z][a-z]{{{LENGTH - 1}}}"
_SENTENCE_END = re.compile(r"(?<=[.?]) |\n+")


@dataclass(frozen=True, slots=True)
class Fact:
    """What a sentence says."""

    subject: str
    attribute: str
    value: str
    year: str = ""


@dataclass(frozen=True)
class Template:
    """A sentence with gaps: `{s}` subject, `{a}` attribute, `{v}` value and, perhaps, `{y}` year.

    A gap stands between blanks or marks, so that it is a token of its own.
    """

    text: str
    value: ValueKind

    def write(self, fact: Fact) -> str:
        """Return the sentence that says a fact."""
        return self.text.format(s=fact.subject, a=fact.attribute, v=fact.value, y=fact.year)

    @cached_property
    def tokens(self) -> int:
        """Tokens of every sentence; an attribute is one."""
        return count_words(self.text.format(s="s", a="a", v="v", y="y"))

    def characters(self, attribute: str) -> int:
        """Characters of a sentence with an attribute."""
        value = "v" * (LENGTH if self.value == "name" else DIGITS)
        return len(self.text.format(s="s" * LENGTH, a=attribute, v=value, y="y" * YEAR_DIGITS))

    def pattern(self, attributes: Sequence[str]) -> re.Pattern[str]:
        """Return what matches its sentences, whole."""
        gaps = {
            "s": rf"(?P<s>{_NAME})",
            "a": f"(?P<a>{'|'.join(attributes)})",
            "v": rf"(?P<v>{_NAME if self.value == 'name' else rf'[0-9]{{{DIGITS}}}'})",
            "y": rf"(?P<y>[0-9]{{{YEAR_DIGITS}}})",
        }
        escaped = re.escape(self.text)
        for gap, expression in gaps.items():
            escaped = escaped.replace(rf"\{{{gap}\}}", expression)
        return re.compile(escaped)


@dataclass(frozen=True)
class Topic:
    """A kind of facts and all the ways of saying them."""

    attributes: tuple[str, ...]
    train: tuple[Template, ...]
    held_out: tuple[Template, ...]
    compact: tuple[Template, ...]
    compact_held_out: tuple[Template, ...]
    own_subjects: bool = False
    """A document is about one subject unless each of its sentences has its own."""

    def templates(self, style: Style, *, held_out: bool) -> tuple[Template, ...]:
        """Return the templates of a style and split."""
        if style == "compact":
            return self.compact_held_out if held_out else self.compact
        return self.held_out if held_out else self.train

    def parse(self, texts: Iterable[str]) -> list[Fact]:
        """Return the facts that texts state, in order; what is no sentence of ours says nothing."""
        return [
            fact
            for text in texts
            for sentence in _SENTENCE_END.split(text)
            if (fact := self._read(sentence)) is not None
        ]

    def _read(self, sentence: str) -> Fact | None:
        for pattern in self._patterns:
            found = pattern.fullmatch(sentence)
            if found is not None:
                gaps = found.groupdict()
                attribute = gaps.get("a") or self.attributes[0]
                return Fact(gaps["s"], attribute, gaps["v"], gaps.get("y") or "")
        return None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        every = (*self.train, *self.held_out, *self.compact, *self.compact_held_out)
        return tuple(template.pattern(self.attributes) for template in every)
