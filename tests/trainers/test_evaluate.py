"""Evaluation: what a hand-made set of trees says, from the infos alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from types import ModuleType

import pytest

from trainers import Generation, Rollout, Turn
from trainers.collect import Episode
from trainers.errors import ConfigError
from trainers.evaluate import evaluate, improvement, summarise, task_values


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
