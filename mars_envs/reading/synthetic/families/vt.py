"""`vt`: which variables have a value? A chain of assignments, as in RULER's variable tracking.

Each assignment of the chain can be told from the others only by who knows the one before. Decoys
are the assignments of a second chain with another value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import Answers, Family
from ..grammar import Fact
from ..plan import Draw, Passage, Plan
from ..topics import VARIABLES

_QUESTION: Final = re.compile(r"Which variables have the value (\d+)\?")


def _plan(draw: Draw) -> Plan:
    value, other = draw.number(), draw.number()
    chain = _chain(draw, value, draw.settings.hops or 1)
    decoys = _chain(draw, other, draw.settings.decoys)
    return Plan(
        question=f"Which variables have the value {value}? List all of them.",
        answers=tuple(fact.subject for fact in chain),
        match="all",
        hops=len(chain),
        documents=(
            *(
                draw.about("", Passage(fact=fact, hop=hop, triggers=(fact.value,)))
                for hop, fact in enumerate(chain)
            ),
            *(draw.about("", Passage(fact=fact)) for fact in decoys),
        ),
    )


def _chain(draw: Draw, value: str, length: int) -> list[Fact]:
    chain: list[Fact] = []
    for _ in range(length):
        chain.append(Fact(draw.name(), VARIABLES.attributes[0], value))
        value = chain[-1].subject
    return chain


def _solve(question: str, facts: Sequence[Fact]) -> Answers | None:
    asked = _QUESTION.match(question)
    if asked is None:
        return None
    known = [asked[1]]
    for source in known:  # grows while it is gone through
        known.extend(f.subject for f in facts if f.value == source and f.subject not in known)
    return tuple(known[1:]) or None


VT: Final = Family(
    name="vt",
    summary="variables in a chain of assignments, which may stand in reverse order",
    topic=VARIABLES,
    plan=_plan,
    solve=_solve,
    options={"hops": 4},
)
