"""The changes of a search as plain data: how each is written, and how it happens again."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .arguments import as_number, text, whole_number
from .selection import Expansion
from .tree import Node, verdict_from_json

if TYPE_CHECKING:
    from .search import TreeSearch

Event = dict[str, Any]


def asked(among: Collection[str] | None, expansions: Sequence[Expansion]) -> Event:
    """Return the event of `ask`."""
    agents = None if among is None else sorted(among)
    return {"do": "ask", "agents": agents, "expansions": expansions}


def told(expansion: Expansion, node: Node, tokens: int) -> Event:
    """Return the event of `tell`: all of the node that does not follow from the expansion."""
    return {
        "do": "tell",
        "id": expansion.id,
        "verdict": dataclasses.asdict(node.verdict),
        "reply": node.reply,
        "value": node.value,
        "tokens": tokens,
    }


def failed(expansion: Expansion, reason: str, tokens: int) -> Event:
    """Return the event of `fail`."""
    return {"do": "fail", "id": expansion.id, "reason": reason, "tokens": tokens}


def redirected(expansion: Expansion, parent_id: int) -> Event:
    """Return the event of `redirect`."""
    return {"do": "redirect", "id": expansion.id, "parent_id": parent_id}


def retired(agent: str) -> Event:
    """Return the event of `retire`."""
    return {"do": "retire", "agent": agent}


def replay(search: TreeSearch, event: Mapping[str, Any]) -> None:
    """Let one event happen again.

    Raises:
        LookupError, TypeError, ValueError, RuntimeError: it is no event, or cannot have happened.
    """
    match event.get("do"):
        case "ask":
            _ask_again(search, event["agents"], event["expansions"])
        case "tell":
            expansion = search.ledger.find(event["id"])
            node = search.tree.draft(
                expansion.parent_id,
                expansion.agent,
                verdict_from_json(event["verdict"]),
                text("reply", event["reply"]),
                value=event["value"],  # as it was: a score_fn is not asked again
            )
            search.attach(expansion, node, whole_number("tokens", event["tokens"], least=0))
        case "fail":
            search.fail(event["id"], event["reason"], event["tokens"])
        case "retire":
            search.retire(event["agent"])
        case "redirect":
            search.redirect(event["id"], event["parent_id"])
        case other:
            raise ValueError(f"expected ask, tell, fail, retire or redirect, got {other!r}")
    if "seconds" in event:
        search.watch = search.watch.later(passed(event["seconds"]))


def passed(seconds: Any) -> float:
    """Return seconds that had passed.

    Raises:
        ValueError: they are no number of at least 0.
    """
    if not as_number(seconds) >= 0.0:
        raise ValueError(f"seconds must be a number of at least 0, got {seconds!r}")
    return float(seconds)


def _ask_again(
    search: TreeSearch, among: Collection[str] | None, expansions: Sequence[list[Any]]
) -> None:
    for written in expansions:
        able = search.live_agents
        if among is not None:
            able = tuple(agent for agent in able if agent in among)
        found = search.choose(able)
        if list(found) != written:
            raise ValueError(
                f"the search chose {list(found)} where the journal has {written}: it was written "
                "with another selector, or another version of it or of NumPy"
            )
