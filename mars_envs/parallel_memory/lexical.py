"""A speaker that goes by words: no model and no truth, so that runs on real text mean something.

It reads sentences with the heading that they stand under. A sentence is worth reporting if it has
at least two of the question's words, and enough of them, weighted by how rare they are in the
chunk. Under a heading that stands in the question, or in the memory, which is how it gets from one
passage to the next, the first sentence and the best one are worth it in any case; where there are
no headings, names and numbers do their work. Memories are lines "[heading] sentence", of which
those nearest to the question are kept. Answers are chosen by `lexical_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidSetting
from .gated_replies import Update
from .lexical_answers import choose_answer
from .lexical_words import (
    Line,
    asked_in,
    content,
    lines_of,
    mentions,
    names,
    overlaps,
    shares,
    stems,
)
from .play import read_selected
from .replies import Answer, Merge, Read

_PER_CHUNK = 4
"""Sentences that a reader reports at most."""
_KEPT = 24
"""Lines that a memory has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """See the module; a callable from an observation to a reply."""

    share: float = 0.3
    """Of the question's words, weighted, that a sentence must have by itself."""

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InvalidSetting(f"share is above 0 and at most 1, got {self.share!r:.80}")

    def __call__(self, view: Mapping[str, Any]) -> str:
        """Return the reply to an observation."""
        role, question, memory = view["role"], view["question"], view["memory"]
        if role == "reader":
            found = self._read(question, memory, view["chunk"])
            return Read.yes("\n".join(map(str, found))) if found else Read.no()
        if role == "merger":
            notes = read_selected(view["selected"])
            return Merge(_merge(question, [memory, *(note.text for note in notes)]))
        if role == "memorizer":
            return self._memorize(view)
        passages = [note.text for note in read_selected(view["selected"])]
        # Who sees passages reads them as the readers would in two turns.
        for _ in range(2 if passages else 0):
            lines = [line for text in passages for line in self._read(question, memory, text)]
            memory = _merge(question, [memory, *map(str, lines)])
        return Answer(choose_answer(question, lines_of(memory)))

    def _memorize(self, view: Mapping[str, Any]) -> str:
        question, memory = view["question"], view["memory"]
        found = self._read(question, memory, view["chunk"])
        merged = _merge(question, [memory, *map(str, found)]) if found else memory
        if not view["gated"]:
            return Merge(merged)
        return Update(merged if found else None, end=content(asked_in(question)) <= stems(merged))

    def _read(self, question: str, memory: str, chunk: str) -> list[Line]:
        """Return the sentences that a reader reports, best first."""
        lines = lines_of(chunk)
        overlap = overlaps(question, lines)
        scores = [share for share, _ in overlap]
        least = min(2, len(content(asked_in(question))))
        worth = {
            index: share
            for index, (share, words) in enumerate(overlap)
            if share >= self.share and words >= least
        }
        for places in _known(lines, f"{question}\n{memory}"):
            # The first sentence under a heading says what it is about, the best one what is asked.
            best = max(places, key=lambda index: (scores[index], -index))
            worth[places[0]] = scores[places[0]] + 0.75
            worth[best] = scores[best] + 0.75
        ranked = sorted(worth, key=lambda index: (-worth[index], index))
        new = [lines[index] for index in ranked if lines[index].text not in memory]
        return new[:_PER_CHUNK]


def _known(lines: Sequence[Line], told: str) -> list[list[int]]:
    """Return the places of the lines under each heading that one was told of.

    Where there are no headings, each line with a name or a number that one was told of is alone.
    """
    headed: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        headed.setdefault(line.heading, []).append(index)
    told_names = names(told)
    alone = headed.pop("", [])
    known = [places for heading, places in headed.items() if mentions(told, heading)]
    return known + [[i] for i in alone if not told_names.isdisjoint(names(lines[i].text))]


def _merge(question: str, texts: Sequence[str]) -> str:
    """Keep the lines that are nearest to the question, in the order in which they came."""
    lines = list(dict.fromkeys(line for text in texts for line in lines_of(text)))
    scores = shares(question, lines)
    best = sorted(range(len(lines)), key=lambda index: (-scores[index], index))[:_KEPT]
    # What a near line leads to is nearly as near.
    led = {
        index: max((0.9 * scores[by] for by in best if _leads(lines[by], line)), default=0.0)
        for index, line in enumerate(lines)
        if line.heading
    }
    near = [max(score, led.get(index, 0.0)) for index, score in enumerate(scores)]
    best = sorted(range(len(lines)), key=lambda index: (-near[index], index))[:_KEPT]
    return "\n".join(str(lines[index]) for index in sorted(best))


def _leads(line: Line, to: Line) -> bool:
    return line.heading != to.heading and mentions(line.text, to.heading)
