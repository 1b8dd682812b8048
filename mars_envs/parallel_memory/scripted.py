"""Speakers without a model: they play every role of every method, from an observation to a reply.

`oracle` knows a task's evidence: with it a test can say what a method does, because nothing else
can go wrong. `lexical` knows nothing but what it is shown.

What a speaker says depends on the observation and on its own settings alone, never on the order of
the calls; where it draws by chance, the draw is a hash of its seed, the task, the turn and the
chunk. So methods that are compared under one seed meet the same luck.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InvalidSetting
from ..reading.document import Document
from ..reading.evidence import stands_in
from ..reading.task import Evidence, ReadingTask
from .gated_replies import Update
from .lexical import Lexical
from .lexical_words import lines_of
from .play import read_selected
from .replies import Answer, Merge, Read, as_shown
from .workflow import Speaker

UNKNOWN = "unknown"
"""What speakers answer who do not know."""

_FORGOTTEN = "(nothing is left)"


def oracle(
    task: ReadingTask,
    *,
    miss: float = 0.0,
    false_yes: float = 0.0,
    forget: float = 0.0,
    seed: int = 0,
) -> Speaker:
    """Return a speaker that reads, merges and answers as well as anyone could who reads in order.

    A reader (and a memorizer) finds a passage of the task's evidence iff its chunk holds it, the
    memory lacks it, and it can be recognised: it has no triggers, or one of them stands, as whole
    words, in the question, in the memory, or in a passage found in the same chunk. So a chain of
    passages is followed as far as it goes within one chunk.

    A passage that a seam cuts counts as held by the chunk that has its middle character, hence the
    larger part of it, and is reported whole: a method is not to fail for where a seam falls.

    The merged memory has the evidence first, in the task's order, then what else was reported, one
    passage a line; a budget that cuts it takes the latter first. The answer is the task's own if
    all of the evidence is in what the answerer sees, else "unknown".

    Args:
        task: what is known. Without evidence, nothing is found and the answer is "unknown".
        miss: chance with which a reader that found something says no.
        false_yes: chance with which a reader that found nothing reports a sentence of its chunk.
        forget: chance with which a line of the memory is lost when the memory is written anew: by
            a merger, once a turn; by a memorizer, chunk after chunk, unless its gate is shut.
        seed: of all draws.

    Raises:
        InvalidSetting: `miss`, `false_yes` or `forget` is no chance.
    """
    return _Oracle(task=task, miss=miss, false_yes=false_yes, forget=forget, seed=seed)


def lexical(*, share: float = 0.3) -> Speaker:
    """Return a speaker that goes by words: it knows no truth and runs on any text.

    See `mars_envs.parallel_memory.lexical` for its rules.

    Args:
        share: of the question's words, weighted by how rare they are, that a sentence must have to
            be reported where nothing else speaks for it.
    """
    return Lexical(share=share)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A piece of evidence as the oracle writes it down and finds it again."""

    evidence: Evidence
    line: str
    """Its text, on one line."""
    whole: re.Pattern[str]
    triggers: re.Pattern[str] | None
    """None: the question is enough."""

    def stands_in(self, text: str) -> bool:
        """Whether it stands in a text, and is no part of a longer word or number there."""
        return self.line in text and self.whole.search(text) is not None

    def recognised(self, read: str) -> bool:
        """Whether who has read this would recognise it."""
        return self.triggers is None or self.triggers.search(read) is not None


def _passage(evidence: Evidence) -> _Passage:
    shown = replace(
        evidence,
        text=as_shown(evidence.text),
        triggers=tuple(map(as_shown, evidence.triggers)),
    )
    line = _line(shown.text)
    triggers = _whole_words(shown.triggers) if shown.triggers else None
    return _Passage(shown, line, _whole_words([line]), triggers)


@dataclass(frozen=True, kw_only=True)
class _Oracle:
    task: ReadingTask
    miss: float
    false_yes: float
    forget: float
    seed: int
    _passages: tuple[_Passage, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("miss", "false_yes", "forget"):
            chance = getattr(self, name)
            if not 0.0 <= chance <= 1.0:
                raise InvalidSetting(f"{name} is a chance from 0 to 1, got {chance!r:.80}")
        object.__setattr__(self, "_passages", tuple(map(_passage, self.task.evidence)))

    def __call__(self, view: Mapping[str, Any]) -> str:
        role = view["role"]
        if role == "reader":
            found = self._found(view)
            return Read.yes("\n".join(found)) if found else Read.no()
        if role == "merger":
            notes = read_selected(view["selected"])
            return Merge(self._memory(view, *(note.text for note in notes)))
        if role == "memorizer":
            return self._memorize(view)
        return Answer(self._answer(view))

    def _found(self, view: Mapping[str, Any]) -> list[str]:
        """Return what a reader reports, a passage a line."""
        found = self._recognised(view["chunk"], view["question"], view["memory"])
        if found:
            return [] if self._drawn("miss", view) < self.miss else found
        if self._drawn("false yes", view) < self.false_yes:
            lines = [_line(line.text) for line in lines_of(view["chunk"])]
            others = [line for line in lines if not any(p.stands_in(line) for p in self._passages)]
            return others[int(self._drawn("line", view) * len(others)) :][:1]
        return []

    def _recognised(self, chunk: str, question: str, memory: str) -> list[str]:
        """Return the passages that stand in a chunk, can be recognised and are not in the memory.

        They are in the task's order.
        """
        memory = _line(memory)
        here = [
            passage
            for passage in self._passages
            if not passage.stands_in(memory) and holds(chunk, passage.evidence, self.task.document)
        ]
        read = f"{question}\n{memory}"
        found: set[str] = set()
        while new := [p.line for p in here if p.line not in found and p.recognised(read)]:
            found.update(new)
            read = "\n".join((read, *new))
        return [passage.line for passage in here if passage.line in found]

    def _memorize(self, view: Mapping[str, Any]) -> str:
        found = self._found(view)
        if not view["gated"]:
            return Merge(self._memory(view, *found))
        memory = self._memory(view, *found) if found else view["memory"]
        return Update(memory if found else None, end=self._complete(memory))

    def _memory(self, view: Mapping[str, Any], *texts: str) -> str:
        """Put texts to what is kept of the memory, as lines, the evidence first, each once."""
        old = [line for line in map(_line, view["memory"].splitlines()) if self._kept(line, view)]
        old = [line for line in old if line != _FORGOTTEN]
        new = [_line(line) for text in texts for line in text.splitlines()]
        lines = dict.fromkeys((*old, *new))
        everything = "\n".join(lines)
        evidence = dict.fromkeys(p.line for p in self._passages if p.stands_in(everything))
        others = [line for line in lines if line and line not in evidence]
        # An empty reply would leave the old memory as it is.
        return "\n".join((*evidence, *others)) or (_FORGOTTEN if view["memory"] else "")

    def _kept(self, line: str, view: Mapping[str, Any]) -> bool:
        return not self.forget or self._drawn(f"forget {line}", view) >= self.forget

    def _complete(self, text: str) -> bool:
        """Whether all that it takes stands in a text."""
        text = "\n".join(map(_line, text.splitlines()))
        return bool(self._passages) and all(p.stands_in(text) for p in self._passages)

    def _answer(self, view: Mapping[str, Any]) -> str:
        shown = [note.text for note in read_selected(view["selected"])]
        seen = [
            passage.line
            for passage in self._passages
            if any(holds(text, passage.evidence, self.task.document) for text in shown)
        ]
        if not self._complete("\n".join((view["memory"], *seen))):
            return UNKNOWN
        answers = self.task.answers
        return ", ".join(answers) if self.task.match == "all" else answers[0]

    def _drawn(self, what: str, view: Mapping[str, Any]) -> float:
        """Draw from [0, 1), the same for the same seed, task, turn and chunk."""
        key = (self.seed, self.task.task_id, what, int(view["turn"]), int(view["chunk_index"]))
        digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def holds(chunk: str, evidence: Evidence, document: Document) -> bool:
    """Whether a chunk has a passage whole, or cut by a seam but with its middle character.

    Args:
        chunk: as agents are shown it.
        evidence: likewise; see `as_shown`.
        document: that both are from.
    """
    text = evidence.text
    if text in chunk and stands_in(text, chunk):
        return True
    middle = (len(text) - 1) // 2
    # Where the passage would begin in the chunk (below 0: in the chunk before): glued to a word, or
    # cut at the chunk's end, at its start, or on both sides.
    tail = max(0, len(chunk) - len(text))
    starts = [*_places(text, chunk)]
    starts += [tail + at for at in _places(text[: middle + 1], chunk[tail:])]
    starts += [at - middle for at in _places(text[middle:], chunk[: len(text)])]
    starts += [-at for at in _places(chunk, text) if at <= middle < at + len(chunk)]
    # Another passage may differ in its last word only: the document says whether it is this one.
    places = (evidence.start - start for start in starts if start <= evidence.start)
    return any(as_shown(document.read(place, place + len(chunk))) == chunk for place in places)


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _line(text: str) -> str:
    return " ".join(text.split())


def _whole_words(texts: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, texts))})(?!\w)")
