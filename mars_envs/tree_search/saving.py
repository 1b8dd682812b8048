"""A search as plain data, and back: `TreeSearch.save` and `TreeSearch.load`.

Configuration that is code (selector, score_fn, clock) is not part of it; the selector's `repr` is
(without addresses), so that a search is not loaded with another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .arguments import agent_names, whole_number
from .events import passed
from .ledger import Ledger
from .selection import selector_text
from .tree import SearchTree

if TYPE_CHECKING:
    from .search import TreeSearch

SEARCH_VERSION = 2


def search_to_json(search: TreeSearch) -> dict[str, Any]:
    """Return the whole state, random generator included, as plain data for `json.dumps`."""
    return {
        "version": SEARCH_VERSION,
        "selector": selector_text(search.selector),
        "settings": {
            "agents": list(search.agents),
            **dataclasses.asdict(search.rules),
            "expand_solved": search.expand_solved,
            "score_weight": search.score_weight,
            "max_pending": search.max_pending,
            "pseudo_observations": search.pseudo_observations,
        },
        "retired": list(search.retired),
        "seconds": search.seconds,
        "tokens": search.tokens,
        "rng": search.rng.bit_generator.state,
        "tree": search.tree.to_json(),
        **search.ledger.to_json(),
    }


def settings_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `TreeSearch` that are part of a state.

    Raises:
        ValueError: it is no state, or one of another version.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"expected the state of a search, got {type(state).__name__}")
    if state.get("version") != SEARCH_VERSION:
        raise ValueError(
            f"expected a search of version {SEARCH_VERSION}, got {state.get('version')!r}"
        )
    return dict(state["settings"])


def restore_search(search: TreeSearch, state: Mapping[str, Any]) -> None:
    """Bring a new search of the same settings to a saved state.

    Raises:
        ValueError: the state belongs to another selector, or does not hang together.
        KeyError: it speaks of a node that it does not have.
    """
    if selector_text(search.selector) != state["selector"]:
        raise ValueError(
            f"the search was saved with the selector {state['selector']}; load it with "
            f"selector=… of the same settings, not {selector_text(search.selector)}"
        )
    search.tree = SearchTree.from_json(state["tree"])
    for node in search.tree:
        search.check_agent(node.agent)
        search.observe(node)
    search.tokens = whole_number("tokens", state["tokens"], least=0)
    search.watch = search.watch.later(passed(state["seconds"]))
    search.rng.bit_generator.state = state["rng"]
    for agent in agent_names(state["retired"]):
        search.retire(agent)
    search.ledger = Ledger.from_json(state)
    _check_ledger(search)


def _check_ledger(search: TreeSearch) -> None:
    ledger = search.ledger
    known = [*ledger.pending, *ledger.told, *ledger.abandoned]
    if sorted(known) != list(range(ledger.asked)):
        raise ValueError(
            f"each of the {ledger.asked!r} expansions asked for is pending, told or abandoned; "
            f"got {sorted(known)}"
        )
    for expansion in ledger.pending.values():
        search.check_agent(expansion.agent)
        search.tree.depth(expansion.parent_id)
    for node_id in ledger.told.values():
        search.tree[node_id]
