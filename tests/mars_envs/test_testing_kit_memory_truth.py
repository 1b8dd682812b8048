"""The compliance kit and the truth of reading tasks: who shows it, and who scores without it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mars_envs import ParallelMemoryEnv, TurnBasedMemoryEnv
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.parallel_memory.views import ParallelMemoryView
from mars_envs.testing import check_memory, odd_partner_reader, stub_reading_tasks

STUBS: dict[str, Any] = {
    "tasks": stub_reading_tasks(2, chunks=3),
    "chunk_tokens": 9,
    "prompts": "compact",
}


class Rounds(ParallelMemoryEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**STUBS, **options})


# Hints ----------------------------------------------------------------------------------------


class Hints(Rounds):
    """Says more in the prompts of a role than it should."""

    role = ""

    @abstractmethod
    def hint(self, seen: dict[str, Any]) -> str: ...

    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        more = self.hint(seen) if seen["role"] == self.role else ""
        return {**seen, "prompt": seen["prompt"] + more}


class HintsAtTheAnswer(Hints):
    role = "answerer"

    def hint(self, seen: dict[str, Any]) -> str:
        return self.task.answers[0]


class HintsAtGold(Hints):
    role = "reader"

    def hint(self, seen: dict[str, Any]) -> str:
        return "!" * self._episode.tally.is_gold(seen["chunk_index"])


class HintsAtEvidence(Hints):
    role = "reader"

    def hint(self, seen: dict[str, Any]) -> str:
        return self.task.evidence[0].text


class HintsAtRecall(Hints):
    role = "merger"

    def hint(self, seen: dict[str, Any]) -> str:
        return str(self._episode.tally.gold_recall)


class TurnByTurnHints(TurnBasedMemoryEnv):
    def __init__(self) -> None:
        super().__init__(**STUBS)

    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        more = self.task.answers[0] if seen["role"] == "answerer" else ""
        return {**seen, "prompt": seen["prompt"] + more}


class ViewHints(ParallelMemoryView):
    def __init__(self) -> None:
        super().__init__(**STUBS)

    def step(self, action: Any) -> Any:
        seen, *rest = super().step(action)
        more = self.env.task.answers[0] if seen["prompt"] else ""
        return ({**seen, "prompt": seen["prompt"] + more}, *rest)


class GoldState(Rounds):
    """Shows a critic whether the answer was right."""

    def state(self) -> Any:
        state = super().state()
        state[-1] = self._score.exact_match > 0
        return state


class EndsWithTheAnswer(Rounds):
    """Reads no further turn once the answer is found."""

    def _new_episode(self, index: int) -> Any:
        answer = self._tasks.get(index).task.answers[0]
        turns = 1 if answer.startswith("Ulm") else 2
        self._start_workflow = partial(
            MemoryLoop, settings=memory_settings(max_turns=turns), prompts="compact"
        )
        return super()._new_episode(index)


# Scores ---------------------------------------------------------------------------------------


class Says(Rounds):
    """Says something else in each info."""

    @abstractmethod
    def change(self, info: dict[str, Any]) -> None: ...

    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            self.change(info)
        return infos


class NeverRight(Says):
    def change(self, info: dict[str, Any]) -> None:
        info["exact_match"] = min(info["exact_match"], 0.0)


class CrudeF1(Says):
    def change(self, info: dict[str, Any]) -> None:
        info["f1"] = info["exact_match"]


class CrudeSubEm(Says):
    def change(self, info: dict[str, Any]) -> None:
        info["sub_em"] = info["exact_match"]


class PraisesReaders(Says):
    def change(self, info: dict[str, Any]) -> None:
        info["read_score"] = int(info["status"] in ("yes", "no"))


class SwapsGold(Says):
    def change(self, info: dict[str, Any]) -> None:
        if info["chunk_gold"] >= 0:
            info["chunk_gold"] = 1 - info["chunk_gold"]


class NoGold(Says):
    def change(self, info: dict[str, Any]) -> None:
        info.update(chunk_gold=-1, read_score=0, gold_recall=-1.0)


class AlwaysPays(Rounds):
    """Pays for every answer as if it were right."""

    def step(self, actions: Any) -> Any:
        seen, rewards, ends, cuts, infos = super().step(actions)
        if any(ends.values()):
            for info in infos.values():
                info["reward_answer"] = 1.0
            rewards = {agent: 1.0 + info["reward_turns"] for agent, info in infos.items()}
        return seen, rewards, ends, cuts, infos


class OtherTasks(Rounds):
    """Has an attribute `tasks`, and draws from elsewhere."""

    tasks = STUBS["tasks"]


DIFFERS = r"but another answer and other evidence(.|\n)*: observations of turn {} differs"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (HintsAtTheAnswer, DIFFERS.format(6)),
        (HintsAtGold, DIFFERS.format(0)),
        (HintsAtEvidence, DIFFERS.format(0)),
        (HintsAtRecall, DIFFERS.format(1)),
        (TurnByTurnHints, DIFFERS.format(12)),
        (ViewHints, DIFFERS.format(1)),
        (GoldState, r"state\(\) is (.|\n)* It holds public facts only"),
        (EndsWithTheAnswer, DIFFERS.format(0)),
        (AlwaysPays, "info.'reward_answer'. is 1.0 for the answer 'Ulm Minster' where it is right"),
        (
            NeverRight,
            r"info\['exact_match'\] is 0.0 for the answer 'Ulm Minster' to a question whose "
            "answer is 'Ulm Minster'; expected 1",
        ),
        (CrudeF1, r"info\['f1'\] is 0.0 for .* whose answer is 'the Minster!'; expected 0.666667"),
        (CrudeSubEm, r"info\['sub_em'\] is 0.0 for .* answer is 'the Minster!'; expected 1"),
        (
            PraisesReaders,
            r"info\['read_score'\] of reader_1 must be -1, got 1: it said 'no' in the first turn, "
            "and all of the document is evidence|it said 'yes' of a chunk with chunk_gold 0",
        ),
        (SwapsGold, r"info\['read_score'\] of reader_. must be"),
        (NoGold, r"info\['chunk_gold'\] of reader_0 is -1 for chunk 0 of a document of which all"),
        (OtherTasks, r"(.|\n)*Episodes are drawn from the attribute `tasks`, which the check sets"),
    ],
)
def test_the_kit_finds_an_environment_that_shows_the_truth_or_scores_without_it(
    broken: Callable[[], Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_memory(broken, seeds=())  # no plain episodes: they are as right as others


class FixedTasks(Rounds):
    """Has tasks that cannot be set."""

    @property
    def tasks(self) -> Any:
        return super().tasks


@pytest.mark.parametrize(
    "make",
    [
        FixedTasks,
        lambda: Rounds(match="math_strict", turn_bonus="paper"),
        lambda: Rounds(answer_tokens=1),
        lambda: ParallelMemoryView(partners={"answerer_0": odd_partner_reader}, **STUBS),
    ],
    ids=["fixed", "math_strict", "cut", "partner"],
)
def test_the_kit_accepts_environments_whose_answers_it_cannot_set_or_score(
    make: Callable[[], Any],
) -> None:
    check_memory(make, seeds=())
