"""The fixed baselines: root only, chain, random parent."""

from __future__ import annotations

from collections import Counter

import pytest

from mars_envs.tree_search import ROOT, UCB, RootOnly, Thompson, TreeSearch


def grown(
    selector: str | RootOnly, scores: list[float], *, expand_solved: bool = True, seed: int = 0
) -> TreeSearch:
    search = TreeSearch(["a", "b"], selector, 10_000, seed, expand_solved=expand_solved)
    for score in scores:
        (expansion,) = search.ask()
        search.tell(expansion.id, score)
    return search


def parents(search: TreeSearch) -> list[int]:
    return [node.parent_id for node in search.tree]


def agents(search: TreeSearch) -> list[str]:
    return [node.agent for node in search.tree]


def test_best_of_n_answers_afresh_and_takes_turns() -> None:
    search = grown("best_of_n", [0.0, 1.0] * 3)
    assert parents(search) == [ROOT] * 6
    assert agents(search) == ["a", "b"] * 3


def test_best_of_n_takes_turns_in_parallel_too() -> None:
    asked = TreeSearch(["a", "b", "c"], "best_of_n", 6, 0).ask(6)
    assert [expansion.agent for expansion in asked] == ["a", "b", "c"] * 2


def test_best_of_n_may_draw_agents_uniformly() -> None:
    counts = Counter(agents(grown(RootOnly(agent_mix=1.0), [1.0] * 1000)))
    assert counts["a"] / 1000 == pytest.approx(0.5, abs=4 * 0.5 / 1000**0.5)


@pytest.mark.parametrize("rule", [UCB(), Thompson()])
def test_best_of_n_may_learn_which_agent_is_better(rule: UCB | Thompson) -> None:
    search = TreeSearch(["a", "b"], RootOnly(agent_rule=rule), 200, 0)
    while not search.done:
        (expansion,) = search.ask()
        search.tell(expansion.id, float(expansion.agent == "b"))
    assert parents(search) == [ROOT] * 200
    assert search.tree.count("b") > 170


def test_a_chain_refines_its_last_answer_and_takes_turns() -> None:
    search = grown("chain", [0.0, 1.0, 0.0, 0.5])
    assert parents(search) == [ROOT, 0, 1, 2]
    assert agents(search) == ["a", "b", "a", "b"]


def test_a_chain_that_may_not_go_on_starts_anew() -> None:
    assert parents(grown("chain", [0.0, 1.0, 0.0, 0.0], expand_solved=False)) == [ROOT, 0, ROOT, 2]


def test_a_random_parent_is_the_root_or_any_node_all_alike() -> None:
    first = Counter(
        grown("random_parent", [0.0] * 4, seed=seed).tree[3].parent_id for seed in range(800)
    )
    assert set(first) == {ROOT, 0, 1, 2}
    for count in first.values():
        assert count / 800 == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 800) ** 0.5)


def test_a_random_parent_is_one_that_may_be_refined() -> None:
    search = grown("random_parent", [0.0, 1.0] * 40, expand_solved=False)
    assert all(parent == ROOT or search.tree[parent].score < 1.0 for parent in parents(search))
    assert len(set(parents(search))) > 20
