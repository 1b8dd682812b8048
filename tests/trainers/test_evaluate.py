"""Evaluation: what a hand-made set of trees says, from the infos alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

from mars_envs.metrics import summarize
from mars_envs.tree_search import SearchTree
from mars_envs.tree_search.tree import verdict_of_score
from trainers import Generation, Rollout, Turn
from trainers.collect import Episode
from trainers.errors import ConfigError
from trainers.evaluate import budget_curve, evaluate, improvement, summarise, task_values
from trainers.statistics import mean_estimate


def make_tree(
    task: str, nodes: Sequence[tuple[str, int, float, bool]], *, outcome: str = "terminated"
) -> Rollout:
    """`nodes`: (agent, parent, score, solved), in order of their ids."""
    turns = tuple(
        Turn(
            agent=agent,
            prompt="",
            generation=Generation(text=""),
            reward=float(solved),
            info={"node_id": i, "node_parent_id": parent, "score": score, "solved": solved},
        )
        for i, (agent, parent, score, solved) in enumerate(nodes)
    )
    return Rollout(
        rollout_id=f"{task}-{len(nodes)}",
        group_id=task,
        env_id="env",
        task_id=task,
        seed=0,
        prompt_hash="",
        turns=turns,
        outcome=outcome,  # type: ignore[arg-type]
        episode_reward=0.0,
        summary={},
    )


TREES = [
    # Solved by refining a failure; a fresh try after it failed too.
    make_tree(
        "t1",
        [("a", -1, 0.5, False), ("b", -1, 0.5, False), ("a", 0, 1.0, True), ("b", 2, 0.5, False)],
    ),
    # The two best nodes share a score: the later one is chosen, and it is wrong.
    make_tree("t2", [("b", -1, 1.0, True), ("a", -1, 1.0, False), ("a", 1, 0.5, False)]),
    # All wrong.
    make_tree("t3", [("a", -1, 0.0, False), ("b", 0, 0.0, False)]),
]


def with_info(rollout: Rollout, **info: object) -> Rollout:
    """Add to the infos of a rollout's last turn."""
    *turns, last = rollout.turns
    changed = dataclasses.replace(last, info={**last.info, **info})  # type: ignore[dict-item]
    return dataclasses.replace(rollout, turns=(*turns, changed))


def test_the_team_is_scored_over_all_nodes() -> None:
    team = summarise(TREES).team
    assert team.pass_at_1.mean == pytest.approx((0 + 0.5 + 0) / 3)
    assert team.pass_at_1_mcts.mean == pytest.approx(1 / 3)
    assert team.pass_at_n.mean == pytest.approx(2 / 3)
    assert team.node_success.mean == pytest.approx((1 / 4 + 1 / 3 + 0) / 3)
    assert team.nodes == 9
    assert team.pass_at_n.n == 3


def test_an_agent_is_scored_over_its_own_nodes() -> None:
    a = summarise(TREES).agents["a"]
    assert a.pass_at_1.mean == 0
    assert a.pass_at_1_mcts.mean == pytest.approx(1 / 3)  # t1 only
    assert a.pass_at_n.mean == pytest.approx(1 / 3)
    assert a.nodes == 5
    b = summarise(TREES).agents["b"]
    assert b.pass_at_1.mean == pytest.approx(1 / 2)  # no answer to t3's root prompt
    assert b.pass_at_1.n == 2


def test_refining_a_failure_is_compared_with_trying_afresh() -> None:
    team = summarise(TREES).team
    # Refinements of failures: t1's node 2 (right), t2's node 2, t3's node 1.
    assert team.refine_success.mean == pytest.approx(1 / 3)
    # Fresh tries after a failure: t1's node 1. Those of t2 came before its first failure.
    assert team.fresh_success.mean == 0
    assert team.fresh_success.n == 1
    assert team.refine_gain.mean == pytest.approx(1 / 3)


def test_a_parent_may_be_another_agents_node() -> None:
    b = summarise([make_tree("t", [("a", -1, 0.0, False), ("b", 0, 1.0, True)])]).agents["b"]
    assert b.refine_success.mean == 1.0


def test_the_released_figure_averages_the_nodes_that_pass_all_public_tests() -> None:
    team = summarise(TREES).team
    # t1: its one passing node is right. t2: one of two. t3: none passes, and the chosen is wrong.
    assert team.avg_pass1.mean == pytest.approx((1 + 0.5 + 0) / 3)
    assert task_values(TREES, "avg_pass1", agent="b") == {"t1": 0.0, "t2": 1.0, "t3": 0.0}


def test_the_environments_answer_counts_where_it_names_one() -> None:
    # Among equals the latest would be chosen, which is wrong; a reward model knew better.
    assert task_values([TREES[1]], "pass_at_1_mcts") == {"t2": 0.0}
    named = with_info(TREES[1], best_node_id=0)
    assert task_values([named], "pass_at_1_mcts") == {"t2": 1.0}
    assert task_values([named], "pass_at_1_mcts", agent="a") == {"t2": 0.0}
    nothing = with_info(TREES[1], best_node_id=-2)
    assert task_values([nothing], "pass_at_1_mcts") == {"t2": 0.0}


def test_the_shape_of_trees_is_told_by_depth_and_by_agent() -> None:
    evaluation = summarise(TREES)
    shape = evaluation.team.shape
    # Depths of t1: 1 1 2 3; of t2: 1 1 2; of t3: 1 2.
    assert {level: share.mean for level, share in shape.depth_share.items()} == pytest.approx(
        {1: 5 / 9, 2: 3 / 9, 3: 1 / 9}
    )
    assert {level: rate.mean for level, rate in shape.solved_by_depth.items()} == pytest.approx(
        {1: 1 / 5, 2: 1 / 3, 3: 0.0}
    )
    assert [rate.n for rate in shape.solved_by_depth.values()] == [3, 3, 1]
    assert shape.mean_depth.mean == pytest.approx((5 + 2 * 3 + 3) / 9)
    assert shape.refine_share.mean == pytest.approx(4 / 9)
    assert shape.node_share.mean == 1.0
    assert evaluation.agents["a"].shape.node_share.mean == pytest.approx(5 / 9)
    assert evaluation.agents["b"].shape.refine_share.mean == pytest.approx(2 / 4)


def test_a_curve_says_what_the_first_nodes_of_each_tree_say() -> None:
    curve = summarise(TREES).team.curve
    assert list(curve) == [1, 2, 4]
    assert curve[1].pass_at_n.mean == pytest.approx(1 / 3)  # t2's first node
    assert curve[1].pass_at_1_mcts.mean == pytest.approx(1 / 3)
    assert curve[2].pass_at_1_mcts.mean == 0.0  # t2's second node takes its place, wrongly
    assert curve[4].pass_at_n.mean == 1.0
    assert curve[4].pass_at_n.n == 1  # only t1 has four nodes
    points = budget_curve(TREES, [3])
    assert points[3].pass_at_n.mean == 1.0
    assert points[3].pass_at_n.n == 2
    assert budget_curve([], [1, 2]) == {}


def test_a_tree_that_ended_for_good_stays_as_it_ended() -> None:
    reasons = ("nodes", "solved", "agents")
    short = [
        with_info(tree, stop_reason=reason) for tree, reason in zip(TREES, reasons, strict=True)
    ]
    point = budget_curve(short, [9])[9]
    assert point.pass_at_n == mean_estimate([1.0, 0.0])  # t2 and t3; t1 used its budget up


def test_an_agents_curve_counts_its_own_nodes_among_the_first() -> None:
    curve = budget_curve(TREES, [1, 2, 3], agent="b")
    assert (curve[1].pass_at_n.mean, curve[1].pass_at_n.n) == (1.0, 1)  # elsewhere b has no node
    assert curve[2].pass_at_n == mean_estimate([0.0, 1.0, 0.0])
    assert curve[3].pass_at_n == mean_estimate([0.0, 1.0])  # t3 has two nodes


def test_generations_that_failed_are_counted() -> None:
    failing = dataclasses.replace(TREES[0], summary={"failed_generations": 3})
    assert summarise([failing, TREES[1]]).failed_generations == 3


def test_a_tree_with_a_hole_is_refused() -> None:
    holed = dataclasses.replace(TREES[0], turns=TREES[0].turns[1:])
    with pytest.raises(ConfigError, match="node 2 refines node 0, which is not there"):
        summarise([holed])


def test_trees_without_spread_are_counted() -> None:
    evaluation = summarise(TREES)
    assert evaluation.degenerate_share.mean == pytest.approx(1 / 3)
    assert evaluation.trees == 3


def test_failed_rollouts_are_counted_and_never_scored() -> None:
    failed = make_tree("t9", [("a", -1, 0.0, False)], outcome="failed")
    evaluation = summarise([*TREES, failed])
    assert evaluation.failed == 1
    assert dataclasses.replace(evaluation, failed=0) == summarise(TREES)


def test_several_trees_of_one_task_are_one_observation() -> None:
    evaluation = summarise(TREES * 5)
    assert evaluation.team.pass_at_n == summarise(TREES).team.pass_at_n


def test_values_by_task_can_be_compared_before_and_after() -> None:
    before = [make_tree(f"t{i}", [("a", -1, 0.0, False)] * 1) for i in range(6)]
    after = [make_tree(f"t{i}", [("a", -1, 1.0, i != 0)]) for i in range(5)]
    assert task_values(after, "pass_at_1", agent="a") == {
        "t0": 0.0, "t1": 1.0, "t2": 1.0, "t3": 1.0, "t4": 1.0,
    }  # fmt: skip
    gain = improvement(before, after, "pass_at_1", agent="a")
    assert gain.mean == pytest.approx(0.8)
    assert gain.n == 5  # t5 was measured once only
    assert gain.low > 0


def test_without_any_tree_there_is_nothing_to_report() -> None:
    evaluation = summarise([])
    assert evaluation.agents == {}
    assert math.isnan(evaluation.team.pass_at_1.mean)


def test_rollouts_without_a_tree_are_refused() -> None:
    tree = TREES[0]
    bare = dataclasses.replace(tree.turns[0], info={"score": 1.0})
    with pytest.raises(ConfigError, match=r"needs \['node_id', 'node_parent_id', 'solved'\]"):
        summarise([dataclasses.replace(tree, turns=(bare,))])


def test_an_evaluation_plays_its_episodes_itself(toy: ModuleType) -> None:
    class Right:
        name, version = "p", 0

        async def generate(self, request: object) -> Generation:
            return Generation(text="w")

    episodes = [Episode(episode_id=t, group_id=t, seed=0, options={"task": t}) for t in "abcd"]
    result = evaluate(toy.ToyTree, episodes, {"p": Right()}, roles={"*": "p"}, deterministic=True)
    assert result.team.pass_at_n.mean == 0.25  # "w" is right for task "a" only
    assert result.degenerate_share.mean == 1.0
    assert set(result.agents) == {"coder_0", "coder_1"}


def test_infos_say_the_same_of_a_tree_as_the_tree_itself() -> None:
    rng = np.random.default_rng(0)
    for case in range(20):
        tree, nodes = SearchTree(), []
        for node in range(rng.integers(1, 9)):
            parent, score = int(rng.integers(-1, node)), float(rng.choice([0.0, 0.5, 1.0]))
            right = bool(score == 1.0 and rng.random() < 0.5)
            nodes.append((str(rng.choice(["a", "b"])), parent, score, right))
            verdict = dataclasses.replace(verdict_of_score(score), solved=right)
            tree.add(parent, nodes[-1][0], verdict)
        summary, team = summarize(tree), summarise([make_tree(f"t{case}", nodes)]).team
        assert team.pass_at_1_mcts.mean == summary.best_solved
        assert team.pass_at_n.mean == summary.any_solved
        assert team.avg_pass1.mean == pytest.approx(summary.avg_pass1)
        assert team.node_success.mean == pytest.approx(summary.pass1)
        assert team.shape.mean_depth.mean - 1 == pytest.approx(summary.descents / summary.nodes)
        for depth, rate in team.shape.solved_by_depth.items():
            assert rate.mean == pytest.approx(
                summary.depth_solved[depth] / summary.depth_nodes[depth]
            )
        for budget, point in team.curve.items():
            assert point.pass_at_1_mcts.mean == summary.best_curve[budget - 1]
            assert point.pass_at_n.mean == summary.any_curve[budget - 1]
