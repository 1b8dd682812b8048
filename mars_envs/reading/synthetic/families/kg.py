"""`kg2`, `kg3`: a bridge in a knowledge graph, "the heir of the mentor of Bamodun".

The document about the second hop does not mention who is asked about, so nobody can know that it
matters before the first hop is known. Decoys are first hops of names like the one asked for, and
second and third hops from those whom a document of the chain names for something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..family import Answers, Family
from ..grammar import Fact
from ..plan import Draw, Passage, Plan, Planned
from ..topics import RELATIONS

_QUESTION: Final = re.compile(r"Who is ((?:the \w+ of )+)(\w+)\?")


def _plan(draw: Draw, hops: int) -> Plan:
    path = [draw.name_index() for _ in range(hops + 1)]
    names = draw.names.words(path)
    relations = draw.attributes(hops)
    documents = [
        draw.about(
            name,
            Passage(fact=Fact(name, relation, names[hop + 1]), hop=hop, triggers=(name,)),
        )
        for hop, (name, relation) in enumerate(zip(names, relations, strict=False))
    ]
    asked = "".join(f"the {relation} of " for relation in reversed(relations))
    return Plan(
        question=f"Who is {asked}{names[0]}?",
        answers=(names[-1],),
        hops=hops,
        documents=(*documents, *_decoys(draw, documents[:-1], relations, path[0])),
    )


def _decoys(
    draw: Draw, chain: Sequence[Planned], relations: list[str], start: int
) -> list[Planned]:
    """Return next hops of other facts in the chain, and first hops of names like the start."""
    others = [[p.fact.value for p in document.passages if p.hop is None] for document in chain]
    turns = [0, None, *range(1, len(chain))]  # whose other facts; None: a name like the start
    decoys = []
    for number in range(draw.settings.decoys):
        hop = turns[number % len(turns)]
        if hop is not None and others[hop]:
            subject, relation = others[hop].pop(), relations[hop + 1]
        else:
            subject, relation = draw.near(start, 1)[0], relations[0]
        decoys.append(draw.about(subject, Passage(fact=Fact(subject, relation, draw.name()))))
    return decoys


def _solve(question: str, facts: Sequence[Fact]) -> Answers | None:
    asked = _QUESTION.match(question)
    if asked is None:
        return None
    name = asked[2]
    for relation in reversed(re.findall(r"the (\w+) of", asked[1])):
        found = {f.value for f in facts if (f.subject, f.attribute) == (name, relation)}
        if len(found) != 1:
            return None
        name = found.pop()
    return (name,)


KG2: Final = Family(
    name="kg2",
    summary="a bridge of two hops: the second is unknowable before the first",
    topic=RELATIONS,
    plan=lambda draw: _plan(draw, 2),
    solve=_solve,
)
KG3: Final = Family(
    name="kg3",
    summary="a bridge of three hops",
    topic=RELATIONS,
    plan=lambda draw: _plan(draw, 3),
    solve=_solve,
)
