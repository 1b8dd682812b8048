"""What a memory environment must make of the truth: it scores and pays by it, and shows it nobody.

The same episode is played about tasks with the same question and document, but with other answers
and other evidence. This is for environments with an attribute `tasks`, a sequence of `ReadingTask`
that can be set between episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..parallel_memory.infos import NOTHING
from ..parallel_memory.replies import Answer, Read
from ..reading.task import Evidence, ReadingTask
from .episodes import Player
from .frames import Frame, assert_same, without
from .memory_infos import SCORES
from .memory_rules import role_of
from .resets import core

TRUTH = ("chunk_gold", "read_score", "gold_recall", *SCORES, "reward_answer", "reward_turns")
"""Infos that know answers or evidence."""
SEED = 0
_DRAWN = "Episodes are drawn from the attribute `tasks`, which the check sets"
SAID = "Ulm Minster"
"""What every agent says, whatever it sees; every other reader finds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Truth:
    """Something that is taken for true of a question, and what `SAID` is worth then."""

    answer: str
    scores: tuple[float, ...]
    """By exact match, F1 and sub-EM."""
    gold: int | None = None
    """Whether all chunks are evidence, 1, or none is, 0; None: what the task says."""

    def of(self, task: ReadingTask) -> ReadingTask:
        """Return the task of which this is true."""
        task = replace(task, answers=(self.answer,), match="any", choices=())
        if self.gold is None:
            return task
        text = task.document.read(0, len(task.document))
        everything = (Evidence(start=0, end=len(text), text=text),)
        return replace(task, evidence=everything if self.gold else (), no_evidence=not self.gold)


TRUTHS = (
    _Truth(answer=SAID, scores=(1.0, 1.0, 1.0), gold=1),
    # A half of the words that were said, which is all that was asked for: 2 / (1 / 0.5 + 1 / 1).
    _Truth(answer="the Minster!", scores=(0.0, 2 / 3, 1.0)),
    _Truth(answer="Zzyzx", scores=(0.0, 0.0, 0.0), gold=0),
)


def check_truth(player: Player, make_env: Callable[[], Any]) -> None:
    """Check that answers and evidence change scores and rewards, and nothing else.

    Raises:
        AssertionError: they change more, or less.
    """
    env = make_env()
    tasks: Any = getattr(core(env), "tasks", ())
    if len(tasks) and isinstance(tasks[0], ReadingTask) and _set_task(env, tasks[0]):
        form = replace(player.form, policy=_say)  # type: ignore[type-var]
        _check_task(replace(player, form=form), env, tasks[0])
    env.close()


def _set_task(env: Any, task: ReadingTask) -> bool:
    """Let all episodes be about one task; False: the tasks of this environment cannot be set."""
    try:
        core(env).tasks = [task]
    except AttributeError:
        return False
    return True


def _check_task(player: Player, env: Any, task: ReadingTask) -> None:
    traces: list[list[Frame]] = []
    rewards: list[float] = []
    for truth in TRUTHS:
        _set_task(env, truth.of(task))
        trace = player.play(env, SEED)
        traces.append(trace)
        assert_same(
            [without(frame, TRUTH) for frame in traces[0]],
            [without(frame, TRUTH) for frame in trace],
            "an episode, and one about a task with the same question and document, but another "
            f"answer and other evidence (only {', '.join(TRUTH)} and the reward may know them: no "
            "observation, no state, no course of the episode)",
        )
        for frame in trace:
            _check_reads(frame, truth)
            rewards += _check_answer(frame, truth)
    if rewards:
        right, wrong = rewards[0], rewards[-1]
        assert right > wrong, (
            f"info['reward_answer'] is {right!r} for the answer {SAID!r} where it is right, and "
            f"{wrong!r} where {TRUTHS[-1].answer!r} is; what is right is paid more"
        )


def _check_reads(frame: Frame, truth: _Truth) -> None:
    """Check what those are told who read, of whether there was evidence."""
    if truth.gold is None:
        return
    for agent in frame["actions"]:
        info = frame["infos"][agent]
        if info["chunk_index"] == NOTHING:
            continue
        which = "all of the document" if truth.gold else "nothing"
        assert info["chunk_gold"] == truth.gold, (
            f"info['chunk_gold'] of {agent} is {info['chunk_gold']} for chunk "
            f"{info['chunk_index']} of a document of which {which} is evidence. {_DRAWN}"
        )
        # Later on, what is found already is no news.
        if info["turn"] == 1 and info["status"] in ("yes", "no"):
            right = (info["status"] == "yes") == bool(truth.gold)
            expected = 1 if right else -1
            assert info["read_score"] == expected, (
                f"info['read_score'] of {agent} must be {expected}, got {info['read_score']}: it "
                f"said {info['status']!r} in the first turn, and {which} is evidence"
            )


def _check_answer(frame: Frame, truth: _Truth) -> list[float]:
    """Check the scores in the frame in which the answer was given, and return its reward.

    There is none in other frames, and where the answer is a partner's, or was cut.
    """
    answered = [agent for agent, text in frame["actions"].items() if text == Answer(SAID)]
    if not answered:
        return []
    info = frame["infos"][answered[0]]
    if info["stop_reason"] != "answered" or info["reply_truncated"]:
        return []
    for key, expected in zip(SCORES, truth.scores, strict=True):
        assert abs(info[key] - expected) < 1e-6, (
            f"info[{key!r}] is {info[key]!r} for the answer {SAID!r} to a question whose answer is "
            f"{truth.answer!r}; expected {expected:.6g}. {_DRAWN}"
        )
    return [float(info["reward_answer"])]


def _say(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> str:
    if role_of(agent) == "reader":
        return Read.no() if info["ask_id"] % 2 else Read.yes(SAID)
    return Answer(SAID) if role_of(agent) == "answerer" else SAID
