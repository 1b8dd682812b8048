"""The other forms of reading: call by call, recurrent, at once, and through Gymnasium."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test, state_test
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from mars_envs import (
    ParallelMemoryEnv,
    ParallelRecurrentMemoryEnv,
    ParallelSinglePassEnv,
    PromptOnly,
    ProtocolError,
    RecurrentMemoryEnv,
    SinglePassEnv,
    TurnBasedMemoryEnv,
    parallel_memory_v0,
    recurrent_memory_v0,
    single_pass_v0,
)
from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.parallel_memory.infos import (
    INFO_FIELDS,
    call_facts,
    episode_facts,
    request_facts,
)
from mars_envs.parallel_memory.methods import make_workflow
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.replies import Answer, Read
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.reading.chunking import chunk_document
from mars_envs.testing import check_memory, check_text_gym, odd_reader, stub_reading_tasks

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_reading_tasks",
    "chunk_tokens": 9,
    "prompts": "compact",
}
SHORT_DOCUMENT = "ignore:No agents present but not all possible_agents:UserWarning"
IDS = ("ParallelMemory", "RecurrentMemory", "SinglePass")
Speak = Callable[[Mapping[str, Any]], str]


def odd(view: Mapping[str, Any]) -> str:
    return odd_reader("", view, {}, 0)


def take_turns(env: Any, speak: Speak, seed: int = 0) -> list[tuple[str, dict[str, Any]]]:
    """Play an AEC episode; return each actor with its info after the action."""
    env.reset(seed=seed)
    turns = []
    while not (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
        agent = env.agent_selection
        env.step(speak(env.observe(agent)))
        turns.append((agent, env.infos[agent]))
    return turns


def take_rounds(env: Any, speak: Speak, seed: int = 0) -> dict[str, Any]:
    """Play a Parallel episode; return the last infos."""
    observations, infos = env.reset(seed=seed)
    while env.agents:
        asked = [agent for agent in env.agents if infos[agent]["active"]]
        observations, _, _, _, infos = env.step({a: speak(observations[a]) for a in asked})
    return dict(infos)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


# PettingZoo's checks, and ours ----------------------------------------------------------------


@pytest.mark.parametrize("module", [parallel_memory_v0, recurrent_memory_v0, single_pass_v0])
@pytest.mark.filterwarnings(SHORT_DOCUMENT)
def test_pettingzoo_s_tests_pass(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    api_test(module.env(**STUBS), num_cycles=30)
    seed_test(lambda: module.env(**STUBS))
    parallel_api_test(module.parallel_env(**STUBS), num_cycles=30)
    state_test(module.env(**STUBS), module.parallel_env(**STUBS))
    render_test(lambda render_mode=None: module.env(**STUBS, render_mode=render_mode))
    assert "stub/" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        slow(
            TurnBasedMemoryEnv,
            {"readers": 4, "window": 60, "memory_tokens": 8, "reply_tokens": 24, "mergers": 2},
        ),
        (TurnBasedMemoryEnv, {"max_calls": 9}),
        slow(RecurrentMemoryEnv, {"passes": 2}),
        slow(ParallelRecurrentMemoryEnv, {}),
        slow(RecurrentMemoryEnv, {"gates": True}),
        (ParallelRecurrentMemoryEnv, {"gates": True, "exit_gate": False}),
        (SinglePassEnv, {"context_tokens": 20}),
        (ParallelSinglePassEnv, {"method": "retrieval", "piece_tokens": 9, "top": 2}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or ",".join(value),
)
def test_whole_episodes_keep_the_contract_and_repeat_exactly(
    kind: Any, options: dict[str, Any]
) -> None:
    check_memory(lambda: kind(**STUBS, **options), seeds=(0,))


@pytest.mark.parametrize("name", IDS)
def test_every_view_passes_both_checkers(name: str) -> None:
    make = gym.make(f"mars_envs/{name}-v0", **STUBS).unwrapped.spec
    assert make is not None
    check_memory(lambda: make.make().unwrapped, seeds=(0,))
    check_env(make.make().unwrapped)


@pytest.mark.parametrize("kind", [ParallelMemoryEnv, TurnBasedMemoryEnv])
def test_other_tasks_can_be_set_between_episodes(kind: Any) -> None:
    env = kind(**STUBS)
    env.reset(seed=0)
    first, other = stub_reading_tasks(1)[0], stub_reading_tasks(4)[3]
    with pytest.raises(InvalidTask, match="at least one reading task, got none"):
        env.tasks = []
    assert [task.task_id for task in env.tasks] == ["stub/0", "stub/1", "stub/2"]
    env.tasks = [other]
    # What was running was about a task that is not there any more.
    with pytest.raises(ProtocolError, match="no episode is running"):
        env.step({} if kind is ParallelMemoryEnv else "text")
    env.reset()
    assert env.task is other
    env.tasks = [first, other]
    env = pickle.loads(pickle.dumps(env))
    env.reset(options={"task": "stub/0"})
    assert env.task.question == "What is the city of traveller 0?"


def test_a_turn_based_environment_can_become_a_parallel_one() -> None:
    env = turn_based_aec_to_parallel(TurnBasedMemoryEnv(**STUBS, readers=6))
    parallel_api_test(env, num_cycles=30)


def test_infos_say_what_the_facts_say_whatever_became_of_those_before() -> None:
    tasks = [*stub_reading_tasks(1, chunks=3), *stub_reading_tasks(1, chunks=6)]
    tasks[1] = dataclasses.replace(tasks[1], task_id="longer")
    env = TurnBasedMemoryEnv(tasks=tasks, chunk_tokens=9, readers=5)
    for index in (1, 0, 1):
        env.reset(seed=0, options={"task": tasks[index].task_id})
        while True:
            episode, asked = env._episode, env._asked()
            for agent in env.agents:
                assert env.infos[agent] == {
                    **request_facts(asked.get(agent), truncated=False),
                    **call_facts(episode.last.get(agent), episode.tally),
                    **episode_facts(episode, env._score, env._ending.reason),
                }
                assert tuple(env.infos[agent]) == tuple(INFO_FIELDS)
                env.infos[agent].clear()  # whoever changes an info changes nothing else
            if not asked:
                break
            env.step(odd(env.observe(env.agent_selection)))


# Call by call ---------------------------------------------------------------------------------


@pytest.mark.parametrize("readers", [2, 64])
def test_both_forms_make_the_same_calls(readers: int) -> None:
    options = {**STUBS, "readers": readers, "window": 80, "memory_tokens": 16, "reply_tokens": 40}
    turns, rounds = TurnBasedMemoryEnv(**options), ParallelMemoryEnv(**options)
    seen = take_turns(turns, odd)
    infos = take_rounds(rounds, odd)
    assert turns.workflow.calls == rounds.workflow.calls
    assert turns.workflow.turns == rounds.workflow.turns
    assert turns.infos == infos
    assert [info["call_id"] for _, info in seen] == list(range(len(seen)))


def test_the_next_agent_is_the_one_whose_call_is_next() -> None:
    env = TurnBasedMemoryEnv(**STUBS, readers=4)
    says = {"merger": "Ulm", "answerer": Answer("Ulm")}
    turns = take_turns(env, lambda v: says.get(v["role"]) or Read.no())
    order = [agent for agent, _ in turns]
    assert order == [f"reader_{i}" for i in (0, 1, 2, 3, 0, 1)] + ["answerer_0"]


def test_the_last_step_pays_everybody_the_same() -> None:
    env = TurnBasedMemoryEnv(**STUBS)
    env.reset(seed=0)
    speak = oracle(env.task)
    while not env.terminations[env.agent_selection]:
        assert set(env.rewards.values()) == {0.0}
        env.step(speak(env.observe(env.agent_selection)))
    assert env.rewards == dict.fromkeys([*env.possible_agents[:6], "merger_0", "answerer_0"], 1.2)


def test_a_failed_call_goes_to_its_agent_again() -> None:
    env = TurnBasedMemoryEnv(**STUBS)
    env.reset(seed=0)
    env.step(Read.no())
    env.fail("reader_1", "busy")
    assert env.infos["reader_1"]["status"] == "error"
    assert env.agent_selection == "reader_2"
    for _ in range(4):
        env.step(Read.no())
    assert (env.agent_selection, env.observe("reader_1")["chunk_index"]) == ("reader_1", 1)


def test_without_an_episode_nothing_can_be_done() -> None:
    env = TurnBasedMemoryEnv(**STUBS)
    with pytest.raises(ProtocolError, match=r"call reset\(\) first"):
        env.step("x")
    with pytest.raises(ProtocolError, match=r"there is no episode yet; call reset\(\) first"):
        env.state()


# The baselines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "method", "options"),
    [
        (RecurrentMemoryEnv, "recurrent", {"passes": 2}),
        (ParallelRecurrentMemoryEnv, "gated", {"gates": True}),
        (SinglePassEnv, "direct", {"context_tokens": 30}),
        (ParallelSinglePassEnv, "retrieval", {"method": "retrieval", "piece_tokens": 9, "top": 2}),
    ],
    ids=["recurrent", "gated", "direct", "retrieval"],
)
def test_a_baseline_does_what_its_workflow_does(
    kind: Any, method: str, options: dict[str, Any]
) -> None:
    env = kind(**STUBS, **options)
    env.reset(seed=0)
    speak = oracle(env.task)
    run = take_rounds if hasattr(env, "parallel") or "Parallel" in kind.__name__ else take_turns
    run(env, speak)
    own = {key: value for key, value in options.items() if key not in ("gates", "method")}
    twin = make_workflow(
        method,
        env.task.question,
        chunk_document(env.task.document, size=9),
        prompts="compact",
        **own,
    )
    play(twin, speak)
    assert (twin.calls, twin.turns, twin.reply) == (
        env.workflow.calls,
        env.workflow.turns,
        env.workflow.reply,
    )


def test_one_memorizer_reads_chunk_after_chunk() -> None:
    env = RecurrentMemoryEnv(**STUBS)
    assert env.possible_agents == ["memorizer_0", "answerer_0"]
    turns = take_turns(env, oracle(env.tasks[0]))
    assert [info["chunk_index"] for _, info in turns] == [0, 1, 2, 3, 4, 5, -1]
    assert turns[-1][1]["exit_reason"] == "read_all"


def test_a_gate_can_end_reading() -> None:
    env = RecurrentMemoryEnv(**STUBS, gates=True)
    env.reset(seed=0)
    turns = take_turns(env, oracle(env.task))
    assert env.infos["answerer_0"]["exit_reason"] == "exit_gate"
    assert [agent for agent, _ in turns] == ["memorizer_0", "memorizer_0", "answerer_0"]
    assert env.observe("memorizer_0")["gated"] == 0


def test_an_answerer_alone_reads_at_once() -> None:
    env = SinglePassEnv(**STUBS, method="retrieval", piece_tokens=9, top=2)
    assert env.possible_agents == ["answerer_0"]
    env.reset(seed=0)
    seen = env.observe("answerer_0")
    assert f"traveller {env.task.task_id[-1]} is Ulm" in seen["prompt"]
    ((_, info),) = take_turns(env, oracle(env.task))
    assert (info["exact_match"], info["gold_recall"], info["n_calls"]) == (1.0, 1.0, 1)


def test_methods_and_options_that_do_not_belong_are_refused() -> None:
    with pytest.raises(
        InvalidSetting, match="method must be 'direct' or 'retrieval', got 'pi_mem'"
    ):
        SinglePassEnv(**STUBS, method="pi_mem")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match=r"unknown options \['readers'\]"):
        RecurrentMemoryEnv(**STUBS, readers=3)
    with pytest.raises(InvalidSetting, match=r"unknown options \['passes'\]"):
        ParallelMemoryEnv(**STUBS, passes=3)


# Registration and Gymnasium -------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
def test_ids_make_environments_without_further_arguments(name: str) -> None:
    env = gym.make(f"mars_envs:mars_envs/{name}-v0")
    observation, info = env.reset(seed=0)
    assert observation["question"]
    assert info["n_chunks"] in (1, 8)


@pytest.mark.parametrize("name", ["parallel_memory", "recurrent_memory", "single_pass"])
@pytest.mark.parametrize("registry", ["aec", "parallel"])
def test_pettingzoo_makes_both_forms(name: str, registry: Any) -> None:
    env = pettingzoo.make(registry, f"mars_envs/{name}_v0", max_cycles=2, **STUBS)
    env.reset(seed=0)
    assert env.unwrapped.max_cycles == 2
    assert env.metadata["name"] == f"{name}_v0"


@pytest.mark.parametrize("name", IDS)
def test_the_spec_survives_pickle_and_json_and_holds_no_document(name: str) -> None:
    spec = gym.make(f"mars_envs/{name}-v0", **STUBS).spec
    assert spec is not None
    written = pickle.dumps(spec)
    assert b"says nothing new" not in written
    assert pickle.loads(written).make().reset(seed=0)[1]["n_chunks"] > 0
    assert json.loads(spec.to_json())["kwargs"]["tasks"] == STUBS["tasks"]


def test_one_learner_speaks_for_whoever_is_asked() -> None:
    env = gym.make("mars_envs/ParallelMemory-v0", **STUBS)
    observation, info = env.reset(seed=0)
    speak = oracle(env.unwrapped.env.task)  # type: ignore[attr-defined]
    roles, total, over = [], 0.0, False
    while not over:
        roles.append(info["agent"])
        observation, reward, terminated, truncated, info = env.step(speak(observation))
        total += float(reward)
        over = terminated or truncated
    readers = [f"reader_{i}" for i in range(6)]
    assert roles == [*readers, "merger_0", *readers, "answerer_0"]
    assert total == pytest.approx(1.2)


def test_a_reader_can_learn_among_partners() -> None:
    partners = {
        **{f"reader_{i}": "mars_envs.testing:odd_partner_reader" for i in range(1, 6)},
        "merger_0": "mars_envs.testing:odd_partner_reader",
        "answerer_0": "mars_envs.testing:odd_partner_reader",
    }
    view = "mars_envs/ParallelMemory-v0"
    env = gym.make(view, **STUBS, readers=6, partners=partners)
    check_memory(lambda: env.unwrapped.spec.make().unwrapped, policy=odd_reader, seeds=(0,))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_runs_in_vector_environments(mode: str) -> None:
    kwargs = {"shared_memory": False} if mode == "async" else {}
    envs = gym.make_vec(
        "mars_envs:mars_envs/ParallelMemory-v0",
        num_envs=2,
        vectorization_mode=mode,
        vector_kwargs=kwargs,
        **STUBS,
    )
    observations, infos = envs.reset(seed=0)
    assert len(observations["prompt"]) == 2
    assert observations["chunk_index"].tolist() == [0, 0]
    _, rewards, _, _, infos = envs.step((Read.no(), "漢字"))
    assert rewards.tolist() == [0.0, 0.0]
    assert infos["status"].tolist() == ["no", "malformed"]
    envs.close()


def test_common_wrappers_work() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(
        gym.wrappers.TimeLimit(gym.make("mars_envs/ParallelMemory-v0", **STUBS), 3)
    )
    env.reset(seed=0)
    for _ in range(3):
        _, _, terminated, truncated, info = env.step(Read.no())
    assert (terminated, truncated, info["episode"]["l"]) == (False, True, 3)
    with pytest.raises(TypeError, match="cannot be flattened: a text has no fixed shape"):
        gym.wrappers.FlattenObservation(gym.make("mars_envs/ParallelMemory-v0", **STUBS))


def test_a_plain_text_view_can_be_had_by_a_wrapper() -> None:
    check_text_gym(
        lambda: PromptOnly(gym.make("mars_envs/RecurrentMemory-v0", **STUBS)), seeds=(0,)
    )
