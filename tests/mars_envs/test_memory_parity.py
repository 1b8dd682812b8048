"""A hand-driven episode under `reference` ends as the released workflow is documented to.

Every branch of the method is a row: what the models say, and what must come of it. The values are
worked out by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.reward import episode_reward, reward_settings
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.workflow import Call, Phase
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.document import TextDocument
from mars_envs.reading.task import ReadingTask

NO = "<check>no</check>"
YES = "<check>yes</check>"
RIGHT = "It is \\boxed{Ada}."
CHUNKS = ("alpha ", "bravo ", "charlie")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the models say in an episode of three chunks, and its outcome."""

    name: str
    reads: list[list[str]]
    """By turn."""
    merges: list[str] = field(default_factory=list)
    answer: str = RIGHT
    max_turns: int = 3
    kept: list[list[str]]
    """By turn: the notes that go into the merge, whole replies."""
    memories: list[str]
    """By turn: at its end."""
    exit: str
    reward: float
    """With the `paper` bonus."""
    boxed: str = "Ada"


def say(body: str) -> str:
    return f"{YES} {body}"


CASES = [
    Case(
        name="nobody finds anything: no merge, an answer from an empty memory",
        reads=[[NO, NO, NO]],
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=1.2,
    ),
    Case(
        name="one productive turn and an empty one that confirms it",
        reads=[[NO, say("b"), NO], [NO, NO, NO]],
        merges=["m1"],
        kept=[[say("b")], []],
        memories=["m1", "m1"],
        exit="no_new_evidence",
        reward=1.1,
    ),
    Case(
        name="two productive turns and an empty one",
        reads=[[say("a"), NO, NO], [NO, NO, say("c")], [NO, NO, NO]],
        merges=["m1", "m2"],
        kept=[[say("a")], [say("c")], []],
        memories=["m1", "m2", "m2"],
        exit="no_new_evidence",
        reward=1.0,
    ),
    Case(
        name="the last turn merges, too",
        reads=[[say("a"), NO, NO], [NO, say("b"), NO], [NO, NO, say("c")]],
        merges=["m1", "m2", "m3"],
        kept=[[say("a")], [say("b")], [say("c")]],
        memories=["m1", "m2", "m3"],
        exit="max_turns",
        reward=1.0,
    ),
    Case(
        name="a single turn, productive: it merges, and there is no bonus",
        reads=[[say("a"), NO, say("c")]],
        merges=["m1"],
        max_turns=1,
        kept=[[say("a"), say("c")]],
        memories=["m1"],
        exit="max_turns",
        reward=1.0,
    ),
    Case(
        name="a single turn, empty",
        reads=[[NO, NO, NO]],
        max_turns=1,
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=1.0,
    ),
    Case(
        name="the literal no counts wherever it stands, in any case",
        reads=[[f"{YES} but then {NO}", "I think <CHECK>No</CHECK>", NO]],
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=1.2,
    ),
    Case(
        name="only the literal counts: a no with blanks is a yes",
        reads=[["<check> no </check>", NO, NO], [NO, NO, NO]],
        merges=["m1"],
        kept=[["<check> no </check>"], []],
        memories=["m1", "m1"],
        exit="no_new_evidence",
        reward=1.1,
    ),
    Case(
        name="no tag at all is a yes, even a reply of nothing",
        reads=[["b stands here", "", NO], [NO, NO, NO]],
        merges=["m1"],
        kept=[["b stands here", ""], []],
        memories=["m1", "m1"],
        exit="no_new_evidence",
        reward=1.1,
    ),
    Case(
        name="only a yes tag is a yes; the whole reply goes to the merger",
        reads=[[NO, YES, NO], [NO, NO, NO]],
        merges=["m1"],
        kept=[[YES], []],
        memories=["m1", "m1"],
        exit="no_new_evidence",
        reward=1.1,
    ),
    Case(
        name="a merger's reply is the memory as it stands, stripped",
        reads=[[say("a"), NO, NO], [NO, NO, NO]],
        merges=["\n <think>hm</think> <check>no</check> m1 \n"],
        kept=[[say("a")], []],
        memories=["<think>hm</think> <check>no</check> m1"] * 2,
        exit="no_new_evidence",
        reward=1.1,
    ),
    Case(
        name="an empty merge leaves an empty memory",
        reads=[[say("a"), NO, NO], [say("a"), NO, NO], [NO, NO, NO]],
        merges=["m1", " "],
        kept=[[say("a")], [say("a")], []],
        memories=["m1", "", ""],
        exit="no_new_evidence",
        reward=1.0,
    ),
    Case(
        name="the same fact may be reported in every turn",
        reads=[[say("a"), NO, NO]] * 3,
        merges=["m1", "m1", "m1"],
        kept=[[say("a")]] * 3,
        memories=["m1"] * 3,
        exit="max_turns",
        reward=1.0,
    ),
    Case(
        name="of several boxes the last counts, braces balanced",
        reads=[[NO, NO, NO]],
        answer="\\boxed{Bob}, no: \\boxed{{A}da}",
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=0.0,
        boxed="{A}da",
    ),
    Case(
        name="a box without braces",
        reads=[[NO, NO, NO]],
        answer="So \\boxed Ada",
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=1.2,
    ),
    Case(
        name="the other box",
        reads=[[NO, NO, NO]],
        answer="\\fbox{Ada}",
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=1.2,
    ),
    Case(
        name="a wrong answer is worth nothing, however early",
        reads=[[NO, NO, NO]],
        answer="\\boxed{Bob}",
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=0.0,
        boxed="Bob",
    ),
    Case(
        name="an answer without a box is no answer",
        reads=[[NO, NO, NO]],
        answer="Ada",
        kept=[[]],
        memories=[""],
        exit="no_new_evidence",
        reward=0.0,
        boxed="",
    ),
]


def loop_of(**changes: int) -> MemoryLoop:
    chunks = chunk_document("".join(CHUNKS), size=1)
    assert tuple(chunks) == CHUNKS
    return MemoryLoop("Who?", chunks, settings=memory_settings("reference", **changes))


def tell_backwards(loop: MemoryLoop, calls: list[Call], replies: list[str]) -> None:
    for call, reply in reversed(list(zip(calls, replies, strict=True))):
        loop.tell(call.id, reply)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_episode_ends_as_the_released_workflow_is_documented_to(case: Case) -> None:
    loop = loop_of(max_turns=case.max_turns)
    merges = iter(case.merges)
    for turn, replies in enumerate(case.reads, 1):
        reads = loop.ask()
        assert [(call.role, call.turn, call.index) for call in reads] == [
            ("reader", turn, index) for index in range(3)
        ]
        assert {call.memory for call in reads} == {case.memories[turn - 2] if turn > 1 else ""}
        tell_backwards(loop, reads, replies)
        kept = case.kept[turn - 1]
        if kept:
            (merge,) = loop.ask()
            assert (merge.role, merge.turn) == ("merger", turn)
            assert [note.text for note in merge.selected] == kept
            loop.tell(merge.id, next(merges))
        assert loop.memory == case.memories[turn - 1]
    (answer,) = loop.ask()
    assert (answer.role, answer.memory, answer.chunk) == ("answerer", case.memories[-1], "")
    assert not any(chunk.strip() in answer.prompt for chunk in CHUNKS)
    loop.tell(answer.id, case.answer)
    assert loop.phase is Phase.DONE
    assert loop.turn == len(case.reads), "the empty turn counts"
    assert (loop.exit_reason, loop.answer) == (case.exit, case.boxed)
    productive = sum(bool(kept) for kept in case.kept)
    assert len(loop.calls) == 3 * len(case.reads) + productive + 1
    task = ReadingTask(
        task_id="t", question="Who?", document=TextDocument("".join(CHUNKS)), answers=("Ada",)
    )
    settings = reward_settings(match="math_strict", turn_bonus="paper")
    assert episode_reward(loop, task, settings).total == pytest.approx(case.reward)


@pytest.mark.parametrize("role", ["reader", "merger", "answerer"])
def test_a_call_that_fails_ends_the_episode_as_it_ends_a_released_rollout(role: str) -> None:
    loop = loop_of()
    found = role == "merger"
    while True:
        calls = loop.ask()
        if calls[0].role == role:
            break
        tell_backwards(loop, calls, [say("a") if found else NO] * len(calls))
    loop.fail(calls[0].id, "the server answers 400")
    assert (loop.phase, loop.exit_reason, loop.answer) == (Phase.DONE, "backend_error", "")


def test_notes_are_numbered_anew_and_an_empty_memory_is_no_block() -> None:
    loop = loop_of()
    tell_backwards(loop, loop.ask(), [NO, say("bee"), say("sea")])
    (merge,) = loop.ask()
    assert merge.prompt.index('number="1"') < merge.prompt.index("bee")
    assert merge.prompt.index("bee") < merge.prompt.index('number="2"') < merge.prompt.index("sea")
    assert "<memory>" not in merge.prompt
    loop.tell(merge.id, "m1")
    tell_backwards(loop, loop.ask(), [NO, say("bee"), NO])
    assert "<memory>\nm1\n</memory>" in loop.ask()[0].prompt


def test_the_parts_of_a_prompt_come_as_question_memory_section() -> None:
    loop = loop_of()
    tell_backwards(loop, loop.ask(), [NO, say("bee"), NO])
    loop.tell(loop.ask()[0].id, "emm")
    prompt = loop.ask()[0].prompt
    assert prompt.index("Who?") < prompt.index("emm") < prompt.index("alpha")


def test_a_memory_beyond_its_budget_is_not_cut() -> None:
    loop = loop_of(memory_tokens=2)
    tell_backwards(loop, loop.ask(), [NO, say("b"), NO])
    loop.tell(loop.ask()[0].id, "one two three four")
    assert loop.memory == "one two three four"
    assert not loop.turns[0].memory_cut


def test_however_much_there_is_one_call_merges_it() -> None:
    loop = loop_of(window=10)
    tell_backwards(loop, loop.ask(), [say("a " * 500)] * 3)
    (merge,) = loop.ask()
    assert len(merge.selected) == 3
