"""What `infos[agent]` of the tree environments says: the contract that trainers live on.

One flat dict of plain scalars per agent, made afresh at every step, always with the same keys. Node
facts are those of the node that this agent made last; `expand_*` is what it is asked for now.
Nothing depends on the clock or on a cache. `docs/contract.md` says the same in prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..judging.base import Feedback, Verdict
from ..tasks.code import CodeTask
from .search import TreeSearch
from .selection import Expansion
from .tree import NOTHING, ROOT, Node, SearchTree

Scalar = bool | int | float | str
Info = dict[str, Any]
"""Plain scalars; where agents choose parents, also the `action_mask`."""

INFO_FIELDS: dict[str, type] = {
    "active": bool,
    "task_id": str,
    "oracle": bool,
    "node_id": int,
    "node_parent_id": int,
    "depth": int,
    "score": float,
    "solved": bool,
    "status": str,
    "public_passed": int,
    "public_total": int,
    "refine": bool,
    "parent_solved": bool,
    "tokens": int,
    "action_truncated": bool,
    "action_repaired": bool,
    "parent_refused": bool,
    "expand_id": int,
    "expand_depth": int,
    "nodes_left": int,
    "own_nodes_left": int,
    "tokens_left": int,
    "stop_reason": str,
    "best_node_id": int,
    "best_score": float,
    "best_solved": bool,
}
"""Every key, with the exact type of its value."""

NO_NODE: Mapping[str, Scalar] = {
    "node_id": NOTHING,
    "node_parent_id": NOTHING,
    "depth": NOTHING,
    "score": 0.0,
    "solved": False,
    "status": "",
    "public_passed": 0,
    "public_total": 0,
    "refine": False,
    "parent_solved": False,
    "tokens": 0,
    "action_truncated": False,
    "action_repaired": False,
    "parent_refused": False,
}
"""Node facts of an agent that has made no node yet."""

REQUEST_FIELDS = ("active", "expand_id", "expand_depth")
"""The keys that say what an agent is asked for; the others say what has happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAction:
    """What became of an agent's last action in this episode."""

    node: Node | None = None
    """The node that it made last; None before the first."""
    tokens: int = 0
    truncated: bool = False
    repaired: bool = False
    refused: bool = False
    """It chose a parent that may not be expanded; the search's proposal was expanded."""


def episode_facts(
    task: CodeTask, search: TreeSearch, *, best: Node | None, stop_reason: str
) -> dict[str, Scalar]:
    """Return what every agent is told alike.

    Args:
        task: what the episode is about.
        search: as it stands.
        best: the answer of the search as it stands.
        stop_reason: what ended the episode; empty while it runs.
    """
    limit = search.rules.max_tokens
    return {
        "task_id": task.task_id,
        "oracle": task.oracle,
        "nodes_left": search.nodes_left,
        "tokens_left": NOTHING if limit is None else max(0, limit - search.tokens),
        "stop_reason": stop_reason,
        "best_node_id": NOTHING if best is None else best.id,
        "best_score": 0.0 if best is None else float(best.score),
        "best_solved": best is not None and bool(best.solved),
    }


def own_facts(search: TreeSearch, agent: str) -> dict[str, Scalar]:
    """Return how many nodes an agent may still make: its own budget or the common one."""
    limit = search.rules.agent_budgets.get(agent, search.budget)
    own = limit - search.tree.count(agent)
    return {"own_nodes_left": max(0, min(own, search.nodes_left))}


def request_facts(tree: SearchTree, expansion: Expansion | None) -> dict[str, Scalar]:
    """Return what an agent is asked to expand now; None: nothing."""
    return {
        "active": expansion is not None,
        "expand_id": NOTHING if expansion is None else expansion.parent_id,
        "expand_depth": NOTHING if expansion is None else tree.depth(expansion.parent_id),
    }


def node_facts(tree: SearchTree, last: LastAction) -> dict[str, Scalar]:
    """Return what became of an agent's last action."""
    node = last.node
    if node is None:
        return dict(NO_NODE)
    refine = node.parent_id != ROOT
    return {
        "node_id": node.id,
        "node_parent_id": node.parent_id,
        "depth": node.depth,
        "score": float(node.score),
        "solved": bool(node.solved),
        "status": str(node.verdict.status),
        "public_passed": int(node.verdict.public_passed),
        "public_total": int(node.verdict.public_total),
        "refine": refine,
        "parent_solved": refine and bool(tree[node.parent_id].solved),
        "tokens": last.tokens,
        "action_truncated": last.truncated,
        "action_repaired": last.repaired,
        "parent_refused": last.refused,
    }


def tree_from_infos(turns: Iterable[tuple[str, str, Mapping[str, Scalar]]]) -> SearchTree:
    """Rebuild a tree from what a trainer kept of it.

    Args:
        turns: (agent, reply, the agent's info after the action) of one episode, in any order.

    Returns:
        A tree with the same nodes; programs and feedback are not in infos, so they are empty.

    Raises:
        ValueError: nodes are missing, so that ids or parents don't fit.
    """
    tree = SearchTree()
    for agent, reply, info in sorted(turns, key=lambda turn: int(turn[2]["node_id"])):
        if info["node_id"] != len(tree) or not ROOT <= int(info["node_parent_id"]) < len(tree):
            raise ValueError(
                f"expected the turn that made node {len(tree)}, got node {info['node_id']} below "
                f"{info['node_parent_id']}; give every turn of the episode exactly once"
            )
        passed, total = int(info["public_passed"]), int(info["public_total"])
        status = str(info["status"])
        verdict = Verdict(
            score=float(info["score"]),
            solved=bool(info["solved"]),
            status=status,
            public_passed=passed,
            public_total=total,
            feedback=Feedback(passed=passed, total=total, status=status),
        )
        tree.add(int(info["node_parent_id"]), agent, verdict, reply)
    return tree
