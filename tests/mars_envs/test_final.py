"""The final choice, and what a reward model adds to it and to the search."""

from __future__ import annotations

import dataclasses

import pytest

from mars_envs.judging import Verdict
from mars_envs.tree_search import ROOT, Node, SearchTree, TreeSearch, final_answer
from mars_envs.tree_search.tree import verdict_of_score


def verdict(score: float, *signature: str, solved: bool = False) -> Verdict:
    return dataclasses.replace(verdict_of_score(score), signature=signature, solved=solved)


def tree_of(*verdicts: Verdict) -> SearchTree:
    tree = SearchTree()
    for item in verdicts:
        tree.add(ROOT, "a", item)
    return tree


def chosen(tree: SearchTree, favourites: dict[int, float] | None) -> int:
    score_fn = None if favourites is None else lambda _, node: favourites.get(node.id, 0.0)
    answer = final_answer(tree, score_fn)
    assert answer is not None
    return answer.id


def test_an_empty_tree_has_no_answer() -> None:
    assert final_answer(SearchTree(), lambda tree, node: 1.0) is None


def test_without_a_reward_model_the_latest_of_the_best_is_released() -> None:
    assert chosen(tree_of(*map(verdict, [0.5, 1.0, 1.0, 0.0])), None) == 2


def test_the_public_score_comes_before_the_reward_model() -> None:
    assert chosen(tree_of(*map(verdict, [0.5, 1.0])), {0: 1.0}) == 1


def test_the_reward_model_decides_between_equal_public_scores() -> None:
    assert chosen(tree_of(*map(verdict, [1.0, 1.0, 1.0])), {0: 0.2, 1: 0.9, 2: 0.3}) == 1


def test_then_the_behaviour_that_most_nodes_share_wins() -> None:
    tree = tree_of(verdict(1.0, "x"), verdict(1.0, "y"), verdict(0.5, "x"), verdict(1.0))
    assert chosen(tree, {}) == 0


def test_and_then_the_later_node() -> None:
    tree = tree_of(verdict(1.0, "x"), verdict(1.0, "x"), verdict(0.0, "z"))
    assert chosen(tree, {}) == 1


def test_hidden_tests_never_decide() -> None:
    tree = tree_of(verdict(1.0, solved=True), verdict(1.0))
    assert chosen(tree, {}) == 1


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_reward_model_must_stay_in_the_unit_interval(score: float) -> None:
    with pytest.raises(ValueError, match=r"score_fn must return a number in \[0, 1\]"):
        final_answer(tree_of(verdict(1.0)), lambda tree, node: score)


def test_a_search_answers_by_its_reward_model() -> None:
    search = TreeSearch(["a"], seed=0, score_fn=lambda tree, node: float(node.id == 0))
    assert search.answer is None
    for _ in range(3):
        (expansion,) = search.ask()
        search.tell(expansion.id, 1.0)
    assert search.answer is search.tree[0]


def test_the_value_that_drives_a_search_blends_public_score_and_reward_model() -> None:
    seen: list[tuple[int, int]] = []

    def score_fn(tree: SearchTree, node: Node) -> float:
        seen.append((len(tree), node.id))
        return 0.5

    search = TreeSearch(["a"], seed=0, score_fn=score_fn, score_weight=0.75)
    (expansion,) = search.ask()
    node = search.tell(expansion.id, 1.0)
    assert node is not None
    assert (node.score, node.value) == (1.0, 0.875)
    assert seen == [(0, 0)], "a new node is judged before it is part of the tree"
    assert TreeSearch.load(search.save(), score_fn=score_fn).tree[0].value == 0.875


def test_a_reward_model_that_raises_changes_nothing() -> None:
    def score_fn(tree: SearchTree, node: Node) -> float:
        raise RuntimeError("the server went away")

    search = TreeSearch(["a"], seed=0, score_fn=score_fn, score_weight=0.5)
    before = search.save()
    (expansion,) = search.ask()
    with pytest.raises(RuntimeError, match="went away"):
        search.tell(expansion.id, 1.0)
    assert search.pending == (expansion,)
    assert search.save()["tree"] == before["tree"]


def test_without_a_reward_model_the_public_score_drives_the_search() -> None:
    search = TreeSearch(["a"], seed=0)
    (expansion,) = search.ask()
    node = search.tell(expansion.id, 0.5)
    assert node is not None
    assert node.value == node.score == 0.5
