"""Answers that are chosen by words: yes or no, one of two that are compared, a number, a name."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from .lexical_words import (
    WORD,
    Line,
    asked_in,
    content,
    mentioned_elsewhere,
    mentions,
    shares,
    stem,
    stems,
)

_YES_NO = re.compile(
    r"(?:are|is|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE
)
# Behind a comma, two choices may be anything; elsewhere they are names.
_CHOICE = re.compile(r"[,:]\s*([^,?:]+?),?\s+or\s+([^,?]+)\?")
_NAMED_CHOICE = re.compile(r"(?<=\s)((?:the )?[A-Z]\S*(?: [A-Z]\S*)*),?\s+or\s+([^,?]+?)\s*\?")
_NAME = re.compile(
    r"[A-Z][\w'’&-]*(?:\.(?=\w)[\w'’&-]+)*"
    r"(?:[ -](?:(?:of|the|de|von|van|and|for|in|la|du) )*[A-Z0-9][\w'’&-]*)*"
)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_DATE = re.compile(
    r"\b(?:\d{1,2} [A-Z][a-z]+|[A-Z][a-z]+ \d{1,2},?) (?:1\d|20)\d\d\b|\b(?:1\d|20)\d\d\b"
)
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_LATER = re.compile(r"\b(?:young|youngest|younger|later|last|latest|newer|recent|recently)\b")
_EARLIER = re.compile(r"\b(?:older|oldest|old|earlier|first|earliest)\b")
_UNKNOWN = "unknown"
_REACH = 400
"""Characters before the last question mark in which two choices are looked for."""
_AROUND = 64
"""Words of the question on either side of a candidate that count as being near it."""


def choose_answer(question: str, lines: Sequence[Line]) -> str:
    """Return the answer that the lines of a memory suggest; "unknown" where they suggest none."""
    if not lines:
        return _UNKNOWN
    asked = asked_in(question).strip()
    # Of single blanks and bounded: the expressions look at the same words again and again.
    end = " ".join(asked.split())[-_REACH:]
    choice = _CHOICE.search(end) or _NAMED_CHOICE.search(end)
    if choice is not None:
        return _one_of(asked, choice[1].strip(), choice[2].strip(), lines)
    if _YES_NO.match(asked):
        return _yes_or_no(asked, lines)
    lowered = asked.lower()
    if re.search(
        r"\bhow (?:many|much|old|long|tall|far)\b|\b(?:population|number|code)\b", lowered
    ):
        return _nearest(asked, lines, _NUMBER)
    if re.search(r"\b(?:what|which) years?\b", lowered):
        return _nearest(asked, lines, _YEAR)
    if re.match(r"when\b", lowered) or re.search(
        r"\b(?:when|(?:what|which) dates?)\b.{0,9}$", lowered
    ):
        return _nearest(asked, lines, _DATE)
    return _nearest(asked, lines, _NAME)


def _one_of(question: str, first: str, second: str, lines: Sequence[Line]) -> str:
    """Answer "Who is older, A or B?": by years where time is asked for, else by words."""
    about = {name: _about(name, lines) for name in (first, second)}
    lowered = question.lower()
    for pattern, choose in ((_LATER, max), (_EARLIER, min)):
        years = {name: _first_year(its) for name, its in about.items()}
        if pattern.search(lowered) and all(years.values()):
            pick: Callable[..., str] = choose
            return pick(years, key=lambda name: years[name])
    wanted = content(question) - content(first) - content(second)
    scores = {
        name: len(wanted & stems(" ".join(line.text for line in its)))
        for name, its in about.items()
    }
    return second if scores[second] > scores[first] else first


def _first_year(lines: Sequence[Line]) -> int:
    found = _YEAR.search(" ".join(line.text for line in lines))
    return int(found[0]) if found is not None else 0


def _about(name: str, lines: Sequence[Line]) -> list[Line]:
    """Return the lines under a heading that names it; if there is none, those with its words."""
    words = content(name)
    headed = [line for line in lines if line.heading and words & content(line.heading) == words]
    return headed or [line for line in lines if words and words <= stems(line.text)]


def _yes_or_no(question: str, lines: Sequence[Line]) -> str:
    """Answer "Are A and B both X?" (what both are said to be) and "... of the same X?"."""
    headings = dict.fromkeys(line.heading for line in lines if mentions(question, line.heading))
    under: dict[str, list[Line]] = {name: [] for name in headings if name}
    for line in lines:
        if line.heading in under:
            under[line.heading].append(line)
    groups = list(under.values())
    said = [stems(" ".join(line.text for line in group)) for group in groups]
    if re.search(r"\bsame\b", question):
        names = [
            {stem(name) for line in group for name in _NAME.findall(line.text)} for group in groups
        ]
        own = {stem(word) for name in headings for word in WORD.findall(name)}
        shared = set.intersection(*names) - own if len(names) > 1 else set()
        return "yes" if shared else "no"
    wanted = content(question).difference(*(content(name) for name in headings))
    return "yes" if said and all(2 * len(wanted & words) >= len(wanted) for words in said) else "no"


def _nearest(question: str, lines: Sequence[Line], kind: re.Pattern[str]) -> str:
    """Return what is of a kind, not in the question, and nearest to many of the question's words.

    A heading counts as being as near as the words of its line.
    """
    asked = content(question)
    # A heading that another line leads to is rather a step on the way than the answer.
    steps = mentioned_elsewhere(lines)
    best, answer = 0.0, _UNKNOWN
    for line, score in zip(lines, shares(question, lines), strict=True):
        words = [(match.start(), stem(match[0])) for match in WORD.finditer(line.text)]
        # That a line is about its heading makes nothing in it the answer.
        wanted = asked - content(line.heading)
        known = [at for at, word in words if word in wanted]
        candidates = [(match.start(), match[0]) for match in kind.finditer(line.text)]
        if kind is _NAME:
            candidates.append((0, line.heading))
        for at, text in candidates:
            if not content(text) or content(text) <= asked:
                continue
            middle = bisect_left(known, at)
            around = known[max(0, middle - _AROUND) : middle + _AROUND]
            near = sum(1 / (1 + abs(at - other) / 10) for other in around)
            value = score + 0.2 * near
            if text in steps:
                value /= 2
            if value > best:
                best, answer = value, text
    return answer
