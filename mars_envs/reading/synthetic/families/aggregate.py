"""`count`, `set`: everybody in a group. All of many passages matter, and each alone says little.

Decoys name the group, too, but of another kind: the choir of Bamodun, not the guild of Bamodun.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import Answers, Family
from ..grammar import Fact
from ..plan import Draw, Passage, Plan
from ..topics import GROUPS

_QUESTION: Final = re.compile(r".* in the (\w+) of (\w+)\?")
_OTHER_GROUPS: Final = 8


def _plan(draw: Draw, *, count: bool) -> Plan:
    group = draw.name()
    pool = [draw.name_index() for _ in range(_OTHER_GROUPS)]
    others = draw.names.words(pool)
    attribute, *rest = draw.attributes(len(draw.topic.attributes))
    size = draw.settings.matches or 1
    if count:  # or the answer would be known
        size = draw.random.randint((size + 1) // 2, size)
    members = [draw.name() for _ in range(size)]
    documents = [
        draw.about(
            name,
            Passage(fact=Fact(name, attribute, group), hop=hop, triggers=(group,)),
            values=others,
        )
        for hop, name in enumerate(members)
    ]
    for number in range(draw.settings.decoys):
        name = draw.name()
        fact = Fact(name, rest[number % len(rest)], group)
        documents.append(draw.about(name, Passage(fact=fact), but=attribute, values=others))
    place = f"in the {attribute} of {group}?"
    return Plan(
        question=f"How many are {place}" if count else f"Who is {place} List everybody.",
        answers=(str(len(members)),) if count else tuple(members),
        match="any" if count else "all",
        hops=1,
        documents=tuple(documents),
        values=tuple(pool),
    )


def _members(question: str, facts: Sequence[Fact]) -> Answers:
    asked = _QUESTION.match(question)
    if asked is None:
        return ()
    found = [f.subject for f in facts if (f.attribute, f.value) == (asked[1], asked[2])]
    return tuple(dict.fromkeys(found))


def _solve_set(question: str, facts: Sequence[Fact]) -> Answers | None:
    return _members(question, facts) or None


def _solve_count(question: str, facts: Sequence[Fact]) -> Answers | None:
    members = _members(question, facts)
    return (str(len(members)),) if members else None


COUNT: Final = Family(
    name="count",
    summary="how many documents say something: all of them have to be found",
    topic=GROUPS,
    plan=lambda draw: _plan(draw, count=True),
    solve=_solve_count,
    options={"matches": 8, "placement": "any"},
)
SET: Final = Family(
    name="set",
    summary="which documents say something: a long answer, and a memory that has to hold it",
    topic=GROUPS,
    plan=lambda draw: _plan(draw, count=False),
    solve=_solve_set,
    options={"matches": 8, "placement": "any"},
)
