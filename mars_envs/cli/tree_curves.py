"""Trees of smaller budgets inside one large tree, and what they say.

Nothing in a search depends on its budget but when it ends, so the first b nodes of a tree are the
tree that the same seed grows to a budget of b: one tree gives a whole curve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..diversity import coverage_shapley
from ..tree_search.tree import ROOT, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What one tree says, for each budget that it was looked at with."""

    chosen: Mapping[int, bool]
    """Whether the answer that the search hands in is solved: Pass@1(MCTS)."""
    scored: Mapping[int, bool]
    """The same of the answer that a reward model chooses; empty without one."""
    any: Mapping[int, bool]
    """Whether any node is solved: Pass@N."""
    sums: Mapping[int, Mapping[str, float]]
    """Counts and sums over nodes: see `SUMS`."""
    agents: Mapping[int, Mapping[str, Sequence[float]]]
    """Of each agent that has any node: nodes, solved nodes, and its part in the tree's solution
    (its Shapley value, see `diversity.coverage_shapley`)."""


SUMS = ("nodes", "solved", "first", "root_children", "depth", "max_depth", "refines", "degenerate")
"""What is summed: all nodes, those solved, whether the first one is, children of the root, the
nodes' depths, the deepest depth, refinements, and whether all nodes have the same reward."""


def curve(
    nodes: Sequence[Node],
    answers: Sequence[int],
    budgets: Iterable[int],
    scored: Mapping[int, int] | None = None,
) -> Curve:
    """Look at a tree as it was at each budget.

    Args:
        nodes: of the tree, in order of creation.
        answers: after each node, the id of the node that the search would have handed in.
        budgets: numbers of nodes. A tree that ended earlier is taken as it ended.
        scored: by number of nodes, the node that a reward model would have chosen.
    """
    wanted = set(budgets)
    chosen: dict[int, bool] = {}
    any_: dict[int, bool] = {}
    sums: dict[int, Mapping[str, float]] = {}
    agents: dict[int, Mapping[str, Sequence[float]]] = {}
    count: Counter[str] = Counter()
    max_depth = 0
    by_agent: dict[str, list[int]] = {}
    for size in range(max(wanted, default=0) + 1):
        if 0 < size <= len(nodes):
            node = nodes[size - 1]
            own = by_agent.setdefault(node.agent, [0, 0])
            own[0] += 1
            own[1] += node.solved
            count["solved"] += node.solved
            count["root_children"] += node.parent_id == ROOT
            count["depth"] += node.depth
            max_depth = max(max_depth, node.depth)
        if size in wanted:
            grown = min(size, len(nodes))
            chosen[size] = grown > 0 and nodes[answers[grown - 1]].solved
            any_[size] = count["solved"] > 0
            credit = coverage_shapley([{a for a, own in by_agent.items() if own[1]}], [*by_agent])
            agents[size] = {agent: (*own, credit[agent]) for agent, own in by_agent.items()}
            sums[size] = {
                "nodes": grown,
                "solved": count["solved"],
                "first": int(grown > 0 and nodes[0].solved),
                "root_children": count["root_children"],
                "depth": count["depth"],
                "max_depth": max_depth,
                "refines": grown - count["root_children"],
                "degenerate": int(count["solved"] in (0, grown)),
            }
    by_model = (
        {} if not scored else {size: nodes[scored[min(size, len(nodes))]].solved for size in wanted}
    )
    return Curve(chosen=chosen, scored=by_model, any=any_, sums=sums, agents=agents)


def pack(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return the curves of one task's trees, one for each seed, as plain data.

    Per budget: `chosen`, `scored` (perhaps empty) and `any` as one character per tree, `sums` over
    the trees, and by agent its nodes, solved nodes and parts over the trees.
    """
    packed: dict[str, Any] = {}
    for budget in curves[0].chosen if curves else ():
        agents: dict[str, list[float]] = {}
        for one in curves:
            for agent, own in one.agents[budget].items():
                total = agents.get(agent, (0, 0, 0.0))
                agents[agent] = [sum(pair) for pair in zip(total, own, strict=True)]
        packed[str(budget)] = {
            "chosen": _bits(one.chosen[budget] for one in curves),
            "scored": _bits(one.scored[budget] for one in curves if one.scored),
            "any": _bits(one.any[budget] for one in curves),
            "sums": {name: sum(one.sums[budget][name] for one in curves) for name in SUMS},
            "agents": dict(sorted(agents.items())),
        }
    return packed


def _bits(outcomes: Iterable[bool]) -> str:
    return "".join(str(int(outcome)) for outcome in outcomes)


def is_packed(record: Mapping[str, Any], budgets: Iterable[int], trees: int) -> bool:
    """Whether a record that was read back is one that `pack` made, of so many trees."""
    try:
        return all(
            len(found["chosen"]) == len(found["any"]) == trees
            and len(found["scored"]) in (0, trees)
            and found["sums"].keys() == set(SUMS)
            and all(len(own) == 3 for own in found["agents"].values())
            for found in (record["budgets"][str(budget)] for budget in budgets)
        )
    except (AttributeError, KeyError, TypeError):
        return False
