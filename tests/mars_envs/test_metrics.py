"""What a finished tree says, on a tree that can be counted by hand."""

from __future__ import annotations

import dataclasses

import pytest

from mars_envs.metrics import summarize
from mars_envs.tree_search import ROOT, SearchTree
from mars_envs.tree_search.tree import verdict_of_score


def grown(*nodes: tuple[int, str, float, bool]) -> SearchTree:
    tree = SearchTree()
    for parent, agent, score, solved in nodes:
        tree.add(parent, agent, dataclasses.replace(verdict_of_score(score), solved=solved))
    return tree


def test_the_figures_of_a_small_tree() -> None:
    summary = summarize(
        grown(
            (ROOT, "a", 0.0, False),
            (ROOT, "b", 1.0, True),
            (0, "b", 1.0, True),  # repairs
            (2, "b", 1.0, True),  # keeps
            (2, "a", 0.5, False),  # breaks
            (0, "a", 0.0, False),  # fails again
        )
    )
    assert (summary.nodes, summary.solved_nodes) == (6, 3)
    assert (summary.pass1, summary.fresh_pass1) == (0.5, 0.5)
    assert (summary.best_solved, summary.any_solved, summary.degenerate) == (True, True, False)
    assert (summary.root_children, summary.refinements) == (2, 4)
    assert (summary.repairs, summary.breakages) == (1, 1)
    assert (summary.max_depth, summary.mean_depth) == (3, pytest.approx(12 / 6))
    assert summary.descents == 0 + 0 + 1 + 2 + 2 + 1
    assert summary.depth_nodes == {1: 2, 2: 2, 3: 2}
    assert summary.depth_solved == {1: 1, 2: 1, 3: 1}
    assert summary.any_curve == (False, True, True, True, True, True)
    # By public score, of equals the latest: 0, 1, 2, 3, and then nobody does as well.
    assert summary.best_curve == (False, True, True, True, True, True)
    assert summary.avg_pass1 == 1.0
    assert summary.agent_nodes == {"a": 3, "b": 3}
    assert summary.agent_solved == {"a": 0, "b": 3}


def test_the_answer_is_chosen_by_public_score_though_another_node_is_right() -> None:
    summary = summarize(grown((ROOT, "a", 0.5, True), (ROOT, "a", 1.0, False)))
    assert summary.best_solved is False
    assert summary.any_solved is True


def test_the_chosen_node_may_get_worse_with_a_larger_budget() -> None:
    summary = summarize(
        grown((ROOT, "a", 0.5, True), (ROOT, "b", 1.0, False), (ROOT, "a", 1.0, True))
    )
    assert summary.best_curve == (True, False, True)
    assert summary.any_curve == (True, True, True)
    assert summary.avg_pass1 == 0.5  # of the two nodes that pass all public tests


def test_the_answer_may_be_chosen_by_the_search() -> None:
    tree = grown((ROOT, "a", 0.5, True), (ROOT, "a", 0.5, False))
    assert summarize(tree).best_solved is False
    assert summarize(tree, answer=tree[0]).best_solved is True
    # No node passes all public tests: then the answer speaks for the tree.
    assert (summarize(tree).avg_pass1, summarize(tree, answer=tree[0]).avg_pass1) == (0.0, 1.0)


@pytest.mark.parametrize("solved", [True, False])
def test_a_tree_of_equal_rewards_is_degenerate(solved: bool) -> None:
    assert summarize(grown((ROOT, "a", 0.5, solved), (ROOT, "a", 1.0, solved))).degenerate


def test_an_empty_tree_has_figures_too() -> None:
    summary = summarize(SearchTree())
    assert (summary.nodes, summary.pass1, summary.best_solved, summary.degenerate) == (
        0,
        0.0,
        False,
        True,
    )
