"""Words, sentences and headings, as far as one gets without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

WORD = re.compile(r"\w+(?:['’.,-]\w+)*")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9])")
# "Dr. Smith", "J. R. Tolkien" and "No. 5" go on.
_ABBREVIATED = re.compile(r"\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|No|Jr|Sr|vs|Co|Inc|Mt|Ft)\.\s+$")
_NAMED = re.compile(r"(?<=[\w,;:] )[A-Z]\w+|\b\d{2,}\b")
_ENDING = re.compile(r"(?:['’]s|ies|es|s|ed|ing|y)$")
_DETAIL = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
_REMEMBERED = re.compile(r"\[([^\[\]]+)\]\s+(.+)")
_NUMBERED = re.compile(r"(?:Document|Passage|Section) \d+(?:/\d+)?:?")
_HEADING = re.compile(r"(?=.{1,100}$)\S+(?: \S+){0,11}(?<![.!?\"”])")
_START = re.compile(r"(?<!\w).", re.DOTALL)
_IN_WORD = re.compile(r"\w")
_LONGEST = 600
"""Characters of a sentence; what has no sentences is cut here."""
_STOP_WORDS = """a about above after all also am an and any are as at be became because been before
being between both but by can could did do does during each either for former from had has have he
her him his how i if in into is it its made many may more most much name named no not of on
one only or other out over same she should so some such than that the that their them then
there these they this those through to under until up used was we were what when where which
while who whom whose why will with would year years you your"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence under its heading."""

    heading: str
    """Empty where none is known."""
    text: str

    def __str__(self) -> str:
        """Write it as a line of a memory, which `lines_of` reads back."""
        return f"[{self.heading}] {self.text}" if self.heading else self.text


def lines_of(text: str) -> list[Line]:
    """Cut a text into sentences under their headings.

    A short row that does not end like a sentence is the heading of the rows that follow, up to an
    empty one; a line of a memory brings its own.
    """
    lines: list[Line] = []
    heading = ""
    rows = [*map(str.strip, text.splitlines()), ""]
    for row, following in pairwise(rows):
        remembered = _REMEMBERED.fullmatch(row)
        if not row or _NUMBERED.fullmatch(row):
            heading = ""
        elif remembered is not None:
            lines.append(Line(remembered[1], remembered[2]))
        elif following and not heading and _HEADING.fullmatch(row):
            heading = row
        else:
            lines += [Line(heading, sentence) for sentence in _sentences(row)]
    return lines


def _sentences(row: str) -> list[str]:
    """Cut a row after ". ", "! " and "? " before a capital, and where it has no end."""
    cuts: list[str] = []
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(row)), len(row)]:
        # Only the last characters: a row of nothing but initials is not looked at again and again.
        if end < len(row) and _ABBREVIATED.search(row, max(start, end - 20), end):
            continue
        cuts += [row[at : min(at + _LONGEST, end)].strip() for at in range(start, end, _LONGEST)]
        start = end
    return [cut for cut in cuts if cut]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without case and ending."""
    word = word.lower()
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= 3 else word


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words."""
    return frozenset(map(stem, WORD.findall(text)))


def content(text: str) -> frozenset[str]:
    """Return the stems of those words that are about something."""
    return frozenset(stem(word) for word in WORD.findall(text) if word.lower() not in _STOP)


def names(text: str) -> frozenset[str]:
    """Return a text's numbers, and its words with a capital that begin no sentence."""
    return frozenset(match[0] for match in _NAMED.finditer(text))


def asked_in(question: str) -> str:
    """Return a question up to its last question mark: what follows says how to answer."""
    return question[: question.rfind("?") + 1] or question


def mentions(text: str, heading: str) -> bool:
    """Whether a heading stands in a text, as whole words; "(film)" at its end may be missing."""
    name = _DETAIL.sub("", heading)
    if name not in text:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def mentioned_elsewhere(lines: Sequence[Line]) -> set[str]:
    """Return the headings that a line under another heading (or none) mentions.

    As `mentions` says, but for all at once: at each place where a name may begin, the lengths of
    the names that begin with its letter are tried, not every name in every line.
    """
    named = {heading: _DETAIL.sub("", heading) for heading in {line.heading for line in lines}}
    lengths: dict[str, set[int]] = {}
    for name in named.values():
        if name:
            lengths.setdefault(name[0], set()).add(len(name))
    names = set(named.values())
    sources: dict[str, set[str]] = {}  # the headings, two at most, under which a name stands
    for line in lines:
        for match in _START.finditer(line.text):
            start = match.start()
            for length in lengths.get(match[0], ()):
                name = line.text[start : start + length]
                if name in names and not _IN_WORD.match(line.text, start + length):
                    found = sources.setdefault(name, set())
                    if len(found) < 2:
                        found.add(line.heading)
    return {heading for heading, name in named.items() if sources.get(name, set()) - {heading}}


class Overlap(NamedTuple):
    """What a line has of a question."""

    share: float
    """Of the question's words, each weighted, from 0 to 1."""
    words: int
    """How many of them."""


def overlaps(question: str, lines: Sequence[Line]) -> list[Overlap]:
    """Return what each line, with its heading, has of a question's words.

    A word weighs the more the fewer of the lines have it: log(1 + lines / (1 + lines with it)).
    """
    asked = content(asked_in(question))
    here = [asked & stems(f"{line.heading} {line.text}") for line in lines]
    common = Counter(word for words in here for word in words)
    weights = {word: math.log(1 + len(lines) / (1 + common[word])) for word in asked}
    # fsum is exact, so that the order of a set does not matter.
    total = math.fsum(weights.values())
    return [
        Overlap(math.fsum(weights[word] for word in words) / total if total else 0.0, len(words))
        for words in here
    ]


def shares(question: str, lines: Sequence[Line]) -> list[float]:
    """Return the shares of `overlaps`."""
    return [overlap.share for overlap in overlaps(question, lines)]
