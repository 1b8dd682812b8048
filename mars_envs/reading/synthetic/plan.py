"""A task before it is put into words: its question, its evidence, and what looks like evidence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...errors import InvalidSetting
from .grammar import Fact, Topic
from .names import FIRST_YEAR, YEARS, Names, Numbers
from .settings import SyntheticSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence of a planned document."""

    fact: Fact
    hop: int | None = None
    """Its place in the evidence, from 0; None: it is no evidence."""
    triggers: tuple[str, ...] = ()
    """See `Evidence.triggers`."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A document that the question is about: it holds evidence, or looks like it."""

    subject: str
    passages: tuple[Passage, ...]
    after: int | None = None
    """Of a decoy: it stands behind the evidence of this hop. None: anywhere."""
    before: int | None = None
    """Of a decoy: it stands in front of the evidence of this hop. None: anywhere."""

    @property
    def hop(self) -> int | None:
        """The evidence that it holds; a document has at most one passage of it."""
        return next((p.hop for p in self.passages if p.hop is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A task without its distractors."""

    question: str
    answers: tuple[str, ...]
    hops: int
    documents: tuple[Planned, ...]
    match: Literal["any", "all"] = "any"
    values: tuple[int, ...] | None = None
    """Names that the distractors have as values; None: any that are free."""
    within: float = 1.0
    """The evidence stands in this first share of the document, unless the settings say where."""


@dataclass
class Draw:
    """What a plan is drawn from; nothing is drawn twice.

    Args:
        random: decides.
        names: of the split.
        numbers: likewise.
        settings: of the family.
        topic: what documents are about.
    """

    random: random.Random
    names: Names
    numbers: Numbers
    settings: SyntheticSettings
    topic: Topic
    taken_names: list[int] = field(default_factory=list)
    taken_numbers: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.taken_names.extend(self.names.barred)

    def name(self) -> str:
        """Return a name that nothing else in the document has."""
        return self.names.word(self.name_index())

    def name_index(self) -> int:
        """Return the number of such a name."""
        index = self._fresh(self.names.size, self.taken_names)
        self.taken_names.append(index)
        return index

    def near(self, index: int, count: int) -> list[str]:
        """Return names that differ from one in a letter, as far as there are; else any names."""
        found = [i for i in self.names.near(index) if i not in self.taken_names]
        chosen = self.random.sample(found, min(count, len(found)))
        self.taken_names.extend(chosen)
        return [*self.names.words(chosen), *(self.name() for _ in range(count - len(chosen)))]

    def number(self, low: float = 0.0, high: float = 1.0) -> str:
        """Return a number that nothing else in the document has.

        Args:
            low: no smaller than this share of all numbers,
            high: and no larger than that one.
        """
        size = self.numbers.size
        index = self._fresh(int(high * size), self.taken_numbers, int(low * size))
        self.taken_numbers.append(index)
        return str(self.numbers.value(index))

    def _fresh(self, end: int, taken: list[int], start: int = 0) -> int:
        """Return a whole number from a range that is not taken.

        Raises:
            InvalidSetting: all of them are.
        """
        free = end - start - sum(start <= index < end for index in set(taken))
        if free < 1:
            raise InvalidSetting(
                f"a vocabulary of {self.settings.vocabulary} is too small for this question; give "
                "a larger one, or fewer decoys"
            )
        while (index := self.random.randrange(start, end)) in taken:
            pass
        return index

    def attributes(self, count: int) -> list[str]:
        """Return different attributes of the topic."""
        return self.random.sample(self.topic.attributes, count)

    def year(self) -> str:
        """Return any year."""
        return str(FIRST_YEAR + self.random.randrange(YEARS))

    def about(
        self,
        subject: str,
        *passages: Passage,
        but: str = "",
        values: Sequence[str] | None = None,
        after: int | None = None,
        before: int | None = None,
    ) -> Planned:
        """Return a document of these passages and, up to its size, others that say nothing new.

        Args:
            subject: of the others, too (of a topic where each sentence has its own: fresh ones).
            passages: what it has to say.
            but: an attribute that the others do not have.
            values: what the others take their values from; None: fresh ones.
            after: see `Planned`.
            before: see `Planned`.
        """
        used = {but, *(passage.fact.attribute for passage in passages)}
        free = [attribute for attribute in self.topic.attributes if attribute not in used]
        more = max(0, self.settings.sentences - len(passages))
        if self.topic.own_subjects:
            others = [
                Fact(self.name(), self.topic.attributes[0], self.number()) for _ in range(more)
            ]
        else:
            others = [
                Fact(subject, attribute, self._value(values), self.year() if self.dated else "")
                for attribute in self.random.sample(free, min(more, len(free)))
            ]
        every = [*passages, *(Passage(fact=fact) for fact in others)]
        self.random.shuffle(every)
        return Planned(subject, tuple(every), after, before)

    @property
    def dated(self) -> bool:
        """Whether facts have a year."""
        return "{y}" in self.topic.compact[0].text

    def _value(self, values: Sequence[str] | None) -> str:
        if values is not None:
            return self.random.choice(values)
        return self.name() if self.topic.compact[0].value == "name" else self.number()
