"""`kv`: numbers to be looked up by a key; `none`: the same, but the document has no answer.

Decoys are keys that differ from one asked for by one letter, of several keys from each in turn.
With several keys or several values of each, all have to be found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import UNKNOWN, Answers, Family
from ..grammar import Fact
from ..plan import Draw, Passage, Plan, Planned
from ..topics import CODES

_QUESTION: Final = re.compile(r"What (is|are all) the (\w+) numbers? of ([^?]+)\?")


def _plan_kv(draw: Draw) -> Plan:
    keys = [draw.name_index() for _ in range(draw.settings.queries or 1)]
    names = draw.names.words(keys)
    (attribute,) = draw.attributes(1)
    each = draw.settings.values or 1
    facts = [Fact(name, attribute, draw.number()) for name in names for _ in range(each)]
    documents = [
        draw.about(fact.subject, Passage(fact=fact, hop=hop, triggers=(fact.subject,)))
        for hop, fact in enumerate(facts)
    ]
    decoys = [
        decoy
        for nth, key in enumerate(keys)
        for decoy in _near(draw, key, attribute, len(range(nth, draw.settings.decoys, len(keys))))
    ]
    return Plan(
        question=_ask(attribute, names, plural=len(facts) > 1),
        answers=tuple(fact.value for fact in facts),
        match="all" if len(facts) > 1 else "any",
        hops=1,
        documents=(*documents, *decoys),
    )


def _plan_none(draw: Draw) -> Plan:
    key = draw.name_index()
    name = draw.names.word(key)
    (attribute,) = draw.attributes(1)
    documents: list[Planned] = []
    if draw.settings.decoys:  # something else about the key
        documents = [
            draw.about(name, but=attribute),
            *_near(draw, key, attribute, draw.settings.decoys - 1),
        ]
    return Plan(
        question=_ask(attribute, [name], plural=False),
        answers=(UNKNOWN,),
        hops=0,
        documents=tuple(documents),
    )


def _ask(attribute: str, names: list[str], *, plural: bool) -> str:
    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    if plural:
        return f"What are all the {attribute} numbers of {listed}?"
    return f"What is the {attribute} number of {listed}?"


def _near(draw: Draw, key: int, attribute: str, count: int) -> list[Planned]:
    return [
        draw.about(name, Passage(fact=Fact(name, attribute, draw.number())))
        for name in draw.near(key, count)
    ]


def _solve_kv(question: str, facts: Sequence[Fact]) -> Answers | None:
    asked = _QUESTION.match(question)
    if asked is None:
        return None
    found: list[str] = []
    for name in re.findall(r"[A-Z]\w+", asked[3]):
        values = [f.value for f in facts if (f.subject, f.attribute) == (name, asked[2])]
        if not values:
            return None
        found.extend(values)
    if asked[1] == "is" and len(set(found)) > 1:
        return None
    return tuple(dict.fromkeys(found))


KV: Final = Family(
    name="kv",
    summary="look up by a key among keys one letter off; several keys and values by options",
    topic=CODES,
    plan=_plan_kv,
    solve=_solve_kv,
    options={"queries": 1, "values": 1},
)
NONE: Final = Family(
    name="none",
    summary='the text does not say: the answer is "unknown"',
    topic=CODES,
    plan=_plan_none,
    solve=lambda question, facts: _solve_kv(question, facts) or (UNKNOWN,),
)
