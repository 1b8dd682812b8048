"""The tree environments under the collector of `trainers`: both APIs give the same contract."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import INFO_FIELDS, tree_from_infos
from mars_envs.tree_search.env import env
from trainers.collect import Episode, collect_all
from trainers.policies.scripted import ScriptedPolicy
from trainers.rollout import Request, Rollout

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
    "budget": 12,
}
EPISODES = [Episode(episode_id=str(i), group_id="g", seed=i) for i in range(6)]


def says(request: Request) -> str:
    return f"{request.agent} expands {request.info['expand_id']} at {request.info['nodes_left']}"


def collected(make: Callable[[], Any], policy: ScriptedPolicy | None = None) -> list[Rollout]:
    policies = {"p": policy or ScriptedPolicy(says)}
    return collect_all(make, EPISODES, policies, roles={"coder_*": "p"}, concurrency=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TreeSearchEnv(**STUBS),
        lambda: env(**STUBS),
        lambda: ParallelTreeSearchEnv(**STUBS),
        lambda: gym.make("mars_envs/TreeSearch-v0", **STUBS),
    ],
    ids=["raw", "aec", "parallel", "gym"],
)
def test_every_turn_carries_the_node_that_it_made(make: Callable[[], Any]) -> None:
    judge, tasks = StubJudge(), {task.task_id: task for task in stub_tasks()}
    for rollout in collected(make):
        assert rollout.outcome == "terminated"
        assert [turn.info["node_id"] for turn in rollout.turns] == list(range(12))
        assert set(INFO_FIELDS) <= set(rollout.turns[0].info)
        for turn in rollout.turns:
            verdict = judge.judge(tasks[rollout.task_id], turn.generation.text)
            assert (turn.info["score"], turn.info["solved"]) == (verdict.score, verdict.solved)
            assert turn.reward == float(verdict.solved)
            expected = f"{turn.agent} expands {turn.info['node_parent_id']} at "
            assert turn.generation.text.startswith(expected)
        assert rollout.episode_reward == sum(turn.reward for turn in rollout.turns)
        tree = tree_from_infos((t.agent, t.generation.text, t.info) for t in rollout.turns)
        assert tree.best is not None
        assert tree.best.id == rollout.summary["best_node_id"]


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_an_exhausted_agent_leaves_the_tree_to_the_others(kind: Any) -> None:
    policies = {"short": ScriptedPolicy(["a", "b"]), "long": ScriptedPolicy(says)}
    rollouts = collect_all(
        lambda: kind(**STUBS),
        EPISODES,
        policies,
        roles={"coder_0": "short", "coder_1": "long"},
    )
    for rollout in rollouts:
        assert rollout.outcome == "terminated"
        agents = [turn.agent for turn in rollout.turns]
        assert len(agents) == 12
        assert agents.count("coder_0") <= 2


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_a_team_that_is_exhausted_ends_truncated(kind: Any) -> None:
    for rollout in collected(lambda: kind(**STUBS), ScriptedPolicy(["a", "b"])):
        assert rollout.outcome == "truncated"
        assert len(rollout.turns) == 4


def chooses(request: Request) -> str:
    """Refine the newest answer that the prompt lists, as a language model would write it."""
    numbers = re.findall(r"^(\d+)  (?:root|\d+)  coder_\d", request.prompt, re.MULTILINE)
    return f"Parent: {numbers[-1] if numbers else 'root'}\nafter {len(numbers)}"


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_texts_alone_can_choose_what_they_refine(kind: Any) -> None:
    rollouts = collected(lambda: kind(**STUBS, select="agent"), ScriptedPolicy(chooses))
    for rollout in rollouts:
        assert rollout.outcome == "terminated"
        width = 1 if kind is TreeSearchEnv else 2
        for turn in rollout.turns:
            node_id = turn.info["node_id"]
            assert turn.info["node_parent_id"] == node_id - node_id % width - 1
            assert turn.info["parent_refused"] is False


def test_one_coder_can_be_collected_among_partners_in_rounds() -> None:
    partners = {"coder_1": "mars_envs.testing:odd_partner"}
    view = "mars_envs/TreeSearch-v0"
    for rollout in collected(lambda: gym.make(view, **STUBS, parallel=True, partners=partners)):
        assert [turn.agent for turn in rollout.turns] == ["coder_0"] * len(rollout.turns)
        assert [turn.info["node_id"] for turn in rollout.turns] == list(range(0, 12, 2))
        assert rollout.episode_reward == sum(turn.info["solved"] for turn in rollout.turns)


def test_budgets_and_smaller_teams_can_be_collected() -> None:
    episodes = [
        Episode(episode_id=str(i), group_id="g", seed=i, options={"agents": ["coder_0", "coder_2"]})
        for i in range(3)
    ]
    rollouts = collect_all(
        lambda: TreeSearchEnv(**STUBS, agents=3, agent_budgets={"coder_2": 1}),
        episodes,
        {"p": ScriptedPolicy(says)},
        roles={"coder_*": "p"},
    )
    for rollout in rollouts:
        agents = [turn.agent for turn in rollout.turns]
        assert (agents.count("coder_0"), agents.count("coder_2")) == (11, 1)
        assert rollout.summary["stop_reason"] == "nodes"
