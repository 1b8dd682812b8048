"""What one info of a tree environment must say by itself, whoever else says what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..tree_search.infos import NO_NODE
from ..tree_search.shell import OUTSIDE
from ..tree_search.tree import NOTHING, ROOT
from .endings import check_flags

TASK_ENDS = ("nodes", "tokens", "solved", "agent_budgets")
"""Reasons that terminate; those of `OUTSIDE` truncate."""


def check_facts(agent: str, info: Mapping[str, Any]) -> None:
    """Check that the facts of an info are in their ranges and agree with one another.

    Raises:
        AssertionError: they do not.
    """
    _check_counts(agent, info)
    if info["node_id"] == NOTHING:
        for key, nothing in NO_NODE.items():
            assert info[key] == nothing, (
                f"info[{key!r}] of {agent}, which has made no node yet (node_id {NOTHING}), must "
                f"be {nothing!r}, got {info[key]!r}"
            )
    else:
        _check_node(agent, info)
    _check_best(agent, info)
    asked = info["active"]
    for key in ("expand_id", "expand_depth"):
        assert asked == (info[key] != NOTHING), (
            f"info[{key!r}] of {agent} is {info[key]!r} while info['active'] is {asked}; it is "
            f"{NOTHING} exactly where it is not this agent's turn"
        )


def check_ending(agent: str, info: Mapping[str, Any], terminated: bool, truncated: bool) -> None:
    """Check the flags of an agent against the reason that its info gives.

    Raises:
        AssertionError: they do not fit.
    """
    reason = info["stop_reason"]
    check_flags(
        agent,
        info,
        (terminated, truncated),
        terminating=TASK_ENDS,
        truncating=OUTSIDE,
        rule="a budget of the task terminates, a limit from outside truncates",
    )
    for left, own in (("nodes_left", ("nodes", "solved")), ("tokens_left", TASK_ENDS)):
        assert info[left] != 0 or reason in own, (
            f"info[{left!r}] is 0 and stop_reason {reason!r}: an episode ends when its budget is "
            f"spent, with a reason among {', '.join(own)}"
        )
    for ended, left in (("nodes", "nodes_left"), ("tokens", "tokens_left")):
        assert reason != ended or info[left] == 0, (
            f"stop_reason is {ended!r}, but info[{left!r}] is {info[left]!r}"
        )


def _check_counts(agent: str, info: Mapping[str, Any]) -> None:
    for key in ("score", "best_score"):
        assert 0.0 <= info[key] <= 1.0, (
            f"info[{key!r}] of {agent} must be a share in [0, 1], got {info[key]!r}"
        )
    for key in ("public_passed", "public_total", "tokens", "nodes_left", "own_nodes_left"):
        assert info[key] >= 0, f"info[{key!r}] of {agent} is a number of things, got {info[key]!r}"
    assert info["tokens_left"] >= 0 or info["tokens_left"] == NOTHING, (
        f"info['tokens_left'] is a number of tokens, or {NOTHING} where there is no such budget, "
        f"got {info['tokens_left']!r}"
    )
    assert info["own_nodes_left"] <= info["nodes_left"], (
        f"{agent} may make {info['own_nodes_left']} more nodes (own_nodes_left), but only "
        f"{info['nodes_left']} are left for all"
    )


def _check_node(agent: str, info: Mapping[str, Any]) -> None:
    node, parent, depth = info["node_id"], info["node_parent_id"], info["depth"]
    assert ROOT <= parent < node, (
        f"the parent of {agent}'s node {node} must be {ROOT} (the root) or an earlier node, got "
        f"{parent}"
    )
    assert info["refine"] == (parent != ROOT), (
        f"info['refine'] of {agent} is {info['refine']} for a node whose parent is {parent}; it is "
        f"true exactly where the parent is another node than {ROOT}, the root"
    )
    deep = depth == 1 if parent == ROOT else depth > 1
    assert deep, (
        f"info['depth'] of {agent} is {depth} for a node below {parent}; it is 1 below the root, "
        "and one more with every node between"
    )
    assert info["refine"] or not info["parent_solved"], (
        f"info['parent_solved'] of {agent} is true for a fresh answer, which has no such parent"
    )
    passed, total, solved = info["public_passed"], info["public_total"], info["solved"]
    assert passed <= total, f"{agent} passes {passed} of {total} public tests"
    share = passed / total if total else info["score"]
    assert math.isclose(info["score"], share, abs_tol=1e-6), (
        f"info['score'] of {agent} is {info['score']!r}, but {passed} of {total} public tests "
        f"pass; the score is their share, {share!r}"
    )
    assert not solved or passed == total, (
        f"{agent} has solved the task with {passed} of {total} public tests; `solved` means that "
        "all public and all hidden tests pass"
    )
    assert solved == (info["status"] == "accepted"), (
        f"info['status'] of {agent} is {info['status']!r} and info['solved'] {solved}; the status "
        "is that of the first failed test, and 'accepted' where none failed"
    )


def _check_best(agent: str, info: Mapping[str, Any]) -> None:
    best = info["best_node_id"]
    if best == NOTHING:
        assert info["node_id"] == NOTHING, (
            f"there is no best node, but {agent} has made node {info['node_id']}"
        )
        assert (info["best_score"], info["best_solved"]) == (0.0, False), (
            f"there is no best node (best_node_id {NOTHING}), so best_score must be 0.0 and "
            f"best_solved False, got {info['best_score']!r} and {info['best_solved']!r}"
        )
    else:
        assert best >= 0, f"info['best_node_id'] is a node or {NOTHING}, got {best!r}"
        assert info["best_score"] >= info["score"], (
            f"{agent}'s node {info['node_id']} has the score {info['score']!r}, but the best node "
            f"only {info['best_score']!r}; the best one has the highest public score"
        )
