"""`overwrite`: who came into office last? Said early, among older revisions and other offices.

The latest revision stands in the first fifth of the document. Revisions of the same office from
years before stand behind it and, unless `older="behind"`, in front of it, and, all through the
text, the same kind of news about others: a memory that is rewritten all the time has many occasions
to lose what it knew, and who stops at the first mention does not know the latest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import Answers, Family
from ..grammar import Fact
from ..names import FIRST_YEAR, YEARS
from ..plan import Draw, Passage, Plan
from ..topics import OFFICES

_QUESTION: Final = re.compile(r"Who is the latest (\w+) of (\w+)\?")
_EARLY: Final = 0.2


def _plan(draw: Draw) -> Plan:
    place = draw.name_index()
    name = draw.names.word(place)
    (office,) = draw.attributes(1)
    older = draw.settings.revisions or 0
    # Neither the first nor the last of all years: the year alone does not give it away.
    years = sorted(draw.random.sample(range(FIRST_YEAR + 50, FIRST_YEAR + YEARS - 50), older + 1))
    *before, latest = [Fact(name, office, draw.name(), str(year)) for year in years]
    in_front: set[Fact] = set()
    if draw.settings.older == "around" and before:  # one at least follows and may overwrite
        in_front.update(draw.random.sample(before, draw.random.randrange(older)))
    decoys = [
        Fact(near, office, draw.name(), draw.year())
        for near in draw.near(place, draw.settings.decoys)
    ]
    return Plan(
        question=f"Who is the latest {office} of {name}?",
        answers=(latest.value,),
        hops=1,
        documents=(
            draw.about(name, Passage(fact=latest, hop=0, triggers=(name,))),
            *(
                draw.about(
                    name,
                    Passage(fact=fact),
                    before=0 if fact in in_front else None,
                    after=None if fact in in_front else 0,
                )
                for fact in before
            ),
            *(draw.about(fact.subject, Passage(fact=fact)) for fact in decoys),
        ),
        within=_EARLY,
    )


def _solve(question: str, facts: Sequence[Fact]) -> Answers | None:
    asked = _QUESTION.match(question)
    if asked is None:
        return None
    found = [f for f in facts if (f.attribute, f.subject) == (asked[1], asked[2])]
    if not found:
        return None
    return (max(found, key=lambda fact: fact.year).value,)


OVERWRITE: Final = Family(
    name="overwrite",
    summary="the latest revision stands early, among older ones and news about others",
    topic=OFFICES,
    plan=_plan,
    solve=_solve,
    options={"revisions": 3, "older": "around"},
)
