"""`compare`: which of two places has more? Two pieces of evidence that need each other.

Both are known to matter from the question. Neither is so high or low that it decides alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import Answers, Family
from ..grammar import Fact
from ..plan import Draw, Passage, Plan
from ..topics import MEASURES

_QUESTION: Final = re.compile(r"Which has the greater (\w+), (\w+) or (\w+)\?")
_LOW, _HIGH = 0.2, 0.8  # shares of all numbers


def _plan(draw: Draw) -> Plan:
    pair = [draw.name_index() for _ in range(2)]
    names = draw.names.words(pair)
    (attribute,) = draw.attributes(1)
    facts = [Fact(name, attribute, draw.number(_LOW, _HIGH)) for name in names]
    decoys = [
        name for number in range(draw.settings.decoys) for name in draw.near(pair[number % 2], 1)
    ]
    return Plan(
        question=f"Which has the greater {attribute}, {names[0]} or {names[1]}?",
        answers=(max(facts, key=lambda fact: int(fact.value)).subject,),
        hops=1,
        documents=(
            *(
                draw.about(fact.subject, Passage(fact=fact, hop=hop, triggers=(fact.subject,)))
                for hop, fact in enumerate(facts)
            ),
            *(
                draw.about(name, Passage(fact=Fact(name, attribute, draw.number())))
                for name in decoys
            ),
        ),
    )


def _solve(question: str, facts: Sequence[Fact]) -> Answers | None:
    asked = _QUESTION.match(question)
    if asked is None:
        return None
    found: dict[str, int] = {}
    for name in (asked[2], asked[3]):
        values = {f.value for f in facts if (f.subject, f.attribute) == (name, asked[1])}
        if len(values) != 1:
            return None
        found[name] = int(values.pop())
    if len(set(found.values())) == 1:
        return None
    return (max(found, key=found.__getitem__),)


COMPARE: Final = Family(
    name="compare",
    summary="two quantities that have to be found in one turn and compared",
    topic=MEASURES,
    plan=_plan,
    solve=_solve,
)
