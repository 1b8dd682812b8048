"""The memory environments under the collector of `trainers`: every form gives the same contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from mars_envs import (
    ParallelMemoryEnv,
    ParallelRecurrentMemoryEnv,
    SinglePassEnv,
    TurnBasedMemoryEnv,
    parallel_memory_v0,
)
from mars_envs.parallel_memory.infos import INFO_FIELDS
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.testing import stub_reading_tasks
from trainers.collect import Episode, Patience, collect_all
from trainers.policies.base import GenerationFailed
from trainers.policies.scripted import ScriptedPolicy
from trainers.rollout import Request, Rollout, from_line, to_line

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_reading_tasks",
    "chunk_tokens": 9,
    "readers": 4,
    "prompts": "compact",
}
EPISODES = [Episode(episode_id=str(i), group_id="g", seed=i) for i in range(4)]
SPEAKERS = {task.task_id: oracle(task) for task in stub_reading_tasks()}


def says(request: Request) -> str:
    return SPEAKERS[request.task_id](request.observation)


def collected(make: Callable[[], Any], script: Any = says, **options: Any) -> list[Rollout]:
    roles = {"reader_*": "r", "memorizer_*": "r", "merger_*": "m", "answerer_0": "m"}
    policies = {name: ScriptedPolicy(script) for name in "rm"}
    return collect_all(make, EPISODES, policies, roles=roles, concurrency=2, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ParallelMemoryEnv(**STUBS),
        lambda: TurnBasedMemoryEnv(**STUBS),
        lambda: parallel_memory_v0.env(**STUBS),
        lambda: gym.make("mars_envs/ParallelMemory-v0", **STUBS),
    ],
    ids=["parallel", "turns", "aec", "gym"],
)
def test_every_turn_carries_what_came_of_its_call(make: Callable[[], Any]) -> None:
    for rollout in collected(make):
        assert rollout.outcome == "terminated"
        assert sorted(turn.info["call_id"] for turn in rollout.turns) == list(range(14))
        keys = {(t.info["turn"], t.agent, t.info["chunk_index"]) for t in rollout.turns}
        assert len(keys) == 14
        assert set(INFO_FIELDS) <= set(rollout.turns[0].info)
        for turn in rollout.turns:
            if turn.agent.startswith("reader"):
                expected = "yes" if "<check>yes" in turn.generation.text else "no"
                assert turn.info["status"] == expected
                assert turn.info["found"] == (turn.info["chunk_gold"] == 1 == turn.info["turn"])
                assert turn.info["read_score"] == 1
        assert rollout.summary["exact_match"] == 1.0
        assert from_line(to_line(rollout)) == rollout


@pytest.mark.parametrize("kind", [ParallelMemoryEnv, TurnBasedMemoryEnv])
def test_the_reward_of_the_team_counts_once(kind: Any) -> None:
    for rollout in collected(lambda: kind(**STUBS)):
        assert rollout.episode_reward == pytest.approx(1.2)
        last = {turn.agent: turn for turn in rollout.turns}
        assert [turn.reward for turn in last.values()] == pytest.approx([1.2] * len(last))
        assert sum(turn.reward for turn in rollout.turns) == pytest.approx(1.2 * len(last))


def test_both_forms_bring_the_same_turns() -> None:
    def turns(kind: Any) -> list[Any]:
        return [
            sorted((t.info["call_id"], t.agent, t.prompt, t.generation.text) for t in rollout.turns)
            for rollout in collected(lambda: kind(**STUBS))
        ]

    assert turns(ParallelMemoryEnv) == turns(TurnBasedMemoryEnv)


@pytest.mark.parametrize("kind", [ParallelRecurrentMemoryEnv, SinglePassEnv])
def test_the_baselines_can_be_collected(kind: Any) -> None:
    options = {key: value for key, value in STUBS.items() if key != "readers"}
    for rollout in collected(lambda: kind(**options)):
        assert rollout.summary["exact_match"] == 1.0
        assert rollout.episode_reward == 1.0


@pytest.mark.parametrize("kind", [ParallelMemoryEnv, TurnBasedMemoryEnv])
def test_generations_that_fail_now_and_then_change_no_answer(kind: Any) -> None:
    def sometimes(request: Request) -> str:
        if request.info["n_calls"] == 4 and request.agent == "reader_0":
            raise GenerationFailed("busy")
        return says(request)

    for rollout in collected(lambda: kind(**STUBS), sometimes):
        assert rollout.outcome == "terminated"
        assert rollout.summary["n_failed"] >= 1
        assert rollout.summary["exact_match"] == 1.0


@pytest.mark.parametrize("kind", [ParallelMemoryEnv, TurnBasedMemoryEnv])
def test_a_backend_that_is_down_leaves_nothing_to_score(kind: Any) -> None:
    def never(request: Request) -> str:
        raise GenerationFailed("down")

    patience = Patience(failures_in_a_row=1000)
    for rollout in collected(lambda: kind(**STUBS), never, patience=patience):
        assert (rollout.outcome, rollout.episode_reward, rollout.turns) == ("truncated", 0.0, ())


def test_exhausted_readers_leave_the_document_to_the_others() -> None:
    policies = {"short": ScriptedPolicy(["<check>no</check>"]), "long": ScriptedPolicy(says)}
    roles = {"reader_3": "short", "*": "long"}
    rollouts = collect_all(lambda: ParallelMemoryEnv(**STUBS), EPISODES, policies, roles=roles)
    for rollout in rollouts:
        assert rollout.outcome == "terminated"
        assert [t.agent for t in rollout.turns].count("reader_3") == 1
        assert rollout.summary["exact_match"] == 1.0


@pytest.mark.data
def test_real_questions_are_read_by_scripted_agents(data_dir: Path) -> None:
    source = f"{data_dir / 'hotpotqa' / 'hotpot_dev_distractor_head.json'}?documents=40&limit=6"
    env = ParallelMemoryEnv(tasks=source, chunk_tokens=500, align="document", readers=8)
    for task in env.tasks:
        speak = oracle(task)
        observations, infos = env.reset(seed=0, options={"task": task.task_id})
        while env.agents:
            asked = [agent for agent in env.agents if infos[agent]["active"]]
            observations, _, _, _, infos = env.step({a: speak(observations[a]) for a in asked})
        info = infos["answerer_0"]
        assert (info["exact_match"], info["gold_recall"]) == (1.0, 1.0)
        assert info["n_chunks"] > 8
