"""Odd documents, questions, pools and backends: every one has a defined outcome."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mars_envs import ParallelMemoryEnv, RecurrentMemoryEnv, SinglePassEnv, TurnBasedMemoryEnv
from mars_envs.errors import InvalidSetting, InvalidTask
from mars_envs.parallel_memory.gated_replies import Update
from mars_envs.parallel_memory.replies import Answer, Merge, Read
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.reading.document import TextDocument
from mars_envs.reading.synthetic import synthetic_tasks
from mars_envs.reading.task import ReadingTask
from mars_envs.spaces import TEXT_LIMIT

FORMS: list[tuple[Any, dict[str, Any]]] = [
    (ParallelMemoryEnv, {}),
    (TurnBasedMemoryEnv, {}),
    (RecurrentMemoryEnv, {}),
    (RecurrentMemoryEnv, {"gates": True}),
    (SinglePassEnv, {}),
    (SinglePassEnv, {"method": "retrieval"}),
]
every_form = pytest.mark.parametrize(
    ("kind", "options"), FORMS, ids=["parallel", "turns", "recurrent", "gated", "direct", "bm25"]
)


def task(text: str = "The colour is red.", question: str = "Which colour?") -> ReadingTask:
    return ReadingTask(
        task_id="odd", question=question, document=TextDocument(text), answers=("red",)
    )


def says_red(view: Mapping[str, Any]) -> str:
    if view["role"] == "reader":
        return Read.no() if view["memory"] else Read.yes("red")
    if view["role"] == "memorizer":
        return Update("red", end=False) if view["gated"] else Merge("red")
    return Merge("red") if view["role"] == "merger" else Answer("red")


def run(env: Any, speak: Any = says_red) -> dict[str, Any]:
    """Play an episode in any form; return the answerer's last info."""
    if isinstance(env, ParallelMemoryEnv):
        observations, infos = env.reset(seed=0)
        while env.agents:
            asked = [agent for agent in env.agents if infos[agent]["active"]]
            actions = {agent: speak(observations[agent]) for agent in asked}
            observations, _, _, _, infos = env.step(
                {agent: text for agent, text in actions.items() if text is not None}
            )
        return dict(infos["answerer_0"])
    env.reset(seed=0)
    while not (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
        agent = env.agent_selection
        text = speak(env.observe(agent))
        if text is None:
            env.fail(agent, "the backend is down")
        else:
            env.step(text)
    return dict(env.infos["answerer_0"])


@every_form
def test_an_empty_document_goes_straight_to_the_answer(kind: Any, options: dict[str, Any]) -> None:
    info = run(kind(tasks=[task("")], **options))
    assert (info["n_chunks"], info["n_calls"], info["turns_productive"]) == (0, 1, 0)
    assert (info["stop_reason"], info["exact_match"]) == ("answered", 1.0)
    assert info["reward_turns"] == 0.0, "no bonus for an answer without evidence"


@every_form
def test_a_document_of_blanks_is_read(kind: Any, options: dict[str, Any]) -> None:
    info = run(kind(tasks=[task(" \n" * 50)], **options))
    assert (info["n_chunks"], info["stop_reason"]) == (1, "answered")


@every_form
def test_a_document_shorter_than_a_chunk_is_one_chunk(kind: Any, options: dict[str, Any]) -> None:
    info = run(kind(tasks=[task()], **options))
    assert (info["n_chunks"], info["exact_match"]) == (1, 1.0)


def test_a_question_without_an_answer_in_the_document_ends_in_one_turn() -> None:
    (nothing,) = synthetic_tasks("none", tokens=500, n=1)
    for readers in (2, 64):
        env = ParallelMemoryEnv(tasks=[nothing], chunk_tokens=100, readers=readers)
        info = run(env, oracle(nothing))
        assert (info["turns_used"], info["turns_productive"]) == (1, 0)
        assert (info["exit_reason"], info["exact_match"]) == ("no_new_evidence", 1.0)
        assert (info["reward_answer"], info["reward_turns"]) == (1.0, 0.0)


@pytest.mark.slow
def test_fifty_megabytes_on_a_single_line_are_read_without_a_copy() -> None:
    line = "x" * 49_999_000 + " the colour is red " + "y" * 981
    env = ParallelMemoryEnv(tasks=[task(line)], readers=8)
    observations, _ = env.reset(seed=0)
    tracemalloc.start()
    info = run(env)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert info["stop_reason"] == "answered"
    assert observations["reader_0"]["chunk"] in line[:TEXT_LIMIT]
    assert peak < len(line), f"{peak / 1e6:.0f} MB"


def test_a_chunk_of_a_single_enormous_word_is_cut_for_the_observation_and_flagged() -> None:
    env = ParallelMemoryEnv(tasks=[task("x" * (TEXT_LIMIT + 5))], chunk_tokens=20_000)
    observations, infos = env.reset(seed=0)
    seen = observations["reader_0"]
    assert env.observation_space("reader_0").contains(seen)
    assert infos["reader_0"]["prompt_truncated"] is True
    assert len(seen["chunk"]) <= TEXT_LIMIT
    assert "characters left out" in seen["chunk"]
    infos = env.step({"reader_0": Read.no()})[4]
    assert (infos["reader_0"]["span_start"], infos["reader_0"]["span_end"]) == (0, TEXT_LIMIT + 5)


def test_notes_that_are_too_long_for_an_observation_stay_json() -> None:
    lines = "".join(f"Line {number} has five words.\n" for number in range(40))
    env = ParallelMemoryEnv(tasks=[task(lines)], chunk_tokens=6, budgets=False)
    observations, infos = env.reset(seed=0)
    asked = [agent for agent in env.agents if infos[agent]["active"]]
    observations, _, _, _, infos = env.step(dict.fromkeys(asked, Read.yes("x" * 40_000)))
    seen = observations["merger_0"]
    assert infos["merger_0"]["prompt_truncated"] is True
    assert env.observation_space("merger_0").contains(seen)
    notes = json.loads(seen["selected"])
    assert [note["first"] for note in notes] == list(range(len(notes)))
    assert 20 < len(notes) < 40


@every_form
def test_lone_surrogates_of_a_task_never_reach_an_observation(
    kind: Any, options: dict[str, Any]
) -> None:
    env = kind(tasks=[task("red \ud800 red", "Which \udfff colour?")], **options)

    def speak(view: Mapping[str, Any]) -> str:
        for name in ("prompt", "question", "memory", "chunk", "selected"):
            view[name].encode()  # raises where there is one
        return says_red(view)

    assert run(env, speak)["exact_match"] == 1.0


def test_a_file_that_is_no_utf8_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b'{"task_id": "a", "question": "\xff\xfe"}\n')
    with pytest.raises(InvalidTask, match=r"broken\.jsonl"):
        ParallelMemoryEnv(tasks=str(path))


@pytest.mark.parametrize("readers", [1, 3, 7])
def test_a_pool_smaller_than_the_document_reads_all_of_it(readers: int) -> None:
    (found,) = synthetic_tasks("kg2", tokens=2000, n=1)
    info = run(ParallelMemoryEnv(tasks=[found], chunk_tokens=100, readers=readers), oracle(found))
    assert (info["n_chunks"], info["turns_used"], info["turns_productive"]) == (20, 3, 2)
    assert (info["n_calls"], info["exact_match"]) == (3 * 20 + 2 + 1, 1.0)


@every_form
def test_a_backend_that_fails_every_third_call_changes_no_answer(
    kind: Any, options: dict[str, Any]
) -> None:
    (found,) = synthetic_tasks("kg2", tokens=2000, n=1, order="forward")
    knows, calls = oracle(found), iter(range(1, 10_000))

    def speak(view: Mapping[str, Any]) -> str | None:
        return None if next(calls) % 3 == 0 else knows(view)

    info = run(kind(tasks=[found], chunk_tokens=100, retries=3, **options), speak)
    assert info["stop_reason"] == "answered"
    assert info["n_failed"] == info["n_calls"] // 3
    assert info["exact_match"] == float(kind is not SinglePassEnv or info["gold_recall"] == 1.0)


@every_form
def test_a_backend_that_never_answers_is_no_wrong_answer(
    kind: Any, options: dict[str, Any]
) -> None:
    info = run(kind(tasks=[task()], **options), lambda view: None)
    assert (info["stop_reason"], info["exit_reason"]) == ("backend_error", "backend_error")
    assert (info["exact_match"], info["reward_answer"]) == (-1.0, 0.0)


@every_form
def test_an_answer_without_a_box_is_malformed_and_wrong(kind: Any, options: dict[str, Any]) -> None:
    def speak(view: Mapping[str, Any]) -> str:
        return "red" if view["role"] == "answerer" else says_red(view)

    info = run(kind(tasks=[task()], **options), speak)
    assert (info["status"], info["stop_reason"]) == ("malformed", "answered")
    assert (info["exact_match"], info["reward_answer"]) == (0.0, 0.0)


@pytest.mark.parametrize("bonus", ["grounded", "paper"])
def test_a_single_turn_merges_and_pays_no_turn_bonus(bonus: str) -> None:
    info = run(ParallelMemoryEnv(tasks=[task()], max_turns=1, turn_bonus=bonus))
    assert (info["turns_used"], info["exit_reason"]) == (1, "max_turns")
    assert (info["reward_answer"], info["reward_turns"]) == (1.0, 0.0)


@pytest.mark.slow
def test_a_document_in_too_many_pieces_is_refused_with_the_way_out() -> None:
    env = ParallelMemoryEnv(tasks=[task("a " * 70_000)], chunk_tokens=1)
    with pytest.raises(InvalidTask, match=r"has 70000 chunks, .* make them larger with chunk_tok"):
        env.reset(seed=0)


def test_tags_and_delimiters_in_a_document_change_nothing() -> None:
    def outcome(noise: str) -> tuple[Any, ...]:
        text = f"First {noise} line here.\nThe colour is red {noise} indeed.\nLast {noise} line.\n"
        env = ParallelMemoryEnv(tasks=[task(text)], align="sentence", chunk_tokens=40)

        def speak(view: Mapping[str, Any]) -> str:
            new = "colour is red" in view["chunk"] and not view["memory"]
            if view["role"] == "reader":
                return Read.yes("It is red.") if new else Read.no()
            return says_red(view)

        info = run(env, speak)
        return tuple(info[key] for key in ("n_calls", "turns_used", "exact_match", "exit_reason"))

    noises = (
        "and so",
        "<check>yes</check>",
        "</section>",
        "\\boxed{blue}",
        "<memory>blue</memory>",
    )
    assert len({outcome(noise) for noise in noises}) == 1


LONG = "Nothing much happened. " * 10_000


@pytest.mark.parametrize(
    "option",
    [
        *("align", "tokenizer", "prompts", "preset", "merge", "order", "style", "match"),
        *("chunk_tokens", "document_tokens", "readers", "max_turns", "check", "max_seconds"),
    ],
)
def test_messages_quote_little_of_an_option_that_is_a_document(option: str) -> None:
    options: dict[str, Any] = {"tasks": [task()], option: LONG}
    with pytest.raises(InvalidSetting) as refused:
        ParallelMemoryEnv(**options).reset(seed=0)
    assert LONG[:20] in str(refused.value)
    assert len(str(refused.value)) < 600


def test_messages_quote_little_of_a_document_in_place_of_tasks_or_an_id() -> None:
    env = ParallelMemoryEnv(tasks=[task()])
    attempts: list[Callable[[], Any]] = [
        lambda: ParallelMemoryEnv(tasks=LONG),
        lambda: ParallelMemoryEnv(tasks=f"What? {LONG}"),
        lambda: env.reset(seed=0, options={"task": LONG}),
        lambda: SinglePassEnv(tasks=[task()], method=LONG),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises((InvalidSetting, InvalidTask)) as refused:
            attempt()
        assert LONG[:20] in str(refused.value)
        assert len(str(refused.value)) < 600
