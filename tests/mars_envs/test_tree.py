"""The search tree: ids, parents, order, and JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.judging import CaseFeedback, Feedback, Verdict
from mars_envs.tree_search import ROOT, SearchTree
from mars_envs.tree_search.tree import verdict_of_score


def chain_and_sibling() -> SearchTree:
    """0 below the root, 1 below 0, 2 below 1, 3 below 0."""
    tree = SearchTree()
    for parent, score in ((ROOT, 0.5), (0, 1.0), (1, 0.0), (0, 1.0)):
        tree.add(parent, "a", verdict_of_score(score), reply=f"reply {len(tree)}")
    return tree


def test_ids_follow_the_order_of_creation() -> None:
    assert [node.id for node in chain_and_sibling()] == [0, 1, 2, 3]


def test_depth_counts_from_the_root() -> None:
    tree = chain_and_sibling()
    assert [node.depth for node in tree] == [1, 2, 3, 2]
    assert tree.depth(ROOT) == 0


def test_children_come_oldest_first() -> None:
    tree = chain_and_sibling()
    assert [node.id for node in tree.children(0)] == [1, 3]
    assert [node.id for node in tree.children(ROOT)] == [0]


def test_path_leads_from_below_the_root_to_the_node() -> None:
    tree = chain_and_sibling()
    assert [node.id for node in tree.path(2)] == [0, 1, 2]
    assert tree.path(ROOT) == []


def test_descendants_are_counted_at_every_depth() -> None:
    tree = chain_and_sibling()
    assert [tree.descendants(node_id) for node_id in (ROOT, 0, 1, 2)] == [4, 3, 1, 0]


def test_a_chain_deeper_than_the_interpreter_s_stack_is_no_problem() -> None:
    tree = SearchTree()
    for index in range(3000):
        tree.add(index - 1, "a", verdict_of_score(0.0))
    assert tree.descendants(ROOT) == 3000
    assert len(tree.path(2999)) == 3000


def test_the_best_node_is_the_latest_of_the_highest_public_score() -> None:
    best = chain_and_sibling().best
    assert best is not None
    assert best.id == 3
    assert SearchTree().best is None


def test_hidden_tests_do_not_make_a_node_better() -> None:
    tree = SearchTree()
    solved = dataclasses.replace(verdict_of_score(1.0), score=0.5)
    tree.add(ROOT, "a", solved)
    tree.add(ROOT, "a", dataclasses.replace(solved, solved=False))
    assert tree.best is tree[1]


def test_what_is_asked_at_every_turn_is_kept_up_to_date() -> None:
    tree = chain_and_sibling()
    assert (tree.count("a"), tree.count("b")) == (4, 0)
    assert [tree.width(depth) for depth in range(5)] == [1, 1, 2, 1, 0]
    assert tree.max_depth == 3
    assert list(tree.unsolved) == [0, 2]
    assert tree.solved
    assert not SearchTree().solved
    assert SearchTree().max_depth == 0


def test_nodes_that_behave_alike_are_counted() -> None:
    tree = SearchTree()
    behaviours = [("x", "y"), ("x",), ("x", "y"), ()]
    verdicts = [
        dataclasses.replace(verdict_of_score(0.0), signature=signature) for signature in behaviours
    ]
    for verdict in verdicts:
        tree.add(ROOT, "a", verdict)
    assert [tree.alike(verdict) for verdict in verdicts] == [2, 1, 2, 0]


def test_a_draft_is_not_part_of_the_tree() -> None:
    tree = SearchTree()
    draft = tree.draft(ROOT, "a", verdict_of_score(0.5))
    assert len(tree) == 0
    tree.attach(draft)
    assert tree[0] is draft
    with pytest.raises(ValueError, match="expected node 1 next, got 0"):
        tree.attach(draft)


@pytest.mark.parametrize("parent", [0, 7, -2])
def test_a_parent_must_exist(parent: int) -> None:
    with pytest.raises(KeyError, match="no node"):
        SearchTree().add(parent, "a", verdict_of_score(0.0))


@pytest.mark.parametrize("score", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_score_outside_the_unit_interval_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match=r"a score must be a number in \[0, 1\]"):
        SearchTree().add(ROOT, "a", verdict_of_score(score))


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_a_value_outside_the_unit_interval_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"a value must be a number in \[0, 1\]"):
        SearchTree().add(ROOT, "a", verdict_of_score(1.0), value=value)


def test_a_refused_node_leaves_no_trace() -> None:
    tree = chain_and_sibling()
    with pytest.raises(ValueError, match="a score must be"):
        tree.add(0, "a", verdict_of_score(2.0))
    assert tree == chain_and_sibling()


def test_an_unknown_id_is_a_clear_error() -> None:
    with pytest.raises(KeyError, match="no node 9; this tree has the nodes 0 to 3"):
        chain_and_sibling()[9]


def test_whether_a_cache_answered_is_not_kept() -> None:
    tree = SearchTree()
    tree.add(ROOT, "a", dataclasses.replace(verdict_of_score(1.0), cached=True))
    other = SearchTree()
    other.add(ROOT, "a", verdict_of_score(1.0))
    assert tree == other


def test_json_brings_back_every_field() -> None:
    failure = CaseFeedback(name="1", status="runtime_error", input="x", error="ValueError\ud800")
    feedback = Feedback(passed=1, total=2, status="runtime_error", failure=failure)
    verdict = Verdict(
        score=0.5,
        solved=False,
        status="runtime_error",
        public_passed=1,
        public_total=2,
        feedback=feedback,
        program="print(1)",
        signature=("1f", "a0"),
    )
    tree = SearchTree()
    tree.add(ROOT, "a", verdict, "reply", value=0.75)
    assert SearchTree.from_json(json.loads(json.dumps(tree.to_json()))) == tree


def test_trees_from_before_there_were_values_and_signatures_are_read() -> None:
    data = json.loads(json.dumps(chain_and_sibling().to_json()))
    for node in data["nodes"]:
        del node["value"], node["verdict"]["signature"]
    assert SearchTree.from_json(data) == chain_and_sibling()


def test_json_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a search tree of version 1, got 99"):
        SearchTree.from_json({"version": 99, "nodes": []})


def test_json_with_ids_out_of_order_is_refused() -> None:
    data = chain_and_sibling().to_json()
    data["nodes"][0]["id"] = 5
    with pytest.raises(ValueError, match="expected node 0 next, got 5"):
        SearchTree.from_json(data)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1)), max_size=30))
def test_any_tree_keeps_its_invariants(steps: list[tuple[int, float]]) -> None:
    tree = SearchTree()
    for pick, score in steps:
        tree.add(pick % (len(tree) + 1) - 1, f"a{pick % 3}", verdict_of_score(score))
    assert all(node.parent_id < node.id for node in tree)
    assert tree.descendants(ROOT) == len(tree)
    assert sum(len(tree.children(n)) for n in range(-1, len(tree))) == len(tree)
    for node in tree:
        assert tree.descendants(node.id) == sum(node in tree.path(other.id)[:-1] for other in tree)
    assert [node.id for node in tree if not node.solved_public] == list(tree.unsolved)
    assert tree.best == max(tree, key=lambda node: (node.score, node.id), default=None)
    assert SearchTree.from_json(tree.to_json()) == tree
