"""A speaker that goes by words: no model and no truth, so that runs on real text mean something.

It reads sentences with the heading that they stand under. A sentence is worth reporting if it has
enough of the question's words, weighted by how rare they are in the chunk; if its heading stands in
the question; or if its heading stands in the memory, which is how it gets from one passage to the
next. Memories are lines "[heading] sentence", of which those nearest to the question are kept.
Answers are chosen by `lexical_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidSetting
from .gated_replies import Update
from .lexical_answers import choose_answer
from .lexical_words import Line, content, lines_of, mentions, shares, stems
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
    """Of the question's words, weighted, that a sentence under an unknown heading must have."""

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InvalidSetting(f"share is above 0 and at most 1, got {self.share!r}")

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
        return Update(merged if found else None, end=content(question) <= stems(merged))

    def _read(self, question: str, memory: str, chunk: str) -> list[Line]:
        """Return the sentences that a reader reports, best first."""
        lines = lines_of(chunk)
        worth: list[tuple[float, int]] = []
        about: dict[str, bool] = {"": False}
        for index, score in enumerate(shares(question, lines)):
            heading = lines[index].heading
            # The first sentence under a heading says what the heading is about.
            opens = heading not in about
            if opens:
                about[heading] = mentions(question, heading) or mentions(memory, heading)
            known = about[heading]
            if (known and opens) or score >= self.share / (2 if known else 1):
                worth.append((-score - 0.5 * known - 0.25 * (known and opens), index))
        best = [lines[index] for _, index in sorted(worth)]
        return [line for line in best if line.text not in memory][:_PER_CHUNK]


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
