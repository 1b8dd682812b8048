"""ParallelMemoryEnv: readers, a merger and an answerer over one document, all at once."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from mars_envs import ParallelMemoryEnv, ProtocolError, TurnBasedMemoryEnv, parallel_memory_v0
from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.parallel_memory.infos import INFO_FIELDS, NOTHING
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.play import call_view, play, read_selected
from mars_envs.parallel_memory.replies import Answer, Merge, Read
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import Phase
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.synthetic import SyntheticTasks
from mars_envs.testing import check_memory, odd_reader, stub_reading_tasks

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_reading_tasks",
    "chunk_tokens": 9,  # a line of the stubs
    "prompts": "compact",
}
SHORT_DOCUMENT = "ignore:No agents present but not all possible_agents:UserWarning"
"""PettingZoo's remark on documents with fewer chunks than there are readers."""


def make(**options: Any) -> ParallelMemoryEnv:
    return ParallelMemoryEnv(**{**STUBS, **options})


def knows(view: Mapping[str, Any]) -> str:
    """Play every role rightly: find the city, remember it, say it."""
    if view["role"] == "reader":
        new = "city" in view["chunk"] and "Ulm" not in view["memory"]
        return Read.yes(view["chunk"].strip()) if new else Read.no()
    if view["role"] == "merger":
        return Merge("\n".join(note.text for note in read_selected(view["selected"])))
    words = view["memory"].split()
    return Answer(next((word for word in words if word.startswith("Ulm")), "unknown"))


def active(env: ParallelMemoryEnv, infos: Mapping[str, Any]) -> list[str]:
    return [agent for agent in env.agents if infos[agent]["active"]]


def run(
    env: ParallelMemoryEnv,
    speak: Callable[[Mapping[str, Any]], str] = knows,
    seed: int | None = 0,
    **options: Any,
) -> list[tuple[Any, ...]]:
    """Play an episode; return (observations, infos) of reset, then what each step returned."""
    observations, infos = env.reset(seed=seed, options=options)
    steps: list[tuple[Any, ...]] = [(observations, infos)]
    while env.agents:
        asked = active(env, infos)
        steps.append(env.step({agent: speak(observations[agent]) for agent in asked}))
        observations, infos = steps[-1][0], steps[-1][4]
    return steps


def last(steps: list[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(steps[-1][4]["answerer_0"])


# Standard checks ------------------------------------------------------------------------------


@pytest.mark.filterwarnings(SHORT_DOCUMENT)
@pytest.mark.parametrize("readers", [2, 64])
def test_pettingzoo_s_parallel_api_test_passes(readers: int) -> None:
    parallel_api_test(make(readers=readers), num_cycles=40)


def test_pettingzoo_s_parallel_seed_test_passes() -> None:
    parallel_seed_test(lambda: make(readers=3))


def test_as_an_aec_environment_it_passes_pettingzoo_s_api_test() -> None:
    api_test(parallel_to_aec(make(readers=3)), num_cycles=40)


def test_one_agent_after_the_other_keeps_to_max_cycles() -> None:
    class Factories:
        @staticmethod
        def parallel_env(**options: Any) -> ParallelMemoryEnv:
            return make(readers=1, chunk_tokens=1, **options)

        @classmethod
        def env(cls, **options: Any) -> Any:
            return parallel_to_aec(cls.parallel_env(**options))

    max_cycles_test(Factories)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"readers": 5, "window": 60, "memory_tokens": 8, "reply_tokens": 24, "mergers": 2},
        {"max_calls": 9, "readers": 4, "max_turns": 1, "strict": True},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"readers": 2},
                {"preset": "reference", "turn_bonus": "paper", "match": "math_strict"},
                {"merging": False, "order": "chunk_question_memory"},
                {"check": False, "max_turns": 2, "prompts": "prose"},
                {"max_cycles": 2},
            )
        ),
    ],
    ids=lambda options: ",".join(options) or "default",
)
def test_whole_episodes_keep_the_contract_and_repeat_exactly(options: dict[str, Any]) -> None:
    check_memory(lambda: make(**options), seeds=(0,))


def test_the_factory_takes_the_options_of_the_class() -> None:
    assert parallel_memory_v0.parallel_env(**STUBS, max_cycles=3).max_cycles == 3


# Who is asked, and what it sees ---------------------------------------------------------------


def test_an_episode_reads_merges_reads_again_and_answers() -> None:
    env = make()
    steps = run(env)
    phases = [step[0]["answerer_0"]["phase"] for step in steps]
    assert phases == [Phase.READ, Phase.MERGE, Phase.READ, Phase.ANSWER, Phase.DONE]
    assert env.workflow.answer == env.task.answers[0]
    assert last(steps)["exit_reason"] == "no_new_evidence"


def test_every_chunk_has_a_reader_of_its_own_where_there_are_enough() -> None:
    env = make()
    observations, infos = env.reset(seed=0)
    assert env.agents == [*(f"reader_{i}" for i in range(6)), "merger_0", "answerer_0"]
    assert active(env, infos) == env.agents[:6]
    lines = env.task.document.read(0, len(env.task.document)).splitlines(keepends=True)
    assert [observations[f"reader_{i}"]["chunk"] for i in range(6)] == lines
    assert [observations[f"reader_{i}"]["chunk_index"] for i in range(6)] == list(range(6))


def test_a_small_pool_reads_in_waves_a_reader_every_so_many_chunks() -> None:
    env = make(readers=4)
    steps = run(env)
    read = [
        {a: seen["chunk_index"] for a, seen in step[0].items() if seen["role"] == "reader"}
        for step in steps[:3]
    ]
    assert read[0] == {"reader_0": 0, "reader_1": 1, "reader_2": 2, "reader_3": 3}
    assert read[1] == {"reader_0": 4, "reader_1": 5}
    assert read[2] == {}


@pytest.mark.parametrize("speak", [knows, lambda view: odd_reader("", view, {}, 0)])
def test_the_number_of_readers_changes_nothing(speak: Any) -> None:
    def outcome(readers: int) -> tuple[Any, ...]:
        env = make(readers=readers, window=80, memory_tokens=16, reply_tokens=40)
        steps = run(env, speak)
        facts = {key: value for key, value in last(steps).items() if key != "ask_id"}
        return facts, env.workflow.calls, env.workflow.turns, steps[-1][1]["answerer_0"]

    expected = outcome(6)
    for readers in (1, 2, 3, 4, 5, 64):
        assert outcome(readers) == expected


def test_an_environment_does_what_the_loop_does() -> None:
    env = make(readers=4, max_turns=2)
    run(env)
    task = env.task
    loop = MemoryLoop(
        task.question,
        chunk_document(task.document, size=9),
        settings=memory_settings(max_turns=2),
        prompts="compact",
    )
    play(loop, knows)
    assert (loop.calls, loop.turns, loop.reply) == (
        env.workflow.calls,
        env.workflow.turns,
        env.workflow.reply,
    )


def test_an_observation_is_what_speakers_see() -> None:
    env = make()
    observations, _ = env.reset(seed=0)
    twin = MemoryLoop(
        env.task.question, chunk_document(env.task.document, size=9), prompts="compact"
    )
    for index, call in enumerate(twin.ask()):
        assert observations[f"reader_{index}"] == call_view(twin, call)


def test_those_who_are_not_asked_see_where_things_stand_and_no_text() -> None:
    env = make()
    observations, _ = env.reset(seed=0)
    assert observations["merger_0"] == {
        **dict.fromkeys(("prompt", "question", "memory", "chunk", "selected", "role"), ""),
        "phase": 0,
        "active": 0,
        "turn": 1,
        "max_turns": 3,
        "chunk_index": -1,
        "n_chunks": 6,
        "max_tokens": 0,
        "gated": 0,
    }


def test_the_merger_sees_what_was_found_and_where() -> None:
    env = make()
    steps = run(env)
    seen = steps[1][0]["merger_0"]
    (note,) = read_selected(seen["selected"])
    assert (note.first, note.last) == (1, 1)
    assert note.text in env.task.document.read(0, 1000)
    assert note.text in seen["prompt"]
    assert json.loads(seen["selected"])[0]["text"] == note.text


def test_the_answerer_sees_the_memory_alone() -> None:
    steps = run(make())
    seen = steps[3][0]["answerer_0"]
    assert (seen["chunk"], seen["selected"]) == ("", "")
    assert seen["memory"].startswith("The city of traveller")
    assert "says nothing new" not in seen["prompt"]


def test_truth_shows_in_no_observation_and_no_state() -> None:
    def seen(answers: tuple[str, ...], evidence: Any) -> list[Any]:
        (task,) = stub_reading_tasks(1)
        env = make(tasks=[dataclasses.replace(task, answers=answers, evidence=evidence)])
        steps = run(env)
        return [step[0] for step in steps]

    (task,) = stub_reading_tasks(1)
    assert seen(task.answers, task.evidence) == seen(("never",), ())


def test_spaces_are_the_same_objects_every_time() -> None:
    env = make()
    for agent in ("reader_63", "merger_0"):
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
    with pytest.raises(KeyError, match="no agent 'reader_64'"):
        env.observation_space("reader_64")


# Tasks ----------------------------------------------------------------------------------------


def test_a_task_can_be_chosen_by_its_id() -> None:
    env = make()
    _, infos = env.reset(seed=0, options={"task": "stub/2"})
    assert (infos["reader_0"]["task_id"], env.task.answers) == ("stub/2", ("Ulm2",))


def test_an_unknown_task_is_a_clear_error_and_leaves_the_episode_alone() -> None:
    env = make()
    env.reset(seed=0, options={"task": "stub/1"})
    env.step({})
    with pytest.raises(InvalidTask, match=r"no task 'x' among 3 tasks .the first are 'stub/0'"):
        env.reset(options={"task": "x"})
    with pytest.raises(InvalidTask, match=r"is the id of a task, a text, got \['stub/0'\]"):
        env.reset(options={"task": ["stub/0"]})
    assert env.task.task_id == "stub/1"
    assert len(env.workflow.calls) == 6


@pytest.mark.parametrize("tasks", [None, 5, 2.5])
def test_what_holds_no_tasks_is_refused(tasks: Any) -> None:
    message = rf"the tasks passed in: expected a list of ReadingTask, or a name, got {tasks}"
    with pytest.raises(InvalidTask, match=message):
        make(tasks=tasks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("x", r"options are a dict, such as \{\"task\": task_id\}, or None, got 'x'"),
        ({"tasks": "stub/2"}, "unknown option 'tasks' of reset; did you mean 'task'"),
        ({"task_id": "stub/2"}, "unknown option 'task_id' of reset; did you mean 'task'"),
        (
            {"document": "It rained."},
            r"reset has no option 'document': it belongs to a task\. Give",
        ),
        ({"question": "Who?"}, "reset has no option 'question'"),
    ],
)
def test_options_of_reset_that_would_play_another_episode_are_refused(
    options: Any, message: str
) -> None:
    env = make()
    env.reset(seed=0, options={"task": "stub/1"})
    with pytest.raises(InvalidSetting, match=message):
        env.reset(seed=0, options=options)
    assert env.task.task_id == "stub/1"


def test_options_of_reset_that_are_somebody_else_s_are_ignored() -> None:
    _, infos = make().reset(seed=0, options={"options": 1, 2: 3, "task": "stub/2"})
    assert infos["reader_0"]["task_id"] == "stub/2"


def test_tasks_differ_between_episodes_and_repeat_with_the_seed() -> None:
    env = make()
    ids = []
    for episode in range(12):
        env.reset(seed=0 if episode == 0 else None)
        ids.append(env.task.task_id)
    assert len(set(ids)) == 3
    env.reset(seed=0)
    assert env.task.task_id == ids[0]


def test_tasks_are_built_when_they_are_drawn_and_kept_while_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[Any] = []
    build = SyntheticTasks.__getitem__
    monkeypatch.setattr(
        SyntheticTasks, "__getitem__", lambda self, i: built.append(i) or build(self, i)
    )
    env = make(tasks="kg2?tokens=300&n=5", chunk_tokens=100)
    name = env.tasks.ids[3]  # type: ignore[attr-defined]
    assert built == []
    for seed in range(3):
        env.reset(seed=seed, options={"task": name})
        assert env.task.task_id == name
    assert built == [3]


# Rewards and endings --------------------------------------------------------------------------


def test_a_right_answer_pays_the_team_once_at_the_end() -> None:
    steps = run(make())
    for step in steps[1:-1]:
        assert set(step[1].values()) == {0.0}
    # Two turns, the first productive, of three: all of the bonus of 0.2.
    assert set(steps[-1][1].values()) == {1.2}
    assert len(steps[-1][1]) == 8
    info = last(steps)
    assert (info["reward_answer"], info["reward_turns"]) == (1.0, pytest.approx(0.2))
    assert (info["exact_match"], info["f1"], info["sub_em"]) == (1.0, 1.0, 1.0)
    assert all(steps[-1][2].values())
    assert not any(steps[-1][3].values())


def test_the_published_bonus_pays_half_for_two_of_three_turns() -> None:
    steps = run(make(turn_bonus="paper"))
    assert set(steps[-1][1].values()) == {1.1}


def test_a_wrong_answer_pays_nothing() -> None:
    steps = run(make(), lambda v: Answer("Rome") if v["role"] == "answerer" else knows(v))
    assert set(steps[-1][1].values()) == {0.0}
    assert last(steps)["stop_reason"] == "answered"
    assert last(steps)["exact_match"] == 0.0


def test_scores_are_unknown_until_there_is_an_answer() -> None:
    for step in run(make())[1:-1]:
        for info in step[4].values():
            assert (info["exact_match"], info["f1"], info["sub_em"]) == (-1.0, -1.0, -1.0)


def test_reaching_max_turns_is_an_end_of_its_own() -> None:
    steps = run(make(max_turns=1))
    info = last(steps)
    assert (info["exit_reason"], info["stop_reason"]) == ("max_turns", "answered")
    assert (info["turns_used"], info["turns_left"]) == (1, 0)
    assert all(steps[-1][2].values())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_cycles": 2}, "max_cycles"),
        ({"max_calls": 7}, "calls"),
        ({"max_seconds": 1.5}, "seconds"),
    ],
)
def test_a_limit_from_outside_truncates_and_scores_nothing(
    options: dict[str, Any], reason: str
) -> None:
    ticks = iter(range(1000))
    steps = run(make(**options, clock=lambda: next(ticks) / 2))
    info = last(steps)
    assert (info["stop_reason"], info["exit_reason"]) == (reason, "")
    assert all(steps[-1][3].values())
    assert not any(steps[-1][2].values())
    assert set(steps[-1][1].values()) == {0.0}
    assert info["exact_match"] == NOTHING


def test_a_budget_of_calls_is_spent_exactly_in_the_middle_of_a_wave() -> None:
    steps = run(make(readers=4, max_calls=5))
    assert [step[4]["answerer_0"]["n_calls"] for step in steps[1:]] == [4, 5]
    assert last(steps)["stop_reason"] == "calls"


# Infos ----------------------------------------------------------------------------------------


def test_infos_join_each_text_with_what_came_of_it() -> None:
    env = make(readers=4)
    steps = run(env)
    met = []
    for before, after in itertools.pairwise(steps):
        infos = before[1] if len(before) == 2 else before[4]
        for agent, info in after[4].items():
            if infos[agent]["active"]:
                met.append((info["turn"], agent, info["chunk_index"], info["status"]))
    assert len(set(met)) == len(met) == len(env.workflow.calls)
    assert met[:2] == [(1, "reader_0", 0, "no"), (1, "reader_1", 1, "yes")]
    assert met[-1] == (2, "answerer_0", NOTHING, "done")


def test_readers_are_told_whether_their_chunk_held_evidence_and_whether_they_were_right() -> None:
    env = make()
    steps = run(env, lambda v: Read.no() if v["role"] == "reader" else knows(v))
    infos = steps[1][4]
    assert [infos[f"reader_{i}"]["chunk_gold"] for i in range(6)] == [0, 1, 0, 0, 0, 0]
    assert [infos[f"reader_{i}"]["read_score"] for i in range(6)] == [1, -1, 1, 1, 1, 1]
    assert infos["answerer_0"]["gold_recall"] == 0.0


def test_recall_of_gold_chunks_is_counted() -> None:
    env = make()
    recalls = [step[4]["answerer_0"]["gold_recall"] for step in run(env)[1:]]
    assert recalls == [1.0] * 4


def test_where_the_evidence_is_unknown_infos_say_so() -> None:
    tasks = [dataclasses.replace(task, evidence=()) for task in stub_reading_tasks()]
    info = run(make(tasks=tasks))[1][4]["reader_1"]
    assert (info["chunk_gold"], info["read_score"], info["gold_recall"]) == (-1, 0, -1.0)


@pytest.mark.parametrize(("reply", "score"), [(Read.yes("It is 12345."), -1), (Read.no(), 1)])
def test_where_nothing_is_evidence_a_yes_is_wrong_and_a_no_is_right(reply: str, score: int) -> None:
    env = make(tasks="none?tokens=200&n=1", chunk_tokens=50)
    infos = run(env, lambda v: reply if v["role"] == "reader" else knows(v))[1][4]
    for reader in ("reader_0", "reader_1", "reader_2", "reader_3"):
        info = infos[reader]
        assert (info["chunk_gold"], info["read_score"], info["gold_recall"]) == (0, score, -1.0)


def test_spans_say_where_a_chunk_stands() -> None:
    env = make(readers=1)
    document = env.tasks[0].document
    observations, infos = env.reset(seed=0, options={"task": "stub/0"})
    for _ in range(6):
        chunk = observations["reader_0"]["chunk"]
        observations, _, _, _, infos = env.step({"reader_0": Read.no()})
        span = infos["reader_0"]["span_start"], infos["reader_0"]["span_end"]
        assert document.read(*span) == chunk


def test_the_document_is_in_no_info() -> None:
    for step in run(make())[1:]:
        for info in step[4].values():
            assert set(info) == set(INFO_FIELDS)
            texts = [value for value in info.values() if isinstance(value, str)]
            assert max(map(len, texts)) < 20


# Odd actions and failures ---------------------------------------------------------------------


def test_overlong_and_unencodable_texts_are_cut_and_repaired() -> None:
    env = make()
    env.reset(seed=0)
    infos = env.step({"reader_0": "x" * (2**20 + 1), "reader_1": "\ud800"})[4]
    flags = [
        (infos[a]["action_truncated"], infos[a]["action_repaired"])
        for a in ("reader_0", "reader_1")
    ]
    assert flags == [(True, False), (False, True)]


def test_an_action_that_is_no_text_is_refused_and_changes_nothing() -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"an action is a text \(str\), got int"):
        env.step({"reader_0": Read.no(), "reader_1": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"actions for \['reader_9'\], but the agents are"):
        env.step({"reader_9": "x"})
    assert len(env.workflow.calls) == 0


def test_a_missing_reader_has_failed_which_is_not_a_no() -> None:
    env = make(retries=0)
    _observations, infos = env.reset(seed=0)
    actions = {agent: Read.no() for agent in active(env, infos) if agent != "reader_1"}
    _, _, _, _, infos = env.step(actions)
    assert infos["reader_1"]["status"] == "error"
    assert (infos["answerer_0"]["turns_used"], infos["answerer_0"]["exit_reason"]) == (2, "")
    assert active(env, infos) == ["reader_1"]


def test_a_failed_read_is_asked_again_under_another_id() -> None:
    env = make()
    env.reset(seed=0)
    env.fail("reader_1", "the server is busy")
    infos = env.step({f"reader_{i}": Read.no() for i in (0, 2, 3, 4, 5)})[4]
    assert active(env, infos) == ["reader_1"]
    assert infos["reader_1"]["ask_id"] == 6
    _observations, _, _, _, infos = env.step({"reader_1": Read.yes("The city is Ulm0.")})
    assert (infos["reader_1"]["attempt"], infos["reader_1"]["found"]) == (1, True)
    assert infos["answerer_0"]["n_failed"] == 1


def test_too_many_failures_cut_the_episode_off_without_a_score() -> None:
    env = make()
    env.reset(seed=0)
    while env.agents:
        _, rewards, terminations, truncations, infos = env.step({})
    info = infos["answerer_0"]
    assert (info["stop_reason"], info["exit_reason"]) == ("backend_error", "backend_error")
    assert info["exact_match"] == NOTHING
    assert set(rewards.values()) == {0.0}
    assert all(truncations.values())
    assert not any(terminations.values())


def test_others_read_what_a_reader_leaves_that_is_gone_for_good() -> None:
    env = make(readers=3)
    _, infos = env.reset(seed=0)
    env.fail("reader_1", "no more texts", permanent=True)
    read: list[int] = []
    asked = [agent for agent in active(env, infos) if agent != "reader_1"]
    while env.agents and infos["answerer_0"]["phase"] == Phase.READ:
        _observations, _, _, _, infos = env.step(dict.fromkeys(asked, Read.no()))
        read += [infos[agent]["chunk_index"] for agent in asked]
        asked = active(env, infos)
        assert "reader_1" not in asked
    assert sorted(read) == list(range(6))


def test_without_readers_the_episode_is_truncated() -> None:
    env = make(readers=2)
    env.reset(seed=0)
    for agent in ("reader_0", "reader_1"):
        env.fail(agent, "gone", permanent=True)
    truncations, infos = env.step({})[3:]
    assert all(truncations.values())
    assert infos["answerer_0"]["stop_reason"] == "agents"


def test_only_those_who_are_asked_can_fail() -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(ProtocolError, match=r"'merger_0' cannot fail: it is the turn of reader_0"):
        env.fail("merger_0", "no")


def test_out_of_order_calls_say_so() -> None:
    env = make()
    with pytest.raises(ProtocolError, match=r"call reset\(\) first"):
        env.step({})
    run(env)
    with pytest.raises(ProtocolError, match=r"call reset\(\) first"):
        env.step({})


# Atomic steps, copies and pickles -------------------------------------------------------------


class Moody:
    """Compact prompts that fail while they are in the mood to."""

    mood = False

    def __getattr__(self, name: str) -> Any:
        from mars_envs.parallel_memory import compact_prompts

        function = getattr(compact_prompts, name)

        def prompt(view: Any) -> str:
            if Moody.mood:
                raise OSError("the disk is full")
            return str(function(view))

        return prompt

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def test_a_step_that_raises_changes_nothing_and_can_be_repeated() -> None:
    expected = run(make(readers=4))
    env = make(readers=4, prompts=Moody())
    observations, infos = env.reset(seed=0)
    steps: list[tuple[Any, ...]] = [(observations, infos)]
    while env.agents:
        actions = {agent: knows(observations[agent]) for agent in active(env, infos)}
        state = env.state()
        if env.workflow.phase != Phase.ANSWER:  # after the answer no prompt is made
            Moody.mood = True
            for _ in range(2):
                with pytest.raises(OSError, match="the disk is full"):
                    env.step(actions)
            assert (env.state() == state).all()
            Moody.mood = False
        steps.append(env.step(actions))
        observations, infos = steps[-1][0], steps[-1][4]
    assert steps == expected


def test_a_call_by_call_step_that_raises_can_be_repeated() -> None:
    calm = TurnBasedMemoryEnv(**STUBS)
    env = TurnBasedMemoryEnv(**{**STUBS, "prompts": Moody()})
    for one in (calm, env):
        one.reset(seed=0)
    for _ in range(14):
        agent = env.agent_selection
        before = env.observe(agent), dict(env.infos)
        if env.workflow.phase != Phase.ANSWER:
            Moody.mood = True
            with pytest.raises(OSError, match="the disk is full"):
                env.step(knows(before[0]))
            with pytest.raises(OSError, match="the disk is full"):
                env.fail(agent, "busy")
            Moody.mood = False
            assert (env.observe(agent), env.infos, env.agent_selection) == (*before, agent)
        for one in (calm, env):
            one.step(knows(before[0]))
        assert env.infos == calm.infos
    assert all(env.terminations.values())


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_episode_goes_on_alike(clone: Any) -> None:
    for stop in range(4):
        env = make(readers=4)
        observations, infos = env.reset(seed=0)
        for _ in range(stop):
            observations, _, _, _, infos = env.step(
                {a: knows(observations[a]) for a in active(env, infos)}
            )
        twin = clone(env)
        assert (twin.state() == env.state()).all()
        while env.agents:
            actions = {a: knows(observations[a]) for a in active(env, infos)}
            left, right = env.step(actions), twin.step(actions)
            assert left == right
            observations, infos = left[0], left[4]
        assert twin.workflow.calls == env.workflow.calls


def test_a_pickle_names_its_source_and_holds_no_document() -> None:
    env = make(tasks="mars_envs.testing:stub_reading_tasks")
    env.reset(seed=0)
    assert b"says nothing new" not in pickle.dumps(env)


def test_the_state_says_where_things_stand() -> None:
    env = make()
    observations, infos = env.reset(seed=0)
    third = pytest.approx(1 / 3)
    assert env.state().tolist() == [1, 0, 0, 0, third, 0, 0, 0]
    observations, _, _, _, infos = env.step({a: knows(observations[a]) for a in active(env, infos)})
    assert env.state().tolist() == [0, 1, 0, 0, third, 1, pytest.approx(1 / 6), 0]
    assert env.state_space.contains(env.state())
    assert env.state().dtype == np.float32


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readers": 0}, "readers must be a whole number of at least 1, got 0"),
        ({"mergers": 1.5}, "mergers must be a whole number of at least 1, got 1.5"),
        ({"max_turns": 0}, "max_turns must be a whole number of at least 1"),
        ({"max_calls": 0}, "max_calls must be a whole number of at least 1, or None"),
        ({"max_cycles": True}, "max_cycles must be a whole number"),
        ({"max_seconds": 0}, "max_seconds must be above 0, or None"),
        ({"render_mode": "html"}, "render_mode must be 'ansi', 'human', 'rgb_array' or None"),
        ({"match": "vibes"}, "unknown match 'vibes'"),
        ({"tempo": 3}, r"unknown options \['tempo'\]; expected some of .*chunk_tokens.*max_turns"),
        ({"prompts": "haiku"}, "haiku"),
        ({"chunk_token": 9}, r"\['chunk_token'\] \(did you mean chunk_tokens\?\)"),
        ({"chunk_tokens": 0}, "chunk_tokens must be a whole number of at least 1, got 0"),
        ({"chunk_tokens": "9"}, "chunk_tokens must be a whole number of at least 1, got '9'"),
        ({"document_tokens": 0}, "document_tokens must be a whole number of at least 1, or None"),
        ({"overlap": 9}, r"overlap must be .* less than a chunk has \(9\), got 9"),
        ({"max_seconds": "a"}, "max_seconds must be above 0, or None, got 'a'"),
        ({"max_seconds": True}, "max_seconds must be above 0, or None, got True"),
        ({"clock": None}, "clock must be a function that returns seconds, got None"),
        ({"weight": "a"}, "weight must be a number of at least 0 and finite, got 'a'"),
        ({"weight": True}, "weight must be a number of at least 0 and finite, got True"),
        ({"max_turns": 256}, "numbers 255 turns at most, got 256"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        make(**options)
