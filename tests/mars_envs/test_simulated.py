"""Simulated coders succeed as often as they are said to."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from mars_envs.errors import InvalidSetting, PoolExhausted
from mars_envs.judging import Verdict
from mars_envs.tree_search import ROOT, SearchTree
from mars_envs.tree_search.simulated import (
    Coder,
    Outcome,
    RecordedTask,
    RecordedTasks,
    SimulatedTask,
    SimulatedTasks,
    grow,
    grow_on,
    simulated_verdict,
)

SOLVED = simulated_verdict(1, 1, solved=True)
FALSE_POSITIVE = simulated_verdict(1, 1, solved=False)
WRONG = simulated_verdict(0, 1, solved=False)


def chain(*verdicts: Verdict) -> SearchTree:
    """Return a tree in which every node refines the one before."""
    tree = SearchTree()
    for verdict in verdicts:
        tree.add(len(tree) - 1, "a", verdict)
    return tree


def answers(coder: Coder, *parents: Verdict, draws: int = 20_000, tests: int = 1) -> list[Verdict]:
    """Return independent answers to the last of `parents`, or answers from scratch."""
    task, tree, rng = SimulatedTask({"a": coder}, tests), chain(*parents), np.random.default_rng(7)
    return [task.answer(tree, len(tree) - 1, "a", rng) for _ in range(draws)]


def share(flags: Any) -> float:
    return float(np.mean(list(flags)))


def near(chance: float, draws: int = 20_000) -> Any:
    """Return `chance` with a tolerance of 4.5 standard errors."""
    return pytest.approx(chance, abs=4.5 * math.sqrt(chance * (1 - chance) / draws))


@pytest.mark.parametrize(
    ("parents", "chance"),
    [
        ((), 0.3),
        ((WRONG,), 0.6),
        ((WRONG, WRONG), 0.3),
        ((WRONG, WRONG, WRONG), 0.15),
        ((SOLVED,), 0.8),
        ((FALSE_POSITIVE,), 0.0),
    ],
)
def test_the_chance_of_success_depends_on_what_is_refined(
    parents: tuple[Verdict, ...], chance: float
) -> None:
    coder = Coder(fresh=0.3, refine=0.6, keep=0.8, refine_decay=0.5)
    assert share(verdict.solved for verdict in answers(coder, *parents)) == near(chance)
    tree = chain(*parents)
    assert SimulatedTask({"a": coder}).chance(tree, len(tree) - 1, "a") == pytest.approx(chance)


def test_a_failing_answer_may_pass_the_public_tests_and_stay_that_way() -> None:
    coder = Coder(fresh=0.3, refine=1.0, keep=0.8, false_positive=0.2)
    fresh = answers(coder)
    assert share(verdict.score == 1.0 for verdict in fresh) == near(0.3 + 0.7 * 0.2)
    assert share(verdict.solved for verdict in fresh) == near(0.3)
    refined = answers(coder, FALSE_POSITIVE)
    assert share(verdict.score == 1.0 for verdict in refined) == near(0.8)
    assert not any(verdict.solved for verdict in refined)


def test_a_failing_answer_passes_part_of_the_public_tests_and_never_all() -> None:
    scores = [verdict.score for verdict in answers(Coder(fresh=0, refine=0, partial=0.5), tests=5)]
    assert set(scores) == {0.0, 0.2, 0.4, 0.6, 0.8}
    # Four tests at 0.5 each, of five: mean 0.4, variance of the score 4 · 0.25 / 25.
    assert np.mean(scores) == pytest.approx(0.4, abs=4.5 * 0.2 / math.sqrt(20_000))


def test_a_parent_that_passes_more_tests_is_mended_more_often() -> None:
    coder = Coder(fresh=0, refine=0.1, closeness=0.8)
    close = simulated_verdict(3, 4, solved=False)
    assert share(verdict.solved for verdict in answers(coder, close, tests=4)) == near(0.7)


def test_tasks_differ_in_ease_by_a_beta_distribution() -> None:
    source = SimulatedTasks(
        {"a": Coder(fresh=0.8, refine=0.4), "b": Coder(fresh=0.4, refine=0.8)}, ease=(1.0, 3.0)
    )
    rng = np.random.default_rng(3)
    tasks = [source.draw(rng) for _ in range(20_000)]
    ease = np.array([task.coders["a"].fresh for task in tasks]) / 0.8
    # Beta(1, 3): mean 1/4, variance 3/80.
    assert ease.mean() == pytest.approx(0.25, abs=4.5 * math.sqrt(3 / 80 / 20_000))
    assert ease.var() == pytest.approx(3 / 80, rel=0.05)
    for task, value in zip(tasks, ease, strict=True):
        assert task.coders["b"].fresh == pytest.approx(0.4 * value)
        assert task.coders["b"].refine == pytest.approx(0.8 * value)


def test_agents_may_be_good_at_different_tasks() -> None:
    coder = Coder(fresh=1.0, refine=1.0)
    source = SimulatedTasks({"a": coder, "b": coder}, ease=(1, 1), ease_of_each_agent=True)
    rng = np.random.default_rng(3)
    pairs = np.array([[c.fresh for c in source.draw(rng).coders.values()] for _ in range(5_000)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 4.5 / math.sqrt(5_000)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Coder(fresh=1.1, refine=0), "fresh is a chance"),
        (lambda: Coder(fresh=0, refine=float("nan")), "refine is a chance"),
        (lambda: Coder(fresh=0, refine=0, keep=-0.1), "keep is a chance"),
        (lambda: Coder(fresh=0, refine=0, refine_decay=-1), "refine_decay is a factor"),
        (lambda: SimulatedTasks({}), "one coder or more"),
        (lambda: SimulatedTasks({"a": Coder(fresh=0, refine=0)}, 0), "public_tests"),
        (lambda: SimulatedTasks({"a": Coder(fresh=0, refine=0, partial=0.5)}), "public_tests=2"),
        (lambda: SimulatedTasks({"a": Coder(fresh=0, refine=0)}, ease=(0, 1)), "above 0"),
        (
            lambda: SimulatedTasks({"a": Coder(fresh=0, refine=0)}, ease_of_each_agent=True),
            "needs ease",
        ),
        (lambda: RecordedTasks([]), "one recorded task"),
        (lambda: RecordedTasks([{"a": []}, {"b": []}]), "task 1 has the agents"),
        (lambda: RecordedTasks([{"a": [(1.5, False)]}]), "public score in"),
        (lambda: RecordedTasks([{"a": [(0.5, True)]}]), "where every test passed"),
    ],
)
def test_impossible_numbers_are_refused_with_a_reason(build: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        build()


POOLS: dict[str, list[Outcome]] = {
    "a": [(0.0, False), (0.25, False), (1.0, True)],
    "b": [(1.0, False), (0.5, False)],
}


def test_a_recorded_pool_is_drawn_without_replacement_and_its_agent_leaves() -> None:
    for seed in range(20):
        tree = grow(RecordedTasks([POOLS]), "default", budget=9, seed=seed, batch=1 + seed % 4)
        assert len(tree) == 5
        for agent, pool in POOLS.items():
            drawn = [(node.score, node.solved) for node in tree if node.agent == agent]
            assert sorted(drawn) == sorted(pool)


def test_every_order_of_a_recorded_pool_comes_up_alike() -> None:
    source, rng = RecordedTasks([POOLS]), np.random.default_rng(5)
    orders = [tuple(source.draw(rng).pools["a"]) for _ in range(6_000)]
    assert all(orders.count(order) / 6_000 == near(1 / 6, 6_000) for order in set(orders))
    assert len(set(orders)) == 6


def test_an_exhausted_pool_says_what_to_do() -> None:
    task, tree = RecordedTask({"a": [(0.0, False)], "b": []}), chain(WRONG)
    assert [task.left(SearchTree(), "a"), task.left(tree, "a"), task.left(tree, "b")] == [1, 0, 0]
    with pytest.raises(PoolExhausted, match=r"a has only 1 recorded answers.*retire it"):
        task.answer(tree, ROOT, "a", np.random.default_rng(0))


TEAM = SimulatedTasks(
    {"a": Coder(fresh=0.4, refine=0.2), "b": Coder(fresh=0.2, refine=0.4)}, ease=(1, 1)
)


def test_a_tree_is_its_seed_and_nothing_else() -> None:
    assert grow(TEAM, seed=4, budget=20) == grow(TEAM, seed=4, budget=20)
    assert grow(TEAM, seed=4, budget=20) != grow(TEAM, seed=5, budget=20)
    assert grow(pickle.loads(pickle.dumps(TEAM)), seed=4) == grow(TEAM, seed=4)


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code"])
def test_selectors_meet_the_same_fresh_answers(selector: str) -> None:
    def fresh(tree: SearchTree) -> dict[str, list[bool]]:
        return {
            agent: [node.solved for node in tree.children(ROOT) if node.agent == agent]
            for agent in TEAM.agents
        }

    for seed in range(10):
        baseline = fresh(grow(TEAM, "best_of_n", budget=60, seed=seed))
        for agent, drawn in fresh(grow(TEAM, selector, budget=20, seed=seed)).items():
            assert drawn == baseline[agent][: len(drawn)]


def test_solved_nodes_are_left_alone_on_request() -> None:
    coder = Coder(fresh=0.5, refine=0.5)
    for seed in range(10):
        tree = grow(SimulatedTasks({"a": coder}), budget=20, seed=seed, expand_solved=False)
        assert not any(tree.children(node.id) for node in tree if node.solved_public)


def test_a_batch_below_one_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="batch"):
        grow_on(SimulatedTask({"a": Coder(fresh=0, refine=0)}), ["a"], batch=0)
