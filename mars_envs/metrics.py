"""What one finished tree says. No statistics over trees: those are made where results are reported.

Every tree here is finished or cut off; the figures describe the nodes that it has. Names follow the
MARS² paper: Pass@1 looks at single answers, Pass@1(MCTS) at the one that the search would hand in,
Pass@N at whether any node solves the task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from .tree_search.tree import ROOT, Node, SearchTree

_PASSED = 1.0 - 1e-9
"""A public score from here on is a pass of all public tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSummary:
    """Figures of one tree. Shares are 0 where there is nothing to share out."""

    nodes: int
    solved_nodes: int
    """Nodes that pass public and hidden tests."""
    pass1: float
    """Share of all nodes that are solved, refinements included."""
    fresh_pass1: float
    """Share of the fresh answers (children of the root) that are solved."""
    best_solved: bool
    """Pass@1(MCTS): whether the node that the search would hand in is solved."""
    any_solved: bool
    """Pass@N: whether any node is solved."""
    avg_pass1: float
    """Share of solved nodes among those that pass all public tests; where there is none, whether
    the node that the search would hand in is solved. The released code's figure of that name."""
    best_curve: tuple[bool, ...]
    """Pass@1(MCTS) after each node, by public score. A search that asks for one node at a time has,
    after `b` nodes, grown the tree of budget `b`."""
    any_curve: tuple[bool, ...]
    """Pass@N after each node."""
    degenerate: bool
    """Whether all nodes have the same reward, so that the tree teaches nothing."""
    root_children: int
    refinements: int
    repairs: int
    """Solved refinements of a parent that was not solved."""
    breakages: int
    """Unsolved refinements of a solved parent."""
    descents: int
    """Choices of CONT: steps from a node to one of its children before a node was made. Each node
    is one choice of GEN, so the ratio of the two is `descents / nodes`."""
    max_depth: int
    mean_depth: float
    depth_nodes: Mapping[int, int]
    """Depth -> nodes there, from depth 1 on."""
    depth_solved: Mapping[int, int]
    """Depth -> solved nodes there; the same depths."""
    agent_nodes: Mapping[str, int]
    """Nodes of each agent that has any."""
    agent_solved: Mapping[str, int]
    """Solved nodes of each agent that has any node."""


def summarize(tree: SearchTree, *, answer: Node | None = None) -> TreeSummary:
    """Return the figures of one tree.

    Args:
        tree: finished, or cut off.
        answer: the node that the search hands in, e.g. `TreeSearch.answer`; by default that of
            highest public score, of equals the latest.

    Example:
        >>> from mars_envs.tree_search.tree import verdict_of_score
        >>> tree = SearchTree()
        >>> first = tree.add(ROOT, "coder_0", verdict_of_score(0.0))
        >>> second = tree.add(first.id, "coder_1", verdict_of_score(1.0))
        >>> summary = summarize(tree)
        >>> summary.pass1, summary.best_solved, summary.repairs
        (0.5, True, 1)
    """
    nodes = list(tree)
    fresh = [node for node in nodes if node.parent_id == ROOT]
    refinements = [node for node in nodes if node.parent_id != ROOT]
    solved = sum(node.solved for node in nodes)
    best = tree.best if answer is None else answer
    best_solved = best is not None and best.solved
    passing = [node.solved for node in nodes if node.score >= _PASSED]
    depths = Counter(node.depth for node in nodes)
    agents = Counter(node.agent for node in nodes)
    return TreeSummary(
        nodes=len(nodes),
        solved_nodes=solved,
        pass1=_share(solved, len(nodes)),
        fresh_pass1=_share(sum(node.solved for node in fresh), len(fresh)),
        best_solved=best_solved,
        any_solved=solved > 0,
        avg_pass1=_share(sum(passing), len(passing)) if passing else float(best_solved),
        best_curve=tuple(best.solved for best in accumulate(nodes, _better)),
        any_curve=tuple(accumulate((node.solved for node in nodes), lambda a, b: a or b)),
        degenerate=solved in (0, len(nodes)),
        root_children=len(fresh),
        refinements=len(refinements),
        repairs=sum(n.solved and not tree[n.parent_id].solved for n in refinements),
        breakages=sum(not n.solved and tree[n.parent_id].solved for n in refinements),
        descents=sum(node.depth - 1 for node in nodes),
        max_depth=max((node.depth for node in nodes), default=0),
        mean_depth=_share(sum(node.depth for node in nodes), len(nodes)),
        depth_nodes=dict(sorted(depths.items())),
        depth_solved={
            depth: sum(node.solved for node in nodes if node.depth == depth)
            for depth in sorted(depths)
        },
        agent_nodes=dict(agents),
        agent_solved={
            agent: sum(node.solved for node in nodes if node.agent == agent) for agent in agents
        },
    )


def _better(best: Node, node: Node) -> Node:
    return node if node.score >= best.score else best


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
